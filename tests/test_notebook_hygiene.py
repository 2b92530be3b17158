"""The notebooks in git keep every rule of ``hygiene``, and each rule catches a notebook that breaks it."""

from collections.abc import Callable

import hygiene
import nbformat
import pytest
from hygiene import IGNORE, Book, judge
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from fixtures.course import APPENDIX, Chapter
from tools.notebooks import NOTEBOOK_METADATA, WIDGET_VIEW, files, stored, to_text

FILES = files()
NOTEBOOKS = sorted(
    name
    for name in FILES
    if name.endswith(".ipynb") and name.startswith(("notebooks/", "solutions/", "exercises/"))
)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebook_in_git_keeps_every_rule(name):
    complaints = judge(Book.of(name, stored(name), FILES))
    assert not complaints, "\n" + "\n".join(map(str, complaints))


def test_the_course_in_git_keeps_every_rule():
    chapters = [Book.of(name, stored(name), FILES) for name in NOTEBOOKS if name.startswith("notebooks/")]
    complaints = hygiene.judge_course(chapters, FILES)
    assert not complaints, "\n" + "\n".join(map(str, complaints))


# --- a good notebook, and what breaks it -------------------------------------------------------------------


def chapter(number: str, **values) -> Chapter:
    """A chapter of a small course; the real one changes."""
    given = {
        "slug": "one",
        "title": f"Title {number}",
        "question": "Is it `so`?",
        "part": "Concepts",
        "minutes": 60,
    }
    return Chapter(number=number, **{**given, "state": "ready", **values})


COURSE = (chapter("00"), chapter("01", prerequisites=("00",)), chapter("02"), chapter("03", state="coming"))
NAME = "notebooks/01_one.ipynb"
KNOWN = frozenset(
    ["notebooks/00_one.ipynb", NAME, "notebooks/02_one.ipynb", "exercises/01_one/01_one.ipynb", "README.md"]
)

OPENING = """# 01 · Title 01

**Is it so?**

60 minutes · after 00

- **You will do** this, **learn** that, and **need** nothing.

**Warm-up:** What was it? And why?"""
MERMAID = "```mermaid\ngraph TD\n    accTitle: a leads to b\n    a --> b\n```"
TABLE = "<table><tr><td>1</td></tr></table>"
FINDING = "The line rises with each step."
BOUNDS = "tests/test_notebook_hygiene.py::test_a_good_notebook_breaks_no_rule"


def text(plain: str, **more: str) -> NotebookNode:
    """The result of a cell."""
    return new_output("execute_result", data={"text/plain": plain, **more})


def told(fact: str, **more: str) -> NotebookNode:
    """The result of a reveal, where nobody guessed."""
    outcome = f"Guess: none. What ran: {fact}. You did not guess: next time choose first."
    return text(outcome, **{"text/html": f"<div>\n<p>{outcome}</p>\n</div>", **more})


def good() -> NotebookNode:
    """A minimal chapter that breaks no rule."""
    picture = new_output(
        "display_data",
        data={"image/png": "iVBORw0KGgo=\n", "text/plain": FINDING},
        metadata={"image/png": {"alt": FINDING}},
    )
    hidden = {"jupyter": {"outputs_hidden": True}}
    cells = [
        new_markdown_cell(OPENING, id="opening"),
        new_code_cell("import math\nfrom fixtures.labs import predict, reveal", id="imports"),
        new_markdown_cell("## A guess\n\nSay first what you expect.", id="before"),
        new_code_cell(
            'predict("one", "How often?", ["once", "never"])', id="predict", outputs=[text("Run this cell.")]
        ),
        new_code_cell(
            "seen = 'never'\nseen != 'once'", id="between", metadata=hidden, outputs=[text("True")]
        ),
        new_code_cell('reveal("one", seen)', id="reveal", metadata=hidden, outputs=[told("never")]),
        new_markdown_cell(
            f"## Pause here\n\nWhat did you see?\n\n{MERMAID}\n\nSee [the start](../README.md).", id="pause"
        ),
        new_code_cell("figure()", id="figure", outputs=[picture]),
        new_code_cell("numbers", id="numbers", outputs=[text("1", **{"text/html": TABLE})]),
        new_markdown_cell("How long did it take?", id="asked"),
        new_code_cell(
            "clock()",
            id="clock",
            outputs=[text("0.43 s")],
            metadata={"tags": [IGNORE], "fixtures": {"bounds": BOUNDS}},
        ),
        new_markdown_cell(
            "## What we saw\n\nIt was so. [Exercise](../exercises/01_one/01_one.ipynb), [next](02_one.ipynb)",
            id="ending",
        ),
    ]
    book = new_notebook(cells=cells, metadata=nbformat.from_dict(NOTEBOOK_METADATA))
    return numbered(book)


def numbered(book: NotebookNode) -> NotebookNode:
    """Count the code cells as a run from top to bottom does."""
    for count, cell in enumerate((cell for cell in book.cells if cell.cell_type == "code"), 1):
        cell.execution_count = count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    return book


def judged(book: NotebookNode, name: str = NAME) -> list[hygiene.Complaint]:
    return judge(Book.of(name, to_text(book), KNOWN, chapters=COURSE))


def test_a_good_notebook_breaks_no_rule():
    assert judged(good()) == []


def test_the_last_chapter_need_not_lead_on_to_an_appendix():
    book = good()
    says("ending", ", [next](02_one.ipynb)", "")(book)
    appendix = chapter("B", part=APPENDIX)
    files = KNOWN | {appendix.notebook.as_posix()}
    last = (*COURSE[:2], appendix)
    assert judge(Book.of(NAME, to_text(book), files, chapters=last)) == []
    (complaint,) = judge(Book.of(NAME, to_text(book), files, chapters=(*COURSE, appendix)))
    assert "link to the next chapter, 02_one" in str(complaint)


def at(book: NotebookNode, name: str) -> NotebookNode:
    return next(cell for cell in book.cells if cell.get("id") == name)


def says(name: str, old: str, new: str) -> Callable[[NotebookNode], None]:
    """Replace text in a cell's source."""

    def change(book):
        assert old in at(book, name).source
        at(book, name).source = at(book, name).source.replace(old, new)

    return change


def shows(plain: str, **more: str) -> Callable[[NotebookNode], None]:
    """Replace the output of a cell that is compared."""

    def change(book):
        at(book, "between").outputs = [text(plain, **more)]
        numbered(book)

    return change


def runs(source: str) -> Callable[[NotebookNode], None]:
    """Replace the code of a cell in the middle; what it showed stays."""

    def change(book):
        at(book, "numbers").source = source

    return change


def has(name: str, **values) -> Callable[[NotebookNode], None]:
    """Set fields of a cell."""

    def change(book):
        at(book, name).update(nbformat.from_dict(values))

    return change


def without(name: str) -> Callable[[NotebookNode], None]:
    """Leave a cell out, as if it had never been there."""

    def change(book):
        book.cells.remove(at(book, name))
        numbered(book)

    return change


def inserted(*cells: NotebookNode, before: str) -> Callable[[NotebookNode], None]:
    """Add cells and run everything."""

    def change(book):
        place = book.cells.index(at(book, before))
        book.cells[place:place] = nbformat.from_dict([dict(cell) for cell in cells])
        numbered(book)

    return change


def code(source: str, name: str, **more) -> NotebookNode:
    return new_code_cell(source, id=name, **more)


def recount(name: str) -> Callable[[NotebookNode], None]:
    """Give a cell's result the count of its cell."""

    def change(book):
        for output in at(book, name).outputs:
            output.execution_count = at(book, name).execution_count

    return change


def all_of(*changes: Callable[[NotebookNode], None]) -> Callable[[NotebookNode], None]:
    def change(book):
        for one in changes:
            one(book)

    return change


LONG_LINES = "\n".join(f"x{n} = {n}" for n in range(13))
ONE_MORE = {
    question: inserted(
        code(f"predict('{question}', '?', [])", f"p-{question}", outputs=[text("Run this cell.")]),
        new_markdown_cell("And then?", id=f"m-{question}"),
        code(f"reveal('{question}', 1)", f"r-{question}", metadata={"jupyter": {"outputs_hidden": True}}),
        new_markdown_cell("Next.", id=f"n-{question}"),
        before="asked",
    )
    for question in ("two", "three", "four", "five")
}

BROKEN: list[tuple[str, str, Callable[[NotebookNode], object]]] = [
    # rule, words of its complaint, what is done to the good notebook
    ("valid", "not a valid notebook", lambda book: at(book, "asked").update(colour="red")),
    ("ids", "has no id", lambda book: at(book, "asked").pop("id")),
    ("normal_form", "not in the stored form",
     lambda book: book.metadata.language_info.update(version="3.11.7")),
    ("normal_form", "not in the stored form",
     has("clock", metadata={"execution": {"shell.execute_reply": "x"},
        "tags": [IGNORE], "fixtures": {"bounds": BOUNDS}})),
    ("executed_in_order", "was not run, not as number 2", has("predict", execution_count=None, outputs=[])),
    ("executed_in_order", "was run as number 9, not as number 6",
     all_of(has("numbers", execution_count=9), recount("numbers"))),
    ("outputs_present", "not stored", has("between", outputs=[])),
    ("outputs_present", "not stored", has("between", source="print(seen)", outputs=[])),
    ("no_errors", "ended in ValueError",
     has("between", outputs=[new_output("error", ename="ValueError", evalue="no", traceback=[])])),
    ("no_errors", "stderr",
     has("between", outputs=[new_output("stream", name="stderr", text="Warning: old\n")])),
    ("readable", "shell command or a magic", runs("!ls")),
    ("readable", "shell command or a magic", runs("%matplotlib inline")),
    ("readable", "is not Python", runs("numbers = = 1")),
    ("imports_first", "must be imports only", says("imports", "import math", "import math\nx = 1")),
    ("imports_first", "move the import", runs("import json")),
    ("imports_first", "move the import", runs("def f():\n    import json")),
    ("short_cells", "in the median", lambda book: [
        setattr(cell, "source", cell.source + "\n" + "\n".join(["# more"] * 4))
        for cell in book.cells[2:] if cell.cell_type == "code"]),
    ("short_cells", "1 of 6 code cells have more than 12", runs(LONG_LINES)),
    ("no_plumbing", "installs packages", runs("run(['pip', 'install', 'langgraph'])")),
    ("no_plumbing", "imports requests", says("imports", "import math", "import requests")),
    ("no_plumbing", "imports urllib.request",
     says("imports", "import math", "from urllib.request import urlopen")),
    ("no_plumbing", "touches sys.path", runs("sys.path.append('x')")),
    ("no_plumbing", "touches os.environ", runs("os.environ['KEY'] = 'x'")),
    ("no_plumbing", "calls input()", runs("input('Your key?')")),
    ("no_paths_in_code", "path of one machine", runs("connect('/tmp/db.sqlite')")),
    ("no_paths_in_code", "path of one machine", runs(r"connect('C:\\db.sqlite')")),
    ("comparable", "steers nbval by nbval-skip", has("numbers", metadata={"tags": ["nbval-skip"]})),
    ("comparable", "steers nbval by raises-exception",
     has("numbers", metadata={"tags": ["raises-exception"]})),
    ("comparable", "steers nbval by a comment", runs("# NBVAL_IGNORE_OUTPUT\nnumbers")),
    ("comparable", "changes an output", runs("clear_output()")),
    ("comparable", "changes an output", runs("display(1, display_id='a')")),
    ("comparable", "prints into an Output", runs("with widgets.Output():\n    print(1)")),
    ("no_widget_state", "stores widget state", lambda book: book.metadata.update(widgets={})),
    ("no_widget_state", "stores the view", shows("Run this cell.", **{WIDGET_VIEW: {"model_id": "a"}})),
    ("repeatable_output", "a Styler's HTML",
     shows("a", **{"text/html": '<style type="text/css">\n</style>' + TABLE})),
    ("repeatable_output", "a Styler's HTML", shows("a", **{"text/html": '<table id="T_0a1b2"></table>'})),
    ("repeatable_output", "a raw LangGraph object", shows("StateSnapshot(values={}, next=())")),
    ("repeatable_output", "a raw LangGraph object", shows("(Interrupt(value=1, id='x'),)")),
    ("repeatable_output", "new in each run", shows("1f0b2c3d-1111-6222-8333-0123456789ab")),
    ("repeatable_output", "new in each run", shows("0123456789abcdef0123456789abcdef")),
    ("repeatable_output", "a path of one machine", shows("'/home/someone/course'")),
    ("repeatable_output", "a path of one machine", shows("PosixPath('/tmp/x.sqlite')")),
    ("repeatable_output", "a path of one machine", shows(r"C:\Users\someone")),
    ("repeatable_output", "a memory address", shows("<object object at 0x7f3a2b4c5d60>")),
    ("repeatable_output", "a date", shows("2031-04-05T06:07")),
    ("repeatable_output", "an address of a host", shows("127.0.0.1")),
    ("repeatable_output", "a progress bar's text", shows("  0%|          | 0/16 [00:00<?, ?it/s]")),
    ("repeatable_output", "the raw repr of a widget", shows("VBox(children=(Button(description='x'),))")),
    ("repeatable_output", "a time", shows("took 0.43 s")),
    ("repeatable_output", "a time", shows("at 12:34:56")),
    ("repeatable_output", "a version", shows("Python 3.11.77")),
    ("bounded", "names no test", has("clock", metadata={"tags": [IGNORE]})),
    ("bounded", "there is none", has("clock", metadata={"tags": [IGNORE],
        "fixtures": {"bounds": "tests/test_notebook_hygiene.py::test_that_nobody_wrote"}})),
    ("bounded", "there is none",
     has("clock", metadata={"tags": [IGNORE], "fixtures": {"bounds": "README.md"}})),
    ("figures_told", "without its numbers", all_of(has("numbers", outputs=[text("1")]), numbered)),
    ("figures_told", "without alt text", lambda book: at(book, "figure").outputs[0].update(metadata={})),
    ("figures_told", "JupyterLab drops",
     lambda book: at(book, "figure").outputs[0].data.update({"text/plain": "<Figure>"})),
    ("figures_told", "give its <img> an alt", shows("a", **{"text/html": f'<img src="data:,">{TABLE}'})),
    ("figures_told", "give its <img> an alt", shows("a", **{"text/html": f'<img src="" alt="">{TABLE}'})),
    ("figures_told", "without its numbers", shows("a", **{"text/html": '<img src="data:," alt="Rises.">'})),
    ("drawn_as_mermaid", "calls draw_mermaid_png", runs("graph.get_graph().draw_mermaid_png()")),
    ("drawn_as_mermaid", "shows mermaid as text", shows("graph TD;\n  a --> b")),
    ("drawn_as_mermaid", "without alt text", says("pause", "    accTitle: a leads to b\n", "")),
    ("drawn_as_mermaid", "without alt text",
     shows("<Markdown>", **{"text/markdown": MERMAID.replace("accTitle", "title")})),
    ("narrow_tables", "a table of 124 characters", says("asked", "How", f"| {'wide ' * 24} |\n|---|\n\nHow")),
    ("narrow_tables", "more than 110",
     shows("<Markdown>", **{"text/markdown": f"| {'wide ' * 24} |\n|---|"})),
    ("not_by_number", "'In [3]'", says("asked", "How", "As In [3] showed, how")),
    ("not_by_number", "'line 12'", says("asked", "How", "See line 12. How")),
    ("not_by_number", "'Cell 4'", says("asked", "How", "Cell 4 ran. How")),
    ("not_by_number", "'line 2'", runs("numbers  # as in line 2")),
    ("short_prose", "has 126 words", says("asked", "How", "word " * 121 + "How")),
    ("prose_between", "follows 3 code cells",
     inserted(code("seen", "again", outputs=[text("1")]), code("x = 2", "more"), before="asked")),
    ("prose_between", "straight after a heading", has("asked", source="## A heading")),
    ("opens", "must be Markdown that starts", says("opening", "# 01 · Title 01", "# Something else")),
    ("opens", "the question of course.py", says("opening", "Is it so?", "Is it not?")),
    ("opens", "the minutes of course.py", says("opening", "60 minutes", "6 minutes")),
    ("opens", "the prerequisites", says("opening", "after 00", "00 comes first")),
    ("opens", "name prerequisite 00", says("opening", "after 00", "after 99")),
    ("opens", "what you will do", says("opening", "You will do", "It is")),
    ("opens", "what you will learn", says("opening", "learn", "see")),
    ("opens", "what you need", says("opening", "need", "have")),
    ("warms_up", "two questions", says("opening", "And why?", "Think.")),
    ("warms_up", "two questions", says("opening", "**Warm-up:**", "Now.")),
    ("pauses", "has no pause", says("pause", "## Pause here", "## Go on")),
    ("ends", "What we saw", says("ending", "## What we saw", "## Bye")),
    ("ends", "link to the next chapter", says("ending", "(02_one.ipynb)", "(00_one.ipynb)")),
    ("ends", "link to its exercise", says("ending", "(../exercises/01_one/01_one.ipynb)", "(../README.md)")),
    ("links_lead_somewhere", "links to 03_one.ipynb", says("asked", "How", "[Next](03_one.ipynb#part). How")),
    ("links_lead_somewhere", "links to ../NOTES.md",
     shows("<Markdown>", **{"text/markdown": "[Notes](../NOTES.md)"})),
    ("links_lead_somewhere", "links to x.html", shows("<HTML>", **{"text/html": '<a href="x.html">x</a>'})),
    ("links_lead_somewhere", "attachment a.png", says("asked", "How", "![A picture](attachment:a.png) How")),
    ("links_lead_somewhere", "from the network",
     says("asked", "How", "![A picture](https://example.org/a.png) How")),
    ("guesses_answered", "question id", says("predict", '"one"', "name")),
    ("guesses_answered", "one reveal in a later cell", says("reveal", 'reveal("one", seen)', "seen")),
    ("guesses_answered", "which nobody asked", says("reveal", '"one"', '"other"')),
    ("guesses_answered", "more than ask", says("predict", "predict(", "x = 1\npredict(")),
    ("guesses_answered", "has 5 predictions", all_of(*ONE_MORE.values())),
    ("answers_hidden", "gives an answer away", has("between", metadata={})),
    ("answers_hidden", "gives an answer away",
     has("reveal", metadata={"jupyter": {"outputs_hidden": False}})),
    ("previews_keep_quiet", "begins its output with 'never'", shows("Never, it seems")),
    ("previews_keep_quiet", "the answer to 'one'",
     shows("1", **{"text/html": f"\n<p>it was <b>never</b></p>\n{TABLE}"})),
    ("previews_keep_quiet", "JupyterLab shows",
     has("between", outputs=[new_output("stream", text="never\n")])),
    ("previews_keep_quiet", "JupyterLab shows",
     all_of(has("reveal", outputs=[told("never", **{"text/html": "<p>never</p>"})]), numbered)),
    ("previews_keep_quiet", "'3, then 3', the answer",
     all_of(has("reveal", outputs=[told("3, then 3")]), shows("[3 then 3]"))),
    ("previews_keep_quiet", "'{}', the answer", all_of(has("reveal", outputs=[told("{}")]), shows("{}"))),
    ("previews_keep_quiet", "does not say `What ran: …`",
     all_of(has("reveal", outputs=[text("You did not guess.")]), numbered)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "words", "change"), BROKEN, ids=[f"{rule}-{words}" for rule, words, _ in BROKEN]
)
def test_a_broken_notebook_is_caught_by_the_rule_it_breaks_and_no_other(rule, words, change):
    book = good()
    change(book)
    complaints = judged(book)
    assert {complaint.rule for complaint in complaints} == {rule}, "\n".join(map(str, complaints))
    assert any(words in complaint.sentence for complaint in complaints), complaints
    for complaint in complaints:
        assert NAME in str(complaint)
        assert complaint.where == "as a whole" or complaint.where.startswith("cell ")


def test_every_rule_has_a_notebook_that_breaks_it():
    tested = {rule for rule, _, _ in BROKEN} | {"no_outputs"}
    assert tested == {rule.__name__ for rule in (*hygiene.CHAPTER, *hygiene.SOLUTION, *hygiene.EXERCISE)}


def test_two_cells_may_not_share_an_id():
    book = good()
    at(book, "asked")["id"] = "pause"
    assert "ids" in {complaint.rule for complaint in judged(book)}


def test_an_older_format_is_refused():
    book = good()
    book.nbformat_minor = 4
    assert "valid" in {complaint.rule for complaint in judged(book)}


@pytest.mark.parametrize("broken", ["", "{}", '{"cells": [', '{"nbformat": 3, "worksheets": []}', "[]"])
def test_a_file_that_is_no_notebook_is_refused_in_one_sentence(broken):
    with pytest.raises(ValueError, match="not a notebook in format 4"):
        Book.of(NAME, broken, KNOWN)


@pytest.mark.parametrize(
    "shown",
    [
        "the page showed 3, the thread holds 0",
        "chunks are 60 ms apart",
        "langgraph 1.2.9 or newer",
        "<Figure size 640x480 with 1 Axes>",
        "and/or, a/tmp/b, n/a",
        "c0 → c1 → t1",
        "{'writes': 21, 'next': ('step',)}",
    ],
)
def test_what_is_the_same_everywhere_may_be_shown(shown):
    book = good()
    shows(shown)(book)
    assert judged(book) == []


@pytest.mark.parametrize(
    ("shown", "html"),
    [("nevertheless", ""), ("1\nnever", ""), ("never", f"<div>\n<p>never</p>\n{TABLE}</div>")],
)
def test_a_hidden_output_may_tell_the_answer_below_its_first_line(shown, html):
    book = good()
    shows(shown, **({"text/html": html} if html else {}))(book)
    assert judged(book) == []


def test_a_picture_in_html_keeps_its_own_alt_text():
    book = good()
    shows("It rises.", **{"text/html": f'<img src="data:,x" alt="It rises.">{TABLE}'})(book)
    assert judged(book) == []


def test_a_tagged_cell_may_show_a_time_but_no_path():
    book = good()
    at(book, "clock").outputs = [text("0.43 s in '/tmp/x'", **{})]
    numbered(book)
    assert ["a path of one machine" in one.sentence for one in judged(book)] == [True]


def test_short_chapters_need_no_pause_and_the_last_one_no_next():
    book = good()
    says("pause", "## Pause here", "## Go on")(book)
    says("ending", "(02_one.ipynb)", "(../README.md)")(book)
    says("opening", "60 minutes", "30 minutes")(book)
    course = (COURSE[0], chapter("01", minutes=30, prerequisites=("00",)), chapter("02", state="coming"))
    assert judge(Book.of(NAME, to_text(book), KNOWN, chapters=course)) == []


# --- exercises, solutions, the course ----------------------------------------------------------------------


def test_a_solution_is_run_but_need_not_open_like_a_chapter():
    book = good()
    at(book, "opening").source = "# Solution"
    assert judged(book, "solutions/01_one/01_one.ipynb") == [
        one for one in judged(book, "solutions/01_one/01_one.ipynb") if one.rule == "links_lead_somewhere"
    ]
    at(book, "between").execution_count = None
    assert "executed_in_order" in {one.rule for one in judged(book, "solutions/01_one/01_one.ipynb")}


def test_an_exercise_holds_no_output():
    book = good()
    for cell in book.cells:
        cell.source = cell.source.replace("(../", "(../../").replace("(02_one", "(../../notebooks/02_one")
    name = "exercises/01_one/01_one.ipynb"
    link = {"exercise": "(../../exercises/01_one/01_one.ipynb)"}
    assert link["exercise"] in at(book, "ending").source
    assert {one.rule for one in judged(book, name)} == {"no_outputs"}
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    assert judged(book, name) == []


def course(*books: NotebookNode, known: frozenset[str] = KNOWN) -> list[hygiene.Complaint]:
    names = [one.notebook.as_posix() for one in COURSE]
    read = [
        Book.of(name, to_text(book), known, chapters=COURSE) for name, book in zip(names, books, strict=False)
    ]
    return hygiene.judge_course(read, known, chapters=COURSE)


def untagged() -> NotebookNode:
    book = good()
    at(book, "clock").update(metadata=NotebookNode(), outputs=[text("1")])
    return book


def test_a_good_course_breaks_no_rule():
    assert course(untagged()) == []


def test_a_ready_chapter_without_its_notebook_is_missed():
    (complaint,) = course(untagged(), known=KNOWN - {"notebooks/02_one.ipynb"})
    assert "git does not have it" in str(complaint)
    assert complaint.notebook == "notebooks/02_one.ipynb"


@pytest.mark.parametrize("name", ["notebooks/Untitled.ipynb", "notebooks/03_one.ipynb"])
def test_a_notebook_that_the_course_does_not_list_is_named(name):
    (complaint,) = course(untagged(), known=KNOWN | {name})
    assert complaint.notebook == name


def test_one_question_id_in_two_chapters_is_named():
    (complaint,) = course(untagged(), untagged())
    assert complaint.rule == "asked_once"
    assert "'one'" in complaint.sentence


def test_more_than_one_in_twenty_tagged_is_too_many():
    (complaint,) = course(good())
    assert complaint.rule == "few_tags"
    assert "1 of 6" in complaint.sentence
    plain = untagged()
    without("predict")(plain)
    without("reveal")(plain)
    plain.cells *= 5
    assert course(good(), plain) == []
