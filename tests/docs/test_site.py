"""The site of `make docs` in Chromium, from the file system: a page of each kind, the search, both colour schemes, no network."""

import re
from pathlib import Path

import pytest

from chromium import CHROMIUM, chromium
from documents import ROOT

SITE = ROOT / "out" / "site"
START, DOCUMENT, CLASS, PYTHON = "index.html", "docs/probes.html", "cpp/hessian/linear_operator.html", "python/api/index.html"
PAGES = {
    START: "Basin",
    DOCUMENT: "Probes: what each number is",
    CLASS: "hessian/linear_operator.h",
    PYTHON: "Python API",
    "CHANGELOG.html": "Changelog",
    "results/index.html": "Results",
}
WIDTHS = (800, 1280)

pytestmark = [
    pytest.mark.skipif(not (SITE / START).is_file(), reason=f"no site in {SITE}: `make docs` builds it and runs these tests"),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: scripts/setup docs installs it"),
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser):
    """Opens pages; fails at the end where one asked for anything outside the site, or where a script or a file of it failed."""
    asked, failed, pages = [], [], []

    def open_page(name, width=1280, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("request", lambda request: asked.append(request.url))
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto((SITE / name).as_uri())
        page.wait_for_load_state("networkidle")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert [url for url in asked if not url.startswith((SITE.as_uri(), "data:", "blob:", "about:"))] == []
    assert failed == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_heading_and_its_width(opened, name, width):
    page = opened(name, width)
    assert page.locator("h1").first.inner_text().strip("¶\n ") == PAGES[name]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    text = page.locator("article").bounding_box()
    assert text["width"] >= 480 and text["x"] + text["width"] <= width
    # Wide tables and lines of code scroll in a box of their own, which must end on the page.
    boxes = page.evaluate("""[...document.querySelectorAll("article > *, article img, .md-typeset__scrollwrap, article pre")]
      .filter(e => e.getClientRects().length).map(e => e.getBoundingClientRect().right)""")
    assert max(boxes) <= width
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")


LUMINANCE = """element => {
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const of = colour => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return of(getComputedStyle(element).backgroundColor);
}"""


def test_it_is_light_or_dark_as_the_system_is(opened):
    """Half way between black and white in luminance is 0.18 (a contrast of equal size to both)."""
    grounds = [opened(START, scheme=scheme).locator("body").evaluate(LUMINANCE) for scheme in ("light", "dark")]
    assert grounds[0] > 0.18 > grounds[1]


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("gradient noise scale", "docs/probes.html"),
        ("top_eigenvalues", "docs/probes.html"),
        ("LinearOperator", CLASS),
        ("load_sweep", PYTHON),
        ("Keskar", "docs/keskar.html"),
    ],
)
def test_search_finds(opened, words, target):
    page = opened(START)
    page.locator("input.md-search__input").click()
    page.locator("input.md-search__input").press_sequentially(words)
    page.wait_for_selector(".md-search-result__link", timeout=30_000)
    found = page.eval_on_selector_all(".md-search-result__link", "links => links.map(link => link.href)")
    assert any(url.startswith((SITE / target).as_uri()) for url in found), found[:20]


def test_a_hit_leads_to_its_page(opened):
    page = opened(DOCUMENT)
    page.locator("input.md-search__input").click()
    page.locator("input.md-search__input").press_sequentially("Keskar")
    page.locator(".md-search-result__link").first.click()
    page.wait_for_load_state("networkidle")
    assert page.url.startswith(SITE.as_uri()) and "keskar" in page.inner_text("article").lower()


def test_links_of_the_start_page_lead_to_pages(opened):
    page = opened(START)
    links = set(page.eval_on_selector_all("article a[href]", "links => links.map(link => link.href.split('#')[0])"))
    inside = [Path(url.removeprefix("file://")) for url in links if url.startswith("file:")]
    assert len(inside) >= 20 and [str(path) for path in inside if not path.is_file()] == []


LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//|<link\b[^>]*\bhref=[\"']?(?:https?:)?//|@import"
)


def test_no_page_names_anything_to_load_from_elsewhere():
    """All pages, where the browser opens one of each kind. Links that a reader may follow are no such thing."""
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > 300
    assert [str(page.relative_to(SITE)) for page in pages if LOADED.search(page.read_text())] == []


def test_every_class_and_every_public_python_name_has_its_place():
    """Against the sources themselves: every class that a header declares at the left margin, every name of basin.__all__."""
    declared = re.compile(r"^(?:class|struct) (\w+)[^;]*\{", flags=re.M)
    lacking = []
    for room in re.findall(r"^\| `([^`]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.M):
        for header in (ROOT / room).glob("*.h"):
            source = header.read_text()
            if "\nnamespace {" in source:  # for the files that include it, not for users
                continue
            page = SITE / "cpp" / header.relative_to(ROOT).with_suffix(".html")
            text = page.read_text() if page.is_file() else ""
            lacking += [f"{header}: {name}" for name in declared.findall(source) if not re.search(rf'id="{name}"|-{name}"', text)]
    names = re.findall(r'"(\w+)"', (ROOT / "python/basin/__init__.py").read_text().partition("__all__")[2])
    shown = (SITE / PYTHON).read_text()
    assert len(names) > 10
    assert lacking + [name for name in names if f'id="basin.{name}"' not in shown] == []
