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

import basin
from basin import figures, style, text
from basin.matched import answers, pooled
from IPython.display import HTML, Markdown, display

# %matplotlib inline
warnings.filterwarnings("ignore", module="matplotlib|IPython")
style.use()
folder = os.environ.get("BASIN_SWEEP", "out/quick")
sweep = basin.open_sweep(folder)
found = answers(sweep)
display(Markdown("\n\n".join(filter(None, [text.about_data(sweep), text.about_status(sweep), text.about_large_batches(sweep)]))))

# %% [markdown]
# ## The answer

# %%
display(Markdown(text.overall(found, pooled(sweep, found))))
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
# Bars are standard errors over seeds. Filled: comparable runs; hollow: runs that missed or overshot the target or diverged;
# a cross on the axis: no value at all.

# %%
figures.accuracy_against_batch(sweep);

# %% [markdown]
# ## Training loss against test accuracy
# One mark a run, coloured by batch size, shaped by optimiser.

# %%
figures.loss_against_accuracy(sweep);

# %% [markdown]
# ## Sharpness and noise at matched loss
# At the end of protocol B. SGD, LARS and LAMB end at different weight norms, so λ₁ and φ alone don't compare across them;
# λ₁‖w‖² and the parameter-relative box do better. Hollow: the run is not comparable, or the value did not converge or resolve;
# a cross: it came out negative, as B_simple can where |G|² is not resolved.

# %%
figures.sharpness_against_batch(sweep);

# %% [markdown]
# ## Sharpness and noise against training loss
# Every checkpoint that was probed, protocol B. Training goes from left to right; compare vertically, at equal loss.

# %%
figures.sharpness_against_loss(sweep);

# %% [markdown]
# ## Trust ratios by layer
# Median over updates and seeds, bars from the 10th to the 90th percentile.

# %%
figures.trust_ratios(sweep);

# %% [markdown]
# ## Learning curves
# Batch loss (running mean) against the image gradients computed, the cost that all batch sizes share; one seed.
# Dashed: the run is not comparable.

# %%
figures.learning_curves(sweep);
