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
# The report's comparisons and figures (`python -m basin.report OUT`), to go on from.

# %%
import os

from IPython.display import Markdown, display
from matplotlib import pyplot as plt

import basin
from basin.analysis import stats
from basin.analysis.cell_answers import answers
from basin.analysis.pooled import pooled
from basin.figures import style
from basin.pages import report_tables as tables
from basin.pages import report_text as text
from basin.pages.report_warnings import warnings_of
from basin.pages.study_page import ACCURACY, PICTURES

# %matplotlib inline
style.use()
sweep = basin.open_sweep(os.environ.get("BASIN_SWEEP", "out/quick"))
margin = stats.margin_of(float(os.environ.get("BASIN_MARGIN", 2)))  # points of accuracy within which there is "no gap"
found = answers(sweep, margin)
together = pooled(sweep, found, margin)
sweep.runs.head()

# %% [markdown]
# ## The answer

# %%
display(Markdown(" ".join(text.answer(found, together, margin))))
display(Markdown("\n".join(f"- {w}" for w in warnings_of(sweep, found, together))))
display(tables.verdict_table(found))
display(tables.details_table(found))

# %% [markdown]
# ## Figures

# %%
for picture in [ACCURACY, *PICTURES]:
    if (figure := picture.draw(sweep)) is not None:
        display(Markdown(f"**{picture.title}.** {picture.caption}"), figure)
        plt.close(figure)  # shown once
