# ruff: noqa: E402, E501, F811
"""Answers to chapter 06's exercise: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""

# %% right: conditional edge, key from the order
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str
    approved: bool


def after(mail):
    def ask(state):
        approved = interrupt("confirm?") is True
        if approved:
            mail(state["order"], f"confirm-{state['order']}")
        return {"approved": approved}

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    def ask(state):
        return {"approved": interrupt("confirm?") is True}

    def send(state):
        mail(state["order"], f"confirm-{state['order']}")

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("send", send)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: "send" if state["approved"] else END, ["send", END])
    return builder


def keyed(mail):
    def ask(state):
        mail(state["order"], f"notice-{state['order']}")
        return {"approved": interrupt("confirm?") is True}

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


# %% right: Command(goto=…), and a key made one node earlier
import uuid
from dataclasses import dataclass

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


@dataclass
class Work:
    order: str
    key: str = ""
    answer: object = None


def new_key(state: Work):
    return {"key": str(uuid.uuid4())}


def split(mail):
    def ask(state: Work):
        answer = interrupt({"question": "send it?", "order": state.order})
        return Command(update={"answer": answer}, goto="send" if answer is True else END)

    def send(state: Work):
        mail(state.order, state.key)

    builder = StateGraph(Work).add_node("new_key", new_key).add_node("send", send)
    builder.add_node("ask", ask, destinations=("send", END))
    return builder.add_edge(START, "new_key").add_edge("new_key", "ask")


def after(mail):
    return split(mail)


def keyed(mail):
    def ask(state: Work):
        mail(state.order, state.key)
        return {"answer": interrupt("seen it?")}

    return StateGraph(Work).add_sequence([new_key, ask]).add_edge(START, "new_key")


# %% right: a notice in a node of its own before the question, and a second node that looks at the answer
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class Order(TypedDict, total=False):
    order: str
    answer: object


def ask(state: Order):
    print("asking about", state["order"])
    return {"answer": interrupt(f"confirm {state['order']}?")}


def confirming(mail):
    def confirm(state: Order):
        if state["answer"] is True:
            mail(order=state["order"], key=("confirmed", state["order"]))

    builder = StateGraph(Order).add_node("ask", ask).add_node("confirm", confirm)
    return builder.add_edge(START, "ask").add_edge("ask", "confirm")


def after(mail):
    return confirming(mail)


def split(mail):
    return confirming(mail)


def keyed(mail):
    def notify(state: Order):
        mail(state["order"], ("notice", state["order"]))

    builder = StateGraph(Order).add_node("notify", notify).add_node("ask", ask)
    return builder.add_edge(START, "notify").add_edge("notify", "ask")


# %% right: the thread's id in the key, and a retry policy on the node that sends
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, interrupt


class Order(TypedDict, total=False):
    order: str
    approved: bool


def key_of(config, what):
    return f"{config['configurable']['thread_id']}/{what}"


def after(mail):
    def ask(state, config):
        if interrupt("?") is True:
            mail(state["order"], key_of(config, "confirmation"))

    return StateGraph(Order).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    def ask(state):
        return {"approved": interrupt("?") is True}

    def send(state, config):
        mail(state["order"], key_of(config, "confirmation"))

    builder = StateGraph(Order).add_node("ask", ask)
    builder.add_node("send", send, retry_policy=RetryPolicy(initial_interval=0.01))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: state["approved"], {True: "send", False: END})
    return builder


def keyed(mail):
    def ask(state, config):
        mail(state["order"], key_of(config, "notice"))
        return {"approved": interrupt("?") is True}

    return StateGraph(Order).add_node("ask", ask).add_edge(START, "ask")


# %% wrong [keyed-one-notice, keyed-elsewhere, keyed-reply-lost]: a new uuid4 in the node
import uuid
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str
    approved: bool


def after(mail):
    def ask(state):
        approved = interrupt("?") is True
        if approved:
            mail(state["order"], str(uuid.uuid4()))
        return {"approved": approved}

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    def ask(state):
        return {"approved": interrupt("?") is True}

    def send(state):
        mail(state["order"], str(uuid.uuid4()))

    builder = StateGraph(State).add_node("ask", ask).add_node("send", send).add_edge(START, "ask")
    return builder.add_conditional_edges("ask", lambda state: "send" if state["approved"] else END)


def keyed(mail):
    def ask(state):
        mail(state["order"], str(uuid.uuid4()))
        return {"approved": interrupt("?") is True}

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


# %% wrong [split-mail-fails, keyed-one-notice, keyed-elsewhere, keyed-reply-lost]: a flag in the state before the question
import uuid
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str
    sent: bool
    approved: bool


def after(mail):
    def ask(state):
        if interrupt("?") is True and not state.get("sent"):
            mail(state["order"], str(uuid.uuid4()))
            state["sent"] = True
        return state

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    return after(mail)


def keyed(mail):
    def ask(state):
        if not state.get("sent"):
            mail(state["order"], str(uuid.uuid4()))
            state["sent"] = True
        state["approved"] = interrupt("?") is True
        return state

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


# %% wrong [split-mail-fails, keyed-one-notice, keyed-elsewhere, keyed-reply-lost]: a module flag
import uuid
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str


sent = False


def after(mail):
    def ask(state):
        if interrupt("?") is True:
            mail(state["order"], state["order"])

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    return after(mail)


def keyed(mail):
    def ask(state):
        global sent
        if not sent:
            mail(state["order"], str(uuid.uuid4()))
            sent = True
        interrupt("?")

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


# %% wrong [split-mail-fails, keyed-elsewhere, keyed-reply-lost]: a set of orders in the module
import uuid
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str


done = set()


def after(mail):
    def ask(state):
        if interrupt("?") is True and ("after", state["order"]) not in done:
            mail(state["order"], state["order"])

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    return after(mail)


def keyed(mail):
    def ask(state):
        if state["order"] not in done:
            mail(state["order"], str(uuid.uuid4()))
            done.add(state["order"])
        interrupt("?")

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


# %% wrong [after-only-true, after-elsewhere, split-only-true, split-elsewhere, split-mail-fails, keyed-one-notice, keyed-elsewhere, keyed-reply-lost]: except Exception around the question
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str


def careful(question):
    try:
        return interrupt(question)
    except Exception:
        return False


def after(mail):
    def ask(state):
        if careful("?") is True:
            mail(state["order"], state["order"])

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    return after(mail)


def keyed(mail):
    def ask(state):
        mail(state["order"], state["order"])
        careful("?")

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


# %% wrong [after-only-true, after-elsewhere, split-only-true, split-elsewhere, split-mail-fails, keyed-reply-lost]: the mail node before the question, with a key of its own making
import uuid
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str
    approved: bool


def keyed(mail):
    def send(state):
        mail(state["order"], uuid.uuid4())

    def ask(state):
        return {"approved": interrupt("?") is True}

    return StateGraph(State).add_sequence([send, ask]).add_edge(START, "send")


def after(mail):
    return keyed(mail)


def split(mail):
    return keyed(mail)


# %% wrong [after-only-true, split-only-true]: if answer
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str
    answer: object


def after(mail):
    def ask(state):
        answer = interrupt("?")
        if answer:
            mail(state["order"], state["order"])

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    def ask(state):
        return {"answer": interrupt("?")}

    def send(state):
        mail(state["order"], state["order"])

    builder = StateGraph(State).add_node("ask", ask).add_node("send", send).add_edge(START, "ask")
    return builder.add_conditional_edges("ask", lambda state: "send" if state["answer"] else END)


def keyed(mail):
    def ask(state):
        mail(state["order"], state["order"])
        interrupt("?")

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


# %% wrong [split-only-true, split-elsewhere, keyed-one-notice, keyed-elsewhere]: an edge always taken, and one key for all
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str
    approved: bool


def after(mail):
    def ask(state):
        if interrupt("?") is True:
            mail(state["order"], state["order"])

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    def ask(state):
        return {"approved": interrupt("?") is True}

    def send(state):
        mail(state["order"], state["order"])

    return StateGraph(State).add_sequence([ask, send]).add_edge(START, "ask")


def keyed(mail):
    def ask(state):
        mail(state["order"], "notice")
        interrupt("?")

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


# %% wrong [after-only-true, after-elsewhere, split-only-true, split-elsewhere, split-mail-fails, keyed-one-notice, keyed-reply-lost]: two questions in place of one, and a notice after the answer
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    order: str


def after(mail):
    def ask(state):
        if interrupt("sure?") and interrupt("really?"):
            mail(state["order"], state["order"])

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def split(mail):
    return after(mail)


def keyed(mail):
    def ask(state):
        interrupt("?")
        mail(state["order"], state["order"])

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")
