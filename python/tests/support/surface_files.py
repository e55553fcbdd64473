"""Files of `basin landscape`, made by h5py alone."""

import h5py
import numpy as np

ALPHA, BETA = np.linspace(-1, 2, 7), np.linspace(-1, 1, 4)


def make(target, loss, state=None, kind="plane", axes=(("beta", BETA), ("alpha", ALPHA)), **others):
    """A surface as docs/file-format.md has it; `others`: further plots, {name: (axes, columns)}."""
    with h5py.File(target, "w", track_order=True) as f:
        f.attrs.update(
            {"schema_name": "basin/surface", "schema_version": "1.1.0", "kind": kind, "status": "ok", "default": "grid"}
        )
        f.create_group("recipe").attrs.update({"seed": 1, "dtype": "float32"})
        columns = {"train_loss": loss, "train_loss_error": 0.1 * loss, "train_acc": np.full(loss.shape, 0.5), "test_loss": 2 * loss,
                   "test_loss_error": 0.1 * loss, "test_acc": np.full(loss.shape, 0.4)}  # fmt: skip
        plot(f, "grid", axes, columns)
        if state is not None:
            f["grid"]["state"] = state.astype(np.uint8)
        for name, (own, columns) in others.items():
            plot(f, name, own, columns)
    return target


def plot(file, name, axes, columns):
    group = file.create_group(name, track_order=True)
    group.attrs.update({"NX_class": "NXdata", "long_name": name, "signal": next(iter(columns)), "axes": [a for a, _ in axes]})
    for axis, values in axes:
        group[axis] = values
        group[axis].attrs.update({"units": "1", "long_name": axis, "definition": "c"})
    for column, values in columns.items():
        group[column] = values
        group[column].attrs.update({"units": "nat" if "loss" in column else "1", "long_name": column, "definition": "d"})


def bowl():
    return 0.1 + ALPHA[None, :] ** 2 + 5 * BETA[:, None] ** 2
