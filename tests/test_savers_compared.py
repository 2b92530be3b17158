"""What each saver keeps over a restart, what it makes of objects, and from where it can be called."""

import asyncio
import logging
import subprocess
import sys

import pytest

from fixtures.experiments import savers_compared
from fixtures.experiments.options import BadOption
from fixtures.graphs import objects
from fixtures.savers import SAVERS

# What comes back as another type than was put in, over every saver.
CHANGED = {"tuple": "list", "tuple in a list": "list of list", "exception": "str"}
REFUSED = {"a number above 64 bits", "function", "lambda"}


@pytest.fixture(scope="module")
def kept():
    """The type that each object comes back as, by object and saver."""
    return {
        (one.what, one.saver): (one.next_node, one.given_back)
        for one in asyncio.run(savers_compared.keep_objects())
    }


def test_only_the_savers_with_a_file_go_on_in_a_second_process():
    seen = {one.saver: (one.first, one.found, one.second) for one in savers_compared.restart()}
    assert seen == {"memory": (3, 0, 3), "sqlite": (3, 1, 6), "async_sqlite": (3, 1, 6)}


@pytest.mark.parametrize("what", sorted(set(objects.OBJECTS) - {"bytearray"}))
def test_an_object_comes_back_alike_over_all_savers(kept, what):
    ((next_node, given_back),) = {kept[what, saver] for saver in SAVERS}
    if what in REFUSED:
        assert (next_node, given_back) == ("–", "TypeError")
    else:
        assert given_back == CHANGED.get(what, next_node)


def test_a_bytearray_is_where_they_differ(kept):
    assert [kept["bytearray", saver][1] for saver in SAVERS] == ["bytearray", "bytes", "bytes"]


def test_in_strict_mode_a_class_comes_back_where_the_state_names_it():
    whats = ["own class", "own class, named in the state", "named tuple", "enum", "date"]
    seen = savers_compared.keep_objects_strictly(whats)
    assert all(one.strict for one in seen)
    assert len(seen) == len(whats) * len(SAVERS)
    expected = dict(zip(whats, ["dict", "Parcel", "dict", "str", "date"], strict=True))
    assert {(one.what, one.given_back) for one in seen} == set(expected.items())


def test_a_strict_process_that_fails_is_told(monkeypatch):
    monkeypatch.setattr(savers_compared.objects, "OBJECTS", {"no such thing": object})
    with pytest.raises(ChildProcessError, match=r"exit code 1\): fixtures.*BadOption: what must be one of"):
        savers_compared.keep_objects_strictly(["no such thing"])


def test_a_strict_process_that_hangs_is_killed(monkeypatch):
    monkeypatch.setattr(savers_compared, "TIME_LIMIT_S", 0.01)
    with pytest.raises(TimeoutError, match=r"longer than 0\.01 s"):
        savers_compared.keep_objects_strictly(["list"])


def test_what_is_changed_in_place_is_kept_by_sqlite_only():
    seen = asyncio.run(savers_compared.change_a_list())
    assert {(one.next_node, one.came_back) for one in seen} == {(2, 2)}
    lost = {(one.how, one.saver, one.durability) for one in seen if one.kept != 2}
    assert lost == {("in place", "memory", "sync")}
    assert {one.kept for one in seen} == {1, 2}


def test_each_saver_is_called_as_it_wants_to_be():
    seen = {(one.saver, one.call): one.outcome for one in asyncio.run(savers_compared.call_each_way())}
    assert seen == {
        ("memory", "invoke"): "works",
        ("memory", "ainvoke"): "works",
        ("sqlite", "invoke"): "works",
        ("sqlite", "ainvoke"): "NotImplementedError",
        ("async_sqlite", "invoke"): "InvalidStateError",
        ("async_sqlite", "ainvoke"): "works",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: savers_compared.restart(["disk"]),
        lambda: asyncio.run(savers_compared.keep_objects(["a cat"])),
        lambda: savers_compared.keep_objects_strictly(["a cat"]),
        lambda: asyncio.run(savers_compared.change_a_list(["by hand"])),
        lambda: asyncio.run(savers_compared.change_a_list(durabilities=["async"])),
        lambda: asyncio.run(savers_compared.call_each_way(["disk"])),
    ],
)
def test_an_option_out_of_range_is_told(wrong):
    with pytest.raises(BadOption, match="must be one of"):
        wrong()


def test_the_serializers_warning_comes_back_after_an_experiment():
    logger = logging.getLogger("langgraph.checkpoint.serde.jsonplus")
    asyncio.run(savers_compared.keep_objects(["own class"]))
    assert not logger.disabled


def test_nothing_is_left_on_disk_or_running(tmp_path):
    source = (
        "import asyncio, threading\n"
        "from fixtures.experiments import savers_compared as s\n"
        "asyncio.run(s.keep_objects(['tuple'])); asyncio.run(s.change_a_list(['in place']))\n"
        "asyncio.run(s.call_each_way())\n"
        "if __name__ == '__main__':\n"
        "    s.restart()\n"
        "print([one.name for one in threading.enumerate() if not one.daemon])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True, text=True, check=True, env={"TMPDIR": str(tmp_path), "PATH": ""},
    )  # fmt: skip
    assert done.stdout.strip() == "['MainThread']"
    assert [one.name for one in tmp_path.iterdir() if not one.name.startswith("pymp-")] == []


def test_objects_are_known_by_name():
    with pytest.raises(KeyError):
        objects.keep("a cat", print)
    with pytest.raises(ValueError, match="no way to change a list is called 'by hand'; use one of in place"):
        objects.change("by hand", print)
