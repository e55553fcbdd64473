#!/usr/bin/env python3
"""Links and anchors: what a Markdown page links to is there, and so is every docs/PAGE.md#ANCHOR that sources name.

    links.py                 prints each broken one as file:line: target: what is wrong; exits with 1 if there is one
    links.py --self-test     plants broken links of each kind in a temporary tree and expects them to be found

Anchors are GitHub's: a heading in lower case, without punctuation, blanks as hyphens, a repeated one with -1, -2, ...;
or an explicit <a id="...">. Addresses with a scheme (https:) are not looked at: nothing here uses the network.
"""

import functools
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator

from tree_files import ROOT, tree_files

SOURCES = {".h", ".cpp", ".cu", ".py", ".toml", ".cmake"}
LINK = re.compile(r"\]\(<?([^()\s>]+)>?(?: \"[^\"]*\")?\)|(?:src|href)=\"([^\"]+)\"")
NAMED = re.compile(r"\b(docs/[a-z-]+\.md(?:#[a-z0-9-]+)?)")
HEADING = re.compile(r"#{1,6} +(.*?) *#*$")
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def without_code(text: str) -> str:
    """Fenced blocks and code spans blanked; lines stay where they are."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def slug(heading: str) -> str:
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


@functools.cache
def anchors(page: pathlib.Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = set(ANCHOR.findall(text))
    for match in filter(None, map(HEADING.match, text.splitlines())):
        name, repeated = slug(match[1]), 0
        while (f"{name}-{repeated}" if repeated else name) in found:
            repeated += 1
        found.add(f"{name}-{repeated}" if repeated else name)
    return found


def fault(target: str, page: pathlib.Path, base: pathlib.Path) -> str | None:
    """What is wrong with `target`, named in `page` and relative to `base`; None: nothing, or an address elsewhere."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    file = (base / path).resolve() if path else page
    if not file.exists():
        return "no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return "no such heading"
    return None


def broken_in(root: pathlib.Path, name: str) -> Iterator[tuple[int, str, str]]:
    page = root / name
    is_page = page.suffix == ".md"
    text = without_code(page.read_text()) if is_page else page.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        for match in (LINK if is_page else NAMED).finditer(line):
            target = next(filter(None, match.groups()))
            wrong = fault(target, page, page.parent if is_page else root)
            if wrong:
                yield number, target, wrong


def report(root: pathlib.Path, names: list[str]) -> int:
    found = 0
    for name in names:
        for number, target, wrong in broken_in(root, name):
            print(f"{name}:{number}: {target}: {wrong}")
            found += 1
    print(f"{len(names)} files, {found} broken links")
    return 1 if found or not names else 0


def files_with_links() -> list[str]:
    return [name for name in tree_files() if pathlib.Path(name).suffix in {".md", *SOURCES} and name != "scripts/links.py"]


def self_test() -> int:
    page = '# One\n## `two`: a (b)\n## One\n```\n# no heading\n[code](gone.md)\n```\n<a id="own"></a>\n'
    fine = (
        "[a](docs/page.md#one) [b](docs/page.md#two-a-b) [c](docs/page.md#one-1) [d](docs/page.md#own)\n"
        "[e](#here) `[f](gone.md)` <https://x.y> [g](https://x.y/z.md#a)\n# Here\n"
    )
    files = {
        "docs/page.md": page,
        "fine.md": fine,
        "fine.cpp": "// docs/page.md#one\n",
        "file.md": "[a](docs/gone.md)\n",
        "up.md": "[a](/docs/page.md)\n",
        "heading.md": "\n[a](docs/page.md#no-heading)\n",
        "own.md": "[a](#nothing)\n",
        "image.md": '<img src="gone.png">\n',
        "comment.h": "/// see docs/page.md#gone.\n",
        "source.py": '"""docs/gone.md"""\n',
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        for name, text in files.items():
            (root / name).write_text(text)
        found = {name for name in files if list(broken_in(root, name))}
    expected = set(list(files)[3:])
    for name in sorted(found ^ expected):
        print(f"{name}: {'not found' if name in expected else 'found, but nothing is wrong with it'}")
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(self_test() if "--self-test" in sys.argv else report(ROOT, files_with_links()))
