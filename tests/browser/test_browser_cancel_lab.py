"""The Cancel lab in a real JupyterLab: pressed by mouse and keyboard, looked at in both themes and narrow."""

import json
import re
import statistics
from typing import TYPE_CHECKING

import pytest
from again import a_newer_one_takes_over, it_restarts_and_is_saved
from nbformat.v4 import new_code_cell

from fixtures.experiments.matrix import DURABILITIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab import Lab

PANEL = 1
"""The cell that shows the panel."""
SENTENCE = "The Cancel lab is here once you run this cell: click into it and press Shift + Enter."
SHAPES = {"long_node": "one long node", "stepwise": "one chunk a step"}


@pytest.fixture
def opened(lab: "Lab", notebook: "Callable[..., str]") -> "Callable[..., Lab]":
    """A function that opens a notebook with the panel and these cells after it, and runs the panel's cell."""

    def open_(*more: str, pace_s: float = 0.2, theme: str = "light") -> "Lab":
        cells = (
            "from fixtures.labs.cancel_panel import CancelLab",
            f"lab = CancelLab(pace_s={pace_s})\nlab",
            *more,
        )
        lab.open(notebook(*(new_code_cell(cell) for cell in cells)), theme=theme)
        lab.run_cell(0)
        lab.run_cell(PANEL)
        return lab

    return open_


def select(lab: "Lab", label: str, option: str) -> None:
    lab.page.get_by_label(label, exact=True).select_option(option)


def chips_are(lab: "Lab", **counted: int) -> None:
    """Wait until as many chips say this of themselves, in both lanes; a panel changes by several messages."""
    for kind, count in counted.items():
        of_kind = lab.output(PANEL).locator(".fx-state", has_text=f"· {kind.replace('_', ' ')}")
        lab.expect(of_kind).to_have_count(count)


def started(lab: "Lab", shape: str, durability: str, cancel: str) -> None:
    select(lab, "Graph", SHAPES[shape])
    select(lab, "Durability", durability)
    select(lab, "Start, and cancel", cancel)
    lab.click("Start", cell=PANEL)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_durability_cancelled_at_three_refreshed_continued(opened, shape: str) -> None:
    lab = opened("print(lab.results_text())", pace_s=0.1)
    lab.click("More ▸", cell=PANEL)
    kept = 0 if shape == "long_node" else 3
    for durability in DURABILITIES:
        started(lab, shape, durability, "at chunk 3")
        lab.wait_for_text("Cancelled when the page showed 3 chunks.", cell=PANEL)
        lab.wait_for_text(f"The thread holds {kept} of 6", cell=PANEL)
        chips_are(lab, page_only=3 - kept, checkpoint=2 if kept else 0, pending=1 if kept else 0)
        lab.screenshot(f"cancel-lab-{shape}-{durability}", of=lab.output(PANEL))

        lab.click("Refresh the page", cell=PANEL)
        lab.wait_for_text("The page shows what the thread holds:", cell=PANEL)
        chips_are(lab, lost=3 - kept)

        lab.click("Continue", cell=PANEL)
        how = "It went on with chunk 4" if kept else "The node ran again from its first line"
        lab.wait_for_text(how, cell=PANEL)
        chips_are(lab, saved=6, checkpoint=6, lost=0)

        lab.click("Next message", cell=PANEL)
        lab.wait_for_text("The new input began at the entry, with chunk 1", cell=PANEL)
    rows = [line.split("\t") for line in lab.run_cell(2).text.splitlines()[1:] if line]
    assert [row[4] for row in rows] == ["cancel at 3", "complete", "complete"] * len(DURABILITIES)
    assert [row[6] for row in rows[::3]] == [str(kept)] * len(DURABILITIES)
    assert lab.errors() == []


def test_by_hand_at_the_pace_of_a_person(opened) -> None:
    lab = opened("print(lab.results_text())", pace_s=0.7)
    lab.click("Start", cell=PANEL)
    lab.wait_for_text("The page shows 3 of 6", cell=PANEL)
    lab.click("Cancel", cell=PANEL)
    lab.wait_for_text("The thread holds no chunk.", cell=PANEL)
    row = lab.run_cell(2).text.splitlines()[1].split("\t")
    assert row[4] == "cancel by hand"
    assert 3 <= int(row[5]) <= 6
    assert row[6] == "0"
    assert lab.errors() == []


def test_a_click_reaches_the_graph_within_a_tenth_of_a_second(opened) -> None:
    watch = """
import asyncio, time
from fixtures.graphs import chunks
real, reached = chunks.pause, []
async def pause(delay_s):
    try:
        await real(delay_s)
    except asyncio.CancelledError:
        if delay_s == 1:  # the node's: the page rests for less
            reached.append(1000 * time.time())
        raise
chunks.pause = pause
"""
    lab = opened(watch, "import json; print(json.dumps(reached))", pace_s=1)
    lab.run_cell(2)
    lab.page.evaluate(
        """() => { window.pressed = []; document.addEventListener('click', event => {
            if (event.target.closest('button')?.textContent === 'Cancel') window.pressed.push(Date.now());
        }, true); }"""
    )
    for number in range(1, 8):
        lab.click("Start", cell=PANEL)
        lab.wait_for_text("The page shows 1 of 6", cell=PANEL)
        lab.click("Cancel", cell=PANEL)
        lab.wait_for_text("Cancelled when the page showed", cell=PANEL)
        lab.output(PANEL).locator("table tbody tr").nth(number - 1).wait_for()
        # An empty page, so that the next "1 of 6" is the next run's.
        lab.click("Refresh the page", cell=PANEL)
        lab.wait_for_text("The page shows 0 of 6", cell=PANEL)
    reached = json.loads(lab.run_cell(3).text)
    pressed = lab.page.evaluate("window.pressed")
    took = [seen - click for click, seen in zip(pressed, reached, strict=True)]
    assert statistics.median(took) < 100, took


def test_by_keyboard_alone(opened) -> None:
    lab = opened(pace_s=0.5)
    keyboard = lab.page.keyboard
    first = lab.page.get_by_label("Graph", exact=True)
    order = lab.tab_order(first, presses=6)
    assert order == [
        'combobox "Graph"', 'combobox "Durability"', 'button "Start"', 'button "Cancel"',
        'button "Refresh the page"', 'button "Continue"', 'button "More ▸"',
    ]  # fmt: skip
    keyboard.press("Enter")
    lab.button("Less ▾", cell=PANEL).wait_for()
    order = lab.tab_order(lab.button("Less ▾", cell=PANEL), presses=5)
    assert [one.split(" ")[0] for one in order] == [
        "button", "spinbutton", "spinbutton", "combobox", "button", "button",
    ]  # fmt: skip
    assert order[1:4] == ['spinbutton "Chunks": "6"', 'spinbutton "Seconds a chunk": "0.5"', order[3]]
    lab.button("Start", cell=PANEL).focus()
    keyboard.press("Enter")
    lab.wait_for_text("The page shows 2 of 6", cell=PANEL)
    keyboard.press("Tab")
    keyboard.press("Space")
    lab.wait_for_text("Cancelled when the page showed", cell=PANEL)
    assert lab.focused() == 'button "Cancel"', "the focus stays where it was"
    status = lab.output(PANEL).get_by_role("status")
    lab.expect(status).to_have_text(re.compile("^Cancelled when the page showed"))
    assert status.get_attribute("aria-live") == "polite"
    assert lab.errors() == []


def test_it_fits_and_can_be_read(opened) -> None:
    lab = opened()
    lab.click("More ▸", cell=PANEL)
    started(lab, "long_node", "sync", "at chunk 3")
    lab.wait_for_text("Cancelled when", cell=PANEL)
    lab.click("Refresh the page", cell=PANEL)
    lab.wait_for_text("3 lost", cell=PANEL)
    assert lab.in_each_look("cancel-lab-lost", PANEL) == []

    started(lab, "stepwise", "sync", "at chunk 3")
    lab.wait_for_text("1 in pending writes and in no checkpoint", cell=PANEL)
    lab.click("Compare with 16 automatic runs", cell=PANEL)
    lab.wait_for_text("The sixteen automatic runs, and your newest run", cell=PANEL)
    lab.click("Rows as text ▸", cell=PANEL)
    lab.output(PANEL).locator("textarea").wait_for()
    assert lab.in_each_look("cancel-lab-all", PANEL) == []
    assert lab.errors() == []


def test_run_again_restart_and_saved_file(opened, jupyter) -> None:
    lab = opened("old = lab", "lab = CancelLab(pace_s=0.2)\nlab")

    def use(cell: int) -> None:
        lab.click("Start", cell=cell)
        lab.wait_for_text("The run has ended by itself", cell=cell)

    lab.click("Start", cell=PANEL)
    a_newer_one_takes_over(lab, PANEL, name="Cancel lab", button="Start", use=use)
    it_restarts_and_is_saved(lab, jupyter, name="Cancel lab", sentence=SENTENCE, button="Start", use=use)
