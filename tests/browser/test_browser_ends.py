"""What happens without a browser, and that nothing is left when tests end badly."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from chromium import NAMES, NoBrowser, find_chromium
from server import MARK, PROJECT, JupyterServer, listed, marked, wait

HERE = Path(__file__).parent

OWNER = """
import sys, time
from pathlib import Path
sys.path.insert(0, {here!r})
from server import JupyterServer
with JupyterServer(Path({folder!r})) as server:
    import json, urllib.request
    request = urllib.request.Request(server.url + "api/kernels", data=b"{{}}", method="POST",
                                     headers={{"Authorization": f"token {{server.token}}"}})
    urllib.request.urlopen(request, timeout=120).read()
    print(server._mark, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_server_and_kernels_end_when_their_owner_is_killed(tmp_path: Path) -> None:
    code = OWNER.format(here=str(HERE), folder=str(tmp_path))
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    mark = owner.stdout.readline().strip()
    owner.stdout.close()
    assert len(marked(mark)) >= 2, "a server and a kernel"
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    wait(lambda: not marked(mark), lambda: f"still running: {listed(marked(mark))}")


def test_what_outlives_the_server_is_named_and_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = JupyterServer(tmp_path)
    with server:
        orphan = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(599)"], env={**os.environ, MARK: server._mark}
        )
        monkeypatch.setattr("server.START_S", 20)
        with pytest.raises(RuntimeError, match=r"these ran on: .*time\.sleep\(599\)"):
            server.stop()
    assert orphan.wait(timeout=60) != 0
    assert not psutil.pid_exists(orphan.pid)


def test_a_missing_chromium_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoBrowser, match=r"No Chromium on the PATH .*apt-get install .* FIXTURES_CHROMIUM"):
        find_chromium({"PATH": str(tmp_path)})
    with pytest.raises(NoBrowser, match="'nowhere', which is no program"):
        find_chromium({"PATH": str(tmp_path), "FIXTURES_CHROMIUM": "nowhere"})
    for name in NAMES:
        program = tmp_path / name
        program.touch(mode=0o755)
        assert find_chromium({"PATH": str(tmp_path)}) == program
        assert find_chromium({"PATH": "", "FIXTURES_CHROMIUM": str(program)}) == program
        program.unlink()


@pytest.mark.parametrize(("required", "outcome"), [("", "1 skipped"), ("1", "1 error")])
def test_without_chromium_tests_skip_or_fail_where_it_is_required(required: str, outcome: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_widgets",
         str(HERE / "test_browser_harness.py")],
        cwd=PROJECT, capture_output=True, text=True,
        env={**os.environ, "FIXTURES_CHROMIUM": "nowhere", "FIXTURES_REQUIRE_BROWSER": required},
    )  # fmt: skip
    assert outcome in done.stdout
    assert "FIXTURES_CHROMIUM is 'nowhere', which is no program" in done.stdout
    assert (done.returncode != 0) == (required == "1")
