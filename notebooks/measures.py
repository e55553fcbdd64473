# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Measures of sharpness and noise: do they go with the generalisation gap?
# The comparisons and figures of `python -m basin.report OUT --page measures`, to go on from.

# %%
import os

from IPython.display import Markdown, display
from matplotlib import pyplot as plt

import basin
from basin.analysis.audit_verdict import load_audit
from basin.analysis.correlation import correlate
from basin.analysis.sweep_measures import basis_of, collect
from basin.figures import measures_and_gap as figures
from basin.figures import style
from basin.pages import landscapes, measure_text

# %matplotlib inline
style.use()
sweep = basin.open_sweep(os.environ.get("BASIN_SWEEP", "out/quick"))
basis, audited = basis_of(sweep), load_audit(sweep)
measures = collect(sweep, basis)
gap = correlate(measures, basis, audited, "gap")
error = correlate(measures, basis, audited, "test_error")
display(Markdown(measure_text.answer(gap)))
measure_text.table(gap)

# %%
display(figures.forest(gap, error), figures.against_gap(gap, basis), figures.against_batch(gap, basis))
plt.close("all")  # shown once

# %%
measure_text.second_table(gap, basis)

# %%
for path in landscapes.beside(sweep):
    surface, drawn = landscapes.draw(path)
    display(Markdown(landscapes.in_words(surface)), *drawn)
plt.close("all")
