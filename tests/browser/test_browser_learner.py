"""A learner guesses, runs, compares and restarts; solves an exercise wrongly, then rightly: in JupyterLab."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import nbformat
from nbformat.v4 import new_code_cell, new_output
from server import wait

from fixtures.course import ROOT
from tools.notebooks import preview

if TYPE_CHECKING:
    from lab import Lab
    from playwright.sync_api import Locator
    from server import JupyterServer

CHAPTER = "notebooks/00_start_here.ipynb"
EXERCISE = "exercises/02_the_counter/02_the_counter.ipynb"
GUESS, FACT = "3, then 6", "3, then 3"
BESIDE = f"your guess {GUESS} what ran {FACT} ✘ Your guess is not what ran."

WRONG = """\
import operator
from typing import Annotated, TypedDict

from langgraph.graph import StateGraph, START


class State(TypedDict):
    total: Annotated[int, operator.add]


def with_reducer():
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"total": state["total"] + 1})
    builder.add_node("two", lambda state: {"total": state["total"] + 2})
    return builder.add_edge(START, "one").add_edge("one", "two")


def next_input(graph, config):
    return {"total": graph.get_state(config).values.get("total", 0)}
"""
"""A reducer, but the nodes return totals: plausible, and half right."""

RIGHT = WRONG.replace('state["total"] + ', "")


def find(lab: "Lab", source: str) -> int:
    """Return the index of the one code cell whose text begins so."""
    (index,) = [one.index for one in lab.cells() if one.kind == "code" and one.source.startswith(source)]
    return index


def run_to(lab: "Lab", last: int) -> None:
    """Run the code cells from the first to this one, as a reader does."""
    for cell in lab.cells()[: last + 1]:
        if cell.kind == "code":
            lab.run_cell(cell.index)


def visible(lab: "Lab", index: int) -> str:
    """Return what of a cell's output can be read on the page, white space made one space."""
    return " ".join(lab.output(index).inner_text().split())


def radio(lab: "Lab", index: int, option: str) -> "Locator":
    """Return the option of a prediction."""
    return lab.output(index).get_by_role("radio", name=option, exact=True)


def placeholder(lab: "Lab", index: int) -> str:
    """Return what the page shows in the place of a hidden output, the three dots left out."""
    return lab.cell(index).locator(".jp-OutputPlaceholder").inner_text().strip().removesuffix("...").strip()


def progress_row(lab: "Lab", chapter: str) -> list[str]:
    """Run the cell with the progress table and return this chapter's row: guessed, right, exercise."""
    index = find(lab, "progress.table()")
    lab.run_cell(index)
    row = lab.output(index).locator("tr", has_text=chapter)
    return [one.inner_text().strip() for one in row.locator("td").all()]


def in_the_dark_at_800(lab: "Lab", **cells: int) -> None:
    """Keep a picture of each of these cells, narrow and dark, and see that nothing in them is too wide."""
    lab.set_viewport(800)
    lab.set_theme("dark")
    for name, index in cells.items():
        lab.screenshot(f"learner-{name}-dark-800", of=lab.cell(index))
    assert [str(one) for one in lab.overflows() if one.cell in cells.values() and one.what != "code"] == []


def test_guesses_by_keyboard_compares_restarts_and_finds_the_guess_again(
    lab: "Lab", jupyter: "JupyterServer"
) -> None:
    lab.open(CHAPTER)
    asked, told = find(lab, "predict("), find(lab, "reveal(")
    stored = nbformat.read(ROOT / CHAPTER, as_version=4).cells
    hidden = [one.index for one in lab.cells()[asked + 1 : told + 1] if one.outputs]
    assert told in hidden
    for index in hidden:
        assert lab.outputs_hidden(index)
        assert placeholder(lab, index) == preview(stored[index])
        assert FACT not in placeholder(lab, index)

    run_to(lab, asked)
    radio(lab, asked, GUESS).wait_for()
    lab.cell(asked).locator(".jp-InputPrompt").click()
    for _ in range(10):
        lab.page.keyboard.press("Tab")
        if lab.focused().startswith("radio"):
            break
    # JupyterLab keeps the arrow keys for itself; Tab goes from option to option.
    for keys, option in (([], GUESS), (["Tab"], FACT), (["Shift+Tab"], GUESS)):
        for key in (*keys, "Space"):
            lab.page.keyboard.press(key)
        lab.wait_for_text(f"Your guess: {option}. You can change it until the answer is shown.", cell=asked)
    lab.screenshot("learner-predict-light-1280", of=lab.cell(asked))

    for cell in lab.cells()[asked + 1 : told + 1]:
        if cell.kind == "code":
            lab.run_cell(cell.index)
    assert [index for index in hidden if lab.outputs_hidden(index)] == []
    assert BESIDE in visible(lab, told)
    lab.screenshot("learner-reveal-light-1280", of=lab.cell(told))
    in_the_dark_at_800(lab, predict=asked, reveal=told)
    lab.set_theme("light")
    lab.set_viewport(1280)
    assert lab.errors() == []

    lab.restart_kernel()
    lab.output(asked).locator(".fx-restarted").get_by_text("Run this cell to guess:").wait_for()
    assert visible(lab, asked) == "[4]: Run this cell to guess: Which two totals come back?"
    assert visible(lab, told).startswith(f"[7]: Guess: {GUESS}. What ran: {FACT}. ✘")
    assert not radio(lab, asked, GUESS).is_visible()
    lab.screenshot("learner-restarted", of=lab.cell(asked))

    run_to(lab, asked)
    lab.wait_for_text(f"Your guess, made before the answer was shown: {GUESS}. It stays.", cell=asked)
    assert radio(lab, asked, GUESS).is_checked()
    assert progress_row(lab, "00 Start here") == ["1", "0", ""]
    radio(lab, asked, FACT).click()
    lab.wait_for_text(f"Your guess, made before the answer was shown: {GUESS}. It stays.", cell=asked)
    assert progress_row(lab, "00 Start here") == ["1", "0", ""]

    # The notebook that is saved and opened again on another day, with no kernel behind it.
    lab.save()
    jupyter.end_kernels()
    lab.open(CHAPTER, reload=True)
    assert visible(lab, asked).endswith("Run this cell to guess: Which two totals come back?")
    assert BESIDE in visible(lab, told)
    assert lab.errors() == []


def test_a_guess_after_its_answer_does_not_count(lab: "Lab") -> None:
    lab.open(CHAPTER)
    asked, told = find(lab, "predict("), find(lab, "reveal(")
    run_to(lab, told)
    assert f"your guess none what ran {FACT} You did not guess" in visible(lab, told)
    radio(lab, asked, FACT).click()
    lab.wait_for_text("It came after the answer was shown, so it does not count.", cell=asked)
    lab.run_cell(told)
    assert f"your guess {FACT} what ran {FACT} This guess came after" in visible(lab, told)
    assert progress_row(lab, "00 Start here") == ["0", "0", ""]
    assert lab.errors() == []


def write(lab: "Lab", index: int, source: str) -> None:
    """Put text in the place of a cell's, in its editor, and run it."""
    lab.cell(index).locator(".cm-content").click()
    lab.page.keyboard.press("ControlOrMeta+A")
    lab.page.keyboard.insert_text(source)
    wait(lambda: lab.cells()[index].source == source, lambda: f"the cell holds {lab.cells()[index].source!r}")
    lab.run_cell(index)


def test_solves_the_exercise_wrongly_then_rightly(lab: "Lab", jupyter: "JupyterServer") -> None:
    def kept() -> dict[str, int]:
        return json.loads(jupyter.progress.read_text())["exercises"]["02"]

    lab.open(EXERCISE)
    answer, check = find(lab, "from typing import Annotated"), find(lab, "verdict = check(")
    cells = lab.run_all()
    assert [one.index for one in cells if one.kind == "code" and one.execution_count is None] == []
    assert lab.errors() == []
    said = visible(lab, check)
    assert said.count("✘") == said.count("Result: not written yet") == 4
    assert "✔" not in said
    assert "0 of 4 points" in said
    lab.screenshot("learner-verdict-stub-light-1280", of=lab.cell(check))
    assert kept() == {"points": 0, "total": 4}

    write(lab, answer, WRONG)
    lab.run_cell(check)
    said = visible(lab, check)
    assert said.count("✘ with_reducer") == said.count("✔ next_input") == 2
    assert "Who adds: the node, or the key's reducer? What may a node return, then?" in said
    assert "2 of 4 points" in said
    lab.screenshot("learner-verdict-wrong-light-1280", of=lab.cell(check))
    in_the_dark_at_800(lab, verdict=check)
    lab.set_theme("light")
    lab.set_viewport(1280)
    assert kept() == {"points": 2, "total": 4}

    write(lab, answer, RIGHT)
    lab.run_cell(check)
    said = visible(lab, check)
    assert said.count("✔") == 4
    assert "✘" not in said
    assert said.endswith("4 of 4 points")
    lab.screenshot("learner-verdict-right-light-1280", of=lab.cell(check))
    assert lab.errors() == []

    lab.open(CHAPTER)
    lab.run_cell(find(lab, "import asyncio"))
    assert progress_row(lab, "02 The counter") == ["0", "0", "passed"]
    assert lab.errors() == []


def test_the_preview_of_a_hidden_output_is_what_the_rule_for_it_judges(
    lab: "Lab", notebook: Callable[..., str]
) -> None:
    def result(**data: str) -> nbformat.NotebookNode:
        kinds = {kind.replace("_", "/"): value for kind, value in data.items()}
        return new_output("execute_result", kinds, execution_count=1)

    stream = new_output("stream", text="\nfirst printed\nsecond")
    outputs = [
        [stream, result(text_plain="second output")],
        [result(text_plain="first\nsecond")],
        [result(text_plain="'plain'", text_html="\n<p>of <b>HTML</b></p>\n<p>second</p>")],
        [result(text_plain="<Markdown>", text_markdown="of *Markdown*\n\nsecond")],
        [result(text_plain="plain", image_png="iVBORw0KGgo=")],
        [new_output("stream", name="stderr", text="a warning\n")],
    ]
    cells = [
        new_code_cell("1", outputs=one, execution_count=1, metadata={"jupyter": {"outputs_hidden": True}})
        for one in outputs
    ]
    lab.open(notebook(*cells))
    shown = [placeholder(lab, index) for index in range(len(cells))]
    assert shown == [preview(cell) for cell in cells]
    assert shown[0] == "first printed"
