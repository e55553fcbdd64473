"""Golden traces of the presets of LARS and LAMB: what other code bases, and the papers, do step by step.

    optim_presets.py            compares tests/optim/golden_presets.h with what this program computes
    optim_presets.py --write    writes that file
    optim_presets.py --peers    also compares the rules with the packages themselves

Not in CI: --peers wants an environment with torch and any of timm, optax, torch_optimizer (0.3, with
pytorch_ranger) and pytorch_optimizer (3.10); it skips what cannot be imported. The others are not on PyPI or
don't build today.

The rules are in _lars_presets.py and _lamb_presets.py. Each trace changes the rate at every step, and the
ratio changes too: a rate or a ratio on the wrong side of the buffer shows. The scenes have a weight whose
gradient is zero in the first step, one where that comes later, a weight and a bias that start at zero, and
biases and norms, which some presets exclude. Scenes of their own make the clips act in one step and not in
another; that they do is checked here too, and that the traces can tell the presets apart.
"""

import itertools
import pathlib

import numpy as np

import _lamb_presets
import _lars_presets
from _lars_presets import Tensor
from _oracle import compare, golden_header, keep_file
from optim_golden import braces, nested, norm, toml

HEADER = pathlib.Path(__file__).resolve().parents[1] / "optim" / "golden_presets.h"


class Scene:
    """Tensors, as (name, kind, start, gradient of each step), and the rate of each step."""

    def __init__(self, rates, *tensors):
        self.rates = rates
        self.names, self.kinds, self.start, gradients = (list(column) for column in zip(*tensors))
        self.gradients = [list(step) for step in zip(*gradients)]

    def at(self, rates, kind=None):
        """The same tensors, all or those of a kind, at other rates."""
        keep = [n for n, k in enumerate(self.kinds) if kind is None or k == kind]
        return Scene(rates, *((self.names[n], self.kinds[n], self.start[n], [g[n] for g in self.gradients]) for n in keep))


ALL = Scene(
    [0.5, 2.0, 1.0],
    ("fc.weight", "weight", [0.5, -1.25, 2.0], [[0.3, 0.2, -0.6], [0.0, 0.0, 0.0], [-0.15, 0.7, 0.1]]),
    ("late.weight", "weight", [-0.8, 0.6], [[0.0, 0.0], [0.05, -0.4], [-0.3, 0.2]]),
    ("zero.weight", "weight", [0.0, 0.0], [[0.05, -0.4], [0.3, 0.1], [-0.2, 0.2]]),
    ("fc.bias", "bias", [0.25, -0.75], [[-1.0, 0.5], [0.2, 0.0], [0.0, -0.3]]),
    ("norm.weight", "norm_weight", [1.0, 1.5], [[0.125, -0.25], [-0.5, 0.75], [0.0, 0.0]]),
    ("norm.bias", "norm_bias", [0.0], [[0.5], [-0.25], [0.1]]),
)
SCENES = {
    "lars_all": ALL,
    "lars_weights": ALL.at(ALL.rates, kind="weight"),
    "lars_small_rate": ALL.at([0.01, 0.5, 0.02]),
    "lars_steep": Scene(
        [0.05, 0.2, 0.1],
        ("tiny.weight", "weight", [3.0, -4.0], [[1e-6, 2e-6], [0.3, 0.4], [12.0, -0.5]]),
        ("steep.weight", "weight", [4.0, 1.0], [[9.9, -3.0], [9.0, -20.0], [1.0, 1.0]]),
        ("fc.bias", "bias", [0.5, -0.5], [[-30.0, 2.0], [1.0, 1.0], [0.0, 5.0]]),
    ),
    "lamb_all": ALL.at([0.02, 0.1, 0.05]),
    "lamb_weights": ALL.at([0.02, 0.1, 0.05], kind="weight"),
    "lamb_long": Scene(
        [0.05, 0.1, 0.02],
        ("shrinking.weight", "weight", [8.0, 6.2], [[1.0, 0.5], [0.5, 1.0], [1.0, 1.0]]),
        ("growing.weight", "weight", [7.0, 6.9], [[-0.5, -1.0], [-1.0, -0.5], [0.0, 0.0]]),
        ("fc.bias", "bias", [-12.0, 3.0], [[0.1, 0.2], [-0.3, 0.2], [0.4, 0.0]]),
    ),
}
RULES = {"lars": _lars_presets.RULES, "lamb": _lamb_presets.RULES}
NO_EPS = {"paper", "nvcaffe", "tf_models", "kozistr", "lamb_paper"}  # among the LARS
LONG = ("cybertron", "jettify", "kozistr")  # among the LAMB: a norm of at most 10


def lars_cases(preset):
    scene = {"paper": "lars_weights", "lamb_paper": "lamb_weights"}.get(preset, "lars_all")
    yield scene, {"weight_decay": 0.05, "momentum": 0.8}
    yield scene, {"weight_decay": 0.0, "momentum": 0.8}
    other = {"weight_decay": 0.02, "momentum": 0.5}
    if preset != "lamb_paper":
        other["trust_coefficient"] = 0.1
    if preset not in NO_EPS:
        other["eps"] = 0.2
    yield scene, other
    if preset == "apex":
        yield "lars_small_rate", {"weight_decay": 0.05, "momentum": 0.8}
    if preset == "nus":
        yield "lars_steep", {"weight_decay": 0.05, "momentum": 0.8}
        yield "lars_steep", {"weight_decay": 0.0, "momentum": 0.8}


def lamb_cases(preset):
    scene = "lamb_weights" if preset == "paper" else "lamb_all"
    yield scene, {"weight_decay": 0.05}
    yield scene, {"weight_decay": 0.0}
    yield scene, {"weight_decay": 0.02, "beta1": 0.5, "beta2": 0.75, "eps": 0.01}
    if preset in LONG:
        yield "lamb_long", {"weight_decay": 0.05}
        yield "lamb_long", {"weight_decay": 0.0}


def all_cases():
    """Optimiser, preset, name of the scene and settings of every trace."""
    for optimizer, cases in (("lars", lars_cases), ("lamb", lamb_cases)):
        for preset in RULES[optimizer]:
            for scene, settings in cases(preset):
                yield optimizer, preset, scene, settings


def trace(optimizer, preset, scene, settings):
    """After each step: the weights of every tensor, and its ratio (None: excluded)."""
    tensors = [Tensor(kind, start) for kind, start in zip(scene.kinds, scene.start)]
    steps = []
    for t, (gradients, lr) in enumerate(zip(scene.gradients, scene.rates), start=1):
        for x, gradient in zip(tensors, gradients):
            x.g = np.array(gradient)
        RULES[optimizer][preset](tensors, lr, **({"t": t} if optimizer == "lamb" else {}), **settings)
        ratios = [None if x.ratio is None else float(x.ratio) for x in tensors]
        steps.append(([x.w.tolist() for x in tensors], ratios))
    return steps


def scene_lines(name, scene):
    quoted = ["{" + ", ".join(f'"{word}"' for word in words) + "}" for words in (scene.names, scene.kinds)]
    yield f"inline const Scene {name}{{"
    yield f"    {quoted[0]},"
    yield f"    {quoted[1]},"
    yield f"    {nested(scene.start)},"
    yield "    {" + ",\n     ".join(nested(g) for g in scene.gradients) + "},"
    yield f"    {braces(scene.rates)}}};"


def trace_lines(optimizer, preset, name, settings):
    quoted = ", ".join(f'"{key}={toml(value)}"' for key, value in settings.items())
    yield f'    {{"{optimizer}", "{preset}", {{{quoted}}}, {name},'
    steps = [
        f"{{{braces([*itertools.chain(*weights)])}, {braces(ratios)}}}"
        for weights, ratios in trace(optimizer, preset, SCENES[name], settings)
    ]
    yield "     {" + ",\n      ".join(steps) + "}},"


def header():
    lines = [
        "/// Tensors and what happens to them: gradients [step][tensor][element] and the rate of each step.",
        "struct Scene {",
        "  std::vector<std::string> names, kinds;",
        "  std::vector<std::vector<double>> start;",
        "  std::vector<std::vector<std::vector<double>>> gradients;",
        "  std::vector<double> rates;",
        "};",
        "/// After a step: the weights of all tensors in a row, and of each tensor the factor on this step",
        "/// apart from the rate, as the code base defines it (NAN: excluded from trust ratios).",
        "struct PresetStep {",
        "  std::vector<double> weights, trust_ratios;",
        "};",
        "struct PresetTrace {",
        "  std::string optimizer, preset;",
        "  std::vector<std::string> settings;",
        "  Scene scene;",
        "  std::vector<PresetStep> steps;",
        "};",
        "",
    ]
    for name, scene in SCENES.items():
        lines += scene_lines(name, scene)
    lines += ["", "inline const std::vector<PresetTrace> preset_traces{"]
    for case in all_cases():
        lines += trace_lines(*case)
    return golden_header("golden traces of LARS' and LAMB's presets", "optim_presets.py", [*lines, "};"])


def both_ways(what, values, acts):
    """A comparison that fails unless `acts` holds for some of the values and not for others."""
    verdicts = [acts(value) for value in values]
    compare(f"{what} in one step and not in another", [any(verdicts), all(verdicts)], [True, False], why="both happen")


def ratios_of(optimizer, preset, scene, settings, tensor):
    column = SCENES[scene].names.index(tensor)
    return [ratios[column] for _, ratios in trace(optimizer, preset, SCENES[scene], settings)]


def norms_before(optimizer, preset, scene, settings, tensor):
    column = SCENES[scene].names.index(tensor)
    steps = trace(optimizer, preset, SCENES[scene], settings)
    before = [SCENES[scene].start[column]] + [weights[column] for weights, _ in steps[:-1]]
    return [norm(np.array(w)) for w in before]


def check_scenes():
    """Every clip acts in one step and not in another."""
    decay = {"weight_decay": 0.05}
    momentum = {"momentum": 0.8}
    ratios = ratios_of("lars", "apex", "lars_small_rate", {**decay, **momentum}, "late.weight")
    both_ways("apex: LARS at the rate itself", ratios[1:], lambda r: r == 1.0)  # the first has no gradient
    ratios = ratios_of("lars", "nus", "lars_steep", {"weight_decay": 0.0, **momentum}, "tiny.weight")
    both_ways("nus: a ratio of 50", ratios, lambda r: r == 50.0)
    for column, name in enumerate(SCENES["lars_steep"].names):
        both_ways(
            f"nus: elements of {name} above 10",
            [g[column] for g in SCENES["lars_steep"].gradients],
            lambda g: max(map(abs, g)) > 9.8,
        )  # the decay of steep.weight lifts its 9.9 above 10
    both_ways("a global norm above 1", SCENES["lamb_all"].gradients, lambda g: norm(np.concatenate(g)) > 1)
    both_ways("timm_clip: a ratio of 1", ratios_of("lamb", "timm_clip", "lamb_all", decay, "late.weight"), lambda r: r == 1.0)
    for preset in LONG:
        for tensor in ("shrinking.weight", "growing.weight"):
            both_ways(
                f"{preset}: the norm of {tensor} above 10",
                norms_before("lamb", preset, "lamb_long", decay, tensor),
                lambda n: n > 10,
            )


def check_presets_differ():
    """On the same scenes, only presets known to compute the same agree: the traces can tell the others
    apart."""
    twins = {"lars": {("tf_models", "optax")}, "lamb": {("cybertron", "jettify"), ("paper", "addons", "optax")}}
    for optimizer, settings in (("lars", {"momentum": 0.8}), ("lamb", {})):
        families = {}
        for preset in RULES[optimizer]:
            scene, both = SCENES[f"{optimizer}_all"], ({"weight_decay": wd, **settings} for wd in (0.05, 0.0))
            weights = [trace(optimizer, preset, scene, given)[-1][0] for given in both]
            rounded = np.round(np.concatenate([*itertools.chain(*weights)]), 9)
            families.setdefault(tuple(rounded), []).append(preset)
        found = {tuple(family) for family in families.values() if len(family) > 1}
        compare(
            f"presets of {optimizer} that compute the same: {sorted(found)}",
            found == twins[optimizer],
            True,
            why=f"expected {sorted(twins[optimizer])}",
        )


def check_traces():
    check_scenes()
    check_presets_differ()


def compare_with_peers():
    import _preset_peers

    _preset_peers.compare_all(list(all_cases()), SCENES, trace)


if __name__ == "__main__":
    keep_file(__doc__, HEADER, header(), check_traces, compare_with_peers)
