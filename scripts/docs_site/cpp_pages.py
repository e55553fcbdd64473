"""The pages of the C++ API: one per header, one per room, and an index of classes."""

import collections
import itertools
import posixpath
import re

import prose
from headers import Compound, Header, Member

FRONT = "---\ntitle: {title}\nsearch:\n  boost: {boost}\n---\n"


class Links:
    """Where names, headers and pages are, seen from a page of this API."""

    def __init__(self, headers: dict[str, Header], pages: set[str]):
        self.files = {path: page_of(path) for path in headers} | {page: page for page in pages}
        places: dict[str, set[str]] = collections.defaultdict(set)
        for path, header in headers.items():
            for named in [*header.compounds, *header.members]:
                if named.name not in ("operator", "bind_options"):
                    anchor = anchor_of(named.name)
                    places[named.name].add(f"{page_of(path)}#{anchor}")
                    places[named.name + ("()" if getattr(named, "kind", "") == "function" else "")].add(
                        f"{page_of(path)}#{anchor}"
                    )
        self.places = {name: found.pop() for name, found in places.items() if len(found) == 1}

    def seen_from(self, page: str) -> prose.Link:
        def link(name: str) -> str | None:
            file, mark, anchor = name.partition("#")
            target = self.files[file] + mark + anchor if file in self.files else self.places.get(name, "")
            if not target or target == page:
                return None
            path, mark, anchor = target.partition("#")
            return posixpath.relpath(path, posixpath.dirname(page)) + mark + anchor

        return link


def page_of(header: str) -> str:
    return f"cpp/{header.removesuffix('.h')}.md"


def anchor_of(name: str) -> str:
    return re.sub(r"[^\w]+", "-", name).strip("-")


def fields_table(members: list[Member], link: prose.Link) -> str:
    """Fields of one line of source share its comment, which doxygen gives to the last of them."""
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for _line, group in itertools.groupby(members, key=lambda m: m.line):
        fields = list(group)
        names = "<br>".join(prose.cell_code(field.name) for field in fields)
        defaults = "<br>".join(prose.cell_code(field.default) for field in fields) if any(f.default for f in fields) else ""
        meaning = prose.inline(" ".join(field.text for field in fields if field.text), link)
        rows.append(f"| {names} | {prose.cell_code(fields[0].type)} | {defaults} | {meaning} |")
    return "\n".join(rows) + "\n"


def values_table(member: Member, link: prose.Link) -> str:
    rows = ["| value | meaning |", "|---|---|"]
    rows += [f"| {prose.cell_code(name)} | {prose.inline(text, link)} |" for name, text in member.values]
    return "\n".join(rows) + "\n"


def code(text: str) -> str:
    return f"```cpp\n{text}\n```\n"


def members_text(members: list[Member], level: str, prefix: str, link: prose.Link) -> str:
    """Fields as a table, then what has no comment of its own, then the rest; each in the order of the source."""
    out, seen = [], set()

    def heading(member: Member, shown: str) -> str:
        anchor = anchor_of(prefix + member.name)
        mark = f" {{#{anchor}}}" if anchor not in seen else ""
        seen.add(anchor)
        return f"{level} {prose.escaped(shown)}{mark}\n"

    def sort_of(member: Member) -> str:
        if member.kind == "variable":
            return "field"
        return member.name if member.text or member.values or not prefix else "plain"

    sorts: dict[str, list[Member]] = {"field": [], "plain": []}
    for member in members:
        sorts.setdefault(sort_of(member), []).append(member)
    if sorts["field"]:
        out.append(fields_table(sorts.pop("field"), link))
    if sorts.get("plain"):
        out.append(code("\n".join(member.declaration for member in sorts.pop("plain"))))
    for found in filter(None, sorts.values()):
        if found[0].kind == "enum":
            out += [heading(found[0], f"enum {found[0].name}"), prose.comment(found[0].text, link), values_table(found[0], link)]
            continue
        out.append(heading(found[0], found[0].name + ("()" if found[0].kind == "function" else "")))
        for member in found:
            out.append(code(member.declaration) if member.declaration else "")
            if member.text:
                out.append(prose.comment(member.text, link))
    return "\n".join(filter(None, out))


def compound_text(compound: Compound, link: prose.Link) -> str:
    bases = " final" * compound.final + (f" : {', '.join(compound.bases)}" if compound.bases else "")
    out = [f"## {compound.kind} {prose.escaped(compound.name)} {{#{anchor_of(compound.name)}}}\n"]
    if compound.template or bases:
        out.append(code((compound.template + "\n" if compound.template else "") + f"{compound.kind} {compound.name}{bases};"))
    if compound.text:
        out.append(prose.comment(compound.text, link))
    names = [base.split(" ", 1)[1] for base in compound.bases]
    linked = [f"[`{name}`]({target})" for name in names if (target := link(re.sub(r"<.*", "", name)))]
    if linked:
        out.append(f"Derived from {', '.join(linked)}.\n")
    out.append(members_text(compound.members, "###", compound.name + "-", link))
    return "\n".join(filter(None, out))


def header_page(header: Header, links: Links) -> str:
    page = page_of(header.path)
    link = links.seen_from(page)
    room = posixpath.dirname(header.path)
    out = [FRONT.format(title=posixpath.basename(header.path), boost=0.3), f"# {prose.escaped(header.path)}\n"]
    out.append(f"Defines {prose.inline(header.summary, link)}\n")
    out.append(code(f'#include "{header.path}"'))
    out.append(f"Room: [`{room}`](index.md).\n")
    out += [compound_text(compound, link) for compound in header.compounds]
    out.append(members_text(header.members, "##", "", link))
    return "\n".join(filter(None, out))


def pages(headers: dict[str, Header], rooms: list[tuple[str, str]], known: set[str]) -> dict[str, str]:
    """Path -> Markdown. `rooms`: folder and what it holds, in order; `known`: the pages of the documents."""
    links = Links(headers, known)
    found = {page_of(path): header_page(header, links) for path, header in headers.items()}
    for room, holds in rooms:
        found[f"cpp/{room}/index.md"] = room_page(room, holds, headers, links)
    found["cpp/index.md"] = index_page(headers, rooms, links)
    return found


def room_page(room: str, holds: str, headers: dict[str, Header], links: Links) -> str:
    link = links.seen_from(f"cpp/{room}/index.md")
    rows = ["| header | defines |", "|---|---|"]
    for path in sorted(path for path in headers if posixpath.dirname(path) == room):
        name = posixpath.basename(path)
        rows.append(f"| [`{name}`]({name.removesuffix('.h')}.md) | {prose.inline(headers[path].summary, link)} |")
    return (
        FRONT.format(title=room, boost=0.3) + f"# {prose.escaped(room)}\n\nThis room holds {holds}.\n\n" + "\n".join(rows) + "\n"
    )


def index_page(headers: dict[str, Header], rooms: list[tuple[str, str]], links: Links) -> str:
    link = links.seen_from("cpp/index.md")
    out = [
        FRONT.format(title="C++ API", boost=1),
        "# C++ API\n",
        "Look up here what a class or function of the libraries does. There is one page per header, ordered by room; "
        "[CONTRIBUTING.md](../CONTRIBUTING.md#rooms) says which room may use which. `find_package(basin)` provides all rooms but "
        "`apps`, as targets such as `basin::hessian`.\n",
        "| room | holds | headers |",
        "|---|---|---|",
    ]
    counts = collections.Counter(posixpath.dirname(path) for path in headers)
    out += [f"| [`{room}`]({room}/index.md) | {holds} | {counts[room]} |" for room, holds in rooms]
    out += ["\n## Classes\n", "| class | header |", "|---|---|"]
    listed = sorted(((c.name, path) for path, h in headers.items() for c in h.compounds), key=lambda pair: pair[0].lower())
    for name, path in listed:
        target = f"{posixpath.relpath(page_of(path), 'cpp')}#{anchor_of(name)}"
        out.append(f"| [{prose.escaped(name)}]({target}) | [`{path}`]({link(path)}) |")
    return "\n".join(out) + "\n"
