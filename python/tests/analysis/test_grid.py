"""Axes and groups of small grids by hand; sign errors and information against loops over pairs."""

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from basin.analysis import grid


def full(**lists):
    table = pd.DataFrame({"run_id": []})
    table = pd.MultiIndex.from_product(lists.values(), names=lists.keys()).to_frame(index=False)
    return table.assign(run_id=[f"r{i}" for i in range(len(table))], config_id=[f"c{i}" for i in range(len(table))])


def test_axes_are_options_that_nothing_else_decides():
    configs = full(batch_size=[32, 256, 2048], optimizer=["sgd", "lamb"])
    configs["learning_rate"] = 0.1 * configs.batch_size * np.where(configs.optimizer == "sgd", 1, 3)  # tuned for each
    configs["lamb.beta1"] = np.where(configs.optimizer == "lamb", 0.9, np.nan)
    configs["updates"], configs["train_loss"], configs["weight_norm"] = 7, np.arange(6.0), np.arange(6.0)  # outcomes
    configs["dataset.n_train"] = np.arange(6)
    configs["epochs"] = 1.0
    options = ["batch_size", "optimizer", "learning_rate", "lamb.beta1"]
    assert grid.axes_of(configs, options) == ["optimizer", "batch_size"]
    crossed = full(batch_size=[32, 256], learning_rate=[0.1, 0.2])
    assert grid.axes_of(crossed, ["batch_size", "learning_rate"]) == ["batch_size", "learning_rate"]
    assert grid.axes_of(full(batch_size=[32]), ["batch_size"]) == []
    repeated = full(batch_size=[32, 256]).assign(seed=[1, 2], protocol=["A-updates", "B"])
    assert grid.axes_of(repeated, ["batch_size", "seed", "protocol"]) == ["batch_size"]


def test_groups_and_environments():
    configs = full(batch_size=[32, 256, 2048], optimizer=["sgd", "lars", "lamb"]).drop(index=8).reset_index(drop=True)
    axes = grid.axes_of(configs, ["batch_size", "optimizer"])
    found = {axis: sorted(sorted(g.tolist()) for g in some) for axis, some in grid.groups(configs, axes).items()}
    assert found["batch_size"] == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert found["optimizer"] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    named = grid.environments(configs, axes)
    assert {(axis, *sorted((a, b))): len(p) for (axis, a, b), p in named.items()} == {
        ("batch_size", "256", "32"): 3, ("optimizer", "lars", "sgd"): 3}  # fmt: skip
    for (axis, a, b), pairs in named.items():
        assert [str(v) for v in configs[axis].to_numpy()[pairs].T.ravel()] == [a] * 3 + [b] * 3


def sign_error_by_hand(configs, x, y):
    """Every pair of levels of either axis, all pairs of configurations alike otherwise, certain of y."""
    worst, best = [], []
    for axis, other in (("batch_size", "optimizer"), ("optimizer", "batch_size")):
        for a, b in combinations(sorted(configs[axis].unique()), 2):
            wrong = []
            for level in configs[other].unique():
                i, j = (configs.index[(configs[axis] == v) & (configs[other] == level)][0] for v in (a, b))
                sign = np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])
                wrong.append({1: 0.0, 0: 0.5, -1: 1.0}[sign])
            worst.append(np.mean(wrong))
            best.append(1 - np.mean(wrong))
    return min(max(worst), max(best))


def test_robust_sign_error_is_the_worst_environments():
    configs = full(batch_size=[32, 256, 2048, 4096], optimizer=["sgd", "lars", "lamb"])
    random = np.random.default_rng(1)
    for _ in range(5):
        x, y = random.integers(0, 6, 12).astype(float), random.normal(size=12)
        found = grid.robust_sign_error(configs, ["optimizer", "batch_size"], x, y, np.zeros(12))
        assert found.value == pytest.approx(sign_error_by_hand(configs, x, y), abs=1e-12)
    perfect = grid.robust_sign_error(configs, ["optimizer", "batch_size"], -y, y, np.zeros(12))
    assert perfect.value == 0 and perfect.p == pytest.approx(1 / 500)  # a measure of flatness is as good as one of sharpness


def test_pairs_whose_order_is_not_known_count_less():
    # At 32 and at 256 against 2048 the measure is right where y is far apart and wrong where y hardly differs.
    configs = full(batch_size=[32, 2048], optimizer=["sgd", "lars", "lamb"])
    y = np.array([0.0, 0, 0, 10, 10, -0.01])
    x = np.array([0.0, 0, 0, 1, 1, 1])
    sure = grid.order_certainty(y, np.full(6, 1.0))
    assert sure[0, 3] > 0.999999 and sure[2, 5] == pytest.approx(0.00564, abs=1e-4)  # 2 Phi(0.01 / sqrt 2) - 1
    found = grid.robust_sign_error(configs, ["batch_size"], x, y, np.full(6, 1.0))
    assert found.value < 0.01
    assert grid.robust_sign_error(configs, ["batch_size"], x, y, np.zeros(6)).value == pytest.approx(1 / 3)
    assert "of which the target's order is known" in grid.robust_sign_error(configs, ["batch_size"], x, y, np.full(6, 1e3)).why


def information_by_hand(configs, names, x, y):
    """I(Vx; Vy | U) / H(Vy | U) from dictionaries of counts."""
    joint = Counter()
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:
                u = (tuple(configs.loc[i, names]), tuple(configs.loc[j, names]))
                joint[u, np.sign(x[i] - x[j]), np.sign(y[i] - y[j])] += 1
    total = sum(joint.values())
    marginal = {k: Counter() for k in ("u", "ux", "uy")}
    for (u, a, b), n in joint.items():
        for key, name in (((u,), "u"), ((u, a), "ux"), ((u, b), "uy")):
            marginal[name][key] += n
    information = sum(n / total * np.log(n * marginal["u"][u,] / marginal["ux"][u, a] / marginal["uy"][u, b])
                      for (u, a, b), n in joint.items())  # fmt: skip
    entropy = -sum(n / total * np.log(n / marginal["u"][key[0],]) for key, n in marginal["uy"].items())
    return information / entropy if entropy > 1e-9 else np.inf


def test_information_is_that_of_counted_pairs():
    configs = full(batch_size=[32, 256, 2048], optimizer=["sgd", "lars", "lamb"])
    random = np.random.default_rng(2)
    for _ in range(3):
        x, y = random.integers(0, 5, 9).astype(float), random.normal(size=9)
        sets = [[], ["batch_size"], ["optimizer"], ["batch_size", "optimizer"]]
        expected = min(information_by_hand(configs, names, x, y) for names in sets)
        assert grid.conditional_information(configs, ["batch_size", "optimizer"], x, y).value == pytest.approx(
            expected, abs=1e-12
        )


def test_information_is_one_for_the_target_itself_and_none_for_an_axis():
    configs = full(batch_size=[32, 256, 2048, 4096], optimizer=["sgd", "lars", "lamb"])
    random = np.random.default_rng(3)
    y = np.log2(configs.batch_size.to_numpy(float)) + 0.1 * random.normal(size=12)
    assert grid.conditional_information(configs, ["batch_size", "optimizer"], 2 * y, y).value == pytest.approx(1.0)
    size = configs.batch_size.to_numpy(float)  # tells all of y, but nothing once the batch size is known
    found = grid.conditional_information(configs, ["batch_size", "optimizer"], size, y)
    assert found.value == pytest.approx(0.0, abs=1e-12)
