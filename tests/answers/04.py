# ruff: noqa: E402, E501, F811
"""Answers to chapter 04's exercises: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""

# %% right: Send, one task a bill; the saver's tuple says what is there
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]


def build(pay):
    def each(state):
        return [Send("pay_one", {"supplier": one, "amount": sum_}) for one, sum_ in state["bills"].items()]

    def pay_one(bill):
        return {"receipts": [pay(bill["supplier"], bill["amount"])]}

    builder = StateGraph(Order).add_node("pay_one", pay_one)
    return builder.add_conditional_edges(START, each, ["pay_one"])


def retry(graph, config):
    return graph.invoke(None, config)


def resume_or_start(graph, config, job):
    kept = graph.checkpointer.get_tuple(config)
    if kept is None:
        return graph.invoke(job, config)
    for _, channel, value in kept.pending_writes or []:
        if channel == "__interrupt__":
            return value[0].value
    if graph.get_state(config).tasks:
        return graph.invoke(None, config)
    return graph.get_state(config).values


# %% right: a chain of three nodes; a stream read to its end; a field of the state tells that it is done
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]


def build(pay):
    def node(place):
        def run(state):
            supplier = list(state["bills"])[place]
            return {"receipts": [pay(supplier, state["bills"][supplier])]}

        return run

    builder = StateGraph(Order).add_sequence([(f"pay_{place}", node(place)) for place in range(3)])
    return builder.add_edge(START, "pay_0")


def retry(graph, config):
    for _ in graph.stream(None, config, stream_mode="updates"):
        pass
    return graph.get_state(config).values


def resume_or_start(graph, config, job):
    for newest in graph.get_state_history(config, limit=1):
        if newest.values.get("status") == "done":
            return newest.values
        for asked in newest.interrupts:
            return asked.value
        return graph.invoke(None, config, durability="sync")
    return graph.invoke(job, config)


# %% right: three edges, dicts merged by a reducer of its own, with a retry policy; EmptyInputError says never
from typing import Annotated, TypedDict

from langgraph.errors import EmptyInputError
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy


def together(old, new):
    return [*(old or []), *new]


class Order(TypedDict):
    bills: dict
    receipts: Annotated[list, together]


QUICKLY = RetryPolicy(initial_interval=0.001, retry_on=Exception)


def build(pay):
    builder = StateGraph(Order)
    for place in range(3):

        def node(state, place=place):
            supplier, amount = [*state["bills"].items()][place]
            return {"receipts": [pay(supplier, amount)]}

        builder.add_node(str(place), node, retry_policy=QUICKLY)
        builder.add_edge(START, str(place)).add_edge(str(place), END)
    return builder


def retry(graph, config):
    return dict(graph.invoke(None, config))


def resume_or_start(graph, config, job):
    asked = [one.value for task in graph.get_state(config).tasks for one in task.interrupts]
    if asked:
        return asked[0]
    try:
        return graph.invoke(None, config)
    except EmptyInputError:
        return graph.invoke(job, config)


# %% right: an entry node that fans out by Command; a join; talks on the way
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]
    complete: bool


def build(pay):
    places = ["first", "second", "third"]

    def split(state):
        print("three bills")
        return Command(goto=places)

    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[places.index(place)]
            return {"receipts": [pay(supplier, amount)]}

        return run

    def join(state):
        return {"complete": len(state["receipts"]) == 3}

    builder = StateGraph(Order).add_node("split", split, destinations=tuple(places)).add_node(join)
    for place in places:
        builder.add_node(place, node(place))
    return builder.add_edge(START, "split").add_edge(places, "join")


def retry(graph, config):
    while graph.get_state(config).next:
        graph.invoke(None, config)
    return graph.get_state(config).values


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    if state.created_at is None:
        given = job
    elif state.interrupts:
        return state.interrupts[0].value
    elif state.tasks:
        given = None
    else:
        return state.values
    *_, last = graph.stream(given, config, stream_mode="values")
    return last


# %% wrong [paid-once, takes-on]: one node with a loop; next only
from typing import TypedDict

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: list


def build(pay):
    def pay_all(state):
        return {"receipts": [pay(supplier, amount) for supplier, amount in state["bills"].items()]}

    return StateGraph(Order).add_node(pay_all).add_edge(START, "pay_all")


def retry(graph, config):
    return graph.invoke(None, config)


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    for task in state.tasks:
        for asked in task.interrupts:
            return asked.value
    if state.created_at is None:
        return graph.invoke(job, config)
    return graph.invoke(None, config) if state.next else state.values


# %% wrong [paid-once, fails-twice, takes-on]: a new input each time
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]


def build(pay):
    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[place]
            return {"receipts": [pay(supplier, amount)]}

        return run

    builder = StateGraph(Order)
    for place in range(3):
        builder.add_node(f"pay_{place}", node(place)).add_edge(START, f"pay_{place}")
    return builder


def retry(graph, config):
    return graph.invoke({"bills": graph.get_state(config).values["bills"]}, config)


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    if state.interrupts:
        return state.interrupts[0].value
    if state.values.get("status") == "done":
        return state.values
    return graph.invoke(job, config)


# %% wrong [paid-once, fails-twice, tells-questions]: the head's id in the config; None throughout
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]


def build(pay):
    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[place]
            return {"receipts": [pay(supplier, amount)]}

        return run

    builder = StateGraph(Order)
    for place in range(3):
        builder.add_node(f"pay_{place}", node(place)).add_edge(START, f"pay_{place}")
    return builder


def retry(graph, config):
    return graph.invoke(None, graph.get_state(config).config)


def resume_or_start(graph, config, job):
    if graph.get_state(config).created_at is None:
        return graph.invoke(job, config)
    return graph.invoke(None, config)


# %% wrong [paid-once, all-receipts, fails-twice, other-order, takes-on, tells-questions]: errors caught; {}
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]


def build(pay):
    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[place]
            try:
                return {"receipts": [pay(supplier, amount)]}
            except Exception:
                return {"receipts": []}

        return run

    builder = StateGraph(Order)
    for place in range(3):
        builder.add_node(f"pay_{place}", node(place)).add_edge(START, f"pay_{place}")
    return builder


def retry(graph, config):
    return graph.invoke(None, config)


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    if state.values.get("status") == "done":
        return state.values
    return graph.invoke({} if state.created_at else job, config)


# %% wrong [all-receipts, other-order, starts, leaves-finished]: receipts kept in a list outside; a finished job again
from typing import TypedDict

from langgraph.graph import START, StateGraph

RECEIPTS = []


class Order(TypedDict, total=False):
    bills: dict
    receipts: list


def build(pay):
    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[place]
            RECEIPTS.append(pay(supplier, amount))

        return run

    builder = StateGraph(Order)
    for place in range(3):
        builder.add_node(f"pay_{place}", node(place)).add_edge(START, f"pay_{place}")
    return builder


def retry(graph, config):
    return {**graph.invoke(None, config), "receipts": RECEIPTS[-3:]}


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    if state.interrupts:
        return state.interrupts[0].value
    return graph.invoke(None if state.tasks else job, config)


# %% wrong [paid-once, all-receipts, fails-twice, other-order, starts]: no reducer; None for a thread that never was
from typing import TypedDict

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: list


def build(pay):
    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[place]
            return {"receipts": [*state.get("receipts", []), pay(supplier, amount)]}

        return run

    builder = StateGraph(Order)
    for place in range(3):
        builder.add_node(f"pay_{place}", node(place)).add_edge(START, f"pay_{place}")
    return builder


def retry(graph, config):
    return graph.invoke(None, config)


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    if state.interrupts:
        return state.interrupts[0].value
    return graph.invoke(None, config)


# %% wrong [paid-once, fails-twice, takes-on, tells-questions]: the thread deleted, a new input; the question by invoking
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]


def build(pay):
    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[place]
            return {"receipts": [pay(supplier, amount)]}

        return run

    builder = StateGraph(Order)
    for place in range(3):
        builder.add_node(f"pay_{place}", node(place)).add_edge(START, f"pay_{place}")
    return builder


def retry(graph, config):
    bills = graph.get_state(config).values["bills"]
    graph.checkpointer.delete_thread(config["configurable"]["thread_id"])
    return graph.invoke({"bills": bills, "receipts": []}, config)


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    if state.created_at is None or any(task.error for task in state.tasks):
        return graph.invoke(job, config)
    came_back = graph.invoke(None, config)
    asked = came_back.get("__interrupt__")
    return asked[0].value if asked else came_back


# %% wrong [paid-once, fails-twice, starts, takes-on, tells-questions, leaves-finished]: update_state; types
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]


def build(pay):
    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[place]
            return {"receipts": [pay(supplier, amount)]}

        return run

    builder = StateGraph(Order)
    for place in range(3):
        builder.add_node(f"pay_{place}", node(place)).add_edge(START, f"pay_{place}")
    return builder


def retry(graph, config):
    graph.update_state(config, {"bills": graph.get_state(config).values["bills"]})
    return graph.invoke(None, config)


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    if state.created_at is None:
        return graph.invoke(job, config)
    if state.interrupts:
        return state.interrupts
    if any(task.error for task in state.tasks):
        return graph.invoke(None, config)
    return state


# %% wrong [paid-once, all-receipts, fails-twice, other-order, takes-on]: a thread of its own for each try; killed ones again
import operator
from typing import Annotated, TypedDict
from uuid import uuid4

from langgraph.graph import START, StateGraph


class Order(TypedDict, total=False):
    bills: dict
    receipts: Annotated[list, operator.add]


def build(pay):
    def node(place):
        def run(state):
            supplier, amount = list(state["bills"].items())[place]
            return {"receipts": [pay(supplier, amount)]}

        return run

    builder = StateGraph(Order)
    for place in range(3):
        builder.add_node(f"pay_{place}", node(place)).add_edge(START, f"pay_{place}")
    return builder


def retry(graph, config):
    bills = graph.get_state(config).values["bills"]
    return graph.invoke({"bills": bills}, {"configurable": {"thread_id": str(uuid4())}})


def resume_or_start(graph, config, job):
    state = graph.get_state(config)
    if state.interrupts:
        return state.interrupts[0].value
    if state.next:
        return graph.invoke(None, config)
    return state.values if state.values.get("status") == "done" else graph.invoke(job, config)
