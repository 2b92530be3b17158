"""Each test keeps guesses and passed exercises in a file of its own, so that none sees another's."""

import pytest


@pytest.fixture(autouse=True)
def _own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("FIXTURES_PROGRESS", str(tmp_path / "progress.json"))
