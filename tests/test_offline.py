"""Nothing of the course opens a network connection, whatever the environment says about tracing.

A hook on Python's own audit events notes each connection and name look-up that leaves the machine, in every
process and kernel that is started; on Linux they run in a network namespace with loopback only besides.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from fixtures.course import CHAPTERS, ROOT
from tools.check import OPTIONS
from tools.namespace import namespace

TRACING = {
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_TRACING_V2": "true",
    "LANGCHAIN_TRACING": "true",
    "LANGCHAIN_TRACING_V2": "true",
    "LANGSMITH_API_KEY": "dummy",
    "LANGCHAIN_API_KEY": "dummy",
}
MUST_RUN = any(os.environ.get(name, "") not in ("", "0") for name in ("CI", "FIXTURES_REQUIRE_BROWSER"))

WATCH = """
import json, os, sys

def watch(event, args):
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event in ("socket.connect", "socket.sendto"):
        host = args[1][0] if isinstance(args[1], tuple) else None  # a Unix socket stays on this machine
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host and host not in ("localhost", "::1", "0.0.0.0", "::") and not host.startswith("127."):
        with open(os.environ["FIXTURES_TEST_CALLS"], "a") as file:
            file.write(json.dumps([event, host]) + "\\n")

sys.addaudithook(watch)
"""

ONE_RUN = """
from langgraph.graph import START, StateGraph
builder = StateGraph(dict)
builder.add_node("node", lambda state: {})
builder.add_edge(START, "node")
graph = builder.compile()
graph.invoke({"a": 1})
"""


@pytest.fixture
def cut_off():
    """The command that cuts a program off. Not to be had is a skip, but a failure where all must run."""
    command = namespace()
    if command is None:
        reason = "no network namespace here: unshare (util-linux) is missing, or not allowed for this user"
        if MUST_RUN and sys.platform == "linux":
            pytest.fail(reason)
        pytest.skip(reason)
    return command


@pytest.fixture
def run(tmp_path):
    """Run a Python with tracing switched on; return what it did, and what would have left the machine."""
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    calls = tmp_path / "calls"

    def run(*arguments, before=(), timeout_s=300, **environment):
        calls.unlink(missing_ok=True)
        path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        watched = {**TRACING, "PYTHONPATH": path, "FIXTURES_TEST_CALLS": str(calls), **environment}
        done = subprocess.run(
            [*before, sys.executable, *arguments],
            cwd=ROOT, capture_output=True, text=True, timeout=timeout_s,
            env={**os.environ, **watched},
        )  # fmt: skip
        seen = [tuple(json.loads(line)) for line in calls.read_text().splitlines()] if calls.exists() else []
        return done, seen

    return run


def test_the_watch_sees_a_look_up_and_a_connection(run):
    code = """
    import contextlib, socket
    socket.setdefaulttimeout(0.1)
    with contextlib.suppress(OSError):
        socket.getaddrinfo("example.invalid", 80)
    with contextlib.suppress(OSError):
        socket.socket().connect(("192.0.2.1", 9))
    with contextlib.suppress(OSError):
        socket.socket().connect(("127.0.0.1", 9))
    """
    _, calls = run("-c", textwrap.dedent(code))
    assert calls == [("socket.getaddrinfo", "example.invalid"), ("socket.connect", "192.0.2.1")]


def test_nothing_but_loopback_is_reachable_in_the_namespace(run, cut_off):
    code = """
    import errno, socket
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname())
    assert socket.socket().connect_ex(("192.0.2.1", 9)) == errno.ENETUNREACH
    """
    done, _ = run("-c", textwrap.dedent(code), before=cut_off)
    assert done.returncode == 0, done.stderr


def test_without_the_library_tracing_would_call_out(run):
    """Otherwise the tests below would prove nothing."""
    _, calls = run("-c", ONE_RUN)
    assert "api.smith.langchain.com" in {host for _, host in calls}


@pytest.mark.parametrize(
    "code",
    [
        f"import fixtures\n{ONE_RUN}",
        f"{ONE_RUN.replace('graph.invoke', 'import fixtures; graph.invoke')}",
        # langsmith has read the environment and remembers it.
        "from langsmith.utils import tracing_is_enabled as on\n"
        f"assert on()\nimport fixtures\nassert not on()\n{ONE_RUN}",
    ],
    ids=["first", "after langgraph", "after langsmith has looked"],
)
def test_importing_the_library_switches_tracing_off(run, code):
    done, calls = run("-c", code, LANGCHAIN_HANDLER="langchain")
    assert (done.returncode, calls) == (0, []), done.stderr


def test_a_child_process_has_tracing_off_too(run):
    code = (
        f"import fixtures, subprocess, sys\nsubprocess.run([sys.executable, '-c', {ONE_RUN!r}], check=True)"
    )
    done, calls = run("-c", code)
    assert (done.returncode, calls) == (0, []), done.stderr


def test_the_experiments_in_the_terminal_need_no_network(run, cut_off):
    done, calls = run("-m", "fixtures", "matrix", "--delay", "0", "--json", before=cut_off)
    assert done.returncode == 0, done.stderr
    assert (len(json.loads(done.stdout)), calls) == (16, [])


# All notebooks, and most tests, run in such a namespace with the oldest LangGraph: tools/versions.py.
@pytest.mark.parametrize("number", ["02"])
def test_a_chapter_needs_no_network(run, cut_off, number):
    nbval = [one for one in OPTIONS if one.startswith("--nbval")]
    # Without the project's conftest.py, which switches tracing off itself.
    options = ["--noconftest", "-p", "no:cacheprovider", *nbval]
    (chapter,) = [one for one in CHAPTERS if one.number == number]
    done, calls = run("-m", "pytest", *options, str(chapter.notebook), before=cut_off)
    assert done.returncode == 0, done.stdout[-3000:]
    assert calls == []
