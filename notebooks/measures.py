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

# %%
import os
import warnings

from IPython.display import HTML, Markdown, display
from matplotlib import pyplot as plt

import basin
from basin.analysis.audit_verdict import load_audit
from basin.analysis.correlation import correlate
from basin.analysis.sweep_measures import basis_of, collect
from basin.figures import measures_and_gap as figures
from basin.figures import style
from basin.pages import landscapes, measure_text

# %matplotlib inline
warnings.filterwarnings("ignore", module="matplotlib|IPython")
style.use()
sweep = basin.open_sweep(os.environ.get("BASIN_SWEEP", "out/quick"))
basis, audited = basis_of(sweep), load_audit(sweep)
measures = collect(sweep, basis)
gap = correlate(measures, basis, audited, "gap")


def show(table):
    display(HTML(table.to_html(index=False, border=0, escape=True)))


display(Markdown("\n\n".join(filter(None, [
    measure_text.about_basis(basis, measures), measure_text.about_target(measures, "gap"), measure_text.about_axes(basis),
]))))  # fmt: skip

# %% [markdown]
# ## The generalisation gap
# τ: Kendall's τ-b over configurations (means over seeds), 95 % interval from a bootstrap over configurations. Placebo's p: how often the
# same numbers, dealt out at random, are as far from 0; then Holm's correction for the number of measures. Ψ: τ with one
# hyper-parameter varied at a time. ρ given covariates: the correlation left when these are held: learning rate, updates, training
# loss. τ without errors: what it would be if the means of measure and gap had no errors. *: moves where the function doesn't.

# %%
display(Markdown(measure_text.answer(gap)))
display(Markdown(measure_text.about_placebo(gap)))
show(measure_text.table(gap))

# %%
error = correlate(measures, basis, audited, "test_error")

# %% [markdown]
# ## Rank correlations
# Grey band: 95 % of placebos. Grey names: nothing may be claimed, or the measure moves where the function doesn't.

# %%
figures.forest(gap, error);

# %% [markdown]
# ## Each measure against the gap
# One mark per configuration: the mean over its seeds with standard errors.

# %%
figures.against_gap(gap, basis);

# %% [markdown]
# ## The test error

# %%
display(Markdown(measure_text.about_target(measures, "test_error")))
display(Markdown(measure_text.answer(error)))
show(measure_text.table(error))

# %% [markdown]
# ## Other statistics
# They are about the gap. Robust sign error: the share of pairs put in the wrong order in the worst environment (two levels of a
# hyper-parameter), 0 to 1. Conditional information: what the measure says about the order once hyper-parameters are known, 0 to 1,
# and far too high with few configurations, as that of placebos shows.

# %%
show(measure_text.second_table(gap, basis))

# %% [markdown]
# ## Measures against batch size

# %%
figures.against_batch(gap, basis);

# %% [markdown]
# ## Which measures mean anything

# %%
display(Markdown(measure_text.about_audit(audited, gap)))
if len(audited.table):
    show(measure_text.audit_table(audited, gap))

# %% [markdown]
# ## Landscapes
# What `basin landscape` measured on runs of this sweep. One plane through one network says little of any other.

# %%
for path in landscapes.beside(sweep):
    try:
        surface, drawn = landscapes.draw(path)
        display(Markdown(landscapes.in_words(surface)), *drawn)
    except basin.ReadError as unreadable:
        display(Markdown(str(unreadable)))
    plt.close("all")
if not landscapes.beside(sweep):
    display(Markdown("None."))

# %%
display(Markdown(measure_text.limits()))
