"""Files of `basin audit`, made by their description, and which panels of a figure are greyed by them."""

import h5py
from synthetic_sweep import TEXT

from basin.figures.style import NOT_INVARIANT


def row(definition, transformation, verdict, ratio=1.0, kind="function", quantity=None, strength=2.0, settings=""):
    return {"probe": "some", "settings": settings, "quantity": quantity or definition, "definition": definition,
            "transformation": transformation, "strength": strength, "before": 1.0, "after": ratio, "uncertainty_before": 0.01, "uncertainty_after": 0.01,
            "ratio": ratio, "verdict": verdict, "kind": kind}  # fmt: skip


def write_audit(path, rows, schema="basin/audit"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as f:
        f.attrs.update(schema_name=schema, schema_version="1.0.0", run_id=path.parents[1].name)
        for name in rows[0]:
            values = [r[name] for r in rows]
            f.create_dataset(f"audit/{name}", data=values, dtype=TEXT if isinstance(values[0], str) else None)


def greyed(figure):
    return [ax.get_ylabel() for ax in figure.axes if any(t.get_text() == NOT_INVARIANT for t in ax.texts)]
