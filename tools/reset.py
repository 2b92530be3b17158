"""Put the notebooks and the exercises back as they came, and forget the progress.

``python tools/reset.py`` touches the tracked files in ``notebooks`` and ``exercises`` and the progress file,
nothing else: files of your own in these folders stay. It asks nothing and says what it did.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("notebooks", "exercises")


def changed(root: Path) -> list[str]:
    """Return the tracked files in the folders that differ from git's state, as paths below ``root``."""
    listing = _git(root, "diff", "--name-only", "--relative", "-z", "HEAD", "--", *FOLDERS)
    return [name for name in listing.split("\0") if name]


def reset(root: Path = ROOT) -> list[str]:
    """Do it, and return what was done, a sentence each."""
    done = []
    files = changed(root)
    if files:
        _git(root, "restore", "--source=HEAD", "--staged", "--worktree", "--", *files)
        done += [f"{name}: put back" for name in files]
    for file in sorted(root.glob(".progress.json*")):
        file.unlink()
        done.append(f"{file.name}: removed")
    return done or ["nothing to do: the notebooks are as they came, and there is no progress to forget"]


def _git(root: Path, *arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", *arguments], cwd=root, check=True, capture_output=True, text=True, encoding="utf-8"
        ).stdout
    except FileNotFoundError:
        sys.exit("git is not on PATH, and only git knows the notebooks as they came: install it.")
    except subprocess.CalledProcessError as error:
        sys.exit(f"git could not put the notebooks back: {error.stderr.strip()}")


if __name__ == "__main__":
    print("\n".join(reset()))
