import pytest


@pytest.fixture(scope="session")
def every_file(tmp_path_factory):
    """A folder with a file of every kind, to be copied by those who change it."""
    from every_file import make_every_file

    out = tmp_path_factory.mktemp("every") / "tiny"
    make_every_file(out)
    return out
