"""Predictions: a guess, the fact beside it; Run All, a second run or another thread break nothing."""

import subprocess
import sys
import threading

import ipywidgets
import pytest

from fixtures import progress
from fixtures.labs import predictions
from fixtures.labs.predictions import predict, reveal

ID, TEXT, OPTIONS = "02-second-call", "What does the 2nd call give: <3> or 6?", ("3 and 3", "3 and 6")


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    file = tmp_path / "progress.json"
    monkeypatch.setenv("FIXTURES_PROGRESS", str(file))
    for name, empty in (("_unsaved", []), ("_problem", None)):
        monkeypatch.setattr(progress, name, empty)
    monkeypatch.setattr(predictions, "_asked", {})
    monkeypatch.setattr(predictions, "_panels", {})
    return file


def restarted(monkeypatch) -> None:
    """As after a kernel restart: only the file is left."""
    monkeypatch.setattr(predictions, "_asked", {})
    monkeypatch.setattr(predictions, "_panels", {})


def test_a_right_guess_is_shown_beside_the_fact():
    asked = predict(ID, TEXT, OPTIONS)
    assert asked.choice.options == OPTIONS
    assert asked.choice.value is None
    asked.choice.value = "3 and 3"
    assert "Your guess: 3 and 3. You can change it" in asked.said.value
    told = reveal(ID, "3 and 3")
    assert repr(told) == "Guess: 3 and 3. What ran: 3 and 3. ✔ Your guess is what ran."
    assert progress.guess(ID).right


def test_a_wrong_guess_is_shown_beside_the_fact():
    predict(ID, TEXT, OPTIONS).choice.value = "3 and 6"
    assert repr(reveal(ID, "3 and 3")).startswith("Guess: 3 and 6. What ran: 3 and 3. ✘")
    assert progress.guess(ID).counts
    assert not progress.guess(ID).right


def test_without_a_guess_the_answer_is_shown_and_says_so():
    predict(ID, TEXT, OPTIONS)
    assert repr(reveal(ID, "3 and 3")).startswith("Guess: none. What ran: 3 and 3. You did not guess")


def test_a_guess_after_the_answer_does_not_count():
    asked = predict(ID, TEXT, OPTIONS)
    reveal(ID, "3 and 3")
    asked.choice.value = "3 and 3"
    assert "does not count" in asked.said.value
    assert repr(reveal(ID, "3 and 3")).endswith("it does not count.")
    assert not progress.guess(ID).counts


def test_a_guess_made_in_time_stays_whatever_is_chosen_later():
    asked = predict(ID, TEXT, OPTIONS)
    asked.choice.value = "3 and 6"
    reveal(ID, "3 and 3")
    asked.choice.value = "3 and 3"
    assert "made before the answer was shown: 3 and 6. It stays." in asked.said.value
    assert repr(reveal(ID, "3 and 3")).startswith("Guess: 3 and 6.")


def test_running_all_cells_twice_shows_the_guess_again_and_piles_up_nothing():
    open_widgets = ipywidgets.widgets.widget._instances
    for _ in range(2):
        predict(ID, TEXT, OPTIONS)
        reveal(ID, "3 and 3")
    before = len(open_widgets)
    first = predict(ID, TEXT, OPTIONS)
    for _ in range(3):
        asked = predict(ID, TEXT, OPTIONS)
        told = reveal(ID, "3 and 3")
    assert first.choice.comm is None
    assert asked.choice.comm is not None
    assert told.words.comm is not None
    assert len(open_widgets) == before


def test_a_restarted_kernel_finds_guess_and_words_again(monkeypatch):
    predict(ID, TEXT, OPTIONS).choice.value = "3 and 6"
    reveal(ID, "3 and 3").words.value = "the 0 replaced it"
    restarted(monkeypatch)
    assert predict(ID, TEXT, OPTIONS).choice.value == "3 and 6"
    assert reveal(ID, "3 and 3").words.value == "the 0 replaced it"


def test_a_guess_for_an_option_that_is_gone_is_not_chosen(monkeypatch):
    predict(ID, TEXT, OPTIONS).choice.value = "3 and 6"
    restarted(monkeypatch)
    asked = predict(ID, TEXT, ("4 and 4", "4 and 8"))
    assert asked.choice.value is None
    assert "Your guess: 3 and 6" in asked.said.value


@pytest.mark.parametrize("observed", ["3 and 9", 3, None])
def test_what_ran_must_be_an_option(observed):
    predict(ID, TEXT, OPTIONS)
    with pytest.raises(ValueError, match=f"'{observed}'.*'3 and 3', '3 and 6'"):
        reveal(ID, observed)
    assert progress.guess(ID).observed is None


def test_options_and_facts_may_be_numbers():
    predict("08-saved", "How many?", [0, 2, 3]).choice.value = "2"
    assert repr(reveal("08-saved", 2)).startswith("Guess: 2. What ran: 2. ✔")


def test_a_reveal_without_its_question_goes_on():
    assert repr(reveal(ID, "3 and 3")).startswith("Guess: none. What ran: 3 and 3.")


@pytest.mark.parametrize(
    "question_id", ["counter", "2-counter", "77-counter", "02", "02-", "02-Große", "02-a b", "02_a"]
)
def test_an_id_begins_with_a_chapters_number(question_id):
    with pytest.raises(ValueError, match="chapter's number"):
        predict(question_id, TEXT, OPTIONS)


@pytest.mark.parametrize("options", [(), ("a",), ("a", "a"), (1, "1")])
def test_there_are_two_different_options(options):
    with pytest.raises(ValueError, match="two or more different options"):
        predict(ID, TEXT, options)


def test_a_choice_must_be_an_option():
    with pytest.raises(ValueError, match="choose one of '3 and 3', '3 and 6'"):
        predictions.Question(ID, TEXT, OPTIONS).choose("7")


def test_what_a_stored_notebook_keeps_is_a_sentence_and_a_table():
    asked = predict(ID, TEXT, OPTIONS)._repr_mimebundle_()
    assert asked.pop("application/vnd.jupyter.widget-view+json")
    assert asked == {"text/plain": f"Run this cell to guess: {TEXT}"}
    told = reveal(ID, "3 and 3")._repr_mimebundle_()
    assert told.pop("application/vnd.jupyter.widget-view+json")
    assert set(told) == {"text/plain", "text/html"}
    assert len(told["text/plain"]) > 110 or "…" not in told["text/plain"]
    assert "<3>" not in told["text/html"]
    assert "&lt;3&gt;" in told["text/html"]
    assert told["text/plain"] == repr(reveal(ID, "3 and 3"))


def test_every_control_has_a_label():
    asked = predict(ID, TEXT, OPTIONS)
    told = reveal(ID, "3 and 3")
    assert asked.choice.description == "Your guess"
    assert told.words.description == "What did you see?"
    for said in (asked.said, told.said):
        assert 'aria-live="polite"' in said.value


def test_callbacks_may_come_from_another_thread():
    asked = predict(ID, TEXT, OPTIONS)
    thread = threading.Thread(target=asked.choice.set_trait, args=("value", "3 and 3"))
    thread.start()
    thread.join()
    assert progress.guess(ID).guess == "3 and 3"
    assert "Your guess: 3 and 3" in asked.said.value


def test_a_full_disk_is_one_sentence_in_the_panel(monkeypatch):
    asked = predict(ID, TEXT, OPTIONS)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("os.replace", refuse)
        asked.choice.value = "3 and 3"
        assert "could not be written (No space left on device)" in asked.said.value
        assert repr(reveal(ID, "3 and 3")).startswith("Guess: 3 and 3. What ran: 3 and 3. ✔")
    reveal(ID, "3 and 3").words.value = "again"
    assert progress.problem() is None
    assert progress.guess(ID).right


def test_the_library_does_not_import_widgets_by_itself():
    source = "import sys, fixtures.labs.predictions as p; sys.exit(any(one in sys.modules for one in {}))"
    source = source.format(("ipywidgets", "pandas", "filelock"))
    assert subprocess.run([sys.executable, "-c", source]).returncode == 0
