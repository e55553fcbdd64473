import os

import pytest

from slurm_cluster import SlurmCluster, why_not


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The SlurmCluster of all tests: both nodes are on and idle, and the queue is empty, when a test begins."""
    reason = why_not()
    if reason:
        pytest.skip(f"no Slurm cluster: {reason}")
    with SlurmCluster(tmp_path_factory.mktemp("slurm")) as started:
        yield started


@pytest.fixture(autouse=True)
def _as_it_was(request):
    """After each test: killed machines boot, and what is still queued is cancelled."""
    used = request.getfixturevalue("cluster") if "cluster" in request.fixturenames else None
    yield
    if used:
        used.reset()


@pytest.fixture(scope="session")
def basin():
    """The program under test, to be run with the cluster's environment."""
    path = os.environ.get("BASIN_BINARY")
    if not path:
        pytest.skip("BASIN_BINARY names the program under test")
    return path
