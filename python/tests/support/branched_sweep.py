"""Branches of the runs of a synthetic sweep, whose ends are given."""

from synthetic_sweep import Quantity, hash_of


def branch(parent, curve, at, k=1, factor=1.0, anneal=0.0, updates=40, start=10, **ends):
    """A (row, curve) for Plan.more. `ends`: columns of the run, as train_loss."""
    named = (parent["config_id"], at, k, factor, anneal, ends.pop("tag", ""))
    row = parent | {
        "run_id": f"{hash_of(*named, parent['seed']):012x}", "config_id": f"{hash_of(*named):012x}", "status": "finished",
        "protocol": "A-updates", "batch_size": int(k * parent["batch_size"]), "learning_rate": factor * parent["learning_rate"],
        "branch.from": parent["run_id"], "branch.at": at, "branch.anneal": anneal, "branch_update": start, "updates": start + updates,
        "branch_examples": start * parent["batch_size"],
        "examples": start * parent["batch_size"] + updates * int(k * parent["batch_size"]), "branch_train_loss": 1.5,
        "overshot": False, "steps_to_target": float("nan"),
    }  # fmt: skip
    return row | ends, curve | {"probes": []}


def probe_of_noise(checkpoint, ratio, error, loss=1.5):
    """Noise over gradient, within two errors, for curve["probes"], as synthetic_sweep writes probes."""
    measured = [Quantity("noise_over_gradient", [float(ratio)], error, "standard_error")]
    return {
        "checkpoint": checkpoint,
        "train_loss": loss,
        "subset_loss": loss,
        "update": 10,
        "probe": "ledger",
        "quantities": measured,
    }
