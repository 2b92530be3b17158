"""The set-up checks: each is given a fault, and must see it and say what to do in one sentence."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from importlib import metadata
from types import SimpleNamespace

import pytest
from jupyter_client.manager import start_new_kernel
from packaging.requirements import Requirement

from fixtures import processes, setup_check
from fixtures.setup_check import Check

TIME_LIMIT_S = 60


def assert_fault(check, *words):
    """A fault says in one sentence what is wrong and what to do."""
    assert not check.ok
    assert check.found
    assert check.remedy.endswith(".")
    assert ". " not in check.remedy
    for word in words:
        assert word in check.remedy


def assert_fine(check):
    assert check.ok, check
    assert check.found
    assert check.remedy == ""


# --- Python ------------------------------------------------------------------------------------------------


def test_this_python_is_fine():
    check = setup_check.python()
    assert_fine(check)
    assert "{}.{}.{}".format(*sys.version_info[:3]) in check.found


@pytest.mark.parametrize("version", ["3.9.18", "3.10.14"])
def test_an_old_python_is_a_fault(version):
    assert_fault(setup_check.python(version), version, ">=3.11", "make lab")


def test_a_python_that_is_newer_or_not_quite_released_is_judged_by_the_range():
    assert_fine(setup_check.python("3.14.0rc1"))
    assert_fault(setup_check.python("3.14.0", ">=3.11,<3.14"), "3.14.0", "<3.14")


# --- packages ----------------------------------------------------------------------------------------------


def test_the_installed_packages_are_fine():
    check = setup_check.packages()
    assert_fine(check)
    assert f"langgraph {metadata.version('langgraph')}" in check.found


def test_the_ranges_come_from_the_installed_course_and_leave_its_extras_out():
    wanted = {one.name: str(one.specifier) for one in setup_check.requirements()}
    assert set(wanted) > {"langgraph", "ipykernel", "ipywidgets", "jupyterlab"}
    assert wanted["langgraph"]
    assert "nbgrader" not in wanted


def test_each_package_outside_its_range_or_missing_is_named():
    installed = {"langgraph": "1.1.0", "pandas": "3.1.1"}

    def version_of(name):
        try:
            return installed[name]
        except KeyError:
            raise metadata.PackageNotFoundError(name) from None

    wanted = [Requirement(line) for line in ("langgraph>=1.2.9,<1.3", "pandas>=3", "aiosqlite>=0.20")]
    check = setup_check.packages(wanted, version_of)
    assert_fault(
        check, "langgraph 1.1.0 is outside <1.3,>=1.2.9", "aiosqlite is not installed", "pip install"
    )
    assert "pandas" not in check.remedy


def test_a_pre_release_inside_the_range_is_fine():
    assert_fine(setup_check.packages([Requirement("langgraph>=1.2.9,<1.3")], lambda _name: "1.2.30rc1"))


def test_a_course_that_is_not_installed_is_a_fault(monkeypatch):
    monkeypatch.setattr(setup_check, "DISTRIBUTION", "a-course-that-nobody-wrote")
    assert_fault(setup_check.packages(), "a-course-that-nobody-wrote is not installed", "pip install")


# --- kernel ------------------------------------------------------------------------------------------------


def test_outside_of_a_kernel_the_check_is_a_fault():
    assert_fault(setup_check.kernel(), "JupyterLab")
    assert_fault(setup_check.kernel(SimpleNamespace()), "JupyterLab")


def test_a_kernel_that_loses_a_widgets_messages_is_a_fault():
    deaf = SimpleNamespace(implementation="other", shell_handlers={})
    assert_fault(setup_check.kernel(SimpleNamespace(kernel=deaf)), "buttons would stay dead")
    drops = SimpleNamespace(implementation="other", shell_handlers={"comm_msg": lambda *_message: None})
    assert_fault(setup_check.kernel(SimpleNamespace(kernel=drops)), "buttons would stay dead")


def test_all_checks_are_fine_in_a_real_kernel_and_leave_nothing_there():
    """Also in a kernel as a terminal's background job has it: one that ignores SIGINT."""
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=TIME_LIMIT_S)
    code = """
        import multiprocessing, os, signal
        from ipywidgets import Widget
        from fixtures import processes, setup_check
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        checks = setup_check.run_checks()
        seen = {
            "faults": [one for one in checks if not one.ok],
            "names": [one.name for one in checks],
            "sigint": processes.ask(signal.getsignal, signal.SIGINT, time_limit_s=60).__name__,
            "left": len(multiprocessing.active_children()),
        }
    """
    try:
        reply = client.execute_interactive(
            textwrap.dedent(code),
            user_expressions={name: f"seen[{name!r}]" for name in ("faults", "names", "sigint", "left")},
            timeout=TIME_LIMIT_S,
            output_hook=lambda _message: None,
        )["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["status"] == "ok", reply
    seen = {name: value["data"]["text/plain"] for name, value in reply["user_expressions"].items()}
    assert seen["faults"] == "[]"
    assert seen["names"] == "['Python', 'packages', 'kernel', 'child process', 'disk', 'SQLite']"
    assert seen["sigint"] == "'default_int_handler'"
    assert seen["left"] == "0"


# --- child process -----------------------------------------------------------------------------------------


def test_a_child_process_answers():
    check = setup_check.child_process()
    assert_fine(check)
    assert processes.context().get_start_method() in check.found
    assert multiprocessing.active_children() == []


def sleep_on():
    time.sleep(10 * TIME_LIMIT_S)


def give_up():
    os._exit(7)


def raise_error():
    raise ValueError("broken on purpose")


def test_a_child_that_never_answers_is_a_fault_within_its_time_limit_and_is_ended():
    setup_check.child_process()  # the fork server is up
    begin = time.monotonic()
    assert_fault(setup_check.child_process(sleep_on, time_limit_s=0.3), "no answer within 0.3 s")
    assert time.monotonic() - begin < TIME_LIMIT_S
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("function", "words"), [(give_up, "exit code 7"), (raise_error, "ValueError: broken on purpose")]
)
def test_a_child_that_dies_or_fails_is_a_fault(function, words):
    assert_fault(setup_check.child_process(function), words)
    assert multiprocessing.active_children() == []


def stubborn(path):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    path.touch()
    sleep_on()


def test_a_child_that_ignores_the_request_to_end_is_killed(tmp_path):
    child = processes.context().Process(target=stubborn, args=(tmp_path / "deaf",))
    child.start()
    until = time.monotonic() + TIME_LIMIT_S
    while not (tmp_path / "deaf").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert (tmp_path / "deaf").exists(), "the child did not come as far as ignoring SIGTERM"
    processes.end(child)
    assert multiprocessing.active_children() == []


def langgraph_was_there():
    return "langgraph.graph" in sys.modules


@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork server")
def test_children_find_langgraph_imported():
    assert processes.ask(langgraph_was_there, time_limit_s=TIME_LIMIT_S) is True


# --- disk --------------------------------------------------------------------------------------------------


def test_the_disk_is_fine_and_nothing_stays(tmp_path):
    assert_fine(setup_check.disk(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_too_little_free_space_is_a_fault(tmp_path):
    assert_fault(setup_check.disk(tmp_path, needed_bytes=10**18), "free some space", "TMPDIR")


def test_a_folder_that_cannot_be_written_to_is_a_fault(tmp_path):
    assert_fault(setup_check.disk(tmp_path / "gone"), "No such file", "TMPDIR")


def with_a_full_disk_at(folder, code):
    """Run code in a child that sees at ``folder`` a disk of 4 kB; skip where one may not mount."""
    own = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = ["sh", "-c", 'mount -t tmpfs -o size=4k tmpfs "$0" && exec "$@"', str(folder)]
    try:
        allowed = subprocess.run([*own, *mount, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("a full disk needs a file system of one's own to be mounted")
    command = [*own, *mount, sys.executable, "-c", textwrap.dedent(code), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_full_disk_is_a_fault_of_the_disk_and_of_sqlite(tmp_path):
    done = with_a_full_disk_at(
        tmp_path,
        """
        import sys
        from fixtures import setup_check
        for check in (setup_check.disk(sys.argv[1]), setup_check.sqlite(sys.argv[1])):
            print(check.ok, check.remedy)
        """,
    )
    assert done.returncode == 0, done.stderr
    disk, sqlite = done.stdout.splitlines()
    assert disk.startswith(
        "False No temporary file could be written (No space left on device): free some space"
    )
    assert sqlite.startswith("False SQLite")
    assert "disk is full" in sqlite


# --- SQLite ------------------------------------------------------------------------------------------------


def test_sqlite_is_fine_and_nothing_stays(tmp_path):
    assert_fine(setup_check.sqlite(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_room_for_a_database_is_a_fault(tmp_path):
    assert_fault(setup_check.sqlite(tmp_path / "gone"), "No such file", "local disk")


def test_a_database_that_keeps_no_write_ahead_log_is_seen():
    """A database in memory cannot keep one, as a network drive often cannot."""
    assert "no write-ahead log" in setup_check._sqlite_fault(":memory:")


# --- all of them, and how they are shown -------------------------------------------------------------------


def test_a_check_that_breaks_is_a_fault_and_the_others_still_run(monkeypatch):
    def broken():
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(setup_check, "disk", broken)
    checks = {one.name: one for one in setup_check.run_checks()}
    assert_fault(checks["disk"], "RuntimeError: nobody thought of this")
    assert checks["SQLite"].ok


def test_the_report_holds_verdicts_and_remedies_but_nothing_of_this_computer():
    fine = Check(name="Python", ok=True, found="Python 3.11.7")
    fault = Check(name="disk", ok=False, found="12 MB free", remedy="Free some space.")
    lines = setup_check.report([fine, fault]).data.splitlines()
    assert lines[0] == "| check | verdict | what to do |"
    assert lines[2:] == ["| Python | ✔ fine | nothing |", "| disk | ✘ not yet | Free some space. |"]
    assert "| disk | ✘ | 12 MB free |" in setup_check.details([fine, fault]).data


def test_text_of_an_error_stays_one_cell_of_text():
    nasty = Check(name="disk", ok=False, found="a|b\n<img src=x>", remedy="Use a|b\n<img src=x>.")
    (line,) = setup_check.report([nasty]).data.splitlines()[2:]
    assert line == "| disk | ✘ not yet | Use a\\|b &lt;img src=x>. |"
