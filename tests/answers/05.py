# ruff: noqa: E402, F811
"""Answers to chapter 05's exercise: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""


# %% right: scan from the oldest; go on at the thread, whose newest checkpoint is the change
def first_bad(graph, config, is_bad):
    for snapshot in reversed(list(graph.get_state_history(config))):
        if is_bad(snapshot):
            return snapshot


def fork(graph, snapshot, values):
    graph.update_state(snapshot.parent_config, values)
    thread = {"configurable": {"thread_id": snapshot.config["configurable"]["thread_id"]}}
    return graph.invoke(None, thread)


# %% right: bisect by hand; the change handed in with the resume
from langgraph.types import Command


def first_bad(graph, config, is_bad):
    history = sorted(graph.get_state_history(config), key=lambda one: one.metadata["step"])
    good, bad = 0, len(history) - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if is_bad(history[middle]):
            bad = middle
        else:
            good = middle
    return history[bad]


def fork(graph, snapshot, values):
    return graph.invoke(Command(update=values), snapshot.parent_config)


# %% right: walk from the head by parent_config; the node before the step is named
def first_bad(graph, config, is_bad):
    snapshot = graph.get_state(config)
    while snapshot.parent_config:
        before = graph.get_state(snapshot.parent_config)
        if not is_bad(before):
            return snapshot
        snapshot = before
    return snapshot


def fork(graph, snapshot, values):
    good = graph.get_state(snapshot.parent_config)
    (wrote,) = graph.get_state(good.parent_config).next
    changed = graph.update_state(good.config, values, as_node=wrote)
    *_, last = graph.stream(None, changed, stream_mode="values")
    return last


# %% right: the newest of those whose parent is good, asked by values; the whole state written back
from itertools import pairwise


def first_bad(graph, config, is_bad):
    history = list(graph.get_state_history(config))
    for bad, good in pairwise(history):
        if is_bad(bad.values) and not is_bad(good.values):
            return bad


def fork(graph, snapshot, values):
    good = graph.get_state(snapshot.parent_config)
    changed = graph.update_state(good.config, {**good.values, **values})
    graph.invoke(None, changed)
    return dict(graph.get_state({"configurable": {"thread_id": "monday"}}).values)


# %% right: the newest good one by before=, one at a time, and talk on both streams
import sys
import warnings


def first_bad(graph, config, is_bad):
    print("looking")
    warnings.warn("a warning of my own", stacklevel=1)
    snapshot = graph.get_state(config)
    while True:
        (before,) = graph.get_state_history(config, before=snapshot.config, limit=1)
        if not is_bad(before):
            return snapshot
        snapshot = before


def fork(graph, snapshot, values):
    print("forking", file=sys.stderr)
    return graph.invoke(None, graph.update_state(snapshot.parent_config, values), durability="sync")


# %% wrong [first-bad, only-looks, right-result, runs-from-there, first-step]: newest bad one; no edit
def first_bad(graph, config, is_bad):
    for snapshot in graph.get_state_history(config):
        if is_bad(snapshot):
            return snapshot


def fork(graph, snapshot, values):
    return graph.invoke(None, snapshot.parent_config)


# %% wrong [right-result, runs-from-there, first-step]: edit at the bad checkpoint itself
def first_bad(graph, config, is_bad):
    return next(one for one in list(graph.get_state_history(config))[::-1] if is_bad(one))


def fork(graph, snapshot, values):
    return graph.invoke(None, graph.update_state(snapshot.config, values))


# %% wrong [first-bad, only-looks, right-result, old-run-stays, runs-from-there, first-step]: good, head
def first_bad(graph, config, is_bad):
    for snapshot in graph.get_state_history(config):
        if not is_bad(snapshot):
            return snapshot


def fork(graph, snapshot, values):
    thread = {"configurable": {"thread_id": snapshot.config["configurable"]["thread_id"]}}
    graph.update_state(thread, values)
    return graph.invoke(None, thread)


# %% wrong [right-result, runs-from-there, first-step]: input and old config
def first_bad(graph, config, is_bad):
    return [one for one in graph.get_state_history(config) if is_bad(one)][-1]


def fork(graph, snapshot, values):
    return graph.invoke(values, snapshot.parent_config)


# %% wrong [old-run-stays, runs-from-there, first-step]: the old thread deleted, and run again by hand
def first_bad(graph, config, is_bad):
    return [one for one in graph.get_state_history(config) if is_bad(one)][-1]


def fork(graph, snapshot, values):
    thread = {"configurable": {"thread_id": snapshot.config["configurable"]["thread_id"]}}
    start = [one for one in graph.get_state_history(thread) if one.values.get("hours")][-1]
    graph.checkpointer.delete_thread("monday")
    changed = graph.update_state(
        thread, start.values | values, as_node=start.next[0] and list(graph.nodes)[1]
    )
    return graph.invoke(None, changed)


# %% wrong [right-result, old-run-stays, runs-from-there, first-step]: changed, and then the old one replayed
def first_bad(graph, config, is_bad):
    return [one for one in graph.get_state_history(config) if is_bad(one)][-1]


def fork(graph, snapshot, values):
    graph.update_state(snapshot.parent_config, values)
    return graph.invoke(None, snapshot.parent_config)


# %% wrong [only-looks, right-result]: replays to find out; gives back what it wrote
def first_bad(graph, config, is_bad):
    history = list(graph.get_state_history(config))[::-1]
    for snapshot in history:
        if snapshot.next and snapshot.parent_config:
            for _ in graph.stream(None, snapshot.config):
                pass
            break
    return next(one for one in history if is_bad(one))


def fork(graph, snapshot, values):
    graph.invoke(None, graph.update_state(snapshot.parent_config, values))
    return values


# %% wrong [first-bad, only-looks, runs-from-there]: always the middle; forks too early
def first_bad(graph, config, is_bad):
    history = list(graph.get_state_history(config))
    return history[len(history) // 2]


def fork(graph, snapshot, values):
    history = list(graph.get_state_history({"configurable": {"thread_id": "monday"}}))
    start = [one for one in history if one.values.get("hours") and not one.values.get("paid")][-1]
    return graph.invoke(None, graph.update_state(start.config, values))


# %% wrong [first-bad, only-looks, right-result, runs-from-there, first-step]: values; a config
def first_bad(graph, config, is_bad):
    for snapshot in list(graph.get_state_history(config))[::-1]:
        if is_bad(snapshot):
            return snapshot.values


def fork(graph, snapshot, values):
    return graph.update_state(snapshot.parent_config, values)


# %% wrong [first-bad, only-looks, right-result]: the last good one; the state at the change, not at the end
def first_bad(graph, config, is_bad):
    good = None
    for snapshot in reversed(list(graph.get_state_history(config))):
        if is_bad(snapshot):
            return good
        good = snapshot


def fork(graph, snapshot, values):
    changed = graph.update_state(snapshot.parent_config, values)
    graph.invoke(None, changed)
    return graph.get_state(changed).values


# %% wrong [first-step]: the change as if by the node that is due, which works in the loop alone
def first_bad(graph, config, is_bad):
    return min(
        (one for one in graph.get_state_history(config) if is_bad(one)), key=lambda one: one.created_at
    )


def fork(graph, snapshot, values):
    good = graph.get_state(snapshot.parent_config)
    return graph.invoke(None, graph.update_state(good.config, values, as_node=good.next[0]))


# %% wrong [right-result, runs-from-there, first-step]: the bad values written too
def first_bad(graph, config, is_bad):
    return [one for one in graph.get_state_history(config) if is_bad(one)][-1]


def fork(graph, snapshot, values):
    return graph.invoke(None, graph.update_state(snapshot.parent_config, snapshot.values | values))
