"""Writes a sweep folder like the program's, with known numbers: what the reader and the report are tested on.

Independent of the package under test: it writes HDF5 by the schema (docs/file-format.md) and keeps the truth in a list of rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from names_tables import write_names

LAYERS = ["conv1.weight", "conv1.bias", "fc.weight", "fc.bias"]
KINDS = ["weight", "bias", "weight", "bias"]
TEXT = h5py.string_dtype()


@dataclass
class Plan:
    """What the made-up science says: accuracy at the reference, what a doubling of B costs under A and under B, in units of 1."""

    batch_sizes: tuple = (32, 256, 2048, 65536)
    optimizers: tuple = ("sgd", "lars", "lamb")
    seeds: tuple = (1, 2, 3)
    protocols: tuple = ("A-epochs", "B")
    images: int = 1000
    train_images: int = 5000
    reference_accuracy: float = 0.50
    drop_a: float = 0.02
    drop_b: float = 0.0
    seed_error: float = 0.006
    updates: int = 40
    # (protocol, optimizer, batch_size) -> status of all its seeds, or "overshot"; with a seed behind it, of that one
    endings: dict = field(default_factory=dict)
    eigenvalues: int = 2
    names: bool = True  # sweep.h5 has /names
    reference_loss: float = 0.96  # training loss of the reference at the fixed budget; at matched loss it is 0.98
    # Arms of the plain settings: (option, value, batch sizes that have it, its share of the drop that it brings back). Each is run under
    # all protocols and optimisers, with the plain setting's options but for that.
    arms: tuple = ()
    twin: bool = False  # sharpness was measured at the twin as well, where it is the same at every batch size
    # More runs, (row, curve) each, made from those that are there: callable of (rows, curves by run_id).
    more: object = None
    study: str = 'model = "small_cnn"\n'


def make_sweep(folder, plan: Plan | None = None, write_runs: bool = False, write_file: bool = True) -> list[dict]:
    """Returns the truth: one dict of columns per run, in the order of sweep.h5. Without the runs' own folders, which take five times as
    long as sweep.h5 and of which a reader of that asks nothing but when they were written."""
    plan, folder = plan or Plan(), Path(folder)
    (folder / "runs").mkdir(parents=True)
    (folder / "study.toml").write_text(plan.study)
    random = np.random.default_rng(7)
    difficulty = random.permutation(np.linspace(0, 1, plan.images))
    rows, curves = [], {}
    for protocol in plan.protocols:
        for optimizer in plan.optimizers:
            for batch in plan.batch_sizes:
                for arm in (None, *(a for a in plan.arms if batch in a[2])):
                    for seed in plan.seeds:
                        row, curve = _simulate(plan, protocol, optimizer, batch, seed, difficulty, arm)
                        rows.append(row)
                        curves[row["run_id"]] = curve
    for row, curve in plan.more(list(rows), curves) if plan.more else ():
        rows.append(row)
        curves[row["run_id"]] = curve
    for row in rows:
        row |= _probe_columns(curves[row["run_id"]]["probes"])
        if write_runs:
            write_run(folder / "runs" / row["run_id"], row, curves[row["run_id"]])
    if write_file:
        write_sweep(folder / "sweep.h5", rows, curves, plan.names, plan.study)
    return rows


def _simulate(plan, protocol, optimizer, batch, seed, difficulty, arm=None):
    of_arm = [1 + plan.arms.index(arm)] if arm else []
    random = np.random.default_rng(
        [plan.batch_sizes.index(batch), plan.optimizers.index(optimizer), seed, len(protocol), *of_arm]
    )
    doublings = np.log2(batch / plan.batch_sizes[0])
    fall = (plan.drop_a if protocol != "B" else plan.drop_b) * doublings * (1 - arm[3] if arm else 1)
    accuracy = plan.reference_accuracy - fall + random.normal(0, plan.seed_error)
    # Half of an image's chance is its own difficulty, half is the run's: paired differences vary less than accuracies do.
    chance = np.clip(accuracy + 0.8 * (0.5 - difficulty), 0, 1)
    correct = random.random(plan.images) < chance
    ending = plan.endings.get((protocol, optimizer, batch, seed), plan.endings.get((protocol, optimizer, batch), "finished"))
    loss = 0.98 if protocol == "B" else plan.reference_loss + 0.12 * doublings
    if ending == "target_not_reached":
        loss = 1.7
    update = np.arange(1, plan.updates + 1)
    named = (protocol, optimizer, batch, *(arm[:2] if arm else ()))
    run_id = f"{abs(hash_of(*named, seed)):012x}"[:12]
    row = {
        "run_id": run_id, "config_id": f"{abs(hash_of(*named)):012x}"[:12],
        "status": "finished" if ending == "overshot" else ending, "status_message": "", "model": "small_cnn",
        "optimizer": optimizer, "protocol": protocol, "batch_size": batch, "seed": seed, "learning_rate": 0.1,
        "target_loss": 1.0, "small_cnn.widths": "[8, 16]", "dataset.name": "cifar10-5k", "dataset.pixels": "official",
        "dataset.n_train": plan.train_images, "dataset.n_validation": 0, "dataset.n_test": plan.images,
    }  # fmt: skip
    apart = np.random.default_rng([seed, batch, len(named)])  # draws that leave the others as they were
    row |= {option: (0 if isinstance(value, int) else 0.0) for option, value, _, _ in plan.arms}
    row |= {arm[0]: arm[1]} if arm else {}
    if ending not in ("queued", "running", "failed"):
        row |= {
            "updates": plan.updates, "epochs": 10.0, "gradients": 50000, "train_loss": loss if ending != "diverged" else np.nan,
            "train_acc": 0.65, "test_loss": 1.4 + 2 * fall + 0.01 * apart.standard_normal(), "test_acc": float(correct.mean()),
            "weight_norm": 10.0 + doublings,
            "steps_to_target": float(plan.updates) if ending in ("finished", "overshot") and protocol == "B" else np.nan,
            "overshot": ending == "overshot", "seconds": 10.0,
        }  # fmt: skip
    probes = _probes(plan, row, doublings, random) if protocol == "B" and ending == "finished" else []
    curve = {
        "update": update.astype(float), "loss": loss + 1.6 * np.exp(-4 * update / plan.updates), "gradients": 1250.0 * update,
        "examples": float(batch) * update, "correct": correct, "probes": probes,
        "layers": _layers(update, optimizer, random),
    }  # fmt: skip
    return row, curve


def _probe_columns(probes):
    columns = {}
    for p in probes:
        for q in p["quantities"]:
            for i, v in enumerate(q.value):
                column = f"probe.{p['checkpoint']}.{p['probe']}.{q.name}" + (f"_{i + 1}" if q.name in VECTORS else "")
                columns |= {column: v, f"{column}.uncertainty": q.error, f"{column}.ci_low": v - 2 * q.error,
                            f"{column}.ci_high": v + 2 * q.error, f"{column}.status": q.status}  # fmt: skip
    return columns


EVERY = 3  # updates between rows of norms by layer


def _layers(update, optimizer, random):
    """By column; "update" has the first, every third and the last."""
    rows = np.array([u for u in update if u == 1 or u % EVERY == 0 or u == update[-1]], float)
    norms = {name: scale * (0.5 + random.random((rows.size, len(LAYERS)))) for name, scale in SCALES.items()}
    if optimizer == "sgd":
        norms["trust_ratio"][:] = np.nan
    norms["trust_ratio"][:, 1::2] = np.nan  # biases are excluded
    # sweep.h5 has float32: the truth in both
    return {"update": rows} | {name: values.astype(np.float32).astype(float) for name, values in norms.items()}


SCALES = {"weight_norm": 5.0, "gradient_norm": 0.5, "update_norm": 0.05, "trust_ratio": 0.02}


VECTORS = ("lambda",)


@dataclass
class Quantity:
    name: str
    value: list
    error: float
    kind: str = "standard_error"
    status: str = "ok"


def _probes(plan, row, doublings, random):
    """|G|^2 of LAMB's largest batch changes its sign from seed to seed: not resolved."""
    found = []
    twins = [("end@twin", row["train_loss"])] if plan.twin else []
    for checkpoint, loss in (("loss-1.5", 1.49), ("end", row["train_loss"]), *twins):
        growth = 0 if checkpoint.endswith("@twin") else 8 * doublings
        sharpness = (20 + growth) * (2.2 - loss) * np.exp(random.normal(0, 0.1))
        resolved = not (row["optimizer"] == "lamb" and row["batch_size"] == plan.batch_sizes[-1])
        g2 = 0.01 * np.exp(random.normal(0, 0.02)) if resolved else (-0.002, 0.006, 0.001)[row["seed"] % 3]
        word = "ok" if resolved else "not_resolved"
        trace = 8.0 * np.exp(random.normal(0, 0.02))
        common = {"checkpoint": checkpoint, "train_loss": loss, "subset_loss": loss + 0.01, "update": plan.updates}
        found += [
            common | {"probe": "top_eigenvalues", "quantities": [
                Quantity("lambda", [sharpness / (i + 1) for i in range(plan.eigenvalues)], 0.01, "residual"),
                Quantity("lambda_1_w2", [sharpness * 100], 1.0, "residual")]},
            common | {"probe": "sharpness_keskar", "quantities": [
                Quantity("phi_full_1e-3", [sharpness / 3], 0.5, "lower_bound"),
                Quantity("phi_relative_1e-3", [sharpness / 30], 0.05, "lower_bound")]},
            common | {"probe": "noise_scale", "quantities": [
                Quantity("b_simple", [trace / g2], 60.0, status=word), Quantity("g2", [g2], 1e-4, status=word),
                Quantity("tr_sigma", [trace], 0.1)]},
        ]  # fmt: skip
    return found


def hash_of(*parts) -> int:
    """Python's own hash of strings differs from process to process."""
    value = 0
    for c in repr(parts).encode():
        value = (value * 1000003 + c) % (1 << 48)
    return value


def write_run(folder: Path, row: dict, curve: dict) -> None:
    (folder / "probes").mkdir(parents=True)
    status = {"run_id": row["run_id"], "status": row["status"], "message": row["status_message"]}
    (folder / "status.json").write_text(json.dumps(status))
    options = {k: v for k, v in row.items() if k in OPTIONS + ARM_OPTIONS}
    (folder / "config.toml").write_text(toml_of(options))
    if row["status"] == "queued":
        return
    (folder / "cell.toml").write_text(toml_of(options))
    with h5py.File(folder / "run.h5", "w") as f:
        f.attrs.update(schema_name="basin/run", schema_version="1.1.0", run_id=row["run_id"], config_id=row["config_id"],
                       status=row["status"], status_message="")  # fmt: skip
        config = f.create_group("config")
        config["toml"] = toml_of(options)
        config.attrs.update({k: np.array([8, 16]) if k == "small_cnn.widths" else v for k, v in options.items()})
        f.create_group("data").attrs.update({k[8:]: v for k, v in row.items() if k.startswith("dataset.")})
        f.create_group("rng").attrs["seed_init"] = "17"
        f.create_group("provenance").attrs["git_commit"] = "0" * 40
        summary = {k: v for k, v in row.items() if k in SUMMARY}
        f.create_group("summary").attrs.update(summary)
        params = f.create_group("params")
        params.create_dataset("name", data=LAYERS, dtype=TEXT)
        params.create_dataset("kind", data=KINDS, dtype=TEXT)
        train = f.create_group("train")
        for name in ("update", "loss", "gradients", "examples"):
            train[name] = curve[name]
        layers = f.create_group("layers")
        layers.attrs["every"] = EVERY
        layers.create_dataset("parameter", data=LAYERS, dtype=TEXT)
        for name, values in curve["layers"].items():
            layers[name] = values
        layers["trust_ratio"].attrs["definition"] = f"of {row['optimizer']}"
        ev = f.create_group("eval")
        for name in ("update", "train_loss", "test_acc"):
            ev[name] = [float(curve["update"][-1]) if name == "update" else row.get(name, np.nan)]
        if summary:
            outcome = f.create_group("outcomes/test")
            outcome.attrs["n"] = curve["correct"].size
            outcome["correct"] = np.packbits(curve["correct"])
    for p in curve["probes"]:
        write_probe(folder / "probes" / f"{p['checkpoint']}.{p['probe']}.h5", row, p)


def write_probe(path: Path, row: dict, probe: dict) -> None:
    with h5py.File(path, "w") as f:
        f.attrs.update(schema_name="basin/probe", schema_version="1.1.0", run_id=row["run_id"], config_id=row["config_id"],
                       probe=probe["probe"], checkpoint=probe["checkpoint"], status="ok", message="",
                       update=probe["update"], train_loss=probe["train_loss"], subset_loss=probe["subset_loss"],
                       n_examples=1000, subset_hash="5ub5e7", settings="5e77")  # fmt: skip
        for q in probe["quantities"]:
            g = f.create_group(f"quantities/{q.name}")
            g.attrs.update(definition=q.name, units="1", long_name=q.name, uncertainty_kind=q.kind, status=q.status,
                           is_vector=q.name in VECTORS)  # fmt: skip
            g["value"] = q.value
            g["uncertainty"] = [q.error] * len(q.value)
            g["ci_low"] = [v - 2 * q.error for v in q.value]
            g["ci_high"] = [v + 2 * q.error for v in q.value]
            g.create_dataset("entry_status", data=[q.status] * len(q.value), dtype=TEXT)


def write_checkpoint(path: Path, parameters: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as f:
        f.attrs.update(schema_name="basin/checkpoint", schema_version="1.1.0", label=path.stem)
        for group in ("model", "buffers", "optimizer", "generators"):
            f.create_group(group)
        for name, value in parameters.items():
            f[f"model/{name}"] = value


def write_sweep(path: Path, rows: list[dict], curves: dict, names: bool = True, study: str = "") -> None:
    with h5py.File(path, "w") as f:
        f.attrs.update(schema_name="basin/sweep", schema_version="1.1.0", study=study)
        columns = list(dict.fromkeys(k for row in rows for k in row))
        for name in columns:
            values = [row.get(name) for row in rows]
            if any(isinstance(v, str) for v in values):
                f.create_dataset(f"runs/{name}", data=["" if v is None else v for v in values], dtype=TEXT)
            elif all(isinstance(v, bool) for v in values):
                f.create_dataset(f"runs/{name}", data=np.array(values, np.uint8)).attrs["type"] = "bool"
            elif all(isinstance(v, int) for v in values):
                f[f"runs/{name}"] = np.array(values, np.int64)
            else:
                f[f"runs/{name}"] = np.array([np.nan if v is None else float(v) for v in values])
            if name in OPTIONS + ARM_OPTIONS:
                f[f"runs/{name}"].attrs["definition"] = "option"
        _describe_probe_columns(f["runs"], [probe for curve in curves.values() for probe in curve["probes"]])
        images = max(curve["correct"].size for curve in curves.values())
        correct = np.full((len(rows), images), 255, np.uint8)
        for i, row in enumerate(rows):
            if "test_acc" in row:
                correct[i] = curves[row["run_id"]]["correct"]
        f["outcomes/test/correct"] = correct
        for name in ("update", "loss", "gradients", "examples"):
            f[f"curves/train/{name}"] = np.array([curves[row["run_id"]][name] for row in rows])
        if names:
            write_names(f, TEXT)
        _write_layers(f.create_group("layers/1"), rows, curves)
        _write_long_table(f, rows, curves)


def _describe_probe_columns(runs, probes):
    named = {}
    for p in probes:
        for q in p["quantities"]:
            for i in range(len(q.value)):
                column = f"probe.{p['checkpoint']}.{p['probe']}.{q.name}" + (f"_{i + 1}" if q.name in VECTORS else "")
                named[column] = q.name
    for column, name in named.items():
        runs[column].attrs.update(units="1", long_name=name, definition=name)


def _write_layers(group, rows, curves):
    """NaN-padded: a row more than any run has."""
    group.create_dataset("run_id", data=[row["run_id"] for row in rows], dtype=TEXT)
    group.create_dataset("parameter", data=LAYERS, dtype=TEXT)
    group.create_dataset("kind", data=KINDS, dtype=TEXT)
    group["every"] = np.full(len(rows), EVERY)
    group.create_dataset("trust_ratio_definition", data=[f"of {row['optimizer']}" for row in rows], dtype=TEXT)
    for name in ("update", *SCALES):
        values = np.array([curves[row["run_id"]]["layers"][name] for row in rows])
        pad = np.full((len(rows), 1, *values.shape[2:]), np.nan)
        group[name] = np.concatenate([values, pad], axis=1).astype(np.float32)


def _write_long_table(f, rows, curves):
    table = {}
    for row in rows:
        for p in curves[row["run_id"]]["probes"]:
            for q in p["quantities"]:
                for i, v in enumerate(q.value):
                    entry = {
                        "run_id": row["run_id"], "checkpoint": p["checkpoint"], "update": float(p["update"]),
                        "train_loss": p["train_loss"], "subset_loss": p["subset_loss"], "probe": p["probe"], "quantity": q.name,
                        "index": i, "value": v, "uncertainty": q.error, "uncertainty_kind": q.kind, "ci_low": v - 2 * q.error,
                        "ci_high": v + 2 * q.error, "status": q.status, "definition": q.name, "units": "1",
                        "n_examples": 1000.0, "subset_hash": "5ub5e7", "settings": "5e77", "study": True,
                    }  # fmt: skip
                    for key, cell in entry.items():
                        table.setdefault(key, []).append(cell)
    for key, column in table.items():
        if isinstance(column[0], bool):
            f.create_dataset(f"probes/{key}", data=np.array(column, np.uint8)).attrs["type"] = "bool"
        else:
            f.create_dataset(f"probes/{key}", data=column, dtype=TEXT if isinstance(column[0], str) else None)


OPTIONS = ("model", "optimizer", "protocol", "batch_size", "seed", "learning_rate", "target_loss", "small_cnn.widths")
ARM_OPTIONS = ("ghost_batch", "warmup", "clip_gradient", "branch.from", "branch.at", "branch.anneal")
SUMMARY = ("updates", "examples", "epochs", "gradients", "train_loss", "train_acc", "test_loss", "test_acc", "weight_norm",
           "steps_to_target", "overshot", "seconds", "branch_update", "branch_examples", "branch_train_loss", "average_train_loss",
           "average_test_loss", "average_test_acc")  # fmt: skip


def toml_of(options: dict) -> str:
    return "".join(f"{k} = {v if k == 'small_cnn.widths' else json.dumps(v)}\n" for k, v in options.items())
