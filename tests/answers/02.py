# ruff: noqa: E402, F811
"""Answers to chapter 02's exercise: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""

# %% right: operator.add, and the old total read back
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    total: Annotated[int, operator.add]


def with_reducer():
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"total": 1})
    builder.add_node("two", lambda state: {"total": 2})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", END)
    return builder


def next_input(graph, config):
    return {"total": graph.get_state(config).values.get("total", 0)}


# %% right: a reducer of one's own, and {} when the thread is known
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


def plus(old: int, new: int) -> int:
    return old + new


class Counter(TypedDict):
    total: Annotated[int, plus]


def with_reducer() -> StateGraph:
    return StateGraph(Counter).add_node("three", lambda _: {"total": 3}).add_edge(START, "three")


def next_input(graph, config) -> dict:
    known = graph.get_state(config).created_at is not None
    return {} if known else {"total": 0}


# %% right: two branches side by side, the state made inside the function, the newest checkpoint read
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


def with_reducer():
    class Total(TypedDict):
        total: Annotated[int, lambda old, new: old + new]

    builder = StateGraph(Total)
    for step in (1, 2):
        builder.add_node(f"add_{step}", lambda state, step=step: {"total": step})
        builder.add_edge(START, f"add_{step}")
    return builder


def next_input(graph, config):
    kept = graph.checkpointer.get_tuple(config)
    return {"total": kept.checkpoint["channel_values"]["total"] if kept else 0}


# %% right: hints that are text, history instead of state, and talk on both streams
import operator
import sys
import warnings
from typing import Annotated, TypedDict

from langgraph.graph import StateGraph


class Sum(TypedDict):
    total: "Annotated[int, operator.add]"


def with_reducer():
    print("building")
    warnings.warn("a warning of my own", stacklevel=1)
    builder = StateGraph(Sum)
    builder.add_node("one", lambda state: {"total": 1})
    builder.add_node("two", lambda state: {"total": 2})
    builder.set_entry_point("one")
    builder.add_edge("one", "two")
    builder.set_finish_point("two")
    return builder


def next_input(graph, config):
    print("asking", file=sys.stderr)
    newest = next(graph.get_state_history(config), None)
    return {"total": newest.values["total"]} if newest else {"total": 0}


# %% right: a dataclass as state, Command in the nodes, and the graph asked whether there is a total
import operator
from dataclasses import dataclass
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


@dataclass
class Account:
    total: Annotated[int, operator.add] = 0


def one(state: Account) -> Command:
    return Command(update={"total": 1}, goto="two")


def two(state: Account) -> Command:
    return Command(update={"total": 2}, goto=END)


def with_reducer():
    builder = StateGraph(Account)
    builder.add_node("one", one, destinations=("two",))
    builder.add_node("two", two, destinations=(END,))
    builder.add_edge(START, "one")
    return builder


def next_input(graph, config):
    state = graph.get_state(config)
    if "total" in state.values:
        return dict(state.values)
    return {"total": 0}


# %% wrong [reducer-goes-on, reducer-by-thread]: a reducer, but the nodes return totals
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: Annotated[int, operator.add]


def with_reducer():
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"total": state["total"] + 1})
    builder.add_node("two", lambda state: {"total": state["total"] + 2})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    return builder


def next_input(graph, config):
    return {"total": graph.get_state(config).values.get("total", 0)}


# %% wrong [reducer-goes-on, reducer-by-thread, input-goes-on, input-by-thread]: no reducer, and no input
from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: int


def with_reducer():
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"total": state["total"] + 1})
    builder.add_node("two", lambda state: {"total": state["total"] + 2})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    return builder


def next_input(graph, config):
    return None


# %% wrong [reducer-goes-on, reducer-by-thread, input-goes-on, input-by-thread]: the newest wins, and {}
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: Annotated[int, lambda old, new: new]


def with_reducer():
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"total": 1})
    builder.add_node("two", lambda state: {"total": 2})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    return builder


def next_input(graph, config):
    return {}


# %% wrong [reducer-goes-on, reducer-by-thread, input-by-thread]: module globals
from typing import TypedDict

from langgraph.graph import START, StateGraph

total = 0
calls = 0


class State(TypedDict):
    total: int


def count(state):
    global total
    total += 3
    return {"total": total}


def with_reducer():
    return StateGraph(State).add_node("count", count).add_edge(START, "count")


def next_input(graph, config):
    global calls
    known, calls = calls, calls + 1
    if not known:
        return {"total": 0}
    return {"total": graph.get_state(config).values["total"]}


# %% wrong [reducer-goes-on, reducer-by-thread, input-by-thread]: globals by thread id, outside the threads
from typing import TypedDict

from langgraph.graph import START, StateGraph

totals = {}
inputs = {}


class State(TypedDict):
    total: int


def count(state, config):
    thread = config["configurable"]["thread_id"]
    totals[thread] = totals.get(thread, 0) + 3
    return {"total": totals[thread]}


def with_reducer():
    return StateGraph(State).add_node("count", count).add_edge(START, "count")


def next_input(graph, config):
    thread = config["configurable"]["thread_id"]
    if thread in inputs:
        return {"total": graph.get_state(config).values["total"]}
    inputs[thread] = True
    return {"total": graph.get_state(config).values.get("total", 0) if len(inputs) == 1 else len(totals)} | (
        {"total": 1} if len(inputs) == 2 else {}
    )


# %% wrong [input-goes-on, input-by-thread]: always the same input
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: Annotated[int, operator.add]


def with_reducer():
    return StateGraph(State).add_node("add", lambda state: {"total": 3}).add_edge(START, "add")


def next_input(graph, config):
    return {"total": 0}


# %% wrong [input-goes-on, input-by-thread]: a total that is not there yet
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: Annotated[int, operator.add]


def with_reducer():
    return StateGraph(State).add_node("add", lambda state: {"total": 3}).add_edge(START, "add")


def next_input(graph, config):
    return {"total": graph.get_state(config).values["total"]}


# %% wrong [input-goes-on]: runs the graph to find out
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: Annotated[int, operator.add]


def with_reducer():
    return StateGraph(State).add_node("add", lambda state: {"total": 3}).add_edge(START, "add")


def next_input(graph, config):
    before = graph.get_state(config).values.get("total", 0)
    graph.invoke({"total": before}, config)
    return {"total": before}


# %% wrong [input-goes-on, input-by-thread]: counts its calls and takes 3 for each
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: Annotated[int, operator.add]


def with_reducer():
    return StateGraph(State).add_node("add", lambda state: {"total": 3}).add_edge(START, "add")


def next_input(graph, config):
    inputs = [one for one in graph.get_state_history(config) if one.metadata["source"] == "input"]
    return {"total": 3 * len(inputs)}


# %% wrong [reducer-goes-on, reducer-by-thread]: max as reducer
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: Annotated[int, max]


def with_reducer():
    return (
        StateGraph(State).add_node("add", lambda state: {"total": state["total"] + 2}).add_edge(START, "add")
    )


def next_input(graph, config):
    return {"total": graph.get_state(config).values.get("total", 0)}


# %% wrong [reducer-goes-on, reducer-by-thread]: a compiled graph
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: Annotated[int, operator.add]


def with_reducer():
    builder = StateGraph(State).add_node("add", lambda state: {"total": 3}).add_edge(START, "add")
    return builder.compile(checkpointer=InMemorySaver())


def next_input(graph, config):
    return {"total": graph.get_state(config).values.get("total", 0)}


# %% wrong [reducer-goes-on, input-goes-on, input-by-thread]: a second key, and a mutated config
from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    total: int
    seen: int


def add(state):
    seen = state.get("seen", 0) + 3
    return {"total": seen, "seen": seen}


def with_reducer():
    return StateGraph(State).add_node("add", add).add_edge(START, "add")


def next_input(graph, config):
    config["configurable"]["thread_id"] = "always the same"
    return {"total": graph.get_state(config).values.get("total", 0)}
