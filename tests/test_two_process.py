"""Two processes and one file: started, killed, answered, renamed; the command, the script, the old file."""

import ast
import json
import random
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from answer_cells import Answer, answers, run_cell
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.__main__ import main
from fixtures.checks import c07_two_processes as c07
from fixtures.course import ROOT
from fixtures.experiments import schema, two_process
from fixtures.experiments.options import BadOption
from fixtures.experiments.two_process import copy_paused, go_on, look, questions, resume, start
from fixtures.graphs.releases import ASKS, release
from fixtures.threads import FileProblem, list_threads, read_history
from fixtures.views import processes

QUESTION = "Publish a text about tides?"
PERSIST = ROOT / "examples" / "persist.py"


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "reviews.sqlite"


@pytest.fixture
def own_temp(tmp_path, monkeypatch) -> Path:
    """A temporary folder of this test's own, so that what is left behind can be counted."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def children() -> list[psutil.Process]:
    return [
        one for one in psutil.Process().children() if "fixtures.experiments.review_process" in one.cmdline()
    ]


# A thread over several processes


def test_a_thread_outlives_two_processes_that_are_killed(file):
    cut = start(file, "a", kill_in="prepare")
    assert (cut.happened, cut.ended, cut.next, cut.approved) == (("prepare",), "killed", None, None)
    assert look(file, "a").next == ("prepare",)
    again = go_on(file, "a", kill_in="asking")
    assert (again.happened, again.asks, again.ended) == (("prepare", "approve"), (QUESTION,), "killed")
    waiting = look(file, "a")
    assert (waiting.process, waiting.happened, waiting.asks, waiting.next) == (
        "parent", (), (QUESTION,), ("approve",),
    )  # fmt: skip
    done = resume(file, "a", "no")
    assert (done.happened, done.approved, done.next) == (("approve", "publish"), False, ())
    assert done.ended == "by itself"
    assert children() == []


def test_a_release_without_the_node_does_nothing_and_the_old_one_takes_the_stale_answer(file):
    start(file, "a", topic="bees")
    ignored = resume(file, "a", True, release="2")
    assert (ignored.happened, ignored.asks, ignored.next, ignored.approved) == ((), (), (), None)
    assert ignored.ended == "by itself"
    back = go_on(file, "a")
    assert back.happened == ("approve", "publish", "published")
    assert back.approved is True


def test_a_call_that_raises_is_told_by_the_error_and_the_question_stays(file):
    start(file, "a")
    seen = resume(file, "a", None)  # None is no answer: LangGraph fails before any node runs
    assert seen.happened == ()
    assert seen.ended == "UnboundLocalError"
    assert look(file, "a").asks == (QUESTION,)


# The process that does not do what it should


def test_a_process_that_takes_too_long_is_killed(file, own_temp):
    with pytest.raises(TimeoutError, match=r"should start 'a' took longer than 0\.01 s"):
        start(file, "a", time_limit_s=0.01)
    assert children() == []
    assert list(own_temp.iterdir()) == []


def test_a_process_that_fails_is_told_by_its_last_line(tmp_path):
    with pytest.raises(ChildProcessError, match=r"should start 'a' said nothing: .*unable to open database"):
        start(tmp_path / "no folder" / "reviews.sqlite", "a")


def test_stopping_the_parent_leaves_no_process(file, own_temp, monkeypatch):
    seen = []

    def stopped(line):
        seen.extend(children())
        raise KeyboardInterrupt

    monkeypatch.setattr(two_process.json, "loads", stopped)
    with pytest.raises(KeyboardInterrupt):
        start(file, "a", kill_in="prepare")
    assert len(seen) == 1
    assert children() == []
    assert list(own_temp.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"release": "3"}, "release must be one of 1, 2; got '3'"),
        (
            {"kill_in": "lunch"},
            "kill_in must be one of prepare, approve, review, publish, asking; got 'lunch'",
        ),
    ],
)
def test_a_bad_option_is_named_and_no_process_starts(file, options, says):
    with pytest.raises(BadOption, match=says):
        start(file, "a", **options)
    assert not file.exists()


def test_looking_at_what_is_not_there_says_so(file):
    with pytest.raises(FileProblem):
        look(file, "a")


def test_the_table_says_what_a_killed_process_could_not_tell():
    killed = two_process.ProcessSeen(
        process="start", thread="a", happened=(), asks=(), approved=None, next=None, ended="killed"
    )
    assert processes.table(killed).loc[("start", "a")].to_list() == ["nothing", "–", "–", "killed"]


# The command


def test_the_command_prints_a_line_a_process_and_one_of_the_parent(own_temp, capsys):
    assert main(["two-process"]) == 0
    printed, complaints = capsys.readouterr()
    assert printed.splitlines() == [
        f"start, review-1: prepare, approve, asks {QUESTION!r}, next: approve",
        "resume, review-1: approve, publish, published, approved: True",
        "parent, review-1: the file says, approved: True",
    ]
    assert complaints == ""
    assert list(own_temp.iterdir()) == []


def test_the_command_as_json_with_an_answer_on_another_thread(capsys):
    assert main(["two-process", "--answer", "no", "--resume-thread", "other", "--json"]) == 0
    first, second, parent = json.loads(capsys.readouterr().out)
    assert list(first) == ["process", "thread", "happened", "asks", "approved", "next", "ended"]
    assert [one["process"] for one in (first, second, parent)] == ["start", "resume", "parent"]
    assert (second["thread"], second["asks"]) == ("other", ["Publish a text about nothing?"])
    assert (parent["thread"], parent["asks"], parent["next"]) == ("review-1", [QUESTION], ["approve"])
    assert parent["approved"] is None


def test_a_bad_answer_is_one_line_and_status_2(capsys):
    assert main(["two-process", "--answer", "maybe"]) == 2
    printed, complaints = capsys.readouterr()
    assert printed == ""
    assert complaints == "python -m fixtures two-process: --answer must be one of yes, no; got maybe\n"


def test_a_process_that_fails_is_one_line_and_status_1(capsys, monkeypatch):
    def fail(**options):
        raise ChildProcessError("the process that should start 'review-1' said nothing: exit code 1")

    monkeypatch.setattr(two_process, "run_two", fail)
    assert main(["two-process"]) == 1
    printed, complaints = capsys.readouterr()
    assert printed == ""
    assert complaints.count("\n") == 1
    assert "said nothing: exit code 1" in complaints


# The script to copy


def persist(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run a copy of the script where there is nothing else."""
    script = shutil.copy(PERSIST, folder)
    return subprocess.run(
        [sys.executable, script, *arguments], cwd=folder, capture_output=True, text=True, timeout=300
    )


def test_the_script_asks_in_one_process_and_answers_in_another(tmp_path):
    done = persist(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["start", "resume", "parent"]
    assert "'action': 'create draft'" in lines[0]
    assert lines[1] == "resume: approved is True"
    assert [one.name for one in tmp_path.iterdir()] == ["persist.py"]


def test_the_script_answers_only_a_question_that_waits(tmp_path):
    refused = persist(tmp_path, "resume", "reviews.sqlite", "yes")
    assert refused.returncode == 1
    assert refused.stderr == "resume: nothing waits for an answer in this file\n"


def test_the_script_says_how_it_is_called(tmp_path):
    wrong = persist(tmp_path, "resume", "reviews.sqlite", "maybe")
    assert wrong.returncode == 1
    assert "persist.py resume reviews.sqlite yes" in wrong.stderr


def test_the_script_stands_alone():
    tree = ast.parse(PERSIST.read_text("utf-8"))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([one.name for one in node.names] if isinstance(node, ast.Import) else [node.module])
    }
    assert names - sys.stdlib_module_names == {"langgraph"}


# The releases, and threads on the way from one to the next


def test_the_releases_differ_in_one_name_only():
    nodes = {version: set(release(version).nodes) for version in ASKS}
    assert nodes["1"] - nodes["2"] == {"approve"}
    assert nodes["2"] - nodes["1"] == {"review"}
    assert {version: len(release(version).edges) for version in ASKS} == {"1": 4, "2": 4}


def test_moved_as_the_node_before_a_thread_asks_again_and_forgets_a_stale_answer(file):
    config = {"configurable": {"thread_id": "a"}}
    happened: list[str] = []
    with SqliteSaver.from_conn_string(str(file)) as saver:
        release("1").compile(checkpointer=saver).invoke({"topic": "tides"}, config)
        new = release("2", happened=happened.append).compile(checkpointer=saver)
        new.invoke(Command(resume=True), config)
        assert happened == []
        new.update_state(config, None, as_node="prepare")
        assert new.get_state(config).next == ("review",)
        assert new.invoke(None, config)["__interrupt__"][0].value == QUESTION
        assert new.invoke(Command(resume=False), config)["approved"] is False
    assert happened == ["review", "review", "publish"]


def test_an_alias_asks_again_but_delivers_a_stale_answer(file):
    with SqliteSaver.from_conn_string(str(file)) as saver:
        old = release("1").compile(checkpointer=saver)
        new = release("2").compile(checkpointer=saver)
        builder = release("2")
        builder.add_node("approve", builder.nodes["review"].runnable).add_edge("approve", "publish")
        alias = builder.compile(checkpointer=saver)
        for thread, stale in (("asked", False), ("answered", True)):
            config = {"configurable": {"thread_id": thread}}
            old.invoke({"topic": "tides"}, config)
            if stale:
                new.invoke(Command(resume=True), config)
            came_back = alias.invoke(None, config)
            assert ("__interrupt__" in came_back, came_back.get("approved")) == (
                (False, True) if stale else (True, None)
            )


def test_two_answers_at_once_fork_the_thread_without_an_error(file):
    config = {"configurable": {"thread_id": "a"}}
    start(file, "a")
    other = []

    def meanwhile(name):
        if name == "approve":
            other.append(resume(file, "a", False))

    with SqliteSaver.from_conn_string(str(file)) as saver:
        graph = release("1", happened=meanwhile).compile(checkpointer=saver)
        assert graph.invoke(Command(resume=True), config, durability="sync")["approved"] is True
    assert [(one.approved, one.ended) for one in other] == [(False, "by itself")]
    thread = read_history(file, "a")
    assert sorted(len(found) for found in thread.children().values())[-1] == 2
    assert thread.head().values["approved"] is True


# The state changes


def test_what_a_changed_state_makes_of_a_paused_thread():
    seen = {one.change: one for one in schema.change_schema()}
    kept = {"author", "draft", "notes"}
    expected = {
        # change: (resumed, keys, rolled back, approved)
        "none": ("finished", kept | {"approved"}, "finished", True),
        "keys added, with reducer": ("finished", kept | {"approved", "log"}, "finished", True),
        "key added, and read": ("KeyError", kept, "finished", True),
        "key removed": ("finished", kept - {"author"} | {"approved"}, "finished", True),
        "key retyped": ("TypeError", kept, "TypeError", None),
    }
    found = {
        change: (one.resumed, set(one.keys), one.rolled_back, one.approved) for change, one in seen.items()
    }
    assert found == expected


def test_what_becomes_of_an_object_whose_class_is_gone_or_not_trusted(caplog):
    before = set(sys.modules)
    seen = {one.change: (one.before, one.after) for one in schema.change_class()}
    assert seen == {
        "none": ("Order", "Order"),
        "moved": ("Order", "dict"),
        "strict msgpack": ("Order", "dict"),
    }
    assert caplog.records == []
    assert "shop_of_release_1" not in set(sys.modules) - before


@pytest.mark.parametrize("call", [schema.change_schema, schema.change_class])
def test_an_unknown_change_is_named(call):
    with pytest.raises(BadOption, match=r"change must be one of none, .*; got 'moon'"):
        call(["moon"])


# The file of an older LangGraph


def test_the_old_file_has_two_questions_that_wait_and_its_version(tmp_path):
    kept = two_process.files("fixtures") / "data" / "paused_1_2_9.sqlite"
    before = kept.read_bytes()
    copy = copy_paused(tmp_path)
    threads = list_threads(copy)
    assert [one.id for one in threads] == ["old-1", "old-2"]
    for one in threads:
        assert one.head.values["topic"] == "LangGraph 1.2.9"
        assert one.head.unfinished == ("approve",)
        assert questions(one.head) == ("Publish a text about LangGraph 1.2.9?",)
    done = resume(copy, "old-1", True)
    assert (done.happened, done.approved) == (("approve", "publish", "published"), True)
    assert kept.read_bytes() == before
    assert len(before) < 50_000


def test_the_maker_of_the_old_file_makes_the_same_threads_and_names_its_versions(tmp_path):
    path = ROOT / "src" / "fixtures" / "data" / "make_paused.py"
    maker = runpy.run_path(str(path))
    assert "--with langgraph==1.2.9" in maker["__doc__"]
    maker["make"](tmp_path / "new.sqlite")
    assert [one.name for one in tmp_path.iterdir()] == ["new.sqlite"]
    new, old = list_threads(tmp_path / "new.sqlite"), list_threads(maker["FILE"])

    def shape(threads):
        return [
            (one.id, one.checkpoints, one.head.step, one.head.keys, one.head.unfinished) for one in threads
        ]

    assert shape(new) == shape(old)


# The exercise


@pytest.mark.parametrize("answer", answers("07"), ids=lambda one: one.title)
def test_kept_answers_are_judged_right(answer: Answer):
    cell = answer.functions()
    verdict = c07.check(cell["answer"], cell["migrate"], seed="a student")
    assert verdict.failed == answer.fails, str(verdict)


def test_the_answers_fail_each_requirement():
    assert {key for one in answers("07") for key in one.fails} == {one.key for one in c07.REQUIREMENTS}


def test_each_draw_has_all_values_on_threads_of_their_own():
    plans = [c07.draw(random.Random(seed)) for seed in range(50)]
    for plan in plans:
        assert sorted(repr(value) for _, value in plan["answers"]) == sorted(map(repr, c07.VALUES))
        assert len({*(thread for thread, _ in plan["answers"]), plan["waiting"], plan["unknown"]}) == 6
        assert len(set(plan["topics"].values())) == 6
    assert len({str(plan) for plan in plans}) == 50


def test_an_answer_that_is_no_dict_and_a_migration_that_returns_a_builder_are_told():
    cell = run_cell(
        "def answer(db, thread_id, value):\n    return value\n"
        "def migrate(builder, config):\n    return builder\n"
    )
    verdict = c07.check(cell["answer"], cell["migrate"], seed=1)
    assert verdict.points == 0
    why = {line.key: line.why for line in verdict.lines}
    assert why["answer-arrives"].startswith("TypeError: answer returned ")
    assert why["migrate-asks"] == "TypeError: migrate returned StateGraph, not a graph that was compiled"


def test_a_builder_that_knows_its_saver_still_takes_another_one(file):
    with SqliteSaver.from_conn_string(str(file)) as saver, SqliteSaver.from_conn_string(":memory:") as other:
        builder = c07.with_saver(release("2"), saver)
        assert builder.compile().checkpointer is saver
        assert builder.compile(checkpointer=other).checkpointer is other
        assert builder.compile(interrupt_before=["publish"]).checkpointer is saver
