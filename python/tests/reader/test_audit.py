"""Files of `basin audit` that are none."""

import h5py
import pytest

from audit_files import row, write_audit
from basin.reader.audit import VERDICTS, read_audit
from basin.reader.fault import ReadError, SchemaError


def test_files_that_are_none_are_one_line(tmp_path):
    write_audit(tmp_path / "a.h5", [row("lambda", "permutation", "broken")])
    with pytest.raises(ReadError, match=f'a.h5: verdict "broken" is none of {", ".join(VERDICTS)}'):
        read_audit(tmp_path / "a.h5")
    write_audit(tmp_path / "b.h5", [row("lambda", "permutation", "moved")], schema="basin/probe")
    with pytest.raises(SchemaError, match="basin/audit"):
        read_audit(tmp_path / "b.h5")
    write_audit(tmp_path / "c.h5", [row("lambda", "permutation", "moved")])
    with h5py.File(tmp_path / "c.h5", "r+") as f:
        del f["audit/ratio"]
    with pytest.raises(ReadError, match="c.h5: damaged or incomplete"):
        read_audit(tmp_path / "c.h5")
