import os
import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def made_sweep(tmp_path_factory):
    from synthetic_sweep import Plan, make_sweep

    folder = tmp_path_factory.mktemp("made") / "sweep"
    plan = Plan(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), seeds=(1, 2), images=64, updates=6)
    make_sweep(folder, plan, write_runs=True)
    return folder


@pytest.fixture
def sweep_folder(made_sweep, tmp_path):
    """A sweep with its runs' folders: a copy, for a test to change."""
    return shutil.copytree(made_sweep, tmp_path / "sweep")


@pytest.fixture
def clear(tmp_path):
    """A sweep by clear_sweep.CLEAR."""
    from clear_sweep import CLEAR
    from planned import open_planned

    return open_planned(tmp_path / "s", CLEAR)


@pytest.fixture(scope="session")
def whole_report(tmp_path_factory):
    """A report with every verdict, a warning of each kind and every figure: its file, the text of its answer, what was said on the way."""
    from basin.pages import report
    from synthetic_sweep import Plan, make_sweep

    endings = {
        ("B", "sgd", 65536): "target_not_reached",
        ("A-epochs", "lars", 65536): "diverged",
        ("B", "lars", 2048): "overshot",
    }
    folder, lines = tmp_path_factory.mktemp("report") / "s", []
    make_sweep(folder, Plan(images=400, updates=8, endings=endings))
    return *report.make_report(folder, progress=lines.append), lines


@pytest.fixture
def few_draws(monkeypatch):
    """299 draws know a standard error to 4 %, and a p of 0.05 to 0.013."""
    from basin.analysis import rank

    monkeypatch.setattr(rank, "DRAWS", 299)
    rank.resamples.cache_clear()
    rank.placebos.cache_clear()
    yield
    rank.resamples.cache_clear()
    rank.placebos.cache_clear()


@pytest.fixture
def drawing():
    """Our style, and no figure left open. Without a display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from basin.figures import style

    style.use()
    yield
    pyplot.close("all")


@pytest.fixture
def draw_only(monkeypatch):
    """Makes a report draw the figures of these names alone. The others are made and described, and their files are empty: drawing takes
    most of a report's time, and test_report.py has every figure drawn."""
    from basin.pages import page

    whole, drawn = page.Section.figure, page._drawn

    def only(*names):
        def figure(section, made, about, name, folder):
            monkeypatch.setattr(page, "_drawn", drawn if name in names else lambda *_: b"")
            return whole(section, made, about, name, folder)

        monkeypatch.setattr(page.Section, "figure", figure)

    return only


class TinyRuns:
    """The program under test, training tiny networks into one folder and measuring landscapes of them."""

    def __init__(self, program, folder, options=""):
        self.program, self.folder = program, folder
        folder.mkdir()
        (folder / "study.toml").write_text(
            'model = "mlp"\noptimizer = "sgd"\nprotocol = "A-updates"\nupdates = 4\nbatch_size = 32\nmicro_batch = 32\n'
            'checkpoint_every = 1\n[data]\nset = "synthetic"\ntrain_examples = 64\ntest_examples = 32\n[mlp]\nhidden = [4]\n'
            f"{options}\n[runtime]\nthreads = 1\nprogress = false\n")  # fmt: skip

    def train(self, *settings):
        self._call("train", self.folder / "study.toml", "--out", self.folder / "out", settings=settings)
        return sorted((self.folder / "out/runs").iterdir())

    def landscape(self, kind, runs, *settings):
        import basin

        out = self.folder / f"{kind}.h5"
        self._call("landscape", *runs, "--kind", kind, "--out", out, settings=("runtime.threads=1", *settings))
        return basin.surface(out)

    def _call(self, *words, settings):
        sets = [word for setting in settings for word in ("--set", setting)]
        subprocess.run([self.program, *words, *sets], check=True, capture_output=True)


@pytest.fixture
def tiny_runs(tmp_path):
    """Makes TinyRuns of further lines for the table [mlp]."""
    program = os.environ.get("BASIN_BINARY")
    if not program:
        pytest.skip("BASIN_BINARY is not set")
    return lambda options="": TinyRuns(program, tmp_path / "tiny", options)
