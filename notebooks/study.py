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
# # Batch size: what remains when training losses match

# %%
import os
import warnings

from IPython.display import HTML, Markdown, display

import basin
from basin.analysis import stats
from basin.analysis.matched import answers, pooled
from basin.figures import accuracy, layer_norms, learning_curves, sharpness, style
from basin.pages import report_text as text

# %matplotlib inline
warnings.filterwarnings("ignore", module="matplotlib|IPython")
style.use()
folder = os.environ.get("BASIN_SWEEP", "out/quick")
margin = stats.margin_of(float(os.environ.get("BASIN_MARGIN", 2)))  # points of accuracy within which there is "no gap"
sweep = basin.open_sweep(folder)
found = answers(sweep, margin)
display(Markdown("\n\n".join(filter(None, [text.about_data(sweep), text.about_status(sweep), text.about_large_batches(sweep)]))))

# %% [markdown]
# ## The answer

# %%
display(Markdown(text.overall(found, pooled(sweep, found, margin), margin)))
display(Markdown(text.reference_sentence(sweep)))

# %%
display(HTML(text.answer_table(found).to_html(index=False, border=0, escape=True)))

# %%
display(Markdown("\n".join(f"- {text.cell_sentence(a)}" for a in found)))

# %%
display(Markdown(text.limits(sweep)))

# %% [markdown]
# ## Accuracy against batch size
# Protocol A spends the same budget on every batch size: a drop there is one of optimisation until shown otherwise.
# Protocol B stops every run at the same training loss, the only basis for speaking of generalisation.
# Filled: the mean of comparable runs, bars are standard errors over seeds. Half filled: one seed, its bar the standard error from the
# test images alone, with nothing known of other seeds. Hollow: runs that missed or overshot the target or diverged;
# a cross on the axis: no value at all. A line breaks where no run of a batch size is comparable. Dashed: what each optimiser
# is compared with.

# %%
accuracy.accuracy_against_batch(sweep);

# %% [markdown]
# ## Training loss against test accuracy
# One mark per run, coloured by batch size, shaped by optimiser.

# %%
accuracy.loss_against_accuracy(sweep);

# %% [markdown]
# ## Sharpness and noise at matched loss
# At the end of protocol B, what this sweep measured. Optimisers end at different weight norms, so sharpness alone doesn't compare across
# them; what takes the length of the weights into account, below, does better. Bars: standard error over seeds, or the value's own
# residual or error where that is greater; of a search's lower bound (φ) over seeds alone. A ratio of two means, as B_simple, is that of
# the runs' means, all probed runs in it, with Fieller's 95 % interval over seeds. Half filled: one seed with its own uncertainty.
# Hollow: the run is not comparable, the value did not converge, or the ratio's denominator is not resolved; a cross: it came out
# negative.

# %%
sharpness.sharpness_against_batch(sweep);

# %% [markdown]
# ## Sharpness and noise against training loss
# Every checkpoint that was probed, protocol B, but for those far below the loss level they were kept for. Training goes from left to
# right; compare vertically, at equal loss. Bars: each value's own residual or 95 % interval, of one run.

# %%
sharpness.sharpness_against_loss(sweep);

# %% [markdown]
# ## Trust ratios by layer
# Median over recorded updates and seeds, bars from the 10th to the 90th percentile.

# %%
layer_norms.trust_ratios(sweep);

# %% [markdown]
# ## Layers over training
# Norms of each layer's weights before an update, of its gradient before clipping, of the update relative to the weights, and trust
# ratios; one run per optimiser, at its largest batch size with a comparable run, columns on one scale. Biases and norms aren't drawn.
# Dashed: weights excluded from trust ratios, missing in the last panel. A gap: a norm of zero, or none that is finite.

# %%
layer_norms.of_sweep(sweep);

# %% [markdown]
# ## Learning curves
# Batch loss (running mean) against the image gradients computed, the cost that all batch sizes share; one seed.
# Dashed: the run is not comparable.

# %%
learning_curves.learning_curves(sweep);
