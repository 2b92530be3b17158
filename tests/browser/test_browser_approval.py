"""The Approval desk in a real JupyterLab: by mouse, by keyboard, in both themes, and after a restart."""

import re
from typing import TYPE_CHECKING

import pytest
from again import a_newer_one_takes_over, it_restarts_and_is_saved
from nbformat.v4 import new_code_cell

from fixtures.labs.approval import ORDERS, THREADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab import Lab
    from playwright.sync_api import Locator

PANEL = 1
"""The cell that shows the panel."""
SENTENCE = "The Approval desk is here once you run this cell: click into it and press Shift + Enter."
FIRST, SECOND, THIRD = ORDERS


@pytest.fixture
def opened(lab: "Lab", notebook: "Callable[..., str]") -> "Callable[..., Lab]":
    """A function that opens a notebook with the panel and these cells after it, and runs the panel's cell."""

    def open_(*more: str) -> "Lab":
        cells = (
            "from fixtures.labs.approval_panel import ApprovalDesk",
            "lab = ApprovalDesk()\nlab",
            *more,
        )
        lab.open(notebook(*(new_code_cell(cell) for cell in cells)))
        lab.run_cell(0)
        lab.run_cell(PANEL)
        return lab

    return open_


def button(lab: "Lab", tip: str) -> "Locator":
    return lab.output(PANEL).get_by_title(tip, exact=True)


def numbers_are(lab: "Lab", thread: str, counted: list[int]) -> None:
    """Wait until a thread's card counts this: nodes entered, mails handed in, mails delivered."""
    card = lab.output(PANEL).locator(".fx-card").nth(THREADS.index(thread))
    lab.expect(card.locator(".fx-number")).to_have_text([re.compile(rf"^\s*{one}\s*$") for one in counted])


def new_orders(lab: "Lab", design: str) -> None:
    lab.page.get_by_label("Design", exact=True).select_option(design)
    lab.click("New orders", cell=PANEL)
    lab.wait_for_text("3 orders wait for an answer.", cell=PANEL)


def test_each_answer_in_every_look(opened) -> None:
    lab = opened("print(lab.results().to_csv())")
    expected = {
        "naive": [[2, 2, 2], [2, 2, 2], [3, 3, 3], [1, 0, 0]],
        "split": [[3, 1, 1], [2, 0, 0], [5, 2, 1], [1, 0, 0]],
    }
    for design, counted in expected.items():
        new_orders(lab, design)
        places = where(lab)
        for press, said in (
            ("Say yes to order-1", "order-1 got the answer yes. Node ask was entered once more"),
            ("Say no to order-2", "order-2 got the answer no. Node ask"),
            ("Say yes to order-3 twice at the same time", "order-3 got two yeses at the same time. Node ask"),
            ("Say no to order-1", "order-1 got the answer no, too late"),
            ("Say yes to order-9", "order-9 got the answer yes, but nobody had started this thread."),
        ):
            button(lab, press).click()
            lab.wait_for_text(said, cell=PANEL)
            assert where(lab) == places, "a second click meets the same button"
        for thread, numbers in zip(THREADS, counted, strict=True):
            numbers_are(lab, thread, numbers)
    assert lab.in_each_look("approval-desk", PANEL) == []
    rows = [line.split(",") for line in lab.run_cell(2).text.splitlines()[1:] if line]
    assert [row[3] for row in rows] == ["yes", "no", "yes × 2", "no", "yes"] * 2
    assert lab.errors() == []


def where(lab: "Lab") -> list[int]:
    """Return how far below the first button each button of the panel is, in pixels."""
    boxes = [one.bounding_box() for one in lab.output(PANEL).locator("button.widget-button").all()]
    return [round(one["y"] - boxes[0]["y"]) for one in boxes]


def test_by_keyboard_alone_double_clicks_and_what_a_screen_reader_hears(opened) -> None:
    lab = opened("print(len(lab.session.presses), lab.session.seen['order-2'].entries)")
    keyboard = lab.page.keyboard
    order = lab.tab_order(lab.page.get_by_label("Design", exact=True), presses=13)
    assert order[:2] == ['combobox "Design"', 'button "New orders"']
    assert order[2:] == ['button "Yes"', 'button "No"', 'button "Yes × 2"'] * len(THREADS)
    lab.button("New orders", cell=PANEL).focus()
    keyboard.press("Enter")
    lab.wait_for_text("3 orders wait for an answer. 3 mails were handed in", cell=PANEL)
    assert lab.focused() == 'button "New orders"', "the focus stays where it was"
    for _ in range(5):
        keyboard.press("Tab")
    keyboard.press("Space")
    lab.wait_for_text("order-2 got the answer no. Node ask", cell=PANEL)
    status = lab.output(PANEL).get_by_role("status")
    lab.expect(status).to_have_text(re.compile("^order-2 got the answer no\\."))
    assert status.get_attribute("aria-live") == "polite"
    numbers_are(lab, SECOND, [2, 2, 2])
    button(lab, "Say yes to order-1").dblclick()
    lab.wait_for_text("order-1 got the answer yes", cell=PANEL)
    said = lab.run_cell(2).text.split()
    assert said in (["2", "2"], ["3", "2"]), "the second click was refused, or came too late"
    numbers_are(lab, FIRST, [2, 2, 2])
    assert lab.errors() == []


def test_run_again_restart_and_saved_file(opened, jupyter) -> None:
    lab = opened("lab.yes_twice['order-1'].click()", "lab = ApprovalDesk()\nlab")

    def use(cell: int) -> None:
        lab.click("New orders", cell=cell)
        lab.wait_for_text("3 orders wait", cell=cell)

    new_orders(lab, "after")
    a_newer_one_takes_over(lab, PANEL, name="Approval desk", button="New orders", use=use)
    it_restarts_and_is_saved(
        lab, jupyter, name="Approval desk", sentence=SENTENCE, button="New orders", use=use
    )
