#!/bin/sh
# Print the path of a Python on this machine, or say in one sentence that there is none.
#
#   sh tools/python.sh          one that is 3.11 or newer: those the course is tested on first
#   sh tools/python.sh 3.13     exactly that version
#
# PYTHON=/path/to/python decides for the first form. Looked for: PATH, then pyenv.

wanted=${1:-}

# Prints the interpreter itself, never a pyenv shim or the python of an environment.
suits='
import sys
version = "%d.%d" % sys.version_info[:2]
wanted, pip = sys.argv[1], sys.argv[2]
if version != wanted if wanted else sys.version_info < (3, 11):
    sys.exit(1)
if pip:
    import ensurepip, venv
print(getattr(sys, "_base_executable", None) or sys.executable)
'

try() { # python, "pip" when it must be able to put pip into an environment
    [ -n "$1" ] && "$1" -c "$suits" "$wanted" "$2" </dev/null 2>/dev/null
}

# pyenv looks below HOME when PYENV_ROOT is not set; where it is installed is the better guess.
root=$(command -v pyenv) && root=$(dirname "$(dirname "$root")")
[ -z "${PYENV_ROOT:-}" ] && [ -d "$root/versions" ] && PYENV_ROOT=$root && export PYENV_ROOT

from_pyenv() {
    prefix=$(pyenv prefix "$1" 2>/dev/null) && [ -n "$prefix" ] && echo "$prefix/bin/python"
}

if [ -z "$wanted" ] && [ -n "${PYTHON:-}" ]; then
    try "$PYTHON" "" && exit 0
    echo "PYTHON=$PYTHON is not a Python 3.11 or newer: give the path of one, or leave PYTHON out." >&2
    exit 1
fi

for pip in pip ""; do
    if [ -n "$wanted" ]; then
        for python in python3 "python$wanted" "$(from_pyenv "$wanted")"; do
            try "$python" "$pip" && exit 0
        done
    else
        for python in python3 python3.13 python3.12 python3.11 python3.14 python \
            "$(from_pyenv 3.13)" "$(from_pyenv 3.12)" "$(from_pyenv 3.11)"; do
            try "$python" "$pip" && exit 0
        done
    fi
done
echo "No Python ${wanted:-3.11 or newer} found on PATH or in pyenv: install it from https://www.python.org/downloads/ or your system's packages, then run the same command again." >&2
exit 1
