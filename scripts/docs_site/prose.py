"""Text for MkDocs: the comments of C++ and Python as Markdown, and our Markdown as MkDocs' parser wants it."""

import re
from collections.abc import Callable

import markdown_it

Link = Callable[[str], str | None]  # a name, a page or a header, as written -> where it is, or None

CODE = re.compile(r"(`[^`]+`)")
SPECIAL = re.compile(r"([\\*_{}\[\]()#+!|>~])")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
# What may be linked in running text: a page with anchor, a header, name(), and names of two humps, which aren't English words.
NAMED = re.compile(r"docs/[a-z-]+\.md(?:#[a-z0-9-]+)?|(?:[a-z_]+/)+[a-z0-9_]+\.h\b|\b\w+\(\)|\b(?:[A-Z][a-z0-9]+){2,}\b")


def no_link(_name: str) -> str | None:
    return None


def escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def cell_code(text: str) -> str:
    """Code in a cell of a table, where neither bars nor brackets may be read as anything else."""
    for char in "&<>|[*_":  # & first
        text = text.replace(char, f"&#{ord(char)};")
    return f"<code>{text}</code>" if text else ""


def inline(text: str, link: Link = no_link) -> str:
    """One paragraph: code stays code, everything else is text, and what `link` knows is linked."""
    out = []
    for part in CODE.split(" ".join(text.split())):
        if CODE.fullmatch(part):
            target = link(part[1:-1])
            out.append(f"[{part}]({target})" if target else part)
            continue
        at = 0
        for match in NAMED.finditer(part):
            target = link(match[0])
            if target:
                out.append(escaped(part[at : match.start()]) + f"[{escaped(match[0])}]({target})")
                at = match.end()
        out.append(escaped(part[at:]))
    return "".join(out)


def comment(text: str, link: Link = no_link) -> str:
    """A comment as Markdown. Lines that are indented by two or more are a formula or a table, and stay as they are; `>>>` is Python."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.expandtabs().splitlines():
        bare = line.strip()
        previous = blocks[-1][0] if blocks else ""
        indented = line.startswith("  ")
        if not bare:
            kind = "code" if previous == "code" else "gap"
        elif bare.startswith(">>>") or (previous == "python" and bare.startswith("...")):
            kind = "python"
        elif ITEM.match(bare) and (not indented or previous == "item"):
            kind = "item"
        elif previous == "item" and line.startswith(" "):
            blocks[-1][1].append(bare)
            continue
        else:
            kind = "code" if indented else "text"
        if kind == previous and kind != "item":
            blocks[-1][1].append(line)
        else:
            blocks.append((kind, [line]))
    out = []
    for number, (kind, lines) in enumerate(blocks):
        if kind in ("code", "python"):
            shown = "\n".join(lines).rstrip().splitlines()
            margin = min(len(line) - len(line.lstrip()) for line in shown if line.strip())
            out.append(
                "\n".join([f"```{'pycon' if kind == 'python' else 'text'}", *(line[margin:] for line in shown), "```", ""])
            )
        elif kind == "item":
            mark, words = " ".join(line.strip() for line in lines).split(" ", 1)
            after_item = number and blocks[number - 1][0] == "item"
            out.append(("" if after_item or not out else "\n") + f"{mark} {inline(words, link)}")
        elif kind == "text":
            out.append(("\n" if out else "") + inline(" ".join(lines), link) + "\n")
    return "\n".join(out).strip() + "\n"


PARSER = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")


def for_mkdocs(text: str) -> str:
    """The same page for Python-Markdown, which wants a blank line before a list or a table, four columns for what belongs to an
    item, and no escape before a bar in code."""
    lines, out, at = text.split("\n"), [], 0
    for token in PARSER.parse(text):
        if token.level or not token.map or token.type not in ("bullet_list_open", "ordered_list_open", "table_open"):
            continue
        first, last = token.map
        while last > first and not lines[last - 1].strip():
            last -= 1
        out += lines[at:first]
        if out and out[-1].strip():
            out.append("")
        block = lines[first:last]
        out += [bars_in_code(line) for line in block] if token.type == "table_open" else list_lines("\n".join(block))
        at = last
        if at < len(lines) and lines[at].strip():
            out.append("")
    return "\n".join(out + lines[at:])


def bars_in_code(row: str) -> str:
    return CODE.sub(lambda code: code[0].replace("\\|", "|"), row)


def list_lines(text: str) -> list[str]:
    lines, out = text.split("\n"), []
    for token in PARSER.parse(text):
        if token.type != "list_item_open" or token.level != 1 or not token.map:
            continue
        first, last = token.map
        item = lines[first:last]
        mark = re.match(r"\s*([-*+]|\d+[.)])\s+", item[0])
        assert mark, item[0]
        width = len(mark[0])
        inner = [item[0][width:]] + [line[min(width, len(line) - len(line.lstrip())) :] for line in item[1:]]
        inner_lines = for_mkdocs("\n".join(inner)).split("\n")
        out.append(f"{mark[1]:<3} {inner_lines[0]}")
        out += [f"    {line}" if line.strip() else "" for line in inner_lines[1:]]
    return out
