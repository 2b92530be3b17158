"""From nothing to a running JupyterLab: a Python found, an environment made, all of it put back."""

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request

import pytest
import websocket
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fixtures.course import ROOT
from tools import environment, reset
from tools.environment import Environment

posix = pytest.mark.skipif(os.name == "nt", reason="make and sh are not used on Windows")

# --- requirements ------------------------------------------------------------------------------------------


def pins(name):
    """The requirements in one of the two files, by package."""
    found = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith(("#", "-e")):
            one = Requirement(line)
            found.setdefault(canonicalize_name(one.name), []).append(one)
    return found


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_a_requirements_file_is_pinned_names_its_command_and_no_host(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert "`make requirements`" in lines[1]
    assert lines[-1] == "-e ."
    assert [line for line in lines if "://" in line or "--index" in line or "--find-links" in line] == []
    for one in pins(name).values():
        assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pin in one), one


@pytest.mark.parametrize(("name", "extra"), [("requirements.txt", None), ("requirements-dev.txt", "dev")])
def test_the_pins_are_what_pyproject_asks_for(name, extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = project["dependencies"] + (project["optional-dependencies"][extra] if extra else [])
    pinned = pins(name)
    for wanted in map(Requirement, asked):
        found = pinned.get(canonicalize_name(wanted.name), [])
        assert found, f"{wanted.name} is not in {name}: run make requirements"
        for one in found:
            (version,) = (specifier.version for specifier in one.specifier)
            assert wanted.specifier.contains(version), f"{one} does not fit {wanted}: run make requirements"


def test_the_tests_run_on_what_the_learner_has():
    learner, dev = pins("requirements.txt"), pins("requirements-dev.txt")
    for name, found in learner.items():
        assert {str(one.specifier) for one in found} == {str(one.specifier) for one in dev[name]}, name


# --- a Python ----------------------------------------------------------------------------------------------


@pytest.fixture
def find_python(tmp_path):
    """Run tools/python.sh where nothing but the given programs is on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dirname").symlink_to(shutil.which("dirname"))

    def find(*arguments, programs, **variables):
        for name, script in programs.items():
            file = folder / name
            file.write_text(f"#!/bin/sh\n{script}\n")
            file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return subprocess.run(
            [shutil.which("sh"), "tools/python.sh", *arguments],
            cwd=ROOT, env={"PATH": str(folder), **variables}, capture_output=True, text=True,
        )  # fmt: skip

    return find


THIS = f'exec "{sys.executable}" "$@"'
OLD = "exit 1"
BROKEN = "echo 'command not found' >&2; exit 127"


def as_version(version):
    """A program that says of itself that it is that version."""
    major, minor = version.split(".")
    return (
        f'shift; code=$1; shift; exec "{sys.executable}" -c '
        f'"import sys; sys.version_info = ({major}, {minor}, 0)\n$code" "$@"'
    )


@posix
@pytest.mark.parametrize(
    "programs",
    [
        {"python3": THIS},
        {"python3": as_version("3.10"), "python3.12": THIS},
        {"python3": BROKEN, "python3.11": THIS},
        {"python3": as_version("3.9"), "pyenv": '[ "$2" = 3.13 ] && echo "${0%/bin/pyenv}"', "python": THIS},
    ],
    ids=["python3", "python3 is too old", "python3 is a shim for nothing", "pyenv has it"],
)
def test_a_python_is_found(find_python, programs):
    done = find_python(programs=programs)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == os.path.normpath(sys._base_executable)


@posix
@pytest.mark.parametrize(
    "programs",
    [{}, {"python3": BROKEN}, {"python3": as_version("3.10"), "python3.13": as_version("3.10")}],
    ids=["nothing", "broken", "too old"],
)
def test_no_python_is_one_sentence(find_python, programs):
    done = find_python(programs=programs)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"No Python 3\.11 or newer found on PATH or in pyenv: install it [^\n]*\.\n", done.stderr
    )


@posix
def test_a_python_that_was_asked_for_and_does_not_do_is_named(find_python):
    done = find_python(programs={"python3": THIS, "mine": as_version("3.8")}, PYTHON="mine")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("PYTHON=mine is not a Python 3.11 or newer: ")


@posix
def test_one_version_is_found_or_said_to_be_missing(find_python):
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    programs = {"python3": as_version("3.9"), f"python{here}": THIS}
    assert find_python(here, programs=programs).returncode == 0
    missing = find_python("3.99", programs=programs)
    assert (missing.returncode, missing.stderr[:20]) == (1, "No Python 3.99 found")


# --- an environment ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An environment of nothing but pip, made by pip's way, which needs no network."""
    folder = tmp_path_factory.mktemp("environment")
    (folder / "requirements.txt").write_text("")
    one = Environment(folder / ".venv", folder / "requirements.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "which", lambda name: None)
        assert environment.ensure(one) is True
        yield one


def test_an_environment_that_is_there_is_left_alone(made):
    assert environment.ensure(made) is False


def test_changed_requirements_are_installed_over(made):
    kept = made.path / "kept"
    kept.touch()
    made.requirements.write_text("# changed\n")
    assert environment.ensure(made) is True
    assert kept.exists()
    assert environment.ensure(made) is False


@pytest.mark.parametrize("fault", ["no stamp", "half a stamp", "another place", "no interpreter"])
def test_a_half_made_or_moved_environment_is_made_anew(made, fault, capsys, tmp_path, monkeypatch):
    # How one is made was seen above, and takes seconds: here a copy takes its place.
    shutil.copytree(made.path, tmp_path / "copy", symlinks=True)
    monkeypatch.setattr(
        environment, "_create", lambda one, **_: shutil.copytree(tmp_path / "copy", one.path, symlinks=True)
    )
    (made.path / "old").touch()
    if fault == "no stamp":
        made.stamp.unlink()
    elif fault == "half a stamp":
        made.stamp.write_text(made.stamp.read_text()[:20])
    elif fault == "another place":
        made.stamp.write_text(json.dumps({**json.loads(made.stamp.read_text()), "place": "elsewhere"}))
    else:
        made.python.unlink()
    assert environment.ensure(made) is True
    assert not (made.path / "old").exists()
    assert ".venv is incomplete, has moved, or was made for another Python" in capsys.readouterr().err


def test_an_environment_whose_installation_failed_is_not_taken_for_ready(made, capfd):
    made.requirements.write_text("not a requirement!\n")
    with pytest.raises(
        SystemExit, match=r"failed with exit code 1, see its message above: check the network"
    ):
        environment.ensure(made)
    assert not made.stamp.exists()
    made.requirements.write_text("")
    assert environment.ensure(made) is True


def test_a_python_without_ensurepip_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (tmp_path / "requirements.txt").write_text("")
    with pytest.raises(SystemExit, match=r"ensurepip module is missing: .* apt install python3\.\d+-venv"):
        environment.ensure(Environment(tmp_path / ".venv", tmp_path / "requirements.txt"))


def test_packages_are_compiled_whatever_the_environment_says(tmp_path, monkeypatch):
    """Without bytecode each start of a kernel takes seconds longer."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    seen = tmp_path / "seen"
    code = f"import sys; open({str(seen)!r}, 'w').write(str(sys.dont_write_bytecode))"
    environment._run([sys.executable, "-c", code])
    assert seen.read_text() == "False"


# --- JupyterLab --------------------------------------------------------------------------------------------


@pytest.fixture
def lab(tmp_path):
    """JupyterLab as ``make lab`` starts it, at a terminal, with a home folder that holds nothing.

    Run by the learner's environment where there is one, which ``.ci/run`` sees to; else by the tests' own.
    """
    import pty

    learner = environment.named("lab")
    if learner.stamp.exists():
        command = ["make", "lab", "LAB_ARGS=--no-browser"]
    elif os.environ.get("CI"):
        pytest.fail(f"{learner.path.name} has not been made")
    else:
        command = [sys.executable, "tools/lab.py", "--no-browser"]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("JUPYTER", "IPYTHON"))}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        # A session of its own, so that Ctrl-C reaches what a terminal would send it to.
        [sys.executable, "-c", "import os, sys; os.setsid(); import fcntl, termios; "
         "fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])", *command],
        cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env={**env, "HOME": str(tmp_path), "CI": ""},
    )  # fmt: skip
    os.close(theirs)
    console = Console(ours)
    try:
        yield process, console, learner.stamp.exists()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(ours)


class Console:
    """What a terminal has shown so far."""

    def __init__(self, fd):
        self.fd = fd
        self.text = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while data := os.read(self.fd, 4096):
                self.text += data.decode(errors="replace")
        except OSError:
            pass

    def wait_for(self, pattern, timeout_s=120):
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if match := re.search(pattern, self.text):
                return match
            time.sleep(0.05)
        raise AssertionError(f"not seen within {timeout_s} s: {pattern}\n{self.text}")

    def press_ctrl_c(self):
        os.write(self.fd, b"\x03")


@posix
def test_lab_opens_chapter_00_without_news_or_warnings_and_ctrl_c_ends_it(lab, tmp_path):
    process, console, is_learners = lab
    match = console.wait_for(r"(http://127\.0\.0\.1:\d+)(/lab\S*)\?token=(\w+)")
    server, page, token = match.groups()
    assert page == "/lab/tree/notebooks/00_start_here.ipynb"

    def ask(path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(server + path, data, {"Authorization": f"token {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    settings = ask("/lab/api/settings/@jupyterlab/apputils-extension:notification")
    properties = settings["schema"]["properties"]
    assert properties["fetchNews"]["default"] == "false"
    assert properties["checkForUpdates"]["default"] is False
    assert {one["name"] for one in ask("/api/contents/")["content"]} >= {"notebooks", "exercises"}

    notebook = "notebooks/00_start_here.ipynb"
    session = {"path": notebook, "name": notebook, "type": "notebook", "kernel": {"name": "python3"}}
    connection = ask("/api/sessions", session)["kernel"]["id"]
    file = next(tmp_path.rglob(f"kernel-{connection}.json"))
    assert "curve_publickey" in json.loads(file.read_text()), "the kernel's connection is not encrypted"
    # A kernel that is interrupted while it starts shows a traceback.
    channels = f"ws{server.removeprefix('http')}/api/kernels/{connection}/channels?session_id=1&token={token}"
    with contextlib.closing(websocket.create_connection(channels, timeout=120)) as socket:
        while json.loads(socket.recv())["content"].get("execution_state") != "idle":
            pass

    # Before Ctrl-C: what it interrupts may say so, such as jupyter-lsp's search for language servers.
    started = console.text
    console.press_ctrl_c()
    process.wait(60)
    console.wait_for("Shutting down")
    assert "Traceback" not in console.text[len(started) :]
    lines = re.findall(r"^.*(?:\[[WE] |WARNING|ERROR|Warning).*$", started, flags=re.MULTILINE)
    if is_learners:
        assert lines == []
    else:  # extensions of the development tools have theirs
        assert [line for line in lines if "IPKernelApp" in line] == []


# --- reset -------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path):
    """A project with a notebook and an exercise in git, and files of the learner's own."""
    for name in ("notebooks/00.ipynb", "exercises/02/02.ipynb", "src/code.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("as it came\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_reset_puts_notebooks_and_progress_back_and_touches_nothing_else(project):
    for name in ("notebooks/00.ipynb", "exercises/02/02.ipynb", "src/code.py", "notebooks/mine.ipynb"):
        (project / name).write_text("changed\n")
    (project / ".progress.json").write_text("{}")
    subprocess.run(["git", "add", "exercises"], cwd=project, check=True)
    assert reset.reset(project) == [
        "exercises/02/02.ipynb: put back",
        "notebooks/00.ipynb: put back",
        ".progress.json: removed",
    ]
    contents = {
        path.relative_to(project).as_posix(): path.read_text() for path in project.glob("[!.]*/**/*.*")
    }
    assert contents == {
        "notebooks/00.ipynb": "as it came\n",
        "exercises/02/02.ipynb": "as it came\n",
        "src/code.py": "changed\n",
        "notebooks/mine.ipynb": "changed\n",
    }
    assert not (project / ".progress.json").exists()


def test_reset_brings_a_deleted_notebook_back(project):
    (project / "notebooks/00.ipynb").unlink()
    assert reset.reset(project) == ["notebooks/00.ipynb: put back"]
    assert (project / "notebooks/00.ipynb").read_text() == "as it came\n"


def test_reset_says_when_there_is_nothing_to_do(project):
    assert reset.reset(project) == [
        "nothing to do: the notebooks are as they came, and there is no progress to forget"
    ]


def test_reset_outside_git_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(SystemExit, match="git could not put the notebooks back: "):
        reset.reset(tmp_path)


# --- make and versions -------------------------------------------------------------------------------------


@posix
def test_make_alone_says_what_there_is():
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    named = re.findall(r"^make ([a-z-]+) +\S", done.stdout, flags=re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert named == targets


def test_an_unknown_version_is_one_line():
    done = subprocess.run(
        [sys.executable, "-m", "tools.versions", "2.7"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (
        2,
        "no version is called '2.7'; use 3.11, 3.12, 3.13 or oldest\n",
    )


def test_what_is_run_once_only_is_there():
    from tools import versions

    assert [path for path in (*versions.ONCE, *versions.SHORT) if not (ROOT / path).exists()] == []
