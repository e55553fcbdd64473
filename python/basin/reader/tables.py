"""A group of equally long datasets as a table."""

from __future__ import annotations

import h5py
import pandas as pd

from .schema import attributes, strings, text


def table_of(group: h5py.Group) -> pd.DataFrame:
    """A column for each 1-D dataset, in the order that the group's attribute `columns` gives, if it has one."""
    columns = {}
    for name, data in group.items():
        if data.ndim != 1:
            continue
        values = strings(data) if data.dtype.kind in "OS" else data[()]
        columns[name] = values.astype(bool) if text(data.attrs.get("type", "")) == "bool" else values
    order = attributes(group).get("columns")
    frame = pd.DataFrame(columns)
    return frame[[c for c in order if c in frame]] if isinstance(order, list) else frame
