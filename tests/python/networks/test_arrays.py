"""A user's own examples from outside: containers that hold the same arrays are the same set, an update is numpy's, and what doesn't fit
is one line."""

import hashlib
import json

import h5py
import numpy as np
import pytest

from basin_program import needs_program, program

pytestmark = needs_program

ARRAYS = ("train_inputs", "train_targets", "test_inputs", "test_targets")


def described(path):
    done = program("data", "describe", "arrays", "--path", path, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(path, *arguments):
    done = program("data", "describe", "arrays", "--path", path, *arguments)
    assert done.returncode == 3, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def examples(seed=1, n=23, m=7, sizes=(3, 4), classes=3, dtype=np.float32):
    random = np.random.default_rng(seed)
    return {
        "train_inputs": random.normal(2, 3, (n, *sizes)).astype(dtype),
        "train_targets": np.arange(n) % classes,
        "test_inputs": random.normal(2, 3, (m, *sizes)).astype(dtype),
        "test_targets": np.arange(m) % classes,
    }


def write_npz(path, arrays):
    np.savez(path / "set.npz", **arrays)
    return path / "set.npz"


def write_compressed(path, arrays):
    np.savez_compressed(path / "small.npz", **arrays)
    return path / "small.npz"


def write_folder(path, arrays):
    (path / "folder").mkdir()
    for name, values in arrays.items():
        np.save(path / "folder" / f"{name}.npy", values)
    return path / "folder"


def write_columns(path, arrays):
    return write_folder(path, {name: np.asfortranarray(values) for name, values in arrays.items()})


def write_hdf5(path, arrays):
    with h5py.File(path / "set.h5", "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return path / "set.h5"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([-1, 1] * 11 + [1], np.int8), "label -1; classes count from 0"),
        (np.arange(23, dtype=np.uint64), "train_targets"),  # of which the largest would be clamped
    ],
)
def test_numbers_of_hdf5_keep_their_sign(tmp_path, values, said):
    done = program("data", "describe", "arrays", "--path", write_hdf5(tmp_path, changed(train_targets=values)))
    assert done.returncode != 0 and said in done.stderr and done.stderr.count("\n") == 1


CONTAINERS = [write_npz, write_compressed, write_folder, write_columns, write_hdf5]


@pytest.mark.parametrize("write", CONTAINERS, ids=lambda write: write.__name__)
def test_every_container_holds_the_same_set(tmp_path, write):
    arrays = examples()
    found = described(write(tmp_path, arrays))
    digest = hashlib.sha256()
    for name in ARRAYS:
        kind = {"float32": "Float", "int64": "Long"}[str(arrays[name].dtype)]
        digest.update(f"{name} {kind} [{', '.join(map(str, arrays[name].shape))}]\n".encode())
        digest.update(arrays[name].tobytes())
    assert found["sha256"] == digest.hexdigest()
    assert found["splits"]["train"] == {"images": 23, "shape": [3, 4], "per_class": [8, 8, 7]}
    assert found["splits"]["test"]["images"] == 7
    assert found["mean"] == [] and found["class_names"] == ["0", "1", "2"]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.uint8, np.bool_, np.int8, np.int16, np.int32, np.int64])
def test_every_type_of_number_is_read(tmp_path, dtype):
    arrays = examples()
    for name in ("train_inputs", "test_inputs"):
        arrays[name] = np.abs(arrays[name]).astype(dtype)
    assert described(write_folder(tmp_path, arrays))["splits"]["train"]["shape"] == [3, 4]


STUDY = """
model = "mlp"
mlp.hidden = []
optimizer = "sgd"
sgd.momentum = 0.0
schedule = "constant"
warmup = 0.0
protocol = "A-updates"
updates = 1
batch_size = 23
learning_rate = 0.7
dtype = "float64"
data.set = "arrays"
data.path = "{path}"
data.normalise = "{normalise}"
runtime.progress = false
"""


def trained(tmp_path, path, normalise="none", extra=""):
    (tmp_path / "study.toml").write_text(STUDY.format(path=path, normalise=normalise) + extra)
    return program("train", tmp_path / "study.toml", "--out", tmp_path / "out")


def weights(tmp_path, label):
    [path] = tmp_path.glob(f"out/runs/*/ckpt/{label}.h5")
    with h5py.File(path) as file:
        return file["model/fc1.weight"][...], file["model/fc1.bias"][...]


@pytest.mark.parametrize("normalise", ["none", "channels"])
def test_an_update_is_that_of_numpy(tmp_path, normalise):
    arrays = examples(dtype=np.float64)
    done = trained(tmp_path, write_npz(tmp_path, arrays), normalise)
    assert done.returncode == 0, done.stderr
    x, y = arrays["train_inputs"], arrays["train_targets"]
    if normalise == "channels":
        x = (x - x.mean((0, 2))[:, None]) / x.std((0, 2))[:, None]
    x = x.reshape(len(x), -1)
    (w0, b0), (w1, b1) = weights(tmp_path, "start"), weights(tmp_path, "end")
    logits = x @ w0.T + b0
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d = (p - np.eye(3)[y]) / len(y)
    np.testing.assert_allclose(w1, w0 - 0.7 * d.T @ x, rtol=0, atol=1e-13)  # float64, 23 terms of order 1
    np.testing.assert_allclose(b1, b0 - 0.7 * d.sum(0), rtol=0, atol=1e-13)


def summary(tmp_path):
    [path] = tmp_path.glob("out/runs/*/run.h5")
    with h5py.File(path) as file:
        return dict(file["summary"].attrs), sorted(file["outcomes/test"])


@pytest.mark.parametrize("columns", [(), (2,)], ids=["one", "two"])
def test_numbers_are_regressed_on_as_in_numpy(tmp_path, columns):
    arrays, random = examples(dtype=np.float64), np.random.default_rng(3)
    for name, n in (("train_targets", 23), ("test_targets", 7)):
        arrays[name] = random.normal(size=(n, *columns))
    done = trained(tmp_path, write_npz(tmp_path, arrays), extra='loss = "mse"\n')
    assert done.returncode == 0, done.stderr
    x = arrays["train_inputs"].reshape(23, -1)
    y, held = (arrays[name].reshape(len(arrays[name]), -1) for name in ("train_targets", "test_targets"))
    (w0, b0), (w1, b1) = weights(tmp_path, "start"), weights(tmp_path, "end")
    d = (x @ w0.T + b0 - y) / len(y)
    np.testing.assert_allclose(w1, w0 - 0.7 * d.T @ x, rtol=1e-13, atol=1e-13)  # float64, 23 terms of order 10
    np.testing.assert_allclose(b1, b0 - 0.7 * d.sum(0), rtol=1e-13, atol=1e-13)
    numbers, outcomes = summary(tmp_path)
    residuals = arrays["test_inputs"].reshape(7, -1) @ w1.T + b1 - held
    np.testing.assert_allclose(numbers["test_loss"], (residuals**2).sum(1).mean() / 2, rtol=1e-12)
    assert np.isnan(numbers["test_acc"]) and outcomes == ["example", "loss"]


def test_a_loss_that_does_not_fit_the_targets_is_one_line(tmp_path):
    arrays = examples()
    arrays["train_targets"], arrays["test_targets"] = np.linspace(0, 1, 23), np.linspace(0, 1, 7)
    done = trained(tmp_path, write_npz(tmp_path, arrays))
    assert done.returncode == 2, done.stderr
    assert 'loss = "cross_entropy": the labels of arrays are numbers; loss = mse fits them' in done.stderr


@pytest.mark.parametrize(("norm", "ghosts", "said"), [("batch", 60, True), ("batch", 600, False), ("none", 60, False)])
def test_batch_statistics_of_examples_sorted_by_class_are_refused(tmp_path, norm, ghosts, said):
    arrays = examples(n=600)
    arrays["train_targets"] = np.sort(arrays["train_targets"])  # 2 changes; 600 - 3 200² / 600 = 400 at random
    extra = f'mlp.norm = "{norm}"\nmlp.hidden = [4]\nghost_batch = {ghosts}\nmicro_batch = 600\nbatch_size = 600\n'
    path = write_npz(tmp_path, arrays)
    (tmp_path / "study.toml").write_text(
        STUDY.replace("mlp.hidden = []\n", "").replace("batch_size = 23\n", "").format(path=path, normalise="none") + extra
    )
    done = program("train", tmp_path / "study.toml", "--out", tmp_path / "out")
    if not said:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
    assert "the class changes 2 times from one to the next, and about 400 times in a random order" in done.stderr
    assert "shuffle the file" in done.stderr


TOKENS = """
model = "gpt"
gpt.layers = 1
gpt.heads = 1
gpt.width = 4
loss = "token_cross_entropy"
optimizer = "sgd"
schedule = "constant"
warmup = 0.0
protocol = "A-updates"
updates = 3
batch_size = 5
learning_rate = 0.5
dtype = "float64"
data.set = "arrays"
data.path = "{path}"
runtime.progress = false
"""


def test_tokens_have_a_label_each(tmp_path):
    text = np.random.default_rng(4).integers(3, size=(30, 7))
    arrays = {
        "train_inputs": text[:23, :-1],
        "train_targets": text[:23, 1:],
        "test_inputs": text[23:, :-1],
        "test_targets": text[23:, 1:],
    }
    (tmp_path / "study.toml").write_text(TOKENS.format(path=write_npz(tmp_path, arrays)))
    done = program("train", tmp_path / "study.toml", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    numbers, outcomes = summary(tmp_path)
    assert outcomes == ["example", "loss"]
    hits = numbers["test_acc"] * 7 * 6  # a share of tokens
    assert abs(hits - round(hits)) < 1e-9
    done = program("data", "describe", "arrays", "--path", tmp_path / "set.npz")
    assert "to " in done.stdout and "labels per class" in done.stdout


def test_pictures_are_bytes_by_channel_and_train_a_convolution(tmp_path):
    arrays = examples(sizes=(3, 8, 8))
    for name in ("train_inputs", "test_inputs"):
        arrays[name] = (20 * np.abs(arrays[name])).clip(0, 255).astype(np.uint8)
    path = write_npz(tmp_path, arrays)
    pixels = arrays["train_inputs"] / 255
    np.testing.assert_allclose(described(path)["mean"], pixels.mean((0, 2, 3)), rtol=1e-12)
    done = trained(
        tmp_path, path, "auto", 'small_cnn.widths = [2, 3]\ndata.augmentation = "crop_flip"\n'.replace("mlp", "small_cnn")
    )
    assert done.returncode == 0, done.stderr


def test_without_a_test_split_there_is_no_test_accuracy(tmp_path):
    arrays = examples()
    path = write_npz(tmp_path, {name: arrays[name] for name in ARRAYS[:2]})
    done = trained(tmp_path, path)
    assert done.returncode == 0, done.stderr


def changed(**changes):
    arrays = examples()
    arrays.update(changes)
    return {name: values for name, values in arrays.items() if values is not None}


NAN = examples()["train_inputs"]
NAN[5, 1, 1] = np.nan


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (changed(train_targets=None), "missing data: no array train_targets in"),
        (changed(train_targets=np.arange(22)), "train_targets.npy: 22 labels for 23 examples"),
        (changed(train_targets=np.arange(23) - 1), "label -1; classes count from 0"),
        (changed(train_targets=np.zeros((23, 2, 2))), "train_targets.npy: [23, 2, 2]; numbers to predict are [n] or [n, k]"),
        (changed(train_targets=np.full(23, np.nan)), "train_targets.npy: example 0 has a NaN or an infinity"),
        (changed(train_inputs=NAN), "train_inputs.npy: example 5 has a NaN or an infinity"),
        (changed(train_inputs=-np.arange(69).reshape(23, 3)), "a negative integer; integer inputs are tokens, from 0"),
        (changed(train_inputs=NAN.astype(np.float16)), "train_inputs.npy: example 5 has a NaN or an infinity"),
        (changed(train_inputs=np.zeros(23)), "one row per example is expected"),
        (changed(train_inputs=np.zeros((23, 0))), "an array without numbers"),
        (changed(train_targets=np.full(23, 2**40)), "label 1099511627776; more than 1000000 classes are no classes"),
        (
            changed(test_inputs=np.zeros((7, 5), np.float32)),
            "test_inputs.npy: examples of Float [5], and of Float [3, 4] to train on",
        ),
        (changed(train_inputs=np.zeros((23, 3), ">f4")), 'numbers of type ">f4"; known: bool'),
        (changed(train_inputs=np.zeros((23, 3), np.complex64)), 'numbers of type "<c8"; known: bool'),
    ],
)
@pytest.mark.parametrize("write", [write_npz, write_folder], ids=["npz", "folder"])
def test_what_does_not_fit_is_one_line(tmp_path, write, arrays, said):
    assert said in refusal(write(tmp_path, arrays))


def test_a_constant_channel_has_no_deviation(tmp_path):
    arrays = examples()
    arrays["train_inputs"][:, 1] = 0.1
    done = trained(tmp_path, write_npz(tmp_path, arrays), "channels")
    assert done.returncode == 3 and "channel 1 is constant over the training split" in done.stderr


def test_damage_is_one_line(tmp_path):
    folder = write_folder(tmp_path, examples())
    whole = (folder / "train_inputs.npy").read_bytes()
    (folder / "train_inputs.npy").write_bytes(whole[:-4])
    assert "train_inputs.npy: truncated: [23, 3, 4] is more than its 1100 bytes of numbers" in refusal(folder)
    (folder / "train_inputs.npy").write_bytes(whole[:40])
    assert "train_inputs.npy: truncated in its header" in refusal(folder)
    (folder / "train_inputs.npy").write_bytes(b"\x93NUMPY\x02\0\0\0\1\0" + b"(1," * 30000)
    assert "train_inputs.npy: its header is absurdly long" in refusal(folder)
    (folder / "train_inputs.npy").write_bytes(b"")
    assert "train_inputs.npy: not a .npy file" in refusal(folder)
    (tmp_path / "set.npz").write_bytes(write_npz(tmp_path, examples()).read_bytes()[:900])
    assert "set.npz" in refusal(tmp_path / "set.npz")
    assert "does not exist" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            'model = "small_cnn"',
            'model = "small_cnn" takes pictures, [channels, height, width], and an example of arrays is [3, 4]',
        ),
        ('data.augmentation = "crop_flip"', 'data.augmentation = "crop_flip" is for pictures; the inputs of arrays are numbers'),
        ('test_time_augmentation = "flip"', 'test_time_augmentation = "flip" is for pictures'),
    ],
)
def test_what_needs_pictures_says_so(tmp_path, settings, said):
    path = write_npz(tmp_path, examples())
    key = settings.split(" ")[0]
    study = "\n".join(line for line in STUDY.format(path=path, normalise="none").splitlines() if not line.startswith(f"{key} "))
    (tmp_path / "study.toml").write_text(f"{settings}\n{study}\n")
    done = program("train", tmp_path / "study.toml", "--out", tmp_path / "out")
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_tokens_are_for_networks_that_take_them(tmp_path):
    path = write_npz(tmp_path, changed(train_inputs=np.arange(69).reshape(23, 3), test_inputs=np.arange(21).reshape(7, 3)))
    done = trained(tmp_path, path)
    assert done.returncode == 2
    assert 'model = "mlp" takes floating-point numbers, and the inputs of arrays are integers' in done.stderr
