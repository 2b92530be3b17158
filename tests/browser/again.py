"""What a lab's panel does when its cell runs again, when its kernel restarts, and in a saved file."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab import Lab
    from server import JupyterServer

LAST = 3
"""The cell that shows a panel once more, in a notebook that was written as ``made.ipynb``."""


def a_newer_one_takes_over(
    lab: "Lab", first: int, *, name: str, button: str, use: Callable[[int], None]
) -> None:
    """Run the cells after the first panel's, see it retire, use the newer one, and run all twice.

    Args:
        first: the cell of the first panel.
        name: what the panel calls itself, as in ``Cancel lab``.
        button: one of its buttons.
        use: uses the panel of a cell and waits for what it says.
    """
    for cell in range(first + 1, LAST + 1):
        lab.run_cell(cell)
    lab.wait_for_text(f"A newer {name} has taken the place of this one", cell=first)
    assert lab.button(button, cell=first).count() == 0
    use(LAST)
    lab.run_all()
    lab.run_all()
    assert lab.errors() == []


def it_restarts_and_is_saved(
    lab: "Lab", jupyter: "JupyterServer", *, name: str, sentence: str, button: str, use: Callable[[int], None]
) -> None:
    """Restart the kernel, read the sentence in the panel's place, use it again, and find it in the file."""
    lab.restart_kernel()
    lab.output(LAST).get_by_text(sentence).wait_for()
    assert not lab.button(button, cell=LAST).is_visible()
    lab.screenshot(f"{name.lower().replace(' ', '-')}-restarted", of=lab.output(LAST))
    lab.run_all()
    use(LAST)
    assert lab.errors() == []
    lab.save()
    saved = json.loads((jupyter.root / "made.ipynb").read_text())
    text = saved["cells"][LAST]["outputs"][0]["data"]["text/plain"]
    assert "".join(text) == sentence
