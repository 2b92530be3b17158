"""What the other browser tests stand on: the page object sees what a learner sees, faults included."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from server import PROJECT, JupyterServer, wait

if TYPE_CHECKING:
    from lab import Lab

WIDGETS = """\
import ipywidgets as w
pressed, label, number = w.Button(description="Go"), w.Label("not yet"), w.IntText(description="How many")
pressed.on_click(lambda _: setattr(label, "value", f"pressed with {number.value}"))
w.VBox([number, pressed, label])"""


def test_runs_a_notebook_and_returns_each_cell(lab: "Lab", notebook: Callable[..., str]) -> None:
    lab.open(
        notebook(
            new_markdown_cell("```mermaid\ngraph LR; A-->B\n```"),
            new_code_cell(
                "import asyncio\nawait asyncio.sleep(0.3)\nprint('slept')", metadata={"tags": ["slow"]}
            ),
            new_code_cell("6 * 7"),
        )
    )
    cells = lab.run_all()
    assert [cell.kind for cell in cells] == ["markdown", "code", "code"]
    assert [cell.text for cell in cells] == ["", "slept\n", "42"]
    assert [cell.execution_count for cell in cells] == [None, 1, 2]
    assert cells[1].tags == ("slow",)
    assert lab.cell(0).locator("svg, img").count() == 1, "the diagram is drawn"
    assert lab.errors() == []

    assert lab.run_cell(2).execution_count == 3
    assert lab.run_cell(2, keyboard=False).execution_count == 4
    lab.restart_kernel()
    assert lab.cells()[2].text == "42", "a restart leaves outputs alone"
    assert lab.run_cell(2).execution_count == 1
    # As in any notebook, Shift+Enter in the last cell adds an empty one.
    assert [cell.text for cell in lab.run_all()] == ["", "slept\n", "42", ""]


FAULTS = {
    "1 / 0": "cell 0: ZeroDivisionError: division by zero",
    "Javascript('console.error(\"ours\")')": "error at ",
    "Javascript('throw new Error(\"ours\")')": "cell 2: Javascript Error: ours",
    "Javascript('setTimeout(() => { throw new Error(\"late\") }, 0)')": "exception at ",
    "HTML('<img src=\"http://course.invalid/1.png\">')": "the page asked for http://course.invalid/1.png",
    "display({'application/vnd.jupyter.widget-view+json': {'version_major': 2, 'version_minor': 0, "
    "'model_id': 'gone'}}, raw=True)": "cell 5: Error displaying widget",
    "Markdown('```mermaid\\ngraph LR; A--\\n```')": "cell 6: Error: Parse error",
    "print('nothing wrong')": "",
}
"""What a cell does, and how the first line begins that says so."""


def test_sees_what_goes_wrong(lab: "Lab", notebook: Callable[..., str]) -> None:
    head = "from IPython.display import HTML, Javascript, Markdown, display\n"
    lab.open(notebook(*[new_code_cell(head + source) for source in FAULTS]))
    assert lab.errors() == []
    seen: list[str] = []
    for index, (source, said) in enumerate(FAULTS.items()):
        lab.run_cell(index)
        if "setTimeout" in source:
            wait(lambda: len(lab.errors()) > len(seen), lambda: "the exception did not come")  # noqa: B023
        new = [error for error in lab.errors() if error not in seen]
        seen = lab.errors()
        assert any(error.startswith(said) for error in new) if said else new == [], (source, new)


def test_running_a_cell_shows_its_hidden_output(lab: "Lab", notebook: Callable[..., str]) -> None:
    def hidden(source: str, output: dict, **metadata: object) -> dict:
        return new_code_cell(source, outputs=[output], execution_count=1, metadata=metadata)

    result = new_output("execute_result", {"text/plain": "42"}, execution_count=1)
    path = notebook(
        hidden("print('seen')", new_output("stream", text="seen\n"), jupyter={"outputs_hidden": True}),
        hidden("6 * 7", result, jupyter={"outputs_hidden": True}),
        hidden("6 * 7", result, collapsed=True),
        hidden("6 * 7", result, jupyter={"outputs_hidden": True, "source_hidden": True}),
        hidden("6 * 7", result),
    )
    lab.open(path)
    assert [lab.outputs_hidden(i) for i in range(5)] == [True, True, True, True, False]
    lab.run_cell(0)
    assert [lab.outputs_hidden(i) for i in range(5)] == [False, True, True, True, False]
    lab.run_cell(1, keyboard=False)
    assert [lab.outputs_hidden(i) for i in range(5)] == [False, False, True, True, False]
    lab.run_all()
    assert [lab.outputs_hidden(i) for i in range(5)] == [False] * 5


def test_widgets_by_mouse_and_keyboard(lab: "Lab", notebook: Callable[..., str]) -> None:
    lab.open(notebook(new_code_cell(WIDGETS), new_code_cell("number.value")))
    lab.run_all()
    assert lab.labels() == ["not yet"]
    lab.click("Go")
    lab.wait_for_text("pressed with 0", cell=0)
    field = lab.output(0).get_by_label("How many")
    assert lab.tab_order(field, presses=1) == ['spinbutton "How many": "0"', 'button "Go"']
    field.fill("5")
    lab.page.keyboard.press("Tab")
    lab.page.keyboard.press("Enter")
    lab.wait_for_text("pressed with 5", cell=0)
    assert lab.labels(cell=0) == ["pressed with 5"]
    assert lab.run_cell(1).text == "5"
    assert lab.errors() == []


def test_what_is_too_wide_is_found(lab: "Lab", notebook: Callable[..., str]) -> None:
    table = "import pandas as pd\npd.DataFrame([range(10**6, 10**6 + {})])"
    lab.open(
        notebook(
            new_code_cell(table.format(3)),
            new_code_cell(table.format(20)),
            new_code_cell("import ipywidgets as w\nw.HTML('<div style=\"width: 1500px\">wide</div>')"),
            new_code_cell("print('x' * 500)\n" + "#" * 110),
            new_markdown_cell("| " + "wideword | " * 30 + "\n|" + "---|" * 30),
            *[new_code_cell("'below the window'") for _ in range(30)],
            new_code_cell(table.format(20)),
        )
    )
    lab.run_all()
    wide = {(one.cell, one.what) for one in lab.overflows()}
    assert wide == {(1, "output"), (2, "output"), (4, "markdown"), (35, "output")}
    lab.set_viewport(800)
    assert {(one.cell, one.what) for one in lab.overflows()} == wide | {(3, "code")}
    lab.set_viewport(4000)
    assert lab.overflows() == []


def test_themes_and_pictures(lab: "Lab", notebook: Callable[..., str]) -> None:
    from PIL import Image

    path = notebook(new_code_cell("'first'"), *[new_code_cell(f"{i}") for i in range(40)])
    lab.open(path, theme="dark")
    assert lab.theme == "dark"
    lab.run_all()
    dark = Image.open(lab.screenshot("harness-dark"))
    lab.set_theme("light")
    assert lab.theme == "light"
    light = Image.open(lab.screenshot("harness-light"))
    assert dark.size == light.size == (1280, 900)
    brightness = [picture.convert("L").resize((1, 1)).getpixel((0, 0)) for picture in (dark, light)]
    assert brightness[0] < 80 < 200 < brightness[1]
    whole = Image.open(lab.screenshot("harness-whole", whole=True))
    assert whole.height > 2 * 900, "forty-one cells are more than two windows high"
    cell = Image.open(lab.screenshot("harness-cell", of=lab.cell(0)))
    assert cell.height < 200
    assert lab.page.viewport_size == {"width": 1280, "height": 900}


def test_starts_from_the_project_as_it_is(
    lab: "Lab", jupyter: JupyterServer, notebook: Callable[..., str]
) -> None:
    lab.open(
        notebook(
            new_code_cell("import os, fixtures\nprint(os.environ['FIXTURES_PROGRESS'], fixtures.__file__)")
        )
    )
    (cell,) = lab.run_all()
    progress, library = cell.text.split()
    assert progress == str(jupyter.progress)
    assert library.startswith(str(PROJECT / "src"))
    jupyter.progress.write_text("{}")
    lab.save()
    assert len(jupyter.started()) == 1
    jupyter.reset()
    assert jupyter.started() == []
    assert not jupyter.progress.exists()
    assert not (jupyter.root / "made.ipynb").exists()
