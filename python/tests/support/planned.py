"""A sweep made to plan, opened by the package under test."""

import basin
from synthetic_sweep import Plan, make_sweep


def open_planned(folder, plan: dict, write_runs: bool = False):
    make_sweep(folder, Plan(**plan), write_runs)
    return basin.open_sweep(folder)
