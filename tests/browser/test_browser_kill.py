"""The Kill lab in a real JupyterLab: by mouse, by keyboard, in both themes, narrow, and after a restart."""

import re
from typing import TYPE_CHECKING

import pytest
from again import a_newer_one_takes_over, it_restarts_and_is_saved
from nbformat.v4 import new_code_cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab import Lab

PANEL = 1
"""The cell that shows the panel."""
SENTENCE = "The Kill lab is here once you run this cell: click into it and press Shift + Enter."


@pytest.fixture
def opened(lab: "Lab", notebook: "Callable[..., str]") -> "Callable[..., Lab]":
    """A function that opens a notebook with the panel and these cells after it, and runs the panel's cell."""

    def open_(*more: str) -> "Lab":
        cells = (
            "from fixtures.labs.kill_panel import KillLab",
            "lab = KillLab(pace_s=0.05)\nlab",
            *more,
        )
        lab.open(notebook(*(new_code_cell(cell) for cell in cells)))
        lab.run_cell(0)
        lab.run_cell(PANEL)
        return lab

    return open_


def select(lab: "Lab", label: str, option: str) -> None:
    lab.page.get_by_label(label, exact=True).select_option(option)


def chips_are(lab: "Lab", lane: str, said: list[str]) -> None:
    """Wait until the chips of a lane say this of themselves, as in ``3 · lost``; empty places left out."""
    found = lab.output(PANEL).get_by_role("list", name=f"Steps {lane}").locator("li:not(.fx-empty) .fx-state")
    lab.expect(found).to_have_text([re.compile(rf" · {one}$") for one in said])


def test_kill_second_process_and_twenty_more_in_every_look(opened) -> None:
    lab = opened("print(lab.results().to_csv())")
    for durability, held in (("exit", 0), ("sync", 2)):
        select(lab, "Durability", durability)
        select(lab, "Moment", "in the node")
        lab.click("Kill", cell=PANEL)
        lab.wait_for_text("SIGKILL ended the process in the node of step 3", cell=PANEL)
        lab.wait_for_text(f"The thread on disk holds {held} of 6", cell=PANEL)
        chips_are(lab, "that the consumer saw", ["saved" if held else "lost"] * 2)
        chips_are(lab, "on disk", ["checkpoint"] * held)
        chips_are(lab, "whose effect happened", ["once"] * 3)
        lab.click("Start the second process", cell=PANEL)
        lab.wait_for_text("The second process found", cell=PANEL)
    chips_are(lab, "that the second process ran", ["again", "ran", "ran", "ran"])
    chips_are(lab, "whose effect happened", ["once", "once", "twice", "once", "once", "once"])

    select(lab, "Durability", "async")
    select(lab, "Moment", "update seen")
    lab.click("20 more", cell=PANEL)
    lab.output(PANEL).get_by_role("progressbar", name="Trials that are over").wait_for()
    lab.wait_for_text("20 trials are over, 20 in all.", cell=PANEL)
    lab.expect(lab.output(PANEL).locator("table tbody tr")).to_have_count(3)
    picture = lab.output(PANEL).get_by_role("img")
    # It is drawn anew by a message of its own.
    lab.expect(picture).to_have_attribute(
        "alt", re.compile(r"the consumer reads updates\. After SIGKILL, async (lost|left)")
    )
    lab.click("Kill", cell=PANEL)
    lab.wait_for_text("SIGKILL ended the process when its consumer had seen step 3", cell=PANEL)
    assert lab.in_each_look("kill-lab", PANEL) == []
    rows = [line.split(",") for line in lab.run_cell(2).text.splitlines()[1:] if line]
    assert [row[:4] for row in rows] == [
        ["in-node", "updates", "exit", "3"],
        ["in-node", "updates", "sync", "3"],
        ["seen", "updates", "async", "3"],
    ]
    assert lab.errors() == []


def test_by_keyboard_alone_double_clicks_and_what_a_screen_reader_hears(opened) -> None:
    lab = opened("await lab.settled()\nprint(len(lab.session.kills))")
    keyboard = lab.page.keyboard
    order = lab.tab_order(lab.page.get_by_label("Durability", exact=True), presses=6)
    assert order == [
        'combobox "Durability"', 'combobox "Moment"', 'spinbutton "Step": "3"', 'combobox "Consumer reads"',
        'button "Kill"', 'button "Start the second process"', 'button "20 more"',
    ]  # fmt: skip
    status = lab.output(PANEL).get_by_role("status")
    assert status.get_attribute("aria-live") == "polite"
    lab.page.get_by_label("Durability", exact=True).focus()
    keyboard.press("Space")
    for key in ("ArrowDown", "ArrowUp", "Enter"):
        keyboard.press(key)
    assert lab.focused() == 'combobox "Durability"', "an open list keeps the arrow keys"
    lab.page.get_by_label("Step", exact=True).focus()
    keyboard.press("ArrowUp")
    keyboard.press("Tab")
    keyboard.press("Tab")
    keyboard.press("Enter")
    lab.wait_for_text("SIGKILL ended the process when its consumer had seen step 4", cell=PANEL)
    assert lab.focused() == 'button "Kill"', "the focus stays where it was"
    keyboard.press("Tab")
    keyboard.press("Space")
    lab.wait_for_text("The second process found 4 steps and ran steps 5 and 6.", cell=PANEL)
    lab.expect(status).to_have_text(
        re.compile("No step ran twice: the outside world counted each of them once.$")
    )
    lab.button("Kill", cell=PANEL).dblclick()
    lab.wait_for_text("SIGKILL ended the process", cell=PANEL)
    lab.button("Start the second process", cell=PANEL).dblclick()
    lab.wait_for_text("none of them again", cell=PANEL)
    assert lab.run_cell(2).text.split() == ["2"]
    assert lab.errors() == []


def test_run_again_restart_and_saved_file(opened, jupyter) -> None:
    lab = opened("lab.more.click()", "lab = KillLab(pace_s=0.05)\nlab")

    def use(cell: int) -> None:
        lab.click("Kill", cell=cell)
        lab.wait_for_text("SIGKILL ended the process", cell=cell)

    lab.click("Kill", cell=PANEL)
    a_newer_one_takes_over(lab, PANEL, name="Kill lab", button="Kill", use=use)
    it_restarts_and_is_saved(lab, jupyter, name="Kill lab", sentence=SENTENCE, button="Kill", use=use)
