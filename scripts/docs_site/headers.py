"""Headers as doxygen is to read them, and what it found: what is public in which header, in the order in which it stands there."""

import dataclasses
import itertools
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator

# Doxygen would read markup into our comments (#7, <name>, *); inside \verbatim it doesn't. Line numbers stay as they are.
DOC = re.compile(r"^(\s*)///(?!<) ?(.*)$")
TRAILING = re.compile(r"^(\s*\S.*?[;,}\w)])(\s+)// ?(.*)$")
ALONE = re.compile(r"^(\s*)// ?(.*)$")


@dataclasses.dataclass
class Member:
    kind: str  # function, variable, typedef, enum, define
    name: str
    line: int
    declaration: str  # as in the header, without its body
    text: str  # its comment
    type: str = ""
    default: str = ""
    values: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # of an enum: name, comment


@dataclasses.dataclass
class Compound:
    kind: str  # class, struct
    name: str
    final: bool
    line: int
    text: str
    bases: list[str]  # as in "public Model"
    template: str
    members: list[Member]


@dataclasses.dataclass
class Header:
    path: str
    summary: str
    compounds: list[Compound] = dataclasses.field(default_factory=list)
    members: list[Member] = dataclasses.field(default_factory=list)


def marked(source: str) -> str:
    """Doc comments and comments at the end of a declaration, as blocks that doxygen passes on untouched."""
    lines, depth = source.split("\n"), 0
    out = list(lines)
    at = 0
    while at < len(lines):
        end = at + 1
        if DOC.match(lines[at]):
            while end < len(lines) and DOC.match(lines[end]):
                end += 1
            for number in range(at, end):
                margin, text = DOC.match(lines[number]).groups()  # type: ignore[union-attr]
                first, last = r"\verbatim " if number == at else "", r" \endverbatim" if number == end - 1 else ""
                out[number] = f"{margin}/// {first}{text}{last}"
        else:
            found = TRAILING.match(lines[at])
            if found and not depth and found[1].strip() not in ("}", "};") and not found[1].lstrip().startswith(("#", "//")):
                column = found.end(2)
                while end < len(lines) and (more := ALONE.match(lines[end])) and len(more[1]) == column:
                    end += 1
                texts = [found[3]] + [ALONE.match(line)[2] for line in lines[at + 1 : end]]  # type: ignore[index]
                out[at] = f"{found[1]}{found[2]}///< \\verbatim {texts[0]}"
                for number, text in enumerate(texts[1:], at + 1):
                    out[number] = f"{' ' * column}///< {text}"
                out[end - 1] += r" \endverbatim"
            for line in lines[at:end]:
                code = re.sub(r'"(?:\\.|[^"\\])*"|//.*', "", line)
                depth += code.count("(") - code.count(")")
        at = end
    return "\n".join(out)


def run_doxygen(root: pathlib.Path, paths: list[str], work: pathlib.Path) -> pathlib.Path:
    for path in paths:
        copy = work / "headers" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(marked((root / path).read_text()))
    settings = (pathlib.Path(__file__).parent / "Doxyfile").read_text()
    settings += f"INPUT = {work / 'headers'}\nSTRIP_FROM_PATH = {work / 'headers'}\nOUTPUT_DIRECTORY = {work}\n"
    done = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True, check=False)
    if done.returncode or done.stderr.strip():
        raise SystemExit(f"docs: doxygen: {done.stderr.strip()[:2000]}")
    return work / "xml"


def words(element: ET.Element | None) -> str:
    text = "".join(element.itertext()) if element is not None else ""
    return re.sub(r"\s*([<>])\s*", r"\1", " ".join(text.split())).replace(" &", "&").replace(" *", "*")


def comment_of(element: ET.Element) -> str:
    texts = []
    for verbatim in element.iterfind("./detaileddescription//verbatim"):
        lines = [re.sub(r"^\s*///<? ?", "", line) for line in "".join(verbatim.itertext()).rstrip().split("\n")]
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def declaration(lines: list[str], line: int) -> str:
    """The statement at `line` (from 1), as it is written, to its end or its body."""
    first = line - 1
    while first and lines[first - 1].strip() and not re.search(r"([;{}:]|//.*)$|^\s*#", lines[first - 1].rstrip()):
        first -= 1
    depth, kept = 0, []
    for text in lines[first:]:
        text = re.sub(r"\s*//.*$", "", text)
        for at, char in enumerate(text):
            depth += (char in "([") - (char in ")]")
            at_the_end = char in ";{" or (
                char == ":" and "::" not in text[max(at - 1, 0) : at + 2] and kept_name(kept, text[:at])
            )
            if not depth and at_the_end:
                kept.append(text[:at].rstrip())
                break
        else:
            kept.append(text)
            continue
        break
    margin = min(len(text) - len(text.lstrip()) for text in kept if text.strip())
    return "\n".join(text[margin:] for text in kept if text.strip()) + ";"


def kept_name(kept: list[str], text: str) -> bool:
    """A colon after a list of parameters: a constructor's initialisers."""
    return ")" in "".join(kept) + text


def member_of(element: ET.Element, sources: dict[str, list[str]]) -> tuple[str, Member] | None:
    where = element.find("location")
    if where is None or element.get("prot") == "private" or element.get("kind") == "friend":
        return None
    path = where.get("declfile") or where.get("file") or ""
    line = int(where.get("declline") or where.get("line") or 0)
    name = words(element.find("name"))
    if not name or path not in sources or name.startswith("@"):
        return None
    kind = element.get("kind", "")
    values = [(words(value.find("name")), comment_of(value)) for value in element.iterfind("enumvalue")]
    default = re.sub(r"^=\s*", "", "".join(i.itertext()) if (i := element.find("initializer")) is not None else "")
    shown = "" if kind in ("variable", "enum", "define") else declaration(sources[path], line)
    qualified = words(element.find("qualifiedname")).removeprefix("basin::")
    return path, Member(kind, qualified or name, line, shown, comment_of(element), words(element.find("type")), default, values)


def read_headers(root: pathlib.Path, paths: list[str], xml: pathlib.Path) -> dict[str, Header]:
    sources = {path: (root / path).read_text().split("\n") for path in paths}
    headers = {path: Header(path, summary_of(lines)) for path, lines in sources.items()}
    for file in sorted(xml.glob("*.xml")):
        for compound in ET.parse(file).getroot().iterfind("compounddef"):
            if compound.get("kind") in ("class", "struct", "union"):
                add_compound(compound, sources, headers)
            elif compound.get("kind") in ("namespace", "file"):
                for member in members_in(compound):
                    found = member_of(member, sources)
                    if found:
                        headers[found[0]].members.append(found[1])
    for header in headers.values():
        header.compounds.sort(key=lambda c: c.line)
        header.members.sort(key=lambda m: m.line)
    return headers


def members_in(compound: ET.Element) -> Iterator[ET.Element]:
    # A file repeats the members of its namespaces: those it has alone are macros.
    for member in compound.iterfind("./sectiondef/memberdef"):
        if compound.get("kind") == "namespace" or member.get("kind") == "define":
            yield member


def add_compound(compound: ET.Element, sources: dict[str, list[str]], headers: dict[str, Header]) -> None:
    where = compound.find("location")
    name = words(compound.find("compoundname")).removeprefix("basin::")
    if where is None or where.get("file") not in headers or compound.get("prot") == "private" or "@" in name:
        return
    found = [member_of(member, sources) for member in compound.iterfind("./sectiondef/memberdef")]
    members = sorted((entry[1] for entry in found if entry), key=lambda m: m.line)
    for member in members:
        member.name = member.name.removeprefix(f"{re.sub('<.*', '', name)}::")
    parameters = [" ".join(filter(None, (words(p.find("type")), words(p.find("declname"))))) for p in
                  compound.iterfind("./templateparamlist/param")]  # fmt: skip
    headers[where.get("file", "")].compounds.append(
        Compound(
            compound.get("kind", ""),
            name,
            compound.get("final") == "yes",
            int(where.get("line", 0)),
            comment_of(compound),
            [f"{base.get('prot')} {words(base).removeprefix('basin::')}" for base in compound.iterfind("basecompoundref")],
            f"template <{', '.join(parameters)}>" if parameters else "",
            members,
        )
    )


def summary_of(lines: list[str]) -> str:
    """The comment that a header begins with: what it defines."""
    first = itertools.takewhile(lambda line: line.startswith("//"), lines)
    return re.sub(r"^defines: ", "", " ".join(line.lstrip("/ ").strip() for line in first))
