"""The judge: every kept answer is judged right, and no answer harms the kernel."""

import os
import random
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest
from answer_cells import answers, run_cell

from fixtures import progress
from fixtures.checks import c02_counter, judge, packing, tampering, warden

GOOD = next(one for one in answers("02") if one.right)


def check(source: str, **options) -> judge.Verdict:
    """Judge a cell's ``next_input`` beside a good ``with_reducer``."""
    cell = run_cell(textwrap.dedent(source))
    return judge.judge(
        c02_counter.__name__,
        {"with_reducer": GOOD.functions()["with_reducer"], "next_input": cell["next_input"]},
        **{"seed": 7, "limit_s": 60, **options},
    )


def check_endless(source: str, *, limit_s: float) -> judge.Verdict:
    """Judge a ``next_input`` that does not end, alone: on a busy machine a good answer may need longer."""
    cell = run_cell(textwrap.dedent(source))
    answer = {"next_input": cell["next_input"]}
    return judge.judge(c02_counter.__name__, answer, seed=7, limit_s=limit_s)


def why(verdict: judge.Verdict) -> str:
    """What is said of ``next_input``, which must have failed, and alone if there was another function."""
    alone = verdict.lines[0].why.startswith("with_reducer is not a function")
    failed = ("input-goes-on", "input-by-thread")
    assert verdict.failed[-2:] == failed, str(verdict)
    assert alone or verdict.failed == failed, str(verdict)
    line = next(line for line in verdict.lines if line.key == "input-goes-on")
    assert "\n" not in line.why
    assert len(line.why) < 500
    assert "Traceback" not in str(verdict)
    return line.why


def test_a_stub_gets_nothing_and_no_error():
    cell = run_cell("def with_reducer():\n    raise NotImplementedError()\nnext_input = with_reducer")
    verdict = c02_counter.check(cell["with_reducer"], cell["next_input"])
    assert verdict.points == 0
    assert {line.why for line in verdict.lines[:2]} == {"not written yet"}


def test_a_seed_draws_the_same_again_and_others_draw_others():
    plans = {seed: check("next_input = lambda graph, config: None", seed=seed) for seed in (1, "1", 2, "amy")}
    again = check("next_input = lambda graph, config: None", seed="amy")
    assert again == plans["amy"]
    assert len({plans[seed].lines[2].tried + plans[seed].lines[3].tried for seed in (1, 2, "amy")}) == 3


def test_without_a_seed_the_environment_names_one(monkeypatch):
    monkeypatch.setenv("FIXTURES_SEED", "amy")
    assert check("next_input = lambda graph, config: None", seed=None).seed == "amy"


# What an answer may do to itself and to others

ENDLESS = "still running after 1 s"

NASTY = {
    "loops": ("while True: pass", ENDLESS),
    "swallows everything": (
        """
        while True:
            try:
                while True: pass
            except BaseException:
                pass
        """,
        ENDLESS,
    ),
    "ignores signals": (
        """
        import signal, time
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGHUP):
            signal.signal(one, signal.SIG_IGN)
        time.sleep(1000)
        """,
        ENDLESS,
    ),
    "prints without end": ("while True: print('x' * 10_000)", ENDLESS),
    "prints without end below Python": (
        "import os\nwhile True: os.write(2, b'x' * 100_000)",
        ENDLESS,
    ),
    "os._exit": ("import os; os._exit(0)", "ended its whole process (exit code 0)"),
    "sys.exit": ("import sys; sys.exit('bye')", "SystemExit: bye"),
    "kills itself": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL"),
    "kills its group": ("import os, signal; os.killpg(0, signal.SIGKILL)", "ended by SIGKILL"),
    "recurses": ("return next_input(graph, config)", "RecursionError"),
    "recurses through the stack": (
        "import sys; sys.setrecursionlimit(10**9); return next_input(graph, config)",
        "",
    ),
    "takes all memory": ("kept = []\nwhile True: kept.append(bytearray(10**7))", "MemoryError"),
    "takes all memory at once": ("return {'total': len(bytearray(10**11))}", "MemoryError"),
    "fills the disk": (
        "with open('big', 'wb') as file:\n    while True: file.write(b'x' * 10**6)",
        "OSError",
    ),
    "changes LangGraph": (
        """
        from langgraph.graph.state import CompiledStateGraph
        from fixtures.checks import c02_counter
        step, calls = 10, {}
        def invoke(self, given, config, **options):
            return {"total": 0}
        CompiledStateGraph.invoke = invoke
        return {"total": 0}
        """,
        "changed langgraph.graph.state.CompiledStateGraph.invoke",
    ),
    "changes LangGraph's code in place": (
        """
        from langgraph.graph.state import CompiledStateGraph
        from langgraph.pregel.main import Pregel
        Pregel.invoke.__code__ = (lambda self, *args, **more: {"total": 0}).__code__
        return {"total": 0}
        """,
        "changed langgraph.pregel.main.Pregel.invoke",
    ),
    "changes the check": (
        """
        from fixtures.checks import c02_counter
        c02_counter._call = lambda graph, given, thread: 10
        return {"total": 0}
        """,
        "changed fixtures.checks.c02_counter._call",
    ),
    "changes what is expected": (
        """
        from fixtures.checks import c02_counter, judge
        judge.Requirement.__eq__ = lambda self, other: True
        return {"total": 0}
        """,
        "changed fixtures.checks.judge.Requirement.__eq__",
    ),
    "forks and goes on twice": ("import os; os.fork(); return {'total': 0}", ""),
    "returns an object of its own": (
        """
        class Liar(int):
            __eq__ = lambda self, other: True
            __hash__ = int.__hash__
        return {"total": Liar(0)}
        """,
        "expected",
    ),
    "raises something that cannot be shown": (
        """
        class Odd(Exception):
            def __str__(self): raise ValueError
        raise Odd()
        """,
        "Odd",
    ),
    "needs another cell": ("return {'total': helper(graph)}", "NameError: name 'helper' is not defined"),
}


@pytest.mark.parametrize("name", NASTY)
def test_the_judge_survives_an_answer_that(name):
    body, said = NASTY[name]
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    source = f"def next_input(graph, config):\n{body}\n"
    verdict = check_endless(source, limit_s=1) if said in ("", ENDLESS) else check(source)
    assert said in why(verdict), str(verdict)
    assert len(verdict.printed) <= warden.OUTPUT_BYTES + len("… (cut)")


def test_an_endless_answer_is_ended_in_time():
    source = "def next_input(graph, config):\n    while True: print('x' * 10_000)"
    check_endless(source, limit_s=0.1)
    begin = time.monotonic()
    why(check_endless(source, limit_s=2))
    assert 2 <= time.monotonic() - begin < 30


def test_an_answer_that_kills_the_judging_process_gets_nothing_and_leaves_nothing():
    verdict = check(
        """
        def next_input(graph, config):
            import os, signal, time
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(86_397)
        """
    )
    assert verdict.points == 0
    assert {line.why for line in verdict.lines} == {
        "the process that judges was ended; did the answer end processes that are not its own?"
    }


LEAVES = {
    "a child": "subprocess.Popen(sleep)",
    "a child in a session of its own": "subprocess.Popen(sleep, start_new_session=True)",
    "a daemon": "subprocess.Popen(['sh', '-c', 'setsid \"$@\" &', 'sh', *sleep]).wait()",
    "a fork": "os.fork() or os.execvp(sleep[0], sleep)",
    "a double fork": "os.fork() or (os.setsid(), os.fork() and os._exit(0), os.execvp(sleep[0], sleep))",
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the answer's own session is ended")
@pytest.mark.parametrize(
    ("name", "ending"),
    [*((name, "return {'total': 0}") for name in LEAVES), ("a daemon", "while True: pass")],
)
def test_what_an_answer_left_behind_has_ended(name, ending):
    mark = f"86{sum(map(ord, name + ending))}"
    source = f"""
        import os, subprocess, time
        sleep = ["sh", "-c", "echo > started; exec sleep {mark}"]
        def next_input(graph, config):
            {LEAVES[name]}
            while not os.path.exists("started"): time.sleep(0.01)
            print("started")
            {ending}
    """
    verdict = check_endless(source, limit_s=8) if "while" in ending else check(source)
    why(verdict)
    assert verdict.printed.startswith("started\n")
    assert [one for one in psutil.process_iter(["cmdline"]) if mark in str(one.info["cmdline"])] == []


def test_threads_that_run_on_end_with_the_answer():
    before = threading.active_count()
    verdict = check(
        """
        import threading, time
        def forever():
            while True: time.sleep(0.01)
        def next_input(graph, config):
            threading.Thread(target=forever).start()
            return {"total": graph.get_state(config).values.get("total", 0)}
        """
    )
    assert verdict.passed, str(verdict)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "from threading import Lock\nlock = Lock()\ndef next_input(graph, config): return lock.locked()",
            "lock",
        ),
        ("gen = (n for n in [1])\ndef next_input(graph, config):\n    return next(gen)", "generator"),
        ("data = bytes(20_000_000)\ndef next_input(graph, config):\n    return data", "20 MB"),
        ("next_input = None", "not a function"),
    ],
)
def test_an_answer_that_cannot_be_sent_gets_its_own_line(source, said):
    verdict = check(source)
    assert said in why(verdict)
    assert str(verdict).count(said) == 1
    unsent = [line for line in verdict.lines if not line.passed]
    assert {line.why for line in unsent[1:]} == {"not tried, for the same reason"}
    assert {(line.tried, line.question) for line in unsent} == {("", "")}


def test_a_script_need_not_ask_whether_it_is_the_main_one(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "from fixtures.checks.c02_counter import check\n"
        "def next_input(graph, config):\n"
        "    return {'total': graph.get_state(config).values.get('total', 0)}\n"
        "print(check(None, next_input, seed=1))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.count("points") == 1
    assert done.stdout.count("with_reducer is not a function") == 1
    assert done.stdout.count("✔") == 2, done.stdout


def test_a_helper_from_another_cell_goes_with_the_answer():
    verdict = check(
        """
        def total(graph, config):
            return graph.get_state(config).values.get("total", 0)
        def next_input(graph, config):
            return {"total": total(graph, config)}
        """
    )
    assert verdict.passed, str(verdict)


def test_an_error_is_told_by_its_type_and_the_answers_own_line():
    verdict = check(
        """
        def next_input(graph, config):
            missing = {}
            return missing["total"]
        """
    )
    assert (
        why(verdict) == """KeyError: 'total' (in next_input, line 4 of its cell: return missing["total"])"""
    )


def test_a_change_in_the_kernel_does_not_reach_the_answer(monkeypatch):
    from langgraph.pregel.main import Pregel

    monkeypatch.setattr(Pregel, "invoke", lambda self, *args, **options: {"total": 10})
    why(check("next_input = lambda graph, config: {'total': 0}"))


def test_printed_text_is_shown_with_a_failure_and_escaped():
    verdict = check("def next_input(graph, config):\n    print('<b>here</b>')\n    return None")
    assert verdict.printed.startswith("<b>here</b>\n")
    assert "<b>here" in str(verdict)
    assert "<b>here" not in verdict._repr_html_()
    assert "&lt;b&gt;here" in verdict._repr_html_()


def test_nothing_of_an_answer_comes_out_of_the_kernels_own_streams():
    program = """
        import sys
        from fixtures.checks.c02_counter import check
        def next_input(graph, config):
            import os
            os.write(2, b"noise")
            print("noise", file=sys.stderr)
            os._exit(3)
        if __name__ == "__main__":
            print(check(next_input, next_input, seed=1).points)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_the_stop_button_ends_the_answer_and_says_so(tmp_path):
    """In a real kernel, whose loop is running while the cell waits for the verdict."""
    from jupyter_client.manager import start_new_kernel

    file = tmp_path / "pid"
    cell = f"""
        from fixtures.checks.c02_counter import check
        def next_input(graph, config):
            import os, time
            with open({str(file)!r}, "a") as file: file.write(f"{{os.getpid()}}\\n")
            time.sleep(600)
        check(next_input, next_input, seed=1)
    """
    manager, client = start_new_kernel(startup_timeout=120)
    try:
        asked = client.execute(textwrap.dedent(cell))
        wait_for(lambda: file.exists() and file.read_text().endswith("\n"))
        manager.interrupt_kernel()
        reply = client.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != asked:
            reply = client.get_shell_msg(timeout=60)
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert reply["content"]["evalue"] == "the check was stopped, and what the answer ran was ended"
        wait_for(lambda: not psutil.pid_exists(int(file.read_text())))
        client.execute_interactive("assert check(1, 1).points == 0", timeout=60)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_when_the_kernel_dies_the_answer_ends_too(tmp_path):
    program = """
        from fixtures.checks.c02_counter import check
        def next_input(graph, config):
            import os, time
            with open(PATH, "a") as file: file.write(f"{os.getpid()}\\n")
            time.sleep(600)
        check(next_input, next_input, seed=1)
    """
    file = tmp_path / "pids"
    source = textwrap.dedent(program).replace("PATH", repr(str(file)))
    kernel = subprocess.Popen([sys.executable, "-c", source])
    try:
        wait_for(lambda: file.exists() and file.read_text().endswith("\n"))
    finally:
        kernel.kill()
        kernel.wait()
    pids = [int(line) for line in file.read_text().split()]
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def wait_for(condition, limit_s: float = 60) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_judge_leaves_no_file_process_or_pipe(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"  # beside it stands the test's own progress file
    scratch.mkdir()
    source = "next_input = lambda graph, config: open('mine', 'w') and {}"
    check(source)  # the fork server stays, with a folder for its socket
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    us = psutil.Process()
    before = us.num_fds(), len(us.children(recursive=True))
    for _ in range(3):
        check(source)
    assert list(scratch.iterdir()) == []
    assert (us.num_fds(), len(us.children(recursive=True))) == before


def test_where_there_is_no_fork_server_answers_are_judged_as_well(monkeypatch):
    import multiprocessing

    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    verdict = check("def next_input(graph, config):\n    print('here')\n    return None", limit_s=120)
    assert why(verdict) == "TypeError: next_input returned NoneType, not a dict"


def test_an_error_of_the_check_is_no_verdict(monkeypatch):
    with pytest.raises(RuntimeError, match="the check itself failed"):
        judge._ask_warden("no.such.check", {("a",): b""}, {}, 1, 100)


def test_progress_keeps_the_best_result(tmp_path, monkeypatch):
    monkeypatch.setenv("FIXTURES_PROGRESS", str(tmp_path / "progress.json"))
    right, wrong = GOOD.functions(), {"with_reducer": GOOD.functions()["with_reducer"], "next_input": None}
    for one in (wrong, right, wrong):
        c02_counter.check(one["with_reducer"], one["next_input"])
    assert progress._read()["exercises"] == {"02": {"points": 4, "total": 4}}


def test_nothing_is_kept_under_nbgrader_and_pytest(monkeypatch):
    monkeypatch.delenv("FIXTURES_PROGRESS", raising=False)
    assert progress.path() is None
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert progress.path() is None
    monkeypatch.delenv("NBGRADER_EXECUTION")
    assert progress.path() == progress.ROOT / ".progress.json"


def test_a_snapshot_sees_no_change_where_there_is_none():
    cell = GOOD.functions()
    before = tampering.snapshot()
    plan = c02_counter.draw(random.Random(1))
    with tempfile.TemporaryDirectory() as folder:
        for one in c02_counter.REQUIREMENTS:
            place = Path(folder) / one.key
            place.mkdir()
            seen = one.run(cell, plan, place)
            assert seen == one.expected(plan)
    assert before.changed() == ""
    assert len(before.functions) > 1000


def test_names_that_look_used_but_cannot_be_sent_do_not_matter():
    cell = run_cell(
        textwrap.dedent(
            '''
            import threading
            graph = threading.Lock()
            def next_input(graph, config):
                class Note:
                    """About the graph."""
                return {"total": graph.get_state(config).values.get("total", 0)}
            '''
        )
    )
    assert isinstance(packing.pack({"next_input": cell["next_input"]}), bytes)


def test_a_verdict_as_text_and_html():
    verdict = judge.Verdict(
        lines=(
            judge.Line(key="a", passed=True, text="one & one", points=2),
            judge.Line(
                key="b", passed=False, text="two", tried="so", why="expected <2>; seen 3", question="Why?"
            ),
        ),
        seed=5,
    )
    assert str(verdict) == "\n".join(
        [
            "✔ one & one",
            "✘ two",
            "    Tried: so",
            "    Result: expected <2>; seen 3",
            "    Why?",
            "2 of 3 points (to try just the same again: check(…, seed=5))",
        ]
    )
    assert repr(verdict) == str(verdict)
    shown = verdict._repr_html_()
    assert "<li style='list-style:none'>✔ one &amp; one</li>" in shown
    assert "<strong>✘ two</strong>" in shown
    assert "&lt;2&gt;" in shown
    assert os.linesep not in shown
