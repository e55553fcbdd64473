"""basin.measure() with problems in numpy: numbers against closed forms and dense matrices, and what goes wrong on the way."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import traceback

import numpy as np
import pytest

import basin
from basin_program import BASIN, needs_program, output
from numpy_problems import Quadratic, TwoLayers

pytestmark = needs_program
SUPPORT = pathlib.Path(__file__).parents[1] / "support"  # numpy_problems


def measured(problem, *probes, **named):
    return basin.measure(problem, probes, progress=False, **named)


def value(table, name):
    [row] = table[table.entry == name].itertuples()
    return row.value


# ---- numbers


def test_a_quadratic_has_the_eigenvalues_and_the_trace_of_its_matrix():
    table = measured(
        Quadratic(), "top_eigenvalues", "curvature", options={"top_eigenvalues.count": 3, "top_eigenvalues.tolerance": 1e-9}
    )
    top = table[table.probe == "top_eigenvalues"]
    assert [value(top, f"lambda_{i}") for i in (1, 2, 3)] == pytest.approx([9, 4, 2.5], abs=1e-9)
    assert value(top, "lambda_min") == pytest.approx(-0.25, abs=1e-9)
    assert set(top.uncertainty_kind) >= {"residual"} and (top.uncertainty.dropna() >= 0).all()
    [trace] = table[table.quantity == "trace"].itertuples()
    assert abs(trace.value - 16.75) <= 4 * trace.uncertainty + 1e-9


def test_a_quadratic_has_the_noise_scale_of_its_centres():
    problem = Quadratic()
    table = measured(problem, "noise_scale", options={"noise_scale.estimator": "per_example"})
    covariance = problem.matrix @ np.cov(problem.centres.T) @ problem.matrix
    assert value(table, "tr_sigma") == pytest.approx(np.trace(covariance), rel=1e-12)


def test_sharpness_of_a_quadratic():
    problem = Quadratic()
    table = measured(problem, "sharpness_sam", options={"sharpness_sam.rhos": [0.05]})
    gradient = problem.gradient(problem.own)[1]
    step = 0.05 * gradient / np.linalg.norm(gradient)
    assert value(table, "sam_first_5e-2") == pytest.approx(0.05 * np.linalg.norm(gradient), rel=1e-12)
    assert value(table, "sam_5e-2") == pytest.approx(gradient @ step + 0.5 * step @ problem.matrix @ step, rel=1e-10)


def test_two_layers_have_the_spectrum_of_their_dense_hessian():
    problem = TwoLayers()
    w, h = problem.own, 1e-5
    dense = np.stack([problem.product(w, unit) for unit in np.eye(25)])
    differences = [(problem.gradient(w + h * unit)[1] - problem.gradient(w - h * unit)[1]) / (2 * h) for unit in np.eye(25)]
    assert np.allclose(dense, np.stack(differences), atol=1e-8)  # h^2 and rounding over h
    table = measured(problem, "top_eigenvalues", "sharpness_keskar", options={"top_eigenvalues.tolerance": 1e-9})
    assert value(table, "lambda_1") == pytest.approx(np.linalg.eigvalsh(dense)[-1], rel=1e-9)
    assert value(table, "phi_full_1e-3") > 0


def test_in_float32_too():
    table = measured(Quadratic(dtype="float32"), "top_eigenvalues")
    assert value(table, "lambda_1") == pytest.approx(9, rel=1e-3)  # the default tolerance


# ---- tables and files


def test_every_probe_has_a_number_or_says_what_it_lacks(tmp_path):
    table = measured(TwoLayers(), out=tmp_path)
    listed = json.loads(output("inspect", "--list", "probes", "--json"))
    assert list(dict.fromkeys(table.probe)) == [entry["name"] for entry in listed["entries"]]
    for entry in listed["entries"]:
        rows = table[table.probe == entry["name"]]
        if {"logits", "layers"} & set(entry["needs"]):
            assert list(rows.status) == ["unavailable"]
            assert "which this problem doesn't answer" in rows.message.iloc[0]
            assert np.isnan(rows.value.iloc[0])
        else:
            assert (rows.status != "failed").all(), rows.message.iloc[0]
        result = basin.read_probe(tmp_path / "probes" / f"end.{entry['name']}.h5")
        assert (result.status, result.checkpoint) == (rows.status.iloc[0] if result.table.empty else result.status, "end")
        assert result.attributes["n_examples"] == 40


def test_answers_that_are_left_out_are_named():
    class NoBatches(Quadratic):
        batch_gradient = basin.Problem.batch_gradient

    table = measured(NoBatches(), "top_eigenvalues", "noise_scale")
    assert set(table[table.probe == "top_eigenvalues"].status) == {"ok"}
    [row] = table[table.probe == "noise_scale"].itertuples()
    assert row.status == "unavailable"
    assert row.message == "needs the gradient of a weighted batch (batch_gradient), which this problem doesn't answer"


def test_the_same_seed_gives_the_same_bits(tmp_path):
    first, again, other = [measured(TwoLayers(), "sharpness_keskar", "noise_scale", seed=seed) for seed in (3, 3, 4)]
    assert first.value.equals(again.value) and not first.value.equals(other.value)


def test_nothing_has_a_name_in_shared_memory():
    class Looks(Quadratic):
        def product(self, w, v):
            self.names = os.listdir("/dev/shm")
            return super().product(w, v)

    before, problem = os.listdir("/dev/shm"), Looks()
    measured(problem, "top_eigenvalues")
    assert set(problem.names) <= set(before)


def test_progress_is_a_line_for_each_probe(capfd):
    basin.measure(Quadratic(), ["top_eigenvalues", "noise_scale"])
    assert capfd.readouterr().err == "measuring 1/2: top_eigenvalues\nmeasuring 2/2: noise_scale\n"


# ---- what the user's code does


class Boom(Exception):
    pass


def test_an_exception_in_the_problem_is_raised_as_it_is():
    class Fails(Quadratic):
        def product(self, w, v):
            if not np.array_equal(v, np.zeros(6)):
                raise Boom("mine")
            return v

    problem = Fails()
    with pytest.raises(Boom, match="mine") as caught:
        measured(problem, "top_eigenvalues")
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "product"
    assert problem.restored == 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_problem_is_restored(fails):
    problem = Quadratic()
    if fails:
        problem.examples = 0
        with pytest.raises(basin.MeasureError, match='"examples" is no number of at least 1'):
            measured(problem, "top_eigenvalues")
    else:
        measured(problem, "sharpness_keskar")
    assert problem.restored == 1


def variant(**methods):
    return type("Variant", (Quadratic,), methods)()


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (variant(gradient=lambda self, w: (1.0, np.zeros(5))), "the gradient (gradient): 5 numbers; the parameters have 6"),
        (variant(losses=lambda self, w, index: np.zeros(3)), "losses by example (losses): 3 numbers for 64 examples"),
        (variant(loss=lambda self, w: np.nan), "the loss (loss): not finite at the problem's own weights"),
        (variant(product=lambda self, w, v: v * np.nan), "Hessian-vector products (product): not finite at the problem's own weights"),
        (variant(loss=lambda self, w: np.random.default_rng().random()), "the examples must be the same each time"),
        (variant(losses=lambda self, w, index: np.random.default_rng().permutation(Quadratic.losses(self, w, index))), "in the same order"),
        (variant(product=lambda self, w, v: self.matrix @ v + np.roll(v, 1)), "the products are not those of a Hessian"),
        (variant(weights=lambda self: np.ones(7)), "weights() has 7 numbers; the parameters have 6"),
        (variant(weights=lambda self: np.full(6, np.nan)), "a weight of the problem is not finite"),
        (variant(dtype="float16"), 'dtype "float16" is not float32 or float64'),
        (variant(answers=lambda self: []), "answers nothing"),
        (variant(parameters=(basin.Parameter("w", (6,), "kernel"),)), 'w: no kind "kernel"'),
        (variant(parameters=(basin.Parameter("w", (3,)),) * 2), 'two parameters are named "w"'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(problem, said):
    problem.dtype = type(problem).__dict__.get("dtype", problem.dtype)
    problem.parameters = type(problem).__dict__.get("parameters", problem.parameters)
    with pytest.raises(basin.MeasureError) as caught:
        measured(problem, "top_eigenvalues")
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert problem.restored == 1


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"options": {"top_eigenvalues.cuont": 3}}, 'unknown key "top_eigenvalues.cuont"'),
        ({"options": {"probes.subset": 3}}, "examples and type are those of the problem"),
        ({"silence": -1.0}, "--silence"),
        ({"program": "/nowhere/basin"}, "/nowhere/basin"),
    ],
)
def test_what_was_asked_wrongly_is_one_line(named, said):
    with pytest.raises((basin.MeasureError, FileNotFoundError)) as caught:
        measured(Quadratic(), "top_eigenvalues", **named)
    assert said in str(caught.value)


def test_an_unknown_probe_is_named():
    with pytest.raises(basin.MeasureError, match="top_eigenvalue"):
        measured(Quadratic(), "top_eigenvalue")


# ---- processes


def engines(folder):
    """Processes that write to this folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"measure" in words and str(folder).encode() in words:
            found.append(int(path.parent.name))
    return found


def wait_until(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "never happened"
        time.sleep(0.05)


SLOW = """
import pathlib, signal, sys, time
import basin
from numpy_problems import Quadratic
out = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in a shell's background
class Slow(Quadratic):
    def product(self, w, v):
        (out / "asked").touch()
        time.sleep(60)
    def restore(self):
        (out / "restored").touch()
basin.measure(Slow(), ["top_eigenvalues"], out=out)
"""


def slow_process(folder):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(SUPPORT), os.environ["PYTHONPATH"]]))
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(folder)], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_until(lambda: (folder / "asked").exists())
    assert len(engines(folder)) == 1
    return process


def test_ctrl_c_restores_and_leaves_nothing_behind(tmp_path):
    process = slow_process(tmp_path)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    errors = process.communicate(timeout=30)[1]
    assert "KeyboardInterrupt" in errors and "in product" in errors
    assert (tmp_path / "restored").exists()
    assert not engines(tmp_path)


def test_the_engine_ends_with_whoever_answers(tmp_path):
    process = slow_process(tmp_path)
    process.kill()
    process.communicate()
    wait_until(lambda: not engines(tmp_path), seconds=10)


def test_an_engine_that_is_killed_is_one_line(tmp_path):
    class Kills(Quadratic):
        def product(self, w, v):
            [engine] = engines(tmp_path)
            os.kill(engine, signal.SIGKILL)
            return super().product(w, v)

    problem = Kills()
    with pytest.raises(basin.MeasureError, match="the program ended with code -9"):
        measured(problem, "top_eigenvalues", out=tmp_path)
    assert problem.restored == 1


def test_a_silent_process_is_given_up(tmp_path):
    """A hello, and then nothing: no answer, no sign of life."""
    from basin.answering import SharedVectors, Words, hello

    problem = Quadratic()
    vectors = SharedVectors(6, "float64", problem.examples)
    vectors.weights[:] = problem.own
    ours, theirs = socket.socketpair()
    with theirs:
        command = [BASIN, "measure", "--words", str(theirs.fileno()), "--memory", str(vectors.descriptor)]
        command += ["--out", str(tmp_path), "--silence", "0.5"]
        engine = subprocess.Popen(command, pass_fds=[theirs.fileno(), vectors.descriptor], stderr=subprocess.PIPE, text=True)
    Words(ours).say(hello(problem))
    errors = engine.communicate(timeout=60)[1]
    assert engine.returncode == 3
    assert errors == "basin: the process that answers has given no sign of life for 0.5 s\n"
    vectors.close()


def test_a_slow_answer_is_no_silence():
    class Slow(Quadratic):
        slept = False

        def product(self, w, v):
            if not self.slept:
                self.slept = True
                time.sleep(2.5)
            return super().product(w, v)

    assert value(measured(Slow(), "top_eigenvalues", silence=1.0), "lambda_1") == pytest.approx(9, rel=1e-3)
