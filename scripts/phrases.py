#!/usr/bin/env python3
"""Phrases that don't come back, scars of reflowing, and passages that a merge doubled: in comments, messages, docs and Python.
In Markdown also lines of prose that are too long.

    phrases.py [FILE...]     prints each as file:line: what was found: what to write instead; exits with 1 if there is one
    phrases.py --self-test   expects every row's own examples to be found, and let through, in a file of each kind

Only prose is read: comments and string literals of code, the whole of a Markdown page. Names in code are free.
"""

import dataclasses
import re
import sys
from collections.abc import Iterator

from tree_files import ROOT, tree_files

NOT_READ = re.compile(
    r"tests/.*/golden_.*\.h|scripts/phrases\.py|LICENSE|results/.*\.toml|results/.*/.*\.md|tests/fuzz/corpus/.*|"
    r".*\.(csv|json|png|pt|xz|sha256|h5)"
)

COUNTED = (
    r"autograd|batch(?:es)?|blocks|bytes|coins|columns|coordinate|coverage|draws?|entry|evaluations|examples|flips|"
    r"gradients|group|images|indices|iterations|launch|library|lines?|losses|MiB|microseconds|multiplications|operations|"
    r"pairs|panels?|parameter|pass(?:es)?|peak|[PG]FLOP|points|process|products?|ratio|rows?|runs|s|seconds|slot|tensor|"
    r"tests?|updates|vectors|weights|words?"
)
PER = (
    r"axis|batch|bend|bin|block|candidate|case|cell|channel|checkpoint|class|column|configuration|direction|draw|element|"
    r"epoch|evaluation|example|figure|file|group|image|iteration|kind|layer|line|look|measure|method|micro-batch|nat|"
    r"network|number|occurrence|optimi[sz]er|pair|parameter|pass|path|plot|point|probe|process|product|protocol|quantity|"
    r"rate|record|room|row|run|sample|second|seed|setting|shape|stage|start|step|study|subcommand|task|tensor|test|"
    r"thread|tile|tool|trial|unit|update|value|variant|vector|view|weight|worker|field|round|oracle|(?:registered|Python) \w+"
)
NOT_COUNTED = "with|of|for|in|on|at|by|than|where|when"


@dataclasses.dataclass(frozen=True)
class Phrase:
    """A space in `pattern` is any white space or comment mark, so that a phrase is found over the end of a line."""

    pattern: str
    instead: str
    found: tuple[str, ...]
    passes: tuple[str, ...] = ()
    pages: bool = True  # Markdown too
    code: bool = True  # sources too, and not pages and studies alone


PHRASES = (
    Phrase(
        rf"(?:\b(?:{COUNTED}|one(?: (?!{NOT_COUNTED})\w+)?|\d+)|\{{[^{{}}]*\}}) an? (?:{PER})\b",
        "per: one row per run",
        (
            "one row a run",
            "seconds a step",
            "a panel a measure",
            "a line a group",
            "one a line",
            "took 3 s a run",
            "{} to {} a class",
        ),
        ("a row of a run", "what a run costs"),
    ),
    Phrase(r"\b(?:hangs?|hung) (?:on|from)\b", "depends on", ("it hangs on the seed",), ("a program that hangs",)),
    Phrase(r"\bdear(?:er|est)?\b", "expensive, costly", ("a dear header", "is dearer"), ("endear",)),
    Phrase(r"\btold\b(?! apart| from)", "reported, said", ("an error is told",), ("can't be told apart",)),
    Phrase(
        r"\btells?(?: of\b|(?=[.;:,)]))", "reports, says", ("it tells of errors", "as the file tells."), ("tells runs apart",)
    ),
    Phrase(r"\bsays? of\b", "says about", ("what a probe says of it",), ("a say in it",)),
    Phrase(r"\b(?:memory|speed) alone\b", "affects only memory", ("examples per pass; memory alone",), ("memory is one",)),
    Phrase(r"\bbeside\b", "next to, against, besides, with", ("time beside PyTorch's",), ("memory besides",)),
    Phrase(
        r"(?:\A|\0|[.:;])\s*(?-i:Of) (?!these\b)",
        "a sentence with a subject",
        ("Of the last add().",),
        ("Part of it",),
        pages=False,
    ),
    Phrase(r"\bon a cadence\b", "at regular intervals", ("probes on a cadence",)),
    Phrase(r"\blosses up\b", "sums losses", ("it adds losses up",), ("it sums losses",)),
    Phrase(
        r"\blaid (?:over|end to end)\b",
        "concatenated; a schedule spans the updates",
        ("epochs laid end to end", "is laid over it"),
        code=False,
    ),
    Phrase(
        r"\bcomes? up (?:once|twice|again|more than|a third|(?-i:[a-z]) times)\b",
        "occurs",
        ("comes up k times", "may come up more than once"),
        code=False,
    ),
    Phrase(r"\bwhat (?:it|they) (?:is|are) of\b", "name what the number describes", ("says what it is of",), code=False),
    Phrase(r"\bon (?:its|the) way down\b", "during training", ("probed on its way down",), code=False),
    Phrase(r"\bthat one's\b", "repeat the noun", ("less that one's residual",), code=False),
    Phrase(
        r"\bsays? nothing of\b", "says nothing about", ("it says nothing of others",), ("it says nothing about them",), code=False
    ),
    Phrase(
        r"(?:\A|[.;:])\s+(?-i:Which|So) (?!are|is|do|does)(?=[a-z])",
        "join it to the sentence before, or therefore",
        ("It ends. So the rate falls.", "It ends. Which holds here."),
        ("It stays. So does the norm.",),
        code=False,
    ),
    Phrase(
        r"\btold from\b", "distinguished from", ("is told from 0", "can't be told from it"), ("told apart from it",), code=False
    ),
)
SCAR = "a reflow scar: break the lines where the sentence breaks"
DOUBLED = "there already: keep one of the two"
WIDE = "over 130 columns: break the line"
COLUMNS = 130
LONG = 80  # characters that a passage has at least; short sentences count along with what follows them

# What is no prose in code: all that isn't one of these. A character literal is there so that '"' opens no string.
CODE = re.compile(
    r"""(?P<skip>'(?:\\.[^'\n]*|[^'\\\n])')|R"\w*\((?P<raw>.*?)\)\w*"|"(?P<text>(?:\\.|[^"\\\n])*)"|//+<?(?P<comment>[^\n]*)""",
    re.DOTALL,
)
SCRIPT = re.compile(
    r"""\"{3}(?P<doc>.*?)\"{3}|"(?P<text>(?:\\.|[^"\\\n])*)"|'(?P<single>(?:\\.|[^'\\\n])*)'|(?<![$\w{])\#+(?P<comment>[^\n]*)""",
    re.DOTALL,
)
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
GENERATED = re.compile(r"^<!-- ([\w -]+) -->$.*?^<!-- end of \1 -->$", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"[-*>|#]|\d+\.|```")  # begins a paragraph, a list entry or a row of Markdown
SENTENCE_END = re.compile(r"[.?!][)*`\"]*$")
NOT_PROSE = re.compile(r"\s*\||(?: {4}|\t)|[^\s\w]*!?\[[^\]]*\]\([^)]*\)\W*$")  # rows, indented code, a link by itself
FULL_LINE_COMMENT = re.compile(r"\s*(?://+|#+) ?(.*)")


def prose(name: str, text: str) -> str:
    """`text` with its lines where they were, marks and quotes as blanks and code as one NUL between two pieces of prose."""
    if name.endswith(".md"):
        return text
    pieces, end = [], 0
    for match in (CODE if re.search(r"\.(h|cpp|cu)$", name) else SCRIPT).finditer(text):
        kind = match.lastgroup
        if kind is None or kind == "skip":
            continue
        pieces += [blanked(text[end : match.start()]), " ", match[kind]]
        end = match.end()
    return "".join([*pieces, blanked(text[end:])])


def blanked(code: str) -> str:
    newlines = "\n" * code.count("\n")
    return newlines if code.isspace() or not code else "\0" + newlines


def phrases_in(name: str, text: str) -> Iterator[tuple[int, str, str]]:
    read = prose(name, text)
    for phrase in PHRASES:
        if not (phrase.pages if name.endswith(".md") else phrase.code or name.endswith(".toml")):
            continue
        for match in re.finditer(phrase.pattern.replace(" ", r"\s+"), read, re.IGNORECASE):
            yield 1 + read.count("\n", 0, match.end()), " ".join(match[0].strip("\0 ").split()), phrase.instead
    lines = text_lines(name, text)
    for number in scars(lines):
        yield number, "one or two words", SCAR
    for number, passage in doubled(lines):
        yield number, passage, DOUBLED
    if name.endswith(".md"):
        for number in wide(lines):
            yield number, f"{len(lines[number - 1])} columns", WIDE


def text_lines(name: str, text: str) -> list[str]:
    """A page without its fenced blocks and generated passages; of code the full-line comments."""
    if name.endswith(".md"):
        for left_out in (FENCED, GENERATED):
            text = left_out.sub(lambda block: "\n" * block[0].count("\n"), text)
        return text.splitlines()
    return [match[1] if (match := FULL_LINE_COMMENT.match(line)) else "" for line in text.splitlines()]


def scars(lines: list[str]) -> Iterator[int]:
    """Lines of one or two words that a long one runs into and that aren't the last of their paragraph."""
    for number, (before, line, after) in enumerate(zip(lines, lines[1:], lines[2:], strict=False), 2):
        few = 1 <= len(line.split()) <= 2 and len(line.strip()) <= 25 and re.search("[a-z]", line)
        runs_on = len(before) >= 70 and re.search(r"[\w,]$", before)
        goes_on = len(after) >= 40 and not BLOCK.match(after)
        if few and runs_on and goes_on:
            yield number


def wide(lines: list[str]) -> Iterator[int]:
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and not NOT_PROSE.match(line):
            yield number


def doubled(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Where a passage begins that stands further up already, and its first words."""
    above: set[str] = set()
    paragraph: list[tuple[int, str]] = []
    for number, line in enumerate([*lines, ""], 1):
        if not line.strip() or BLOCK.match(line.lstrip()):
            yield from doubled_in(paragraph, above)
            paragraph = []
        paragraph += [(number, word) for word in line.split()]


def doubled_in(paragraph: list[tuple[int, str]], above: set[str]) -> Iterator[tuple[int, str]]:
    """`paragraph`: words with their lines. `above` gets its passages: whole sentences, or the row of a table."""
    is_row = bool(paragraph) and paragraph[0][1] == "|"
    sentence_ends = [i for i, (_, word) in enumerate(paragraph[:-1], 1) if SENTENCE_END.search(word) and not is_row]
    goes_on = False
    for start in [0, *sentence_ends]:
        ends = [end for end in [*sentence_ends, len(paragraph)] if end > start]
        passages = (" ".join(word for _, word in paragraph[start:end]) for end in ends)
        passage = next((p for p in passages if len(p) >= LONG), "")
        if passage in above and not goes_on:
            yield paragraph[start][0], f"{passage[:60]} ..."
        goes_on = passage in above
        if passage:
            above.add(passage)


def files_with_prose() -> list[str]:
    return [name for name in tree_files() if not NOT_READ.fullmatch(name)]


def report(names: list[str]) -> int:
    found = 0
    for name in names:
        for number, words, instead in sorted(phrases_in(name, (ROOT / name).read_text())):
            print(f"{name}:{number}: {words}: {instead}")
            found += 1
    print(f"{len(names)} files, {found} phrases")
    return 1 if found or not names else 0


def planted(words: str) -> dict[str, str]:
    first, _, rest = words.partition(" ")
    return {
        "comment.cpp": f"int f();  // {words}\n",
        "block.h": f"int f();\n/// {first}\n/// {rest}\nint g();\n",
        "message.cpp": f'throw Error("{first} "\n            "{rest}");\n',
        "raw.cu": f'const char* c = \'"\', *text = R"({words})";\n',
        "docstring.py": f'def f():\n    """{words}"""\n',
        "comment.py": f"x = f('\"')  # {words}\n",
        "page.md": words,
        "Makefile": f"f:  ## {words}\n",
    }


SENTENCE = "This sentence has more than eighty characters, so that a page needs it once and no more."
LINES = SENTENCE.replace(", ", ",\n{0}")
DOUBLES = {
    "paragraph.md": f"{SENTENCE}\n\nAnother.\n\n{LINES.format('')}\n",
    "sentences.md": "A short sentence. {0}\n\nAn edited one. {0}\n".format("One of some forty characters is a short one. " * 2),
    "adjacent.md": f"{SENTENCE} {SENTENCE}\n",
    "entry.md": f"- {SENTENCE}\n- Another.\n- {SENTENCE}\n",
    "row.md": f"| a | {SENTENCE} |\n| b | c |\n| a | {SENTENCE} |\n",
    "comment.h": f"/// {SENTENCE}\n/// {LINES.format('/// ')}\nint f();\n",
    "apart.py": f"# {SENTENCE}\nx = 1\n# {LINES.format('# ')}\n",
}
LONG_LINES = {
    "paragraph.md": f"{'word ' * 26}words\n",
    "entry.md": f"- {'word ' * 26}words\n",
    "page.md": f"[a](b) {'word ' * 26}words [a](b)\n",
}
NO_LONG_LINES = {
    "whole.md": f"{'word ' * 25}words\n",
    "row.md": f"| a | {'word ' * 26} |\n",
    "indented.md": f"    {'word ' * 26}\n",
    "fenced.md": f"```\n{'word ' * 26}words\n```\n",
    "generated.md": f"<!-- a table -->\n{'word ' * 26}words\n<!-- end of a table -->\n",
    "link.md": f"![{'word ' * 26}](a.png)\n",
    "comment.h": f"// {'word ' * 26}words\nint f();\n",
}
NO_DOUBLES = {
    "fenced.md": f"```\n{SENTENCE}\n```\n\n```\n{SENTENCE}\n```\n",
    "generated.md": f"<!-- table -->\n| a | {SENTENCE} |\n| a | {SENTENCE} |\n<!-- end of table -->\n",
    "short.md": "This is short.\n\nThis is short.\n\nHere it is of no matter what follows, and how long. This is short.\n",
    "cells.md": f"| A. | {SENTENCE} |\n| B. | {SENTENCE} |\n",
    "code.cpp": f'f("{SENTENCE}");\nf("{SENTENCE}");\n',
}


def self_test() -> int:
    wrong = 0
    scar = "/// " + "word " * 20 + "and\n/// their\n/// " + "word " * 12 + "\n"
    cases = [
        (name, text, row.instead, True)
        for row in PHRASES
        for words in row.found
        for name, text in planted(words).items()
        if (row.pages if name == "page.md" else row.code)
    ]
    cases += [
        (name, text, row.instead, False) for row in PHRASES for words in row.passes for name, text in planted(words).items()
    ]
    cases += [("scar.h", scar, SCAR, True), ("names.cpp", "int beside = told(dear);\n", PHRASES[7].instead, False)]
    cases += [(name, text, DOUBLED, True) for name, text in DOUBLES.items()]
    cases += [(name, text, DOUBLED, False) for name, text in NO_DOUBLES.items()]
    cases += [(name, text, WIDE, True) for name, text in LONG_LINES.items()]
    cases += [(name, text, WIDE, False) for name, text in NO_LONG_LINES.items()]
    for name, text, instead, expected in cases:
        if expected != any(what == instead for _, _, what in phrases_in(name, text)):
            print(f"{name}: {'not found' if expected else 'found, but nothing is wrong with it'}: {text!r}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(self_test())
    sys.exit(report(sys.argv[1:] or files_with_prose()))
