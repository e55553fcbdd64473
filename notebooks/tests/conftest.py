import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture
def sweep_folder(tmp_path):
    from synthetic_sweep import Plan, make_sweep

    make_sweep(tmp_path / "sweep", Plan(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), seeds=(1, 2), images=64, updates=6))
    return tmp_path / "sweep"


@pytest.fixture
def drawing():
    """Our style, and no figure left open. Without a display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from basin import style

    style.use()
    yield
    pyplot.close("all")
