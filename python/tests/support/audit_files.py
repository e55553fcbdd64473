"""Files of `basin audit`, made by their description, and which panels of a figure are greyed by them."""

import h5py

from basin.figures.style import NOT_INVARIANT
from planned import open_planned
from synthetic_sweep import TEXT

SMALL = dict(batch_sizes=(32, 1024), optimizers=("sgd",), seeds=(1, 2), images=40, updates=4)


def row(definition, transformation, verdict, ratio=1.0, kind="function", quantity=None, strength=2.0, settings=""):
    return {"probe": "some", "settings": settings, "quantity": quantity or definition, "definition": definition,
            "transformation": transformation, "strength": strength, "before": 1.0, "after": ratio, "uncertainty_before": 0.01,
            "uncertainty_after": 0.01, "ratio": ratio, "verdict": verdict, "kind": kind}  # fmt: skip


def write_audit(path, rows, schema="basin/audit"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as f:
        f.attrs.update(schema_name=schema, schema_version="1.0.0", run_id=path.parents[1].name)
        for name in rows[0]:
            values = [r[name] for r in rows]
            f.create_dataset(f"audit/{name}", data=values, dtype=TEXT if isinstance(values[0], str) else None)


def write_options(sweep, probe, *by_run):
    """A measurement by `probe` in as many runs, with these options and no number."""
    for run_id, options in zip(sweep.runs.run_id, by_run):
        path = sweep.path.parent / "runs" / run_id / "probes" / f"end.{probe}.h5"
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as f:
            f.attrs.update(schema_name="basin/probe", schema_version="1.1.0", probe=probe, checkpoint="end")
            f.attrs.update({f"option.{key}": value for key, value in options.items()})
            f.create_group("quantities")


def audited(folder, *by_run):
    """A sweep with one audit file for each list of rows, in as many runs."""
    sweep = open_planned(folder, SMALL)
    for run_id, rows in zip(sweep.runs.run_id, by_run):
        write_audit(folder / "runs" / run_id / "audit" / "end.h5", rows)
    return sweep


def greyed(figure):
    return [ax.get_ylabel() for ax in figure.axes if any(t.get_text() == NOT_INVARIANT for t in ax.texts)]
