"""The Timeline lab in a real JupyterLab: mouse, keyboard, every look, hostile text, a restart."""

import re
import time
from typing import TYPE_CHECKING

import pytest
from again import a_newer_one_takes_over, it_restarts_and_is_saved
from nbformat.v4 import new_code_cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab import Lab
    from playwright.sync_api import Locator

PANEL = 2
"""The cell that shows the panel."""
SENTENCE = "The Timeline lab is here once you run this cell: click into it and press Shift + Enter."
HOSTILE = "<img src=x onerror=alert(1)>"
FIRST_CELL = """
import operator, sqlite3
from typing import Annotated, TypedDict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from fixtures.effects import Effects
from fixtures.labs.timeline import timeline

class State(TypedDict):
    total: int
    seen: Annotated[list[str], operator.add]
"""
CHAIN = f"""
effects = Effects("effects.txt")
builder = StateGraph(State)
for number, name in enumerate("abc", start=1):
    def node(state, number=number, name=name):
        effects(name)
        seen = name + "{HOSTILE}"
        return {{"total": state["total"] + number, "seen": [seen]}}
    builder.add_node(name, node)
builder.add_edge(START, "a")
builder.add_edge("a", "b")
builder.add_edge("b", "c")
graph = builder.compile(checkpointer=InMemorySaver())
config = {{"configurable": {{"thread_id": "1"}}}}
graph.invoke({{"total": 0, "seen": []}}, config)
"""
SHOW = 'lab = timeline(graph, "1", effects=effects)\nlab'


@pytest.fixture
def opened(lab: "Lab", notebook: "Callable[..., str]") -> "Callable[..., Lab]":
    """A function that opens a notebook with a graph, the panel and these cells, and runs the panel's cell."""

    def open_(*more: str, make: str = CHAIN, show: str = SHOW) -> "Lab":
        lab.open(notebook(*(new_code_cell(cell) for cell in (FIRST_CELL, make, show, *more))))
        for number in range(PANEL + 1):
            lab.run_cell(number)
        lab.wait_for_text("Pick one to look at it.", cell=PANEL)
        return lab

    return open_


def picked(lab: "Lab", label: str) -> None:
    """Wait until this checkpoint is looked at."""
    lab.output(PANEL).locator(".fx-look h4", has_text=f"{label} · step").wait_for()


def listed(lab: "Lab") -> "Locator":
    return lab.output(PANEL).locator(".fx-list select")


def test_pick_compare_run_edit_and_mistype_in_every_look(opened) -> None:
    lab = opened()
    dialogs = []
    lab.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    output = lab.output(PANEL)
    listed(lab).locator("option", has_text="c2").click()
    picked(lab, "c2")
    lab.expect(output.locator(".fx-tree .fx-picked")).to_have_text(re.compile("^c2 "))
    lab.expect(output.locator(".fx-look").last).to_contain_text(f"['a{HOSTILE}']")

    lab.page.get_by_label("Compare with", exact=True).select_option(index=2)
    lab.wait_for_text("c1 beside c2: 2 of 2 keys differ", cell=PANEL)

    lab.click("Run from here", cell=PANEL)
    lab.wait_for_text("b, c ran; 3 new checkpoints, c5 to c7.", cell=PANEL)
    lab.wait_for_text("The outside world received: b ×1, c ×1.", cell=PANEL)
    picked(lab, "c7")
    lab.expect(listed(lab).locator("option")).to_have_count(8)

    values = lab.page.get_by_label("New values, as JSON", exact=True)
    values.fill('{"total": 40, ')
    lab.click("Edit and run", cell=PANEL)
    lab.wait_for_text("Nothing was changed: this is not JSON", cell=PANEL)
    assert values.input_value() == '{"total": 40, '
    values.fill(f'{{"{HOSTILE}": 1}}')
    lab.click("Edit and run", cell=PANEL)
    lab.wait_for_text("Nothing was changed: the state has no key", cell=PANEL)
    lab.page.get_by_label("Checkpoint c", exact=True).fill("3")
    lab.page.keyboard.press("Enter")
    picked(lab, "c3")
    values.fill('{"total": 40, "seen": ["' + HOSTILE + '"]}')
    lab.click("Edit and run", cell=PANEL)
    lab.wait_for_text("c ran; 2 new checkpoints, c8 to c9. c8 holds your values.", cell=PANEL)
    lab.wait_for_text("The 8 checkpoints from before are as they were.", cell=PANEL)
    picked(lab, "c9")
    lab.click("Full ids", cell=PANEL)
    lab.wait_for_text("id of c9", cell=PANEL)
    assert lab.in_each_look("timeline", PANEL) == []
    assert output.locator("img").count() == 0
    assert dialogs == []
    assert lab.errors() == []


def test_by_keyboard_alone(opened) -> None:
    lab = opened()
    keyboard = lab.page.keyboard
    number = lab.page.get_by_label("Checkpoint c", exact=True)
    assert lab.tab_order(number, presses=11) == [
        'spinbutton "Checkpoint c": "4"', 'button "▲ Before"', 'button "▼ After"', 'button "Other branch"',
        'combobox "Compare with"', 'button "Full ids"', 'button "Read again"',
        'button "Run from here"', 'button "Stop"',
        'textbox "New values, as JSON"', 'combobox "As node"', 'button "Edit and run"',
    ]  # fmt: skip
    number.focus()
    keyboard.press("ArrowDown")
    picked(lab, "c3")
    keyboard.press("ArrowDown")
    picked(lab, "c2")
    assert lab.focused() == 'spinbutton "Checkpoint c": "2"', "the focus stays where it was"
    keyboard.press("Tab")
    keyboard.press("Enter")
    picked(lab, "c1")
    status = lab.output(PANEL).get_by_role("status")
    lab.expect(status).to_have_text("You look at c1 · step 0 · loop · next a.")
    assert status.get_attribute("aria-live") == "polite"
    lab.button("Run from here", cell=PANEL).focus()
    keyboard.press("Enter")
    lab.wait_for_text("a, b, c ran; 4 new checkpoints, c5 to c8.", cell=PANEL)
    number.fill("77")
    keyboard.press("Enter")
    lab.wait_for_text("There is no checkpoint c77 here: choose from c0 to c8.", cell=PANEL)
    lab.expect(number).to_have_value("8")  # it comes by a message of its own
    assert lab.errors() == []


def test_a_file_with_a_thousand_checkpoints_and_hostile_text(opened) -> None:
    make = f"""
builder = StateGraph(State)
builder.add_node("step", lambda state: {{"total": 1, "seen": ["{HOSTILE}"]}})
builder.add_edge(START, "step")
with SqliteSaver.from_conn_string("thousand.sqlite") as saver:
    graph = builder.compile(checkpointer=saver)
    graph.invoke({{"total": 0, "seen": []}}, {{"configurable": {{"thread_id": "{HOSTILE}"}}}})
    # The newest checkpoint once more, and once more …
    saver.conn.execute('''
        WITH RECURSIVE numbers(n) AS (SELECT 3 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999),
            newest AS (SELECT * FROM checkpoints ORDER BY checkpoint_id DESC LIMIT 1)
        INSERT INTO checkpoints
        SELECT thread_id, checkpoint_ns, printf('f%04d', n),
            CASE WHEN n = 3 THEN checkpoint_id ELSE printf('f%04d', n - 1) END, type, checkpoint, metadata
        FROM numbers, newest''')
    saver.conn.execute("UPDATE checkpoints SET metadata = replace(metadata, 'loop', '{HOSTILE}')")
    saver.conn.commit()
"""
    lab = opened(make=make, show=f'lab = timeline("thousand.sqlite", "{HOSTILE}")\nlab')
    output = lab.output(PANEL)
    lab.expect(listed(lab).locator("option")).to_have_count(1000)
    assert not lab.button("Run from here", cell=PANEL).is_visible()
    picked(lab, "c999")
    took = []
    for number in (500, 3, 998):
        start = time.perf_counter()
        listed(lab).select_option(index=number)
        picked(lab, f"c{number}")
        took.append(time.perf_counter() - start)
        lab.expect(output.locator(".fx-tree .fx-picked")).to_have_text(re.compile(f"^c{number} "))
    lab.page.get_by_label("Checkpoint c", exact=True).fill("500")
    lab.page.keyboard.press("Enter")
    picked(lab, "c500")
    in_sight = """list => {
        const [line, box] = [list.selectedOptions[0], list].map(one => one.getBoundingClientRect());
        return list.selectedIndex === 500 && line.top >= box.top && line.bottom <= box.bottom + 1;
    }"""
    assert listed(lab).evaluate(in_sight), "the list has scrolled to what is picked"
    # A bound for a busy machine; the bench measures how long the kernel takes.
    assert max(took) < 20, took
    assert output.locator("img").count() == 0
    lab.screenshot("timeline-thousand", of=output)
    assert lab.errors() == []


def test_run_again_restart_and_saved_file(opened, jupyter) -> None:
    lab = opened(SHOW)

    def pick(cell: int) -> None:
        lab.click("▲ Before", cell=cell)
        lab.wait_for_text("You look at c", cell=cell)

    def run(cell: int) -> None:
        lab.wait_for_text("The thread has 5 checkpoints.", cell=cell)
        lab.click("Run from here", cell=cell)
        lab.wait_for_text("No node ran; 1 new checkpoint, c5.", cell=cell)

    lab.button("Run from here", cell=PANEL).dblclick()
    a_newer_one_takes_over(lab, PANEL, name="Timeline lab", button="Run from here", use=pick)
    lab.wait_for_text("Pick one to look at it.", cell=3)
    it_restarts_and_is_saved(
        lab, jupyter, name="Timeline lab", sentence=SENTENCE, button="Run from here", use=run
    )
