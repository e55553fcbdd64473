#!/usr/bin/env python3
"""Makes the site of all documents in out/site: the pages, the C++ API (doxygen) and the Python API, with one search.

    .venv-docs/bin/python scripts/docs_site/build.py          `make docs` sets up, calls this and tests the site

Pages are copied to out/site-work as they lie in the repository, so that links between them need no change. What else they link to, a
folder or a file, gets a page there too. A page that lies in docs/ but not in mkdocs.yml's nav is an error, and so is a broken link.
"""

import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
from typing import Any

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import cpp_pages  # noqa: E402
import headers  # noqa: E402
import prose  # noqa: E402

from links import LINK, without_code  # noqa: E402
from tree_files import tree_files  # noqa: E402

WORK, SITE = ROOT / "out" / "site-work", ROOT / "out" / "site"
PAGES = re.compile(r"(README|CHANGELOG|CONTRIBUTING|SECURITY)\.md|(docs|results|python|data/assets)/.*\.md")
LONGEST = 64_000  # characters of a text that is shown as a page; longer ones are copied, to be opened by another program
FENCES = {".toml": "toml", ".json": "json", ".py": "python", ".cff": "yaml", ".cpp": "cpp", ".cmake": "cmake"}


def write(path: str, text: str) -> None:
    file = WORK / "pages" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def linked(name: str, text: str) -> list[str]:
    """What a page links to in the repository: paths below ROOT."""
    found = []
    for match in LINK.finditer(without_code(text)):
        target = next(filter(None, match.groups())).partition("#")[0]
        if target and not re.match(r"[a-z]+:", target):
            found.append(posixpath.normpath(posixpath.join(posixpath.dirname(name), target)))
    return found


def stand_in(path: str, files: list[str]) -> str:
    """The page that stands for a folder or a text file; a file that is neither is copied and stands for itself."""
    place = ROOT / path
    if place.is_dir():
        inside = [file for file in files if file.startswith(path + "/")]
        if f"{path}/README.md" in inside:
            return f"{path}/README.md"
        rows = []
        for file in inside:
            target = stand_in(file, files)
            rows.append(f"- [{prose.escaped(posixpath.relpath(file, path))}]({posixpath.relpath(target, path)})")
        write(
            f"{path}/index.md",
            f"---\nsearch:\n  exclude: true\n---\n# {path}\n\nThe files of this folder.\n\n" + "\n".join(rows) + "\n",
        )
        return f"{path}/index.md"
    if place.suffix == ".md" and PAGES.fullmatch(path):
        return path
    try:
        text = place.read_text() if place.stat().st_size <= LONGEST else None
    except UnicodeDecodeError:
        text = None
    if text is None or place.suffix in (".png", ".svg"):
        (WORK / "pages" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, WORK / "pages" / path)
        return path
    fence = FENCES.get(place.suffix, "text")
    write(f"{path}.md", f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n````{fence}\n{text.rstrip()}\n````\n")
    return f"{path}.md"


def front(name: str) -> str:
    """Documents and the public Python names come before the other pages of the APIs in what search finds; the start page
    needs its whole width."""
    hidden = "hide: [navigation]\n" if name == "README.md" else ""
    boost = {"CHANGELOG.md": 0.3, "docs/benchmarks.md": 1}.get(name, 4)
    return f"---\n{hidden}search:\n  boost: {boost}\n---\n"


def stage(files: list[str]) -> dict[str, str]:
    """Copies the pages; page -> its original."""
    pages = [name for name in files if PAGES.fullmatch(name)]
    for name in pages:
        text = (ROOT / name).read_text()
        folder = posixpath.dirname(name)
        for target in linked(name, text):
            instead = stand_in(target, files)
            if instead != target:
                written = posixpath.relpath(target, folder or ".")
                text = re.sub(rf"\]\({re.escape(written)}/?(?=[#)])", f"]({posixpath.relpath(instead, folder or '.')}", text)
        write(name, front(name) + prose.for_mkdocs(text))
    return {name: str(ROOT / name) for name in pages}


def rooms() -> list[tuple[str, str]]:
    """Folder and what it holds, by the table of CONTRIBUTING.md."""
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \| .*\|$", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.M)
    return [(room, holds) for room, holds in rows if (ROOT / room).is_dir()]


def cpp_api(files: list[str], pages: set[str]) -> list[Any]:
    found = rooms()
    names = {room for room, _ in found}
    paths = [file for file in files if file.endswith(".h") and posixpath.dirname(file) in names]
    read = headers.read_headers(ROOT, paths, headers.run_doxygen(ROOT, paths, WORK))
    for path, text in cpp_pages.pages(read, found, pages).items():
        write(path, text)
    nav: list[Any] = ["cpp/index.md"]
    for room, _ in found:
        of_room = sorted(path for path in paths if posixpath.dirname(path) == room)
        nav.append({room: [f"cpp/{room}/index.md", *({posixpath.basename(p): cpp_pages.page_of(p)} for p in of_room)]})
    return nav


def python_api(files: list[str]) -> list[Any]:
    """The public names on one page; a page per module below, for those who read a figure's or a page's source."""
    modules: dict[str, list[str]] = {}
    for file in files:
        parts = pathlib.PurePosixPath(file).with_suffix("").parts[1:]
        if re.fullmatch(r"python/basin/(\w+/)?\w+\.py", file) and parts[-1] != "__init__":
            modules.setdefault(".".join(parts[:-1]), []).append(".".join(parts))
    heading = "Look up here what a function of the Python package returns. `import basin` needs neither torch nor the program"
    text = f"# Python API\n\n{heading} ([reading results](../../docs/reading-results.md)).\n\n::: basin\n"
    index = "python/api/index.md"
    write(index, front(index) + text)
    nav: list[Any] = [index]
    for package, names in sorted(modules.items()):
        entries = []
        for name in names:
            page = f"python/api/{name}.md"
            write(page, f"---\nsearch:\n  boost: 0.3\n---\n# {prose.escaped(name)}\n\n::: {name}\n")
            entries.append({name.removeprefix("basin."): page})
        nav.append({package: entries})
    return nav


def version() -> str:
    match = re.search(r"project\(basin VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert match
    return match[1]


def settings(originals: dict[str, str], cpp: list[Any], python: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((HERE / "mkdocs.yml").read_text())
    found |= {"docs_dir": str(WORK / "pages"), "site_dir": str(SITE), "hooks": [str(HERE / "hooks.py")]}
    found["copyright"] = (
        f"Basin {version()}. This site works without a network and without a server: open index.html in a browser, search included; "
        "or serve the folder."
    )
    found["extra"]["originals"] = originals
    handler = found["plugins"]["mkdocstrings"]["handlers"]["python"]
    handler["paths"] = [str(ROOT / "python")]
    handler["options"]["extensions"] = [str(HERE / "docstrings.py")]
    found["nav"] += [{"Python API": python}, {"C++ API": cpp}]
    listed = str(found["nav"])
    staged = [file.relative_to(WORK / "pages").as_posix() for file in (WORK / "pages").rglob("*.md")]
    # A document has to have its place in nav; what only stands for a linked file hasn't.
    must = {name for name in originals if name.startswith("docs/")}
    found["not_in_nav"] = "\n".join(f"/{name}" for name in staged if f"'{name}'" not in listed and name not in must)
    return found


def main() -> None:
    if not shutil.which("doxygen"):
        raise SystemExit("docs: no doxygen: scripts/setup docs installs it")
    for folder in (WORK, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    files = tree_files()
    originals = stage(files)
    for name in ("extra.css", "iframe-worker.js"):
        write(f"site/{name}", (HERE / name).read_text())
    found = settings(originals, cpp_api(files, set(originals)), python_api(files))
    (WORK / "mkdocs.yml").write_text(yaml.safe_dump(found, allow_unicode=True, sort_keys=False))
    # The theme's maker advertises a successor on every build.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true", "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(WORK / "mkdocs.yml")]
    done = subprocess.run(command, env=environment, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        said = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("INFO"))
        raise SystemExit(f"{said}\ndocs: MkDocs found what is listed above")
    size = sum(file.stat().st_size for file in SITE.rglob("*") if file.is_file())
    print(f"{SITE / 'index.html'}: {len(list(SITE.rglob('*.html')))} pages, {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
