"""What a notebook of the course must be: rules as functions, each from a notebook to its complaints.

A rule is a generator of ``(where, sentence)``: where is the index of a cell, or None for the whole
notebook, and the sentence says what is wrong and what to do. ``judge`` runs a set of rules over one notebook,
``judge_course`` those that need all chapters. ``python tools/notebooks.py check`` judges a file on disk.
"""

import ast
import posixpath
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import unescape
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from nbformat import NotebookNode, ValidationError
from nbformat.validator import iter_validate

from fixtures.course import CHAPTERS, Chapter
from tools.notebooks import ROOT, WIDGET_VIEW, answers, normalise, parse, preview, questions, to_text, tree

IGNORE = "nbval-ignore-output"
"""The one tag by which a cell says that its output is a time or a race."""

TAGGED_SHARE = 0.05
"""At most this share of the course's cells with output may carry the tag."""

MEDIAN_LINES, MOST_LINES, MOST_SHARE = 4, 12, 0.9
CODE_IN_A_ROW, WORDS, TABLE_WIDTH, PREDICTIONS = 3, 120, 110, 4
LONG_CHAPTER_MINUTES = 60

Finding = tuple[int | None, str]


@dataclass(frozen=True)
class Complaint:
    """One rule broken in one place."""

    rule: str
    notebook: str
    where: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.notebook}, {self.where}: {self.sentence}. [{self.rule}]"


@dataclass(frozen=True)
class Book:
    """A notebook under judgement."""

    name: str
    """Its path below the project's root, with slashes."""
    text: str
    """What the file holds."""
    nb: NotebookNode = field(repr=False)
    files: frozenset[str] = field(repr=False)
    """The paths of the project's files: what a link may lead to."""
    chapters: Sequence[Chapter] = field(default=CHAPTERS, repr=False)

    @classmethod
    def of(
        cls, name: str, text: str, files: frozenset[str], *, chapters: Sequence[Chapter] = CHAPTERS
    ) -> "Book":
        """Read a notebook as it is, nothing repaired; raises ValueError when the text is not a notebook."""
        return cls(name=name, text=text, nb=parse(text), files=files, chapters=chapters)

    @cached_property
    def chapter(self) -> Chapter | None:
        """The chapter that this notebook is, or None."""
        return next((one for one in self.chapters if one.notebook.as_posix() == self.name), None)

    @property
    def cells(self) -> list[NotebookNode]:
        """All cells."""
        return self.nb.cells

    @cached_property
    def code(self) -> list[tuple[int, NotebookNode]]:
        """Code cells with their index among all cells."""
        return [(i, cell) for i, cell in enumerate(self.cells) if cell.cell_type == "code"]

    @cached_property
    def prose(self) -> list[tuple[int, str]]:
        """The text of Markdown cells with their index among all cells."""
        return [(i, cell.source) for i, cell in enumerate(self.cells) if cell.cell_type == "markdown"]

    @cached_property
    def opening(self) -> str:
        """All Markdown before the first code cell."""
        first = self.code[0][0] if self.code else len(self.cells)
        return "\n".join(text for i, text in self.prose if i < first)

    @cached_property
    def ending(self) -> str:
        """All Markdown after the last code cell."""
        last = self.code[-1][0] if self.code else -1
        return "\n".join(text for i, text in self.prose if i > last)


Rule = Callable[[Book], Iterator[Finding]]


def judge(book: Book, rules: Sequence[Rule] | None = None) -> list[Complaint]:
    """Return what is wrong with one notebook, in the order of the rules (default: those of its folder)."""
    return [
        Complaint(rule.__name__, book.name, _place(book, where), sentence)
        for rule in (rules_for(book.name) if rules is None else rules)
        for where, sentence in rule(book)
    ]


def rules_for(name: str) -> tuple[Rule, ...]:
    """Return the rules for the notebook at this path below the root."""
    return {"exercises": EXERCISE, "solutions": SOLUTION}.get(PurePosixPath(name).parts[0], CHAPTER)


def _place(book: Book, where: int | None) -> str:
    if where is None:
        return "as a whole"
    return f"cell {where + 1} of {len(book.cells)} (id {book.cells[where].get('id', 'missing')})"


# --- the file ----------------------------------------------------------------------------------------------


def valid(book: Book) -> Iterator[Finding]:
    """The file is a notebook in format 4.5."""
    version = (book.nb.nbformat, book.nb.nbformat_minor)
    if version != (4, 5):
        yield (
            None,
            f"is in format {version[0]}.{version[1]}, not 4.5; `tools/notebooks.py execute` brings it there",
        )
        return
    for error in iter_validate(book.nb, version=4, version_minor=5):
        if "'id' is a required property" not in error.message:  # the rule about ids says it better
            yield (
                None,
                f"is not a valid notebook, {_first_line(error)}; save it in JupyterLab or `execute` it",
            )


def _first_line(error: ValidationError) -> str:
    return str(error.message).splitlines()[0][:120]


def ids(book: Book) -> Iterator[Finding]:
    """Each cell has an id of its own."""
    known = Counter(cell.get("id") for cell in book.cells)
    for index, cell in enumerate(book.cells):
        if not cell.get("id"):
            yield index, "has no id; `tools/notebooks.py execute` gives it one"
        elif known[cell.id] > 1:
            yield index, "shares its id with another cell; take the id out and `execute` the notebook"


def normal_form(book: Book) -> Iterator[Finding]:
    """The file is byte for byte what the tool writes: no versions, timings, widget state, editor's traces."""
    if any(not cell.get("id") for cell in book.cells) or any(no_widget_state(book)):
        return  # other rules say more clearly what it is
    if to_text(normalise(book.nb)) != book.text:
        yield None, "is not in the stored form; run `python tools/notebooks.py execute` on it"


def no_widget_state(book: Book) -> Iterator[Finding]:
    """Neither widget state nor a widget's view is stored."""
    if "widgets" in book.nb.metadata:
        yield None, "stores widget state; run `python tools/notebooks.py execute` on it"
    for index, cell in book.code:
        if any(WIDGET_VIEW in output.get("data", {}) for output in cell.outputs):
            yield (
                index,
                "stores the view of a widget; run `python tools/notebooks.py execute` on the notebook",
            )


# --- execution ---------------------------------------------------------------------------------------------


def executed_in_order(book: Book) -> Iterator[Finding]:
    """Every code cell was run, from the first to the last, in one go: nbval passes over one that was not."""
    for count, (index, cell) in enumerate(book.code, 1):
        if cell.execution_count != count:
            seen = (
                "was not run" if cell.execution_count is None else f"was run as number {cell.execution_count}"
            )
            yield (
                index,
                f"{seen}, not as number {count}; run `python tools/notebooks.py execute` on the notebook",
            )
            return  # the cells after it are off by the same


def outputs_present(book: Book) -> Iterator[Finding]:
    """A cell that shows something has what it showed."""
    for index, cell in book.code:
        if not cell.outputs and _shows(cell):
            yield index, "shows something, but its output is not stored; `execute` the notebook"


def _shows(cell: NotebookNode) -> bool:
    body = tree(cell).body
    calls = [node.value for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    if any(_dotted(call.func) in ("print", "display") for call in calls):
        return True
    silent = (ast.Call, ast.Await, ast.Constant, ast.Yield)
    return (
        bool(body)
        and isinstance(body[-1], ast.Expr)
        and not isinstance(body[-1].value, silent)
        and not cell.source.rstrip().endswith(";")
    )


def no_outputs(book: Book) -> Iterator[Finding]:
    """An exercise is handed out as if nobody had run it."""
    for index, cell in book.code:
        if cell.outputs or cell.execution_count is not None:
            yield index, "holds output or an execution count; regenerate the exercises with `make exercises`"


def no_errors(book: Book) -> Iterator[Finding]:
    """No cell ends in an exception, and none writes to stderr."""
    for index, cell in book.code:
        for output in cell.outputs:
            if output.output_type == "error":
                yield (
                    index,
                    f"ended in {output.ename}; show an expected error as a value, caught in the library",
                )
            elif output.get("name") == "stderr":
                yield index, "wrote to stderr; mend what it warns of"


# --- code --------------------------------------------------------------------------------------------------


def readable(book: Book) -> Iterator[Finding]:
    """Code cells hold Python only: no shell, no magic, nothing that does not parse."""
    for index, cell in book.code:
        if re.search(r"^\s*[%!]", cell.source, re.MULTILINE):
            yield index, "runs a shell command or a magic; move it to the library, the Makefile or the README"
            continue
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            yield index, f"is not Python ({error.msg}); mend it"


def imports_first(book: Book) -> Iterator[Finding]:
    """The first code cell imports and does nothing else; no other cell imports."""
    kinds = (ast.Import, ast.ImportFrom)
    for number, (index, cell) in enumerate(book.code):
        body = tree(cell)
        if number == 0:
            if not body.body or not all(isinstance(node, kinds) for node in body.body):
                yield index, "is the first code cell and must be imports only; move the rest down"
        elif any(isinstance(node, kinds) for node in ast.walk(body)):
            yield index, "imports; move the import to the first code cell"


def short_cells(book: Book) -> Iterator[Finding]:
    """Code cells are short: the median and nine of ten, blank lines not counted, imports left out."""
    lines = {i: sum(bool(line.strip()) for line in cell.source.splitlines()) for i, cell in book.code[1:]}
    if not lines:
        return
    median = statistics.median(lines.values())
    if median > MEDIAN_LINES:
        yield (
            None,
            f"has code cells of {median:g} lines in the median, not {MEDIAN_LINES}; split or shorten them",
        )
    long = [index for index, count in lines.items() if count > MOST_LINES]
    if len(long) > len(lines) * (1 - MOST_SHARE) + 1e-9:
        worst = max(long, key=lines.__getitem__)
        share = f"{len(long)} of {len(lines)} code cells have more than {MOST_LINES}, where one in ten may"
        yield worst, f"has {lines[worst]} lines, and {share}; split them or move code to the library"


_NETWORK = {
    "aiohttp",
    "ftplib",
    "getpass",
    "http",
    "httpx",
    "requests",
    "smtplib",
    "socket",
    "urllib",
    "urllib3",
}
_PLUMBING = ("sys.path", "os.environ", "os.getenv", "os.putenv", "os.system", "subprocess")


def no_plumbing(book: Book) -> Iterator[Finding]:
    """No installs, no environment, no key, no network, no question to the keyboard."""
    for index, cell in book.code:
        if re.search(r"\bpip3?[\s\"',\]]+install\b", cell.source):
            yield index, "installs packages; they belong in pyproject.toml"
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                )
                for name in names:
                    if name.split(".")[0] in _NETWORK | {"subprocess"}:
                        yield index, f"imports {name}; a notebook uses no network, key or process of its own"
            elif isinstance(node, ast.Attribute) and _dotted(node) in _PLUMBING:
                yield index, f"touches {_dotted(node)}; move it to the library"
            elif isinstance(node, ast.Call) and _dotted(node.func) in ("input", "getpass"):
                yield index, f"calls {_dotted(node.func)}(), and Run All would wait for ever; use a widget"


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return getattr(node, "id", "")


def comparable(book: Book) -> Iterator[Finding]:
    """Nothing that nbval cannot compare or is told to pass over: changing output, comments, other tags."""
    for index, cell in book.code:
        other = [tag for tag in cell.metadata.get("tags", []) if tag != IGNORE and _special(tag)]
        if other or re.search(r"^\s*#\s*(NBVAL_|PYTEST_VALIDATE_)", cell.source, re.MULTILINE):
            yield index, f"steers nbval by {other[0] if other else 'a comment'}; only the tag {IGNORE} may"
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.Call):
                name = _dotted(node.func).rpartition(".")[2]
                keywords = {keyword.arg for keyword in node.keywords}
                if name in ("clear_output", "update_display") or "display_id" in keywords:
                    yield (
                        index,
                        "changes an output that is there, which nbval cannot read; use a widget's trait",
                    )
            elif isinstance(node, ast.With | ast.AsyncWith):
                makers = [item.context_expr for item in node.items]
                if any(isinstance(one, ast.Call) and _dotted(one.func).endswith("Output") for one in makers):
                    yield index, "prints into an Output widget, which nbval cannot read; set an HTML's value"


def _special(tag: str) -> bool:
    return tag.startswith("nbval-") or tag in ("raises-exception", "skip-execution")


# --- what outputs say --------------------------------------------------------------------------------------


def _texts(cell: NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.text
        for kind, value in output.get("data", {}).items():
            if kind.startswith("text/") or kind in ("image/svg+xml", "application/json"):
                text = value if isinstance(value, str) else repr(value)
                yield re.sub(r"\bdata:[^\"'\s]+", "data:", text)  # the bytes of a picture spell anything


_NEVER = (
    (r'<style type="text/css">|id="T_[0-9a-f]{4,}', "a Styler's HTML, whose ids are random",
     "show a plain DataFrame"),
    (r"\b(StateSnapshot|PregelTask|Interrupt|Checkpoint|CheckpointTuple)\(", "a raw LangGraph object",
     "show its fields by views/"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b",
     "an id that is new in each run", "label it by views/labels.py"),
    (r"(?<![\w.~/-])/(?:root|home|tmp|Users|usr|var|private|opt|mnt|work|etc|proc)\b|\b[A-Z]:\\|site-packages"
     r"|\bipykernel_\d+", "a path of one machine", "show a name instead"),
    (r"\b0x[0-9a-fA-F]{6,}\b", "a memory address", "give the object a repr that is a sentence"),
    (r"\b(?:19|20)\d\d-\d\d-\d\d(?!\d)", "a date", "leave it out"),
    (r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|\blocalhost\b", "an address of a host", "leave it out"),
    (r"\d+%\|.*\||\d\d:\d\d<|\bit/s\b", "a progress bar's text",
     "show the bar as a widget's view without text/plain, so that nothing of it is stored"),
    (r"^(?:[A-Z]\w+)\((?:children|value|description|options|layout)=", "the raw repr of a widget",
     "give the panel a `__repr__` that tells the reader to run the cell"),
)  # fmt: skip
_UNLESS_TAGGED = (
    (r"\b\d+\.\d+\s?(?:s|ms|µs|us|ns|sec|secs|seconds?|milliseconds?|minutes?)\b|\b\d{1,2}:\d\d:\d\d\b",
     "a time", f"show a ratio or a bound, or tag the cell {IGNORE} and name the test of its bounds"),
    (r"(?<![\w.])\d+\.\d+\.\d+(?![\w]|\.\d)", "a version", f"show a verdict, or tag the cell {IGNORE}"),
)  # fmt: skip


def repeatable_output(book: Book) -> Iterator[Finding]:
    """Nothing in an output that differs from run to run or from machine to machine."""
    for index, cell in book.code:
        tagged = IGNORE in cell.metadata.get("tags", [])
        text = "\n".join(_texts(cell))
        for pattern, what, remedy in _NEVER if tagged else _NEVER + _UNLESS_TAGGED:
            found = next(
                (
                    one
                    for one in re.finditer(pattern, text, re.MULTILINE)
                    if one[0] not in _supported_versions()
                ),
                None,
            )
            if found:
                yield index, f"shows {what} ({found[0][:40]!r}); {remedy}"


@cache
def _supported_versions() -> frozenset[str]:
    """The versions that pyproject.toml names are facts of the course, not of one machine."""
    return frozenset(re.findall(r"\d+\.\d+\.\d+", (ROOT / "pyproject.toml").read_text(encoding="utf-8")))


def no_paths_in_code(book: Book) -> Iterator[Finding]:
    """No code cell names a place of one machine."""
    for index, cell in book.code:
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = re.match(
                    r"(?:/(?:root|home|tmp|Users|usr|var|private|opt|mnt|work|etc)/|[A-Z]:\\)", node.value
                )
                if found:
                    yield (
                        index,
                        f"names a path of one machine ({node.value[:40]!r}); let the library choose it",
                    )


def bounded(book: Book) -> Iterator[Finding]:
    """A tagged cell names the pytest that asserts its bounds, and that test is there."""
    for index, cell in book.code:
        if IGNORE not in cell.metadata.get("tags", []):
            continue
        test = cell.metadata.get("fixtures", {}).get("bounds", "")
        if not test:
            yield (
                index,
                f"is tagged {IGNORE} and names no test of its bounds; "
                'add "fixtures": {"bounds": "tests/test_x.py::test_y"} to its metadata',
            )
        elif not _test_exists(test):
            yield (
                index,
                f"names {test} as the test of its bounds, and there is none; write it or mend the name",
            )


@cache
def _statements(file: Path) -> list[ast.stmt]:
    return ast.parse(file.read_text(encoding="utf-8")).body


def _test_exists(name: str) -> bool:
    file, *path = name.split("[")[0].split("::")
    if not (file.startswith("tests/") and (ROOT / file).is_file() and path):
        return False
    found = _statements(ROOT / file)
    for part in path:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        nodes = [node for node in found if isinstance(node, kinds) and node.name == part]
        if not nodes:
            return False
        found = nodes[0].body
    return path[-1].startswith("test")


def figures_told(book: Book) -> Iterator[Finding]:
    """A picture has alt text where JupyterLab shows it, and its numbers in a table.

    JupyterLab gives an ``image/png`` no alt text, whatever the output's metadata say; so there the same
    sentence must stand beside the picture. An ``<img>`` in HTML keeps its own.
    """
    codes = [cell for _, cell in book.code]
    for number, (index, cell) in enumerate(book.code):
        alts = list(_alts(cell))
        if not alts:
            continue
        if not any(_has_table(near) for near in codes[number : number + 2]):
            yield index, "shows a picture without its numbers; show a table in this cell or the next"
        told = " ".join([*_texts(cell), *_prose_after(book, index)])
        for kind, alt in alts:
            if not alt.strip() and kind == "html":
                yield index, "shows a picture without alt text; give its <img> an alt that says the finding"
            elif not alt.strip():
                yield index, f'shows a picture without alt text; set its metadata["{kind}"]["alt"]'
            elif kind != "html" and alt.strip() not in told:
                yield index, "has alt text, which JupyterLab drops; say the same sentence in text beside it"


def _alts(cell: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield the kind of each picture that a cell shows, and its alt text, "" where it has none."""
    for output in cell.outputs:
        data = output.get("data", {})
        for kind in data:
            if kind.startswith("image/"):
                yield kind, output.get("metadata", {}).get(kind, {}).get("alt", "")
        for picture in re.findall(r"<img\b[^>]*>", data.get("text/html", "")):
            alt = re.search(r"""\balt=(?:"([^"]*)"|'([^']*)')""", picture)
            yield "html", (alt[1] or alt[2] or "") if alt else ""


def _has_table(cell: NotebookNode) -> bool:
    return any("<table" in text or re.search(r"^\|.*\|\s*$\n^\|\s*[-:]", text, re.M) for text in _texts(cell))


def _prose_after(book: Book, index: int) -> list[str]:
    return [text for i, text in book.prose if i == index + 1]


# --- mermaid and tables ------------------------------------------------------------------------------------

_FENCE = re.compile(r"^(```+|~~~+)\s*(\w*)[^\n]*\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)


def _markdown(book: Book) -> Iterator[tuple[int, str]]:
    """Markdown wherever a reader sees it: cells, and outputs."""
    yield from book.prose
    for index, cell in book.code:
        for output in cell.outputs:
            if "text/markdown" in output.get("data", {}):
                yield index, output.data["text/markdown"]


_OTHER_DRAWINGS = ("draw_mermaid_png", "draw_png", "draw_ascii")


def drawn_as_mermaid(book: Book) -> Iterator[Finding]:
    """Graph pictures are mermaid in Markdown, which JupyterLab draws offline, with a title to read out."""
    for index, cell in book.code:
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.Attribute) and node.attr in _OTHER_DRAWINGS:
                yield index, f"calls {node.attr}; show the graph as mermaid in Markdown, by views/"
        for output in cell.outputs:
            data = output.get("data", {})
            plain = output.get("text", "") + data.get("text/plain", "")
            if "text/markdown" not in data and re.search(r"^\s*(graph|flowchart) (TD|LR)", plain, re.M):
                yield index, "shows mermaid as text; show it as Markdown with a ```mermaid fence, by views/"
    for index, text in _markdown(book):
        for fence in _FENCE.finditer(text):
            if fence[2] == "mermaid" and "accTitle" not in fence[3]:
                yield index, "has a mermaid picture without alt text; give it a line `accTitle: …`"


def narrow_tables(book: Book) -> Iterator[Finding]:
    """A Markdown table fits a screen of 800 px; links count as their text."""
    for index, text in _markdown(book):
        rows = [_shown(line) for line in _FENCE.sub("", text).splitlines() if line.lstrip().startswith("|")]
        widest = max((len(row) for row in rows), default=0)
        if widest > TABLE_WIDTH:
            yield (
                index,
                f"has a table of {widest} characters, more than {TABLE_WIDTH}; drop or shorten a column",
            )


def _shown(line: str) -> str:
    line = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line)
    return unescape(re.sub(r"<[^>]+>|[*`]", "", line))


# --- prose -------------------------------------------------------------------------------------------------


def not_by_number(book: Book) -> Iterator[Finding]:
    """No text points at a line number, a cell number or an execution count."""
    pattern = r"\b(?:In|Out) ?\[\d*\]|\blines? \d+\b|\bcells? (?:no\. ?|number )?\d+\b"
    for index, cell in enumerate(book.cells):
        text = cell.source
        if cell.cell_type == "code":
            text = "\n".join(re.findall(r"#.*", text))
        if found := re.search(pattern, text, re.IGNORECASE):
            yield index, f"points at {found[0]!r}, which moves; say what is there instead"


def short_prose(book: Book) -> Iterator[Finding]:
    """A Markdown cell is short; tables, code and pictures are not counted."""
    for index, text in book.prose:
        lines = [line for line in _FENCE.sub("", text).splitlines() if not line.lstrip().startswith("|")]
        words = sum(any(c.isalnum() for c in word) for word in _shown(" ".join(lines)).split())
        if words > WORDS:
            yield (
                index,
                f"has {words} words, more than {WORDS}; split it around a cell that shows what it says",
            )


def prose_between(book: Book) -> Iterator[Finding]:
    """Code comes with words: few code cells in a row, and a sentence after each heading."""
    row = 0
    for index, cell in enumerate(book.cells):
        row = row + 1 if cell.cell_type == "code" else 0
        if row == CODE_IN_A_ROW + 1:
            yield index, f"follows {CODE_IN_A_ROW} code cells without a word; say in between what is seen"
        before = book.cells[index - 1] if index else None
        if row == 1 and (before is None or not _sentences(before.source)):
            yield index, "comes straight after a heading; say first what it shows"


def _sentences(markdown: str) -> str:
    return "\n".join(line for line in markdown.splitlines() if line.strip() and not line.startswith("#"))


def opens(book: Book) -> Iterator[Finding]:
    """A chapter opens with title, question, minutes, prerequisites, and what you will do, learn and need."""
    chapter = book.chapter
    if chapter is None:
        return
    text = _plain(book.opening)
    first = book.cells[0].source.splitlines()[0] if book.cells and book.cells[0].source else ""
    if book.cells[0].cell_type != "markdown" or not (
        first.startswith("# ") and chapter.title in _plain(first)
    ):
        yield 0, f"must be Markdown that starts with `# {chapter.number} · {chapter.title}`"
    wanted = [
        (
            _plain(chapter.question).lower() in text.lower(),
            f"the question of course.py, {chapter.question!r}",
        ),
        (
            re.search(rf"\b{chapter.minutes}( \+ \d+)? min", text),
            f"the minutes of course.py, '{chapter.minutes} minutes'",
        ),
        (
            re.search(r"\bprerequisites?\b|\bchapters? before\b|\bafter (?:chapters? )?\d\d", text, re.I),
            "the prerequisites, like 'after 00' or 'no chapter before this one'",
        ),
        (re.search(r"\b(?:you will|you'll|what you|you) do\b", text, re.I), "what you will do"),
        (re.search(r"\blearn\b", text, re.I), "what you will learn"),
        (re.search(r"\bneed\b", text, re.I), "what you need"),
    ]
    for found, what in wanted:
        if not found:
            yield None, f"does not say in its opening {what}; add it before the first code cell"
    for number in chapter.prerequisites:
        if not re.search(rf"\b{number}\b", text):
            yield None, f"does not name prerequisite {number} of course.py in its opening; add it"


def warms_up(book: Book) -> Iterator[Finding]:
    """A chapter that has earlier ones opens with two questions from them."""
    if book.chapter is None or not book.chapter.prerequisites:
        return
    after = re.split(r"warm[- ]?up", _plain(book.opening), maxsplit=1, flags=re.IGNORECASE)
    if len(after) < 2 or after[1].count("?") < 2:
        yield None, "does not open with a *Warm-up* of two questions from earlier chapters; add it"


def pauses(book: Book) -> Iterator[Finding]:
    """A long chapter has a marked pause with a question."""
    if book.chapter is None or book.chapter.minutes < LONG_CHAPTER_MINUTES:
        return
    if not any(re.search(r"^#+ .*pause here", text, re.I | re.M) and "?" in text for _, text in book.prose):
        yield None, "is long and has no pause; add a heading *Pause here* with one question to recall"


def ends(book: Book) -> Iterator[Finding]:
    """A chapter ends with what we saw, and with links to its exercise and the next chapter, if they exist."""
    chapter = book.chapter
    if chapter is None:
        return
    if not re.search(r"^#+ .*what we saw", book.ending, re.I | re.M):
        yield None, "does not end with a heading *What we saw* after its last code cell; add it"
    leads_to = {target for target, _ in _links(book, book.ending)}
    later = [
        one for one in book.chapters if one.number > chapter.number and one.ready and not one.is_appendix
    ]
    if later and later[0].notebook.as_posix() in book.files and later[0].notebook.as_posix() not in leads_to:
        yield None, f"does not link to the next chapter, {later[0].name}, at its end; add the link"
    folder = f"exercises/{chapter.name}"
    has_exercise = any(name.startswith(f"{folder}/") for name in book.files)
    if has_exercise and not any(target.startswith(folder) for target in leads_to):
        yield None, f"does not link to its exercise in {folder} at its end; add the link"


def _plain(markdown: str) -> str:
    return " ".join(_shown(markdown).replace("_", " ").split())


# --- links -------------------------------------------------------------------------------------------------


def _links(book: Book, text: str) -> Iterator[tuple[str, str]]:
    """Yield (path below the root, target as written) for each link and picture inside the project."""
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r"""\b(?:href|src)=["']([^"']+)""", text)
    for target in targets:
        if re.match(r"[a-z][a-z0-9+.-]*:|#|//", target):
            continue
        path = unquote(target.split("#")[0].split("?")[0])
        yield posixpath.normpath(posixpath.join(posixpath.dirname(book.name), path)), target


def links_lead_somewhere(book: Book) -> Iterator[Finding]:
    """A link leads to a file that git has, an attachment is there, no picture comes from the network."""
    pages = list(book.prose)
    for index, cell in book.code:
        for output in cell.outputs:
            pages += [
                (index, output.data[kind])
                for kind in ("text/markdown", "text/html")
                if kind in output.get("data", {})
            ]
    for index, text in pages:
        for path, target in _links(book, text):
            if path not in book.files and not any(name.startswith(f"{path}/") for name in book.files):
                yield index, f"links to {target}, which git does not have; mend the link or add the file"
        for name in re.findall(r"attachment:([^)\s\"']+)", text):
            if name not in book.cells[index].get("attachments", {}):
                yield index, f"shows attachment {name}, which the cell does not hold; attach it or drop it"
        if re.search(r"!\[[^\]]*\]\(\s*<?(?:https?:)?//|<img[^>]+src=[\"'](?:https?:)?//", text):
            yield index, "shows a picture from the network; keep the file in the project"


# --- predictions -------------------------------------------------------------------------------------------


def guesses_answered(book: Book) -> Iterator[Finding]:
    """Each question has an id, is asked once and answered once, later and in another cell; few a chapter."""
    asked, told = questions(book.nb, "predict"), questions(book.nb, "reveal")
    for index, question in [*asked, *told]:
        if not question:
            yield index, "asks or answers without a question id written out; give it as the first argument"
    count = Counter(question for _, question in asked)
    for index, question in asked:
        after = [i for i, other in told if other == question and i > index]
        if question and (len(after) != 1 or count[question] > 1):
            yield index, f"asks {question!r}, which must have one predict and one reveal in a later cell"
        if len(tree(book.cells[index]).body) != 1:
            yield index, f"does more than ask {question!r}; leave the predict alone in its cell"
    for index, question in told:
        if question and question not in count:
            yield index, f"answers {question!r}, which nobody asked; add its predict before"
    if len(asked) > PREDICTIONS:
        yield None, f"has {len(asked)} predictions, more than {PREDICTIONS}; keep those that surprise"


def answers_hidden(book: Book) -> Iterator[Finding]:
    """No stored output between a question and its answer can be seen before the cell is run."""
    for index in answers(book.nb):
        if book.cells[index].metadata.get("jupyter", {}).get("outputs_hidden") is not True:
            yield (
                index,
                'gives an answer away; set "jupyter": {"outputs_hidden": true}, or `execute` the notebook',
            )


_RAN = re.compile(r"What ran: (.+?)\. (?:You did not|This guess|✔|✘)", re.DOTALL)


def previews_keep_quiet(book: Book) -> Iterator[Finding]:
    """JupyterLab shows the first line of a hidden output: between guess and fact it is not the fact."""
    told = questions(book.nb, "reveal")
    for asked, question in questions(book.nb, "predict"):
        end = next((index for index, other in told if other == question and index > asked), asked)
        if end == asked or not book.cells[end].outputs:
            continue  # other rules miss them
        found = _RAN.search("\n".join(_texts(book.cells[end])))
        if found is None:
            yield end, f"does not say `What ran: …` as an answer to {question!r} does; `execute` the notebook"
            continue
        for index, cell in book.code:
            if asked < index <= end and _says(preview(cell), found[1]):
                yield (
                    index,
                    f"begins its output with {found[1]!r}, the answer to {question!r}; JupyterLab shows "
                    "the first line of a hidden output, so let it begin otherwise, as a DataFrame does",
                )


def _says(line: str, value: str) -> bool:
    """Whether the words of ``value`` stand in ``line``, one after another; as written if it has none."""
    words = re.findall(r"\w+", value.lower())
    if not words:
        return value in line
    return re.search(r"\b" + r"\W+".join(map(re.escape, words)) + r"\b", line.lower()) is not None


# --- the sets ----------------------------------------------------------------------------------------------

COMMON: tuple[Rule, ...] = (
    valid, ids, normal_form, no_widget_state, readable, no_plumbing, no_paths_in_code, comparable,
    drawn_as_mermaid, narrow_tables, not_by_number, links_lead_somewhere,
)  # fmt: skip
"""For every notebook."""

RUN: tuple[Rule, ...] = (
    executed_in_order,
    outputs_present,
    no_errors,
    repeatable_output,
    bounded,
    figures_told,
)
"""For every notebook whose outputs are stored."""

CHAPTER: tuple[Rule, ...] = (
    *COMMON, *RUN, imports_first, short_cells, short_prose, prose_between, opens, warms_up, pauses, ends,
    guesses_answered, answers_hidden, previews_keep_quiet,
)  # fmt: skip
SOLUTION: tuple[Rule, ...] = (*COMMON, *RUN)
EXERCISE: tuple[Rule, ...] = (*COMMON, no_outputs)


# --- the course --------------------------------------------------------------------------------------------


def judge_course(
    books: Sequence[Book], files: frozenset[str], *, chapters: Sequence[Chapter] = CHAPTERS
) -> list[Complaint]:
    """Return what is wrong with the chapters taken together."""
    return [*complete(files, chapters), *_asked_once(books), *_few_tags(books)]


def complete(files: frozenset[str], chapters: Sequence[Chapter] = CHAPTERS) -> Iterator[Complaint]:
    """Each ready chapter has its notebook in git, and each notebook there is a ready chapter."""
    listed = {one.notebook.as_posix() for one in chapters if one.ready}
    kept = {name for name in files if re.fullmatch(r"notebooks/[^/]+\.ipynb", name)}
    for name in sorted(listed - kept):
        yield Complaint(
            "complete", name, "as a whole", "is ready in course.py, but git does not have it; `git add` it"
        )
    for name in sorted(kept - listed):
        yield Complaint(
            "complete", name, "as a whole", "is no ready chapter of course.py; list it there or remove it"
        )


def _asked_once(books: Sequence[Book]) -> Iterator[Complaint]:
    places: dict[str, set[str]] = {}
    for book in books:
        for _, question in questions(book.nb, "predict"):
            places.setdefault(question, set()).add(book.name)
    for question, names in places.items():
        if len(names) > 1:
            first, *others = sorted(names)
            yield Complaint(
                "asked_once",
                first,
                "as a whole",
                f"asks {question!r} as {', '.join(others)} does; rename one",
            )


def _few_tags(books: Sequence[Book]) -> Iterator[Complaint]:
    shown = [cell for book in books for _, cell in book.code if cell.outputs]
    tagged = sum(IGNORE in cell.metadata.get("tags", []) for cell in shown)
    if tagged > len(shown) * TAGGED_SHARE:
        yield Complaint(
            "few_tags", "the course", "as a whole",
            f"has {tagged} of {len(shown)} cells with output tagged {IGNORE}, more than {TAGGED_SHARE:.0%}; "
            "show bounds, verdicts or ratios, which can be compared",
        )  # fmt: skip
