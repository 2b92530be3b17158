"""The progress bar of a notebook: a widget's view and nothing else, counted on, gone at the end."""

import IPython.display
import ipywidgets
import pytest

from fixtures.labs.progress_bar import WIDGET_VIEW, progress_bar


@pytest.fixture
def shown(monkeypatch) -> list[dict]:
    """What was displayed."""
    outputs: list[dict] = []
    monkeypatch.setattr(IPython.display, "display", lambda data, *, raw: outputs.append(data))
    return outputs


def widgets() -> dict:
    """The widgets that are open, by their model id."""
    from ipywidgets.widgets.widget import _instances

    return _instances


def test_a_bar_counts_what_is_done_and_is_gone_at_the_end(shown):
    with progress_bar(3) as one_done:
        (data,) = shown
        assert set(data) == {WIDGET_VIEW}  # no text: it would be stored
        model = data[WIDGET_VIEW]["model_id"]
        box = widgets()[model]
        bar = next(child for child in box.children if isinstance(child, ipywidgets.FloatProgress))
        assert (bar.value, bar.max) == (0, 3)
        for done in ("one", "another", "the last"):
            one_done(done)
    assert bar.value == 3
    assert model not in widgets()
    assert len(shown) == 1


def test_a_bar_stays_and_is_red_when_the_work_fails(shown):
    def fail() -> None:
        with progress_bar(3) as one_done:
            one_done("one")
            raise ValueError("broken on purpose")

    with pytest.raises(ValueError, match="broken on purpose"):
        fail()
    box = widgets()[shown[0][WIDGET_VIEW]["model_id"]]
    bar = next(child for child in box.children if isinstance(child, ipywidgets.FloatProgress))
    assert bar.bar_style == "danger"
    box.close()
