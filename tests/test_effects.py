import subprocess
import sys
import threading

import pytest

from fixtures.effects import Effects


def test_nothing_has_happened_at_first(tmp_path):
    effects = Effects(tmp_path / "world.txt")
    assert effects.in_order() == []
    assert effects.count() == {}


def test_effects_are_counted_by_name_in_order(tmp_path):
    effects = Effects(tmp_path / "world.txt")
    for name in ("mail", "pay", "mail"):
        effects(name)
    assert effects.in_order() == ["mail", "pay", "mail"]
    assert effects.count() == {"mail": 2, "pay": 1}


@pytest.mark.parametrize("name", ["", "two\nlines", "a\rb"])
def test_a_name_is_one_line(tmp_path, name):
    with pytest.raises(ValueError, match="one line of text"):
        Effects(tmp_path / "world.txt")(name)


def test_threads_and_processes_lose_nothing(tmp_path):
    path = tmp_path / "world.txt"
    script = (
        "import sys; from fixtures.effects import Effects; effects = Effects(sys.argv[1])\n"
        "for _ in range(200): effects('child')"
    )
    children = [subprocess.Popen([sys.executable, "-c", script, str(path)]) for _ in range(3)]
    effects = Effects(path)
    threads = [threading.Thread(target=lambda: [effects("thread") for _ in range(200)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [child.wait(timeout=60) for child in children] == [0, 0, 0]
    assert effects.count() == {"thread": 600, "child": 600}
