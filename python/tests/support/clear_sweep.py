"""A sweep in which a measure goes with the gap, and correlations by the measure's label."""

from basin.analysis.audit_verdict import load_audit
from basin.analysis.correlation import correlate
from basin.analysis.sweep_measures import basis_of, collect

# Twelve configurations of three seeds; the gap grows with the batch size as sharpness does.
CLEAR = dict(images=2000, updates=3, drop_b=0.02, seed_error=0.002)


def by_label(sweep, target="gap"):
    basis = basis_of(sweep)
    return {c.label: c for c in correlate(collect(sweep, basis), basis, load_audit(sweep), target)}


def only(sweep, keep):
    """The sweep with some of its numbers."""
    sweep.probes = sweep.probes[keep(sweep.probes)].reset_index(drop=True)
    return sweep
