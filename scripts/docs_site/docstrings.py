"""For mkdocstrings: docstrings are plain text with code in backticks, not Markdown, and are turned into it. The fields of a class that
have no docstring of their own become one table, with the comments that stand behind them."""

import re
from typing import Any

import griffe
import prose

FIELD = re.compile(r"^\s+(\w+): .*?  # (.+)$")


class PlainText(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = prose.comment(obj.docstring.value)

    def on_object(self, *, obj: griffe.Object, **_kwargs: Any) -> None:
        if isinstance(obj, griffe.Class):
            fields = {
                name: field for name, field in obj.members.items() if isinstance(field, griffe.Attribute) and not field.docstring
            }
            shown = {name: field for name, field in fields.items() if not name.startswith("_")}
            if shown:
                said = {match[1]: match[2] for match in map(FIELD.match, obj.source.splitlines()) if match}
                rows = [
                    f"| {prose.cell_code(name)} | {prose.cell_code(str(field.annotation or ''))} | {prose.inline(said.get(name, ''))} |"
                    for name, field in shown.items()
                ]
                table = "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])
                text = f"{obj.docstring.value}\n{table}\n" if obj.docstring else f"{table}\n"
                obj.docstring = griffe.Docstring(text, parent=obj)
            for name in fields:
                obj.del_member(name)
