"""Reads the files that files_test.cpp wrote from samples.cpp; shares no code with the writer."""

import hashlib
import json
import struct
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np

folder = Path(sys.argv[1])


def check_run():
    with h5py.File(folder / "run.h5") as f:
        assert f.attrs["schema_name"] == "basin/run" and f.attrs["schema_version"].split(".")[0] == "1"
        assert f.attrs["status"] == "finished" and f.attrs["default"] == "eval"
        assert f["config/toml"][()].decode() == 'batch_size = 512\nmodel = "näive"\n'
        config = f["config"].attrs
        assert config["zeta"] == True and config["zeta"].dtype == bool  # noqa: E712
        assert config["batch_size"] == 512 and config["batch_size"].dtype == np.int64
        assert config["learning_rate"] == 0.1 and config["model"] == "small_cnn"
        assert config["small_cnn.widths"].tolist() == [16, 32, 64]
        assert config["sgd.exclude"].tolist() == ["bias", "norm_weight"]
        assert config["milestones"].shape == (0,) and config["names"].shape == (0,)
        train = f["train"]
        assert train.attrs["NX_class"] == "NXdata" and train.attrs["signal"] == "loss"
        assert train.attrs["axes"].tolist() == ["update"]
        layers = f["layers"]
        assert layers.attrs["signal"] == "weight_norm" and layers.attrs["axes"].tolist() == ["update", "parameter"]
        assert layers.attrs["every"] == 2 and layers.attrs["every"].dtype == np.int64
        np.testing.assert_array_equal(layers["trust_ratio"][()], [[0.1, np.nan, 0.3], [0.4, np.nan, 0.6]])
        np.testing.assert_array_equal(layers["weight_norm"][()], [[1, 2, 3], [4, 5, 6]])
        assert layers["update"].is_scale and layers["parameter"].is_scale
        for column in ("trust_ratio", "weight_norm"):
            assert layers[column].dims[0][0] == layers["update"] and layers[column].dims[1][0] == layers["parameter"]
        assert layers["parameter"].asstr()[()].tolist() == ["a.weight", "a.bias", "b.weight"]
        loss = train["loss"]
        assert loss[()].tolist() == [2.5, 2.25] and loss.attrs["units"] == "nat"
        assert loss.compression == "gzip" and loss.compression_opts == 4 and loss.shuffle and loss.fletcher32
        assert np.isnan(loss.fillvalue)
        outcomes = f["outcomes/test"]
        correct = np.unpackbits(outcomes["correct"][()], count=int(outcomes.attrs["n"]))
        assert correct.tolist() == [1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1]
        assert outcomes["margin"][-1] == -0.125 and outcomes["margin"].dtype == np.float32
        assert f["params/shape"].asstr()[()].tolist() == ["4,3", "4"] and f["params/numel"][()].tolist() == [12, 4]
        assert f["summary"].attrs["test_acc"] == 0.625 and np.isnan(f["summary"].attrs["steps_to_target"])
        assert f["log/text"].asstr()[1] == "line\nbreak"


def check_checkpoint():
    with h5py.File(folder / "end.h5") as f:
        weight = f["model/conv1.weight"]
        np.testing.assert_array_equal(weight[()], np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2))
        assert weight.dtype == np.float32 and weight.attrs["layer"] == "conv1" and weight.attrs["kind"] == "weight"
        assert weight.fletcher32
        names = sorted(f["model"], key=lambda name: f["model"][name].attrs["index"])
        assert names == ["conv1.weight", "conv1.bias", "alpha.first"]
        assert f["model/alpha.first"][()].tolist() == [0.1, 0.2]
        assert f["optimizer/updates"][()] == 7 and f["optimizer/momentum/conv1.weight"].shape == (2, 3, 2, 2)
        np.testing.assert_array_equal(f["average/conv1.weight"][()], 0.5 * weight[()])
        assert f["generators/dropout"][()].tolist() == list(range(256))
        assert f["progress"].attrs["examples"] == 2**60 and f.attrs["journal_offset"] == 12345


def check_probe():
    with h5py.File(folder / "probe.h5") as f:
        assert f.attrs["probe"] == "top_eigenvalues" and f.attrs["train_loss"] == 1.25
        q = f["quantities/lambda"]
        np.testing.assert_array_equal(q["value"][()], [3, 2, np.nan])
        assert q.attrs["uncertainty_kind"] == "residual" and q["value"].dims[0][0] == q["index"]
        assert "ci_low" not in q and f["quantities/b_simple/ci_high"][0] == 130


def check_status():
    status = json.loads((folder / "status.json").read_text())
    assert status["message"] == 'a "b" \\ \n\x01 größer' and status["images_per_second"] is None
    assert status["loss"] == 2.5 and status["update"] == 7


def check_seal(name, kind, label, update):
    block, content = (data := (folder / name).read_bytes())[:512], data[512:]
    assert block[:8] == b"\x89BSEAL\r\n" and block[384:508] == bytes(124)
    version, length, digest, at = struct.unpack("<QQ32sq", block[8:64])
    assert (version, length, digest) == (1, len(content), hashlib.sha256(content).digest())
    assert (at, block[64:128].rstrip(b"\0").decode(), block[128:384].rstrip(b"\0").decode()) == (update, kind, label)
    assert struct.unpack("<I", block[508:]) == (zlib.crc32(block[:508]),)
    with h5py.File(folder / name) as f:
        assert f.userblock_size == 512


check_seal("run.h5", "basin/run", "", -1)
check_seal("end.h5", "basin/checkpoint", "loss-1.5", 7)
check_seal("probe.h5", "basin/probe", "", 7)
check_run()
check_checkpoint()
check_probe()
check_status()
