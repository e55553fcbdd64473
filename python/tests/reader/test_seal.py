"""The seal as the reader sees it: files written here, with a seal made here."""

import hashlib
import struct
import zlib

import h5py
import pytest

import basin
from basin.reader import seal
from synthetic_sweep import Plan, make_sweep

SMALL = Plan(batch_sizes=(32,), optimizers=("sgd",), seeds=(1,), images=8, updates=2)


@pytest.fixture
def sealed(tmp_path):
    """A run's file behind a block of 512 bytes, by the table of docs/file-format.md."""
    run = make_sweep(tmp_path / "s", SMALL, write_runs=True)[0]
    path = tmp_path / "s/runs" / run["run_id"] / "run.h5"
    content = path.read_bytes()
    block = b"\x89BSEAL\r\n" + struct.pack("<QQ32sq", 1, len(content), hashlib.sha256(content).digest(), -1)
    block = (block + b"basin/run").ljust(508, b"\0")
    path.write_bytes(block + struct.pack("<I", zlib.crc32(block)) + content)
    return path


def test_a_whole_file_opens(sealed):
    assert seal.check(sealed)
    assert basin.load_run(sealed).status == "finished"


def test_no_byte_can_change_unseen(sealed):
    whole = sealed.read_bytes()
    for at in [*range(530), *range(530, len(whole), 97), len(whole) - 1]:
        sealed.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(basin.ReadError, match=r"run\.h5: "):
            basin.load_run(sealed)


@pytest.mark.parametrize("size", [0, 8, 511, 512, 519, 520, -1])
def test_a_cut_file_is_one_line(sealed, size):
    sealed.write_bytes(sealed.read_bytes()[:size])
    with pytest.raises(basin.ReadError) as caught:
        basin.load_run(sealed)
    assert "\n" not in str(caught.value)


def test_an_edited_file_opens_without_a_look_at_the_seal(sealed):
    with h5py.File(sealed, "r+") as file:
        file.attrs["status"] = "edited"
    with pytest.raises(basin.ReadError, match="edited since .* `basin seal"):
        basin.load_run(sealed)
    assert basin.load_run(sealed, verify=False).status == "edited"
    folder = sealed.parents[2]
    with pytest.warns(UserWarning, match="edited since"):
        assert sorted(basin.load_sweep(folder, "runs").status) == ["failed", "finished"]
    assert "failed" not in set(basin.load_sweep(folder, "runs", verify=False).status)


def test_a_file_without_a_seal_is_an_older_version_s(tmp_path):
    with h5py.File(tmp_path / "p.h5", "w") as file:
        file["x"] = 1
    assert not seal.check(tmp_path / "p.h5")


def test_a_file_that_changed_is_looked_at_again(sealed):
    assert seal.check(sealed)
    whole = sealed.read_bytes()
    sealed.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(basin.ReadError, match="damaged or edited"):
        seal.check(sealed)
