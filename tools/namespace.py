"""Cut a program off from every network but loopback: a network namespace of its own, on Linux."""

import functools
import shutil
import subprocess
import sys

# Linux counts a new namespace's loopback as down; ip(8) may be missing.
LOOPBACK_ONLY = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1))
os.execv(sys.argv[1], sys.argv[1:])
"""


@functools.cache
def namespace() -> tuple[str, ...] | None:
    """Return the words to put before a command, whose program is given by its path, to cut it off.

    None where that can't be: not on Linux, ``unshare`` (util-linux) is missing, or this user may not.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    for options in (["-n"], ["-r", "-n"]):
        command = (unshare, *options, sys.executable, "-c", LOOPBACK_ONLY)
        if subprocess.run([*command, sys.executable, "-c", ""], capture_output=True).returncode == 0:
            return command
    return None
