"""The constants of `basin forecast` are those that its generator makes of the committed results, and the page quotes them."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("forecast_calibration", ROOT / "scripts" / "forecast_calibration.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(text: str) -> str:
    """clang-format may move comments and braces."""
    return re.sub(r"\s+", "", text)


def test_the_headers_are_what_the_generator_makes(calibration):
    for path, text in calibration.headers().items():
        assert plain((ROOT / path).read_text()) == plain(text), f"{path}: run scripts/forecast_calibration.py --write"


def test_the_page_quotes_the_constants(calibration):
    page = (ROOT / "docs" / "forecast.md").read_text()
    quick = calibration.read()
    _, errors = calibration.errors(quick)
    for row, place in (("mean of log(measured/predicted)", 0), ("its standard deviation", 1)):
        (line,) = re.findall(rf"^\| {re.escape(row)}[^|]*\|(.*)\|$", page, flags=re.M)
        quoted = [float(cell.replace("−", "-")) for cell in line.split("|")]
        assert quoted == [round(error[place], 3) for error in errors.values()]
    for name, value in calibration.trial_constants(quick).items():
        assert re.search(rf"`{name}`\s+{value:.2g}\b", page), (name, value)


def test_effective_updates_by_hand(calibration):
    """At N: 80 planned, 4 of warm-up: 1/4 + 1/2 + 3/4 + 1, then cos from 1 to 0 over 76, half way at the 42nd."""
    assert calibration.effective(4529, 4) == 2.5
    assert calibration.effective(65536, 80) == pytest.approx(2.5 + sum((1 + calibration.math.cos(calibration.math.pi * k / 76)) / 2
                                                                       for k in range(76)), rel=1e-12)  # fmt: skip
    assert calibration.effective(4529, 5) == 3.5
