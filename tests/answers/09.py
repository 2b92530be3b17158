# ruff: noqa: E402, F811
"""Answers to chapter 09's exercise: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""

# %% right: rules, from what is asked for most to what is left
STEPS, PUT_MS = 6, 50


def choose(need):
    if need.exactly_once:
        return "none"
    dies = need.signal in ("kill", "term")
    if need.max_checkpoints < STEPS + 2:
        return "exit" if not dies or need.max_lost >= STEPS else "none"
    if dies and need.max_lost < 1:
        return "sync" if need.max_ms_per_step >= PUT_MS else "none"
    return "async"


# %% right: a table of what each one does, by key, the cheapest first
TABLE = [
    {"name": "exit", "lost": {"kill": 6, "term": 6, "int": 0}, "ms": 0, "checkpoints": 1},
    {"name": "async", "lost": {"kill": 2, "term": 2, "int": 0}, "ms": 0, "checkpoints": 8},
    {"name": "sync", "lost": {"kill": 0, "term": 0, "int": 0}, "ms": 50, "checkpoints": 8},
]


def choose(need):
    for row in TABLE:
        if (
            row["lost"][need["signal"]] <= need["max_lost"]
            and row["ms"] <= need["max_ms_per_step"]
            and row["checkpoints"] <= need["max_checkpoints"]
            and not need["exactly_once"]
        ):
            return row["name"]
    return "none"


# %% right: sync wherever it will do, and only then the others
def choose(need):
    if need.exactly_once:
        return "none"
    keeps_all = need.signal == "int" or need.max_lost >= 6
    if need.max_checkpoints >= 8:
        if need.max_ms_per_step >= 50:
            return "sync"
        if keeps_all or need.max_lost >= 1:
            return "async"
    return "exit" if keeps_all else "none"


# %% right: trying each by experiment, in processes that die
import os
import signal
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph


class Job(TypedDict, total=False):
    done: int


STEPS, PUT_MS = 6, 50
CONFIG = {"configurable": {"thread_id": "job"}}


def job(happened):
    def step(number):
        def node(state):
            happened(number)
            return {"done": number}

        return node

    nodes = [(f"step {number}", step(number)) for number in range(1, STEPS + 1)]
    return StateGraph(Job).add_sequence(nodes).set_entry_point("step 1")


found = {}


def tried(*case):
    """Try a case once: a durability, a signal and a step."""
    if case not in found:
        found[case] = let_die(*case)
    return found[case]


def let_die(durability, name, at):
    """Let a process die in a step; return steps lost, effects of one step, checkpoints of a whole run."""
    folder = tempfile.mkdtemp(dir=".")
    database, log = f"{folder}/job.sqlite", f"{folder}/log.txt"

    def happened(number):
        with open(log, "a") as file:
            file.write(f"{number}\n")
        if number == at and os.getpid() == child:
            os.kill(child, {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}[name])

    def run(given):
        with closing(sqlite3.connect(database, check_same_thread=False)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            graph = job(happened).compile(checkpointer=SqliteSaver(connection))
            done = graph.get_state(CONFIG).values.get("done", 0)
            if given is None and not graph.get_state(CONFIG).created_at:
                given = {}
            graph.invoke(given, CONFIG, durability=durability)
            return done, len(list(graph.get_state_history(CONFIG)))

    child = 0
    pid = os.fork()
    if pid == 0:
        child = os.getpid()
        try:
            run({})
        finally:
            os._exit(1)
    os.waitpid(pid, 0)
    done, _ = run(None)
    with open(log) as file:
        twice = max(Counter(file.read().split()).values())
    database = f"{folder}/whole.sqlite"
    return at - 1 - done, twice, run({})[1]


def choose(need):
    for durability in ("exit", "async", "sync"):
        lost, twice, checkpoints = tried(durability, need.signal, STEPS)
        if durability == "async" and need.signal != "int":
            lost = max(lost, 1)  # a race, also where it was lucky here
        if durability == "sync" and need.max_ms_per_step < PUT_MS:
            continue
        if lost > need.max_lost or checkpoints > need.max_checkpoints or (need.exactly_once and twice > 1):
            continue
        return durability
    return "none"


# %% wrong [int, slow-saver, few-checkpoints, exactly-once, no-durability]: always sync
def choose(need):
    return "sync"


# %% wrong [kill, term, int, few-checkpoints, exactly-once, no-durability]: always async
def choose(need):
    return "async"


# %% wrong [kill, term, slow-saver, exactly-once, no-durability]: always exit
def choose(need):
    return "exit"


# %% wrong [kill, term, int, slow-saver, few-checkpoints]: always none
def choose(need):
    return "none"


# %% wrong [term, no-durability]: exit saves at any exit, so it does for SIGTERM
def choose(need):
    if need.exactly_once:
        return "none"
    if need.signal != "kill":
        return "exit"
    if need.max_lost >= 6:
        return "exit"
    if need.max_checkpoints < 8:
        return "none"
    if need.max_lost > 0:
        return "async"
    return "sync" if need.max_ms_per_step >= 50 else "none"


# %% wrong [exactly-once]: sync for exactly once
def choose(need):
    if need.exactly_once:
        return "sync"
    if need.signal == "int" or need.max_lost >= 6:
        return "exit"
    if need.max_checkpoints < 8:
        return "none"
    if need.max_lost > 0:
        return "async"
    return "sync" if need.max_ms_per_step >= 50 else "none"


# %% wrong [slow-saver, no-durability]: what must not be lost needs sync, however slow the saver is
def choose(need):
    if need.exactly_once:
        return "none"
    if need.signal == "int" or need.max_lost >= 6:
        return "exit"
    return "sync" if need.max_checkpoints >= 8 else "none"


# %% wrong [no-durability]: the best there is in place of none
def choose(need):
    if need.exactly_once:
        return "none"
    if need.signal == "int" or need.max_lost >= 6:
        return "exit"
    if need.max_lost == 0:
        return "sync"
    return "async"


# %% wrong [int]: SIGINT is as hard as the other two
def choose(need):
    if need.exactly_once:
        return "none"
    if need.max_lost >= 6:
        return "exit"
    if need.max_checkpoints < 8:
        return "none" if need.max_lost < 3 or need.signal != "int" else "exit"
    if need.max_lost > 0:
        return "async"
    return "sync" if need.max_ms_per_step >= 50 else "none"


# %% wrong [kill, term, no-durability]: async is the default, so it will be safe enough
def choose(need):
    if need.exactly_once:
        return "none"
    if need.max_checkpoints >= 8:
        return "async"
    return "exit" if need.signal == "int" or need.max_lost >= 6 else "none"
