"""basin.landscape() with problems in numpy: values against the problems' own losses and closed forms, and what is refused."""

import numpy as np
import pytest

import basin
from basin.figures import landscape_grids as grids
from basin.figures import landscape_paths as paths
from basin_program import needs_program
from numpy_problems import Quadratic, TwoLayers

pytestmark = needs_program


class Recording(TwoLayers):
    """Knows at which weights its losses were asked for, all 40 of them."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def losses(self, w, index):
        if len(index) == self.examples:
            self.asked.append(np.array(w))
        return super().losses(w, index)


def points(problem, plot):
    """The weights of the grid's points, its last ones asked for."""
    return np.array(problem.asked[-plot.state.size :]).reshape(*plot.state.shape, -1)


def around(problem, kind, **named):
    return basin.landscape(problem, kind, progress=False, **named)


def test_a_plane_has_the_losses_of_its_points():
    problem = Recording()
    plot = around(problem, "plane", options={"plane.alpha_points": 5, "plane.beta_points": 3, "plane.beta": [-0.5, 0.5]}).plot
    assert list(plot.axes["alpha"]) == [-1, -0.5, 0, 0.5, 1] and list(plot.axes["beta"]) == [-0.5, 0, 0.5]
    at = points(problem, plot)
    losses = np.apply_along_axis(lambda w: problem.losses(w, np.arange(40)), 2, at)
    assert plot["train_loss"] == pytest.approx(losses.mean(2), rel=1e-14)
    assert plot["train_loss_error"] == pytest.approx(losses.std(2, ddof=1) / np.sqrt(40), rel=1e-12)
    assert np.array_equal(at[1, 2], problem.own) and (plot.state == 1).all()
    alpha, beta = at[1, 4] - problem.own, 2 * (at[2, 2] - problem.own)
    assert at == pytest.approx(
        problem.own + plot.axes["alpha"][:, None] * alpha + plot.axes["beta"][:, None, None] * beta, abs=1e-14
    )
    rows = [problem.own[:15].reshape(5, 3), problem.own[15:].reshape(2, 5)]
    for direction in (alpha, beta):  # a direction's filters are as long as the weights' own (Li et al. 2018)
        for moved, own in zip([direction[:15].reshape(5, 3), direction[15:].reshape(2, 5)], rows):
            assert np.linalg.norm(moved, axis=1) == pytest.approx(np.linalg.norm(own, axis=1), rel=1e-8)
    assert plot.attributes["length_alpha"] == pytest.approx(np.linalg.norm(alpha), rel=1e-12)


def test_without_losses_by_example_there_is_no_error():
    class Mean(Quadratic):
        losses = basin.Problem.losses
        loss = lambda self, w: Quadratic.losses(self, w, np.arange(self.examples)).mean()  # noqa: E731
        gradient = lambda self, w: (self.loss(w), self.matrix @ (w - self.centres.mean(0)))  # noqa: E731
        batch_gradient = basin.Problem.batch_gradient

    line = around(Mean(), "line", options={"line.directions": 2, "line.points": 3})
    assert np.isnan(line.plot["train_loss_error"]).all() and np.isfinite(line.plot["train_loss"]).all()
    assert line.plot["train_loss"][:, 1] == pytest.approx(Mean().loss(Mean().own), rel=1e-14)


def test_the_radius_of_a_round_bowl():
    """L = L_0 + c/2 |w - w_0|^2 has risen by delta at the distance sqrt(2 delta / c), whatever the direction."""
    bowl = Quadratic(eigenvalues=(3.0,) * 6)
    bowl.own = bowl.centres.mean(0)
    profile = around(bowl, "radial", options={"radial.deltas": [0.1, 1.0], "radial.tolerance": 1e-4, "radial.directions": 3})
    for delta, radii in zip([0.1, 1.0], profile.plot["radius"].T):
        assert radii == pytest.approx(np.sqrt(2 * delta / 3), rel=1e-4)  # the width of the last bracket


def test_a_point_where_the_loss_is_infinite_is_a_result():
    class Wall(Quadratic):
        def losses(self, w, index):
            return super().losses(w, index) + (np.inf if np.linalg.norm(w - self.own) > 1 else 0)

    plot = around(Wall(), "plane", options={"plane.alpha_points": 5, "plane.beta_points": 5}).plot
    assert {1, 2} == set(plot.state.ravel()) and plot.state[2, 2] == 1
    assert np.isnan(plot["train_loss"][plot.state == 2]).all() and np.isfinite(plot["train_loss"][plot.state == 1]).all()


def test_the_file_says_what_made_it(tmp_path):
    found = around(Quadratic(dtype="float32"), "line", out=tmp_path, seed=7, options={"line.directions": 2, "line.points": 3})
    again = basin.surface(tmp_path / "landscape/line.h5")
    assert np.array_equal(found.plot["train_loss"], again.plot["train_loss"])
    wanted = {"kind": "line", "seed": 7, "dtype": "float32", "train_examples": 64, "line.points": 3, "bn_mode": "unknown"}
    assert {key: again.recipe[key] for key in wanted} == wanted
    other = around(Quadratic(dtype="float32"), "line", seed=8, options={"line.directions": 2, "line.points": 3})
    assert not np.array_equal(found.plot["train_loss"], other.plot["train_loss"])


def test_weights_are_restored_and_progress_is_one_line(capfd):
    problem = Quadratic()
    basin.landscape(problem, options={"plane.alpha_points": 3, "plane.beta_points": 3})
    assert problem.restored == 1
    assert capfd.readouterr().err == "measuring a plane of 9 points\n"


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("barrier", {}, "a landscape of kind barrier is of a run's checkpoints; of a problem: line, plane, radial"),
        ("plain", {}, "plain"),
        ("plane", {"plane.alpha_pionts": 3}, 'unknown key "plane.alpha_pionts"'),
        ("plane", {"landscape.subset": 3}, 'unknown key "landscape.subset"'),
    ],
)
def test_what_was_asked_wrongly_is_one_line(kind, options, said):
    with pytest.raises(basin.MeasureError) as caught:
        around(Quadratic(), kind, options=options)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_losses_that_take_a_pass_each_are_not_asked_for():
    class Slow(Recording):
        by_example = False

        def losses(self, w, index):
            self.asked.append(len(index))
            return TwoLayers.losses(self, w, index)

        def loss(self, w):
            return TwoLayers.losses(self, w, np.arange(40)).mean()

    problem = Slow()
    plot = around(problem, "plane", options={"plane.alpha_points": 3, "plane.beta_points": 3}).plot
    quick = around(TwoLayers(), "plane", options={"plane.alpha_points": 3, "plane.beta_points": 3}).plot
    # 16 twice for the check; all of them only where the problem's own gradient looks.
    assert problem.asked[:2] == [16, 16] and problem.asked.count(40) == 1
    assert plot["train_loss"] == pytest.approx(quick["train_loss"], rel=1e-14) and np.isnan(plot["train_loss_error"]).all()


def test_weights_are_restored_after_an_exception_on_the_way():
    class Fails(Quadratic):
        def losses(self, w, index):
            if not np.array_equal(w, self.own):
                raise ArithmeticError("mine")
            return super().losses(w, index)

    problem = Fails()
    with pytest.raises(ArithmeticError, match="mine"):
        around(problem, "plane")
    assert problem.restored == 1


def test_every_kind_is_drawn():
    for kind, options in (
        ("plane", {"plane.alpha_points": 3, "plane.beta_points": 3}),
        ("line", {"line.points": 3}),
        ("radial", {}),
    ):
        surface = around(TwoLayers(), kind, options=options)
        draw = {"plane": grids.contours, "line": grids.lines, "radial": paths.radial_figure}[kind]
        assert draw(surface).axes


def test_a_problem_without_a_loss_has_no_landscape():
    class NoLoss(Quadratic):
        loss = basin.Problem.loss
        losses = basin.Problem.losses
        gradient = basin.Problem.gradient
        batch_gradient = basin.Problem.batch_gradient

    with pytest.raises(basin.MeasureError, match="the loss"):
        around(NoLoss(), "plane")
