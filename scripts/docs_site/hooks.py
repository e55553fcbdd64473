"""For MkDocs: anchors as on a hosting site, and every page of ours has the elements there that it has on such a site."""

import collections
import re
from typing import Any

import markdown_it
from mkdocs.exceptions import PluginError

COUNTED = re.compile(r"<(h[1-6]|li|ul|ol|table|tr|t[hd]|pre|img|blockquote|em|strong)\b")
PARSER = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
ORIGINALS: dict[str, str] = {}  # of the pages that are Markdown in the repository, by their path: set by build.py's settings


def slug(heading: str, separator: str = "-") -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config: Any, **_kwargs: Any) -> Any:
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slug
    ORIGINALS.update(config["extra"].pop("originals", {}))
    return config


def elements(html: str) -> collections.Counter[str]:
    return collections.Counter(COUNTED.findall(html))


def on_page_content(html: str, page: Any, **_kwargs: Any) -> str:
    # The theme lists what is below the first heading; docs/probes.md has several of the first level.
    first, *others = page.toc.items or [None]
    if others:
        first.children += others
        page.toc.items = [first]
    original = ORIGINALS.get(page.file.src_uri)
    if original:
        with open(original, encoding="utf-8") as file:
            expected = elements(PARSER.render(file.read()))
        found = elements(html)
        if found != expected:
            differing = {name: (expected[name], found[name]) for name in expected | found if expected[name] != found[name]}
            raise PluginError(f"{page.file.src_uri}: (on a hosting site, in this site) {differing}")
    return html
