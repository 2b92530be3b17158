"""Each chapter in a real JupyterLab: it runs without an error, twice alike, and fits a narrow window."""

from typing import TYPE_CHECKING

import nbformat
import pytest
from seen import comparable

from fixtures.course import CHAPTERS, ROOT, Chapter

if TYPE_CHECKING:
    from lab import Lab

READY = [pytest.param(one, id=one.name) for one in CHAPTERS if one.ready]
VARIES = "nbval-ignore-output"


@pytest.mark.parametrize("chapter", READY)
def test_runs_twice_as_stored_and_fits_a_narrow_window_in_the_dark(lab: "Lab", chapter: Chapter) -> None:
    stored = nbformat.read(ROOT / chapter.notebook, as_version=4)
    lab.open(chapter.notebook)
    assert lab.errors() == [], "already before anything has run"

    first = lab.run_all()
    lab.screenshot(f"{chapter.name}-light-1280", whole=True)
    assert lab.errors() == []
    assert [cell.index for cell in first if cell.kind == "code" and cell.execution_count is None] == []

    # The second run on this kernel is drawn in the other theme and size: diagrams take their colours then.
    lab.set_viewport(800)
    lab.set_theme("dark")
    second = lab.run_all()
    lab.screenshot(f"{chapter.name}-dark-800", whole=True)
    assert lab.errors() == []
    # A line of code scrolls by itself, as in any editor; what a cell shows must not need that.
    assert [str(one) for one in lab.overflows() if one.what != "code"] == []
    for cell, again, kept in zip(first, second, stored.cells, strict=True):
        if cell.kind == "code" and VARIES not in cell.tags:
            assert cell.comparable == comparable(kept.outputs), (
                f"cell {cell.index} differs from what is stored"
            )
            assert again.comparable == cell.comparable, f"cell {cell.index} differs in a second run"
