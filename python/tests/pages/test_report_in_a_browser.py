"""The report as a page: what a reader sees in Chromium at several widths, in light and dark, without a network."""

import re

import pytest

from chromium import CHROMIUM, chromium

WIDTHS = [(800, 900), (1280, 900), (1920, 1080)]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: scripts/setup tests installs it")


@pytest.fixture(scope="module")
def report_file(whole_report):
    return whole_report[0]


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser, report_file):
    """Opens the report; fails at the end where the page asked for anything but itself."""
    asked, pages = [], []

    def open_page(size, scheme="light"):
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report_file.as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert {url for url in asked if not url.startswith("data:")} == {report_file.as_uri()}


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")


def boxes(page, selector):
    return [element.bounding_box() for element in page.query_selector_all(selector)]


def texts(page, selector):
    return [element.inner_text() for element in page.query_selector_all(selector)]


def ends(box):
    return box["y"] + box["height"]


def test_text_and_figures_have_their_width(opened):
    page = opened((1280, 900))
    unfold(page)
    texts, figures = boxes(page, ".text"), boxes(page, "figure img")
    assert len(figures) == 8 and min(box["width"] for box in texts) >= 640 and min(box["width"] for box in figures) >= 900


def test_the_first_screen_holds_answer_figure_and_verdicts(opened):
    page = opened((1280, 900))
    bottom = {name: boxes(page, name)[0] for name in ("h1", ".text", "figure img", "tbody tr")}
    assert all(ends(box) <= 900 for box in bottom.values())
    assert bottom["h1"]["y"] < bottom[".text"]["y"] < bottom["figure img"]["y"] < bottom["tbody tr"]["y"]
    assert 1 <= len(re.findall(r"[.?!](?=\s|$)", texts(page, ".text")[0])) <= 5, "sentences of the answer"


def test_warnings_follow_the_verdicts_and_all_else_is_folded(opened):
    """From the top: the table of verdicts, the warnings, closed headings. The contents at the left name every one of them."""
    page = opened((1280, 900))
    (warnings,) = boxes(page, "section:has(#warnings)")
    folded = boxes(page, "main > details")
    assert ends(boxes(page, "thead tr")[0]) <= warnings["y"] and folded
    assert all(ends(warnings) <= box["y"] for box in folded)
    assert texts(page, "main > section > h2") == ["The answer", "Warnings"]
    assert not any(body.is_visible() for body in page.query_selector_all("details > .body"))
    contents, main = boxes(page, "nav")[0], boxes(page, "main")[0]
    assert contents["x"] + contents["width"] <= main["x"]
    assert texts(page, "nav a") == texts(page, "h2")


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows(opened, size, scheme):
    page = opened(size, scheme)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    over = [box for name in ("main *", "nav *") for box in boxes(page, name) if box and box["x"] + box["width"] > size[0] + 1]
    assert over == []


def test_on_a_narrow_screen_tables_and_figures_scroll_by_themselves(opened):
    page = opened((400, 800))
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert boxes(page, "h1")[0]["y"] < 200


LUMINANCE = """element => {
  const of = colour => {
    const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3).map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let behind = element;
  while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
  return [of(getComputedStyle(element).color), of(getComputedStyle(behind).backgroundColor)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(opened, scheme):
    """A contrast of 4.5, as WCAG 2.1 (1.4.3) asks for text; verdicts' cells, links and captions with it."""
    page = opened((1280, 900), scheme)
    unfold(page)
    for selector in (".text p", "td.gap, td.equal, td.better, td.open", "nav a", "figcaption", "th", "summary h2"):
        found = page.query_selector_all(selector)
        assert found, selector
        for element in found:
            light, dark = sorted(element.evaluate(LUMINANCE), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, selector


def test_keyboard_and_screen_reader(opened):
    """Every image says what it shows; headings are in order; Tab reaches contents and folds, Enter opens one."""
    page = opened((1280, 900))
    assert all(len(image.get_attribute("alt")) > 60 for image in page.query_selector_all("img"))
    assert page.evaluate("document.documentElement.lang") == "en" and page.title().startswith("Basin: ")
    assert [e.evaluate("e => e.tagName") for e in page.query_selector_all("h1, h2, h3")][:2] == ["H1", "H2"]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('nav') !== null")
    page.query_selector("summary").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")


def test_a_link_of_the_contents_opens_its_section(opened):
    page = opened((1280, 900))
    page.click("nav a[href='#learning-curves']")
    assert page.evaluate("document.getElementById('learning-curves').closest('details').open")
