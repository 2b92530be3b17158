# ruff: noqa: E402, E501, F811
"""Answers to chapter 01's exercise: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""


# %% right: from the snapshot's fields
def status(graph, config):
    state = graph.get_state(config)
    if state.created_at is None:
        return "never"
    if any(task.interrupts for task in state.tasks):
        return "waiting"
    errors = [str(task.error) for task in state.tasks if task.error]
    if any("CancelledError" not in error for error in errors):
        return "failed"
    return "stopped" if state.tasks else "finished"


# %% right: from the saver's tuple and its pending writes
from langgraph.checkpoint.base import BaseCheckpointSaver


def status(graph, config):
    saver: BaseCheckpointSaver = graph.checkpointer
    kept = saver.get_tuple(config)
    if kept is None:
        return "never"
    written = {channel: value for _, channel, value in kept.pending_writes or []}
    if "__interrupt__" in written:
        return "waiting"
    if "__error__" in written:
        return "stopped" if "CancelledError" in repr(written["__error__"]) else "failed"
    history = next(graph.get_state_history(config))
    return "stopped" if history.next else "finished"


# %% right: from the history, whose newest snapshot does not merge the writes
import asyncio


def is_cancel(error):
    return isinstance(error, asyncio.CancelledError) or repr(error).strip("\"'").startswith("CancelledError")


def status(graph, config):
    for newest in graph.get_state_history(config, limit=1):
        if newest.interrupts:
            return "waiting"
        if [task for task in newest.tasks if task.error and not is_cancel(task.error)]:
            return "failed"
        return "stopped" if newest.next else "finished"
    return "never"


# %% wrong [never-and-finished, waiting, failed-or-cancelled, stopped]: next only
def status(graph, config):
    return "finished" if not graph.get_state(config).next else "stopped"


# %% wrong [never-and-finished]: next and tasks only
def status(graph, config):
    state = graph.get_state(config)
    if not state.next and not state.tasks:
        return "finished"
    if any(task.interrupts for task in state.tasks):
        return "waiting"
    if any(task.error and "CancelledError" not in str(task.error) for task in state.tasks):
        return "failed"
    return "stopped"


# %% wrong [failed-or-cancelled]: any error is a failure
def status(graph, config):
    state = graph.get_state(config)
    if state.created_at is None:
        return "never"
    if any(task.interrupts for task in state.tasks):
        return "waiting"
    if any(task.error for task in state.tasks):
        return "failed"
    return "stopped" if state.tasks else "finished"


# %% wrong [waiting, failed-or-cancelled, stopped, nothing-ran]: goes on with None to find out
from langgraph.errors import EmptyInputError


def status(graph, config):
    if graph.get_state(config).created_at is None:
        return "never"
    if not graph.get_state(config).next:
        return "finished"
    try:
        came_back = graph.invoke(None, config)
    except EmptyInputError:
        return "never"
    except Exception:
        return "failed"
    return "waiting" if "__interrupt__" in came_back else "finished"


# %% wrong [stopped]: an empty next is the end, with a look at the checkpoint before
def status(graph, config):
    state = graph.get_state(config)
    if state.created_at is None:
        return "never"
    if any(task.interrupts for task in state.tasks):
        return "waiting"
    if not state.next:
        return "finished"
    if any(task.error and "CancelledError" not in str(task.error) for task in state.tasks):
        return "failed"
    return "stopped"


# %% wrong [never-and-finished, waiting, failed-or-cancelled, stopped, nothing-ran]: takes the values for the status
def status(graph, config):
    return graph.get_state(config).values["status"]


# %% wrong [waiting, failed-or-cancelled, nothing-ran]: repairs what it looks at
def status(graph, config):
    state = graph.get_state(config)
    if state.created_at is None:
        return "never"
    if not state.tasks:
        return "finished"
    graph.update_state(config, {}, as_node="load")
    return "stopped"
