"""Generated passages of Markdown files: what stands between <!-- NAME --> and <!-- end of NAME --> is never typed by hand."""

from __future__ import annotations

import re
from pathlib import Path


class PasteError(Exception):
    """A passage without its place in the page, in one line."""


def passage(path: str | Path, name: str) -> str:
    """What stands between the markers, without the line breaks around it."""
    return _match(path, name)[1].strip("\n")


def paste(path: str | Path, name: str, content: str) -> None:
    """Replaces what stands between the markers."""
    match = _match(path, name)
    whole = match.string
    Path(path).write_text(f"{whole[: match.start(1)]}\n{content.strip()}\n{whole[match.end(1) :]}", encoding="utf-8")


def _match(path: str | Path, name: str) -> re.Match:
    whole = Path(path).read_text(encoding="utf-8")
    match = re.search(f"<!-- {re.escape(name)} -->(.*?)<!-- end of {re.escape(name)} -->", whole, flags=re.S)
    if match is None:
        raise PasteError(f"{path}: no place for it between <!-- {name} --> and <!-- end of {name} -->")
    return match
