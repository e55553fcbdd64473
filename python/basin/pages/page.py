"""A page of one file that needs no network: headings that fold, contents at the side, tables, figures with their alternative texts."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

import pandas as pd
from markdown_it import MarkdownIt
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from ..figures.in_words import described
from .output import write_atomically

HERE = Path(__file__).parent
DPI = 150  # sharp where a figure is shown a half larger than it was drawn
FORMATS = ("svg", "pdf")


@dataclass
class Section:
    """`folded`: the heading alone is seen until it is asked for."""

    title: str
    folded: bool = True
    parts: list[str] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def text(self, markdown: str) -> None:
        if markdown:
            self.parts.append(f'<div class="text">{MarkdownIt("commonmark", {"html": False}).render(markdown)}</div>')

    def table(self, rows: pd.DataFrame, classes: Callable[[str], str] = lambda cell: "") -> None:
        """`classes` gives a cell of the last column its class, by its text."""
        last = len(rows.columns) - 1
        head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in rows.columns)
        body = "".join(
            "<tr>" + "".join(_cell(value, classes(str(value)) if i == last else "") for i, value in enumerate(row)) + "</tr>"
            for row in rows.itertuples(index=False, name=None)
        )
        self.parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def figure(self, figure: Figure | None, about: str, name: str, folder: Path) -> bool:
        """The figure as PNG in the page, and as SVG and PDF in `folder`/figures; whether there is one. `about`: what it shows, in a few
        words. Closes it."""
        if figure is None:
            return False
        png = _drawn(figure, "png")
        figure.set_layout_engine("none")  # laid out: what takes longest is done once, and every file has the same layout
        files = ", ".join(f'<a href="figures/{name}.{kind}">{kind.upper()}</a>' for kind in FORMATS)
        (folder / "figures").mkdir(exist_ok=True)
        for kind in FORMATS:
            write_atomically(folder / "figures" / f"{name}.{kind}", _drawn(figure, kind))
        self.parts.append(
            f'<figure><img src="data:image/png;base64,{base64.b64encode(png).decode()}" '
            f'alt="{html.escape(f"{about}. {described(figure)}", quote=True)}"><figcaption>figures/{name}: {files}</figcaption></figure>'
        )
        pyplot.close(figure)
        return True


def _cell(value: object, kind: str) -> str:
    return f'<td class="{kind}">{html.escape(str(value))}</td>' if kind else f"<td>{html.escape(str(value))}</td>"


CANVASES = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}


def _drawn(figure: Figure, kind: str) -> bytes:
    """The same bytes for the same figure: no date in it. Not by savefig(), which draws every figure twice."""
    content = io.BytesIO()
    figure.set_dpi(DPI)
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    getattr(CANVASES[kind](figure), f"print_{kind}")(content, metadata=metadata)
    return content.getvalue()


@dataclass
class Page:
    title: str
    sections: list[Section] = field(default_factory=list)

    def section(self, title: str, folded: bool = True) -> Section:
        self.sections.append(Section(title, folded))
        return self.sections[-1]

    def html(self) -> str:
        contents = "".join(f'<li><a href="#{s.anchor}">{html.escape(s.title)}</a></li>' for s in self.sections)
        return Template((HERE / "page.html").read_text()).substitute(
            title=html.escape(self.title),
            style=(HERE / "page.css").read_text(),
            contents=contents,
            sections="".join(_section(s) for s in self.sections),
        )


def _section(s: Section) -> str:
    """The anchor stands inside what folds: a link to it opens it."""
    heading, body = f"<h2>{html.escape(s.title)}</h2>", f'<div id="{s.anchor}" class="body">{"".join(s.parts)}</div>'
    return f"<details><summary>{heading}</summary>{body}</details>" if s.folded else f"<section>{heading}{body}</section>"
