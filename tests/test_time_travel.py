"""Chapter 05: what going back in a thread runs and keeps; effects on edges; recorded calls; the exercise."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from html.parser import HTMLParser
from typing import Annotated, Any, TypedDict

import pytest
from answer_cells import Answer, answers, run_cell
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import EmptyInputError
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from fixtures.checks import c05_time_travel
from fixtures.experiments import time_travel
from fixtures.experiments.options import BadOption
from fixtures.experiments.time_travel import Edge, Recording, Witness, try_ids
from fixtures.graphs import approval, counter
from fixtures.graphs.payroll import payroll
from fixtures.views import edges

CONFIG = {"configurable": {"thread_id": "monday"}}
HOURS = {"Ann": 8, "Bo": 80, "Chen": 6, "Dora": 7}
RIGHT = HOURS | {"Bo": 8}


@pytest.fixture(params=["memory", "sqlite"])
def saver(request) -> Iterator[Any]:
    if request.param == "memory":
        yield InMemorySaver()
        return
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


class Monday:
    """The payroll of the chapter, run once."""

    def __init__(self, saver: Any):
        self.world = Witness()
        self.graph = payroll(self.read_clock, self.world).compile(checkpointer=saver)
        self.graph.invoke({}, CONFIG)
        self.first = self.history()

    def read_clock(self) -> dict[str, int]:
        self.world("clock read")
        return HOURS

    def history(self) -> list:
        """Oldest first."""
        return list(self.graph.get_state_history(CONFIG))[::-1]

    def made_by(self, call: Callable[[], Any]) -> tuple[Any, list[str]]:
        before = len(self.world.in_order())
        came_back = call()
        return came_back, self.world.in_order()[before:]


@pytest.fixture
def monday(saver) -> Monday:
    return Monday(saver)


# --- history


def test_history_is_newest_first_and_before_is_exclusive(monday):
    first = list(monday.graph.get_state_history(CONFIG))
    assert [one.metadata["step"] for one in first] == [5, 4, 3, 2, 1, 0, -1]
    assert list(monday.graph.get_state_history(CONFIG, limit=2)) == first[:2]
    assert list(monday.graph.get_state_history(CONFIG, limit=0)) == []
    assert list(monday.graph.get_state_history(CONFIG, before=first[3].config)) == first[4:]


def test_a_filter_sees_metadata_only(monday):
    def found(**wanted) -> list[int]:
        return [one.metadata["step"] for one in monday.graph.get_state_history(CONFIG, filter=wanted)]

    assert found(step=3) == [3]
    assert found(source="input") == [-1]
    assert found(source="loop", step=2) == [2]
    assert found(total=880) == []


# --- replay, fork, new input


def test_a_replay_runs_again_what_comes_after_and_nothing_before(monday):
    came_back, made = monday.made_by(lambda: monday.graph.invoke(None, monday.first[3].config))
    assert came_back["total"] == 1010
    assert made == ["Bo 800", "Chen 60", "Dora 70"]
    new = monday.history()[len(monday.first) :]
    assert [one.metadata["source"] for one in new] == ["fork", "loop", "loop", "loop"]
    assert new[0].parent_config == monday.first[3].config
    assert new[0].values == monday.first[3].values


def test_a_fork_runs_on_from_the_change_and_keeps_the_old_run(monday):
    good = monday.first[3]
    changed, made = monday.made_by(lambda: monday.graph.update_state(good.config, {"hours": RIGHT}))
    assert (made, monday.graph.get_state(changed).next) == ([], ("pay",))
    assert monday.graph.get_state(changed).parent_config == good.config
    came_back, made = monday.made_by(lambda: monday.graph.invoke(None, changed))
    assert (came_back["total"], made) == (290, ["Bo 80", "Chen 60", "Dora 70"])
    assert monday.history()[: len(monday.first)] == monday.first
    assert monday.graph.get_state(CONFIG).values["total"] == 290
    assert monday.graph.get_state(monday.first[-1].config).values["total"] == 1010


def test_an_old_end_becomes_the_head_by_a_copy_that_runs_nothing(monday):
    end = monday.first[-1].config
    monday.graph.invoke(None, monday.graph.update_state(monday.first[3].config, {"hours": RIGHT}))
    came_back, made = monday.made_by(lambda: monday.graph.invoke(None, end))
    head = monday.graph.get_state(CONFIG)
    assert (came_back["total"], made) == (1010, [])
    assert (head.metadata["source"], head.parent_config, head.next) == ("fork", end, ())


def test_a_new_input_at_an_old_checkpoint_starts_at_the_entry(monday):
    came_back, made = monday.made_by(lambda: monday.graph.invoke({"total": 0}, monday.first[3].config))
    # One person counts as paid there, so that Ann is not paid again; the clock is read all the same.
    assert made == ["clock read", "Bo 800", "Chen 60", "Dora 70"]
    assert came_back["total"] == 930


@pytest.mark.parametrize(
    ("given", "change", "ran", "total"),
    [
        (None, None, ["second"], 3),
        (None, {"total": 100}, ["second"], 102),
        ({"total": 100}, None, ["first", "second"], 103),
    ],
)
def test_the_published_line_does_not_continue(saver, given, change, ran, total):
    entered: list[str] = []
    graph = counter.plain(effect=entered.append).compile(checkpointer=saver)
    graph.invoke({"total": 0}, CONFIG)
    that = list(graph.get_state_history(CONFIG))[-3]
    assert (that.values, that.next) == ({"total": 1}, ("second",))
    config = graph.update_state(that.config, change) if change else that.config
    entered.clear()
    assert graph.invoke(given, config)["total"] == total
    assert entered == ran


def test_command_update_at_an_old_checkpoint_is_a_fork_too(monday):
    command = Command(update={"hours": RIGHT})
    came_back, made = monday.made_by(lambda: monday.graph.invoke(command, monday.first[3].config))
    assert (came_back["total"], made) == (290, ["Bo 80", "Chen 60", "Dora 70"])


# --- ids that are not there


def test_odd_ids():
    seen = {(one.id, one.call): one for one in try_ids()}
    for odd in time_travel.IDS:
        assert seen[odd, "get_state"].came_back == "{}"
        assert seen[odd, "invoke(None)"].came_back == "EmptyInputError"
        for call in ("get_state", "invoke(None)"):
            one = seen[odd, call]
            assert (one.payments, one.head, one.total) == (0, "as before", 150)
        one = seen[odd, "invoke(an input)"]
        assert (one.came_back, one.payments, one.head, one.total) == ("total 150", 2, "a new one", 150)
        assert one.keys == "hours, paid, total"
        one = seen[odd, "update_state"]
        assert (one.came_back, one.payments, one.head, one.total, one.keys) == (
            "no error", 0, "a new one", 0, "total"
        )  # fmt: skip


def test_odd_ids_on_each_saver(monday):
    typo = {"configurable": {"thread_id": "monday", "checkpoint_id": time_travel.NOWHERE}}
    assert monday.graph.get_state(typo).created_at is None
    with pytest.raises(EmptyInputError):
        monday.graph.invoke(None, typo)
    assert monday.history() == monday.first
    came_back, made = monday.made_by(lambda: monday.graph.invoke({}, typo))
    assert made == ["clock read", "Ann 80", "Bo 800", "Chen 60", "Dora 70"]
    assert monday.graph.get_state(CONFIG).values == came_back


def test_odd_ids_are_asked_for_by_name():
    with pytest.raises(BadOption, match="'nonsense'"):
        try_ids(ids=["nonsense"])
    with pytest.raises(BadOption, match="'delete'"):
        try_ids(calls=["delete"])


# --- old answers


def test_an_old_answer_is_kept_until_the_question_is_asked_again(saver):
    graph = approval.approve().compile(checkpointer=saver)
    graph.invoke({"draft": "d"}, CONFIG)
    asked = graph.get_state(CONFIG).config
    assert graph.invoke(Command(resume=False), CONFIG)["approved"] is False
    end = graph.get_state(CONFIG).config
    assert graph.invoke(Command(resume=True), asked)["approved"] is False
    assert "__interrupt__" in graph.invoke(None, asked)
    assert graph.invoke(Command(resume=True), CONFIG)["approved"] is True
    assert graph.get_state(end).values["approved"] is False


# --- effects on the edges


def happened(seen: tuple[Edge, ...]) -> dict[str, tuple[str, ...]]:
    return {f"{one.parent}→{one.label}": one.effects for one in seen if one.effects}


def test_an_effect_belongs_to_the_edge_on_which_it_happened(monday):
    monday.graph.invoke(None, monday.first[3].config)
    seen = monday.world.edges(monday.graph, CONFIG)
    assert happened(seen) == {
        "c1→c2": ("clock read",),
        "c2→c3": ("Ann 80",),
        "c3→c4": ("Bo 800",),
        "c4→c5": ("Chen 60",),
        "c5→c6": ("Dora 70",),
        "c7→c8": ("Bo 800",),
        "c8→c9": ("Chen 60",),
        "c9→c10": ("Dora 70",),
    }
    assert [(one.label, one.parent, one.ran) for one in seen if one.source == "fork"] == [("c7", "c3", ())]
    assert sum(len(one.effects) for one in seen) == len(monday.world.in_order())


def test_two_branches_from_one_checkpoint_keep_their_effects_apart(saver):
    """An answer at an old checkpoint makes a second child without a copy in between."""
    world = Witness()
    graph = approval.approve(visited=lambda: world("entered")).compile(checkpointer=saver)
    graph.invoke({"draft": "d"}, CONFIG)
    asked = graph.get_state(CONFIG).config
    assert [one.unsaved for one in world.edges(graph, CONFIG)][-1] == ("entered",)
    graph.invoke(Command(resume=False), CONFIG)
    graph.invoke(Command(resume=True), asked)
    assert happened(world.edges(graph, CONFIG)) == {"c1→c2": ("entered", "entered"), "c1→c3": ("entered",)}


def test_a_step_that_failed_counts_where_it_was_tried_again(saver):
    world = Witness()

    def fails_once(state: dict) -> dict:
        world("tried")
        if len(world.in_order()) == 1:
            raise RuntimeError("once")
        return {"value": 1}

    class State(TypedDict):
        value: int

    graph = StateGraph(State).add_node("node", fails_once).add_edge(START, "node").compile(checkpointer=saver)
    with pytest.raises(RuntimeError):
        graph.invoke({"value": 0}, CONFIG)
    assert world.edges(graph, CONFIG)[-1].unsaved == ("tried",)
    graph.invoke(None, CONFIG)
    seen = world.edges(graph, CONFIG)
    assert happened(seen) == {"c1→c2": ("tried", "tried")}
    assert not any(one.unsaved for one in seen)


def test_parallel_nodes_and_other_threads(saver):
    world = Witness()

    class State(TypedDict):
        found: Annotated[list, lambda old, new: old + new]

    builder = StateGraph(State)
    for node in ("left", "right"):
        builder.add_node(node, lambda state, node=node: world(node)).add_edge(START, node)
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"found": []}, CONFIG)
    graph.invoke({"found": []}, {"configurable": {"thread_id": "other"}})
    seen = world.edges(graph, CONFIG)
    assert [sorted(one.effects) for one in seen if one.effects] == [["left", "right"]]
    assert world.count() == {"left": 2, "right": 2} or world.count() == {"right": 2, "left": 2}


@pytest.mark.parametrize("how", ["as a node", "called in a node"])
def test_an_effect_in_a_graph_inside_a_node_is_on_the_edge_of_this_node(saver, how):
    world = Witness()

    class State(TypedDict, total=False):
        value: int

    inner = StateGraph(State).add_node("deep", lambda state: world("deep")).add_edge(START, "deep").compile()

    def calls(state: dict) -> None:
        inner.invoke({"value": 1})

    builder = StateGraph(State).add_node("before", lambda state: world("before"))
    builder.add_node("around", inner if how == "as a node" else calls)
    graph = builder.add_edge(START, "before").add_edge("before", "around").compile(checkpointer=saver)
    graph.invoke({"value": 0}, CONFIG)
    old = list(graph.get_state_history(CONFIG))[1]
    assert happened(world.edges(graph, CONFIG)) == {"c1→c2": ("before",), "c2→c3": ("deep",)}
    graph.invoke(None, old.config)
    assert happened(world.edges(graph, CONFIG))["c4→c5"] == ("deep",)


def test_an_effect_of_a_router_that_update_state_asks_is_on_no_edge(saver):
    world = Witness()

    def on(state: dict) -> str:
        world("asked")
        return "__end__"

    class State(TypedDict, total=False):
        value: int

    graph = StateGraph(State).add_node("node", lambda state: {"value": 1}).add_edge(START, "node")
    graph = graph.add_conditional_edges("node", on, ["__end__"]).compile(checkpointer=saver)
    graph.invoke({"value": 0}, CONFIG)
    graph.update_state(CONFIG, {"value": 2})
    assert world.in_order() == ["asked", "asked"]
    assert happened(world.edges(graph, CONFIG)) == {"c1→c2": ("asked",)}


def test_an_effect_outside_a_graph_is_on_no_edge(monday):
    before = monday.world.edges(monday.graph, CONFIG)
    monday.world("by hand")
    assert monday.world.edges(monday.graph, CONFIG) == before
    assert monday.world.in_order()[-1] == "by hand"


def test_a_thread_that_never_started_has_no_edges(monday):
    assert monday.world.edges(monday.graph, {"configurable": {"thread_id": "never"}}) == ()


async def ask_async(graph: CompiledStateGraph) -> None:
    await graph.ainvoke({}, CONFIG)


def test_async_runs_are_counted_too():
    import asyncio

    world = Witness()

    async def node(state: dict) -> None:
        await asyncio.sleep(0)
        world("called")

    graph = StateGraph(dict).add_node("node", node).add_edge(START, "node")
    graph = graph.compile(checkpointer=InMemorySaver())
    asyncio.run(ask_async(graph))
    assert happened(world.edges(graph, CONFIG)) == {"c1→c2": ("called",)}


# --- the drawing


class Texts(HTMLParser):
    def __init__(self, source: str):
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] == "text":
            self.texts.append(data)


def test_the_drawing_says_all_that_the_edges_say(monday):
    monday.graph.invoke(None, monday.first[3].config)
    monday.graph.invoke(None, monday.graph.update_state(monday.first[3].config, {"hours": RIGHT}))
    seen = monday.world.edges(monday.graph, CONFIG)
    picture = edges.picture(seen, key="total")
    page = Texts(picture._repr_html_())
    assert page.open == []
    for one in seen:
        assert one.label in page.texts
        for effect in one.effects:
            assert f"pay: {effect}" in page.texts or f"load: {effect}" in page.texts
        assert f"{one.label}: " in repr(picture)
    assert [text for text in page.texts if text in ("fork", "update")] == ["fork", "update"]
    assert sum(attributes.get("class") == "fx-effect" for _, attributes in page.tags) == 11
    assert [text for text in page.texts if "newest" in text] == ["total 290 · newest"]


def test_a_branch_gets_a_column_and_stands_below_its_parent(monday):
    monday.graph.invoke(None, monday.first[3].config)
    seen = monday.world.edges(monday.graph, CONFIG)
    at = edges.places(seen)
    assert [at[f"c{n}"] for n in (0, 3, 6)] == [edges.Place(0, 0), edges.Place(0, 3), edges.Place(0, 6)]
    assert [at[f"c{n}"] for n in (7, 10)] == [edges.Place(1, 4), edges.Place(1, 7)]
    assert len(set(at.values())) == len(seen)


def test_how_often_is_said_and_names_are_only_text():
    hostile = "<script>alert(1)</script>\x1b[31m"
    seen = [
        Edge(label="c0", parent="-", source="input", ran=(), values=(), next=("n",), effects=()),
        Edge(
            label="c1", parent="c0", source="loop", ran=("n",), values=(("k", hostile),), next=(),
            effects=("mail", "mail", hostile), unsaved=("late",),
        ),
    ]  # fmt: skip
    picture = edges.picture(seen, key="k")
    page = Texts(picture._repr_html_())
    assert "script" not in [tag for tag, _ in page.tags]
    assert "\x1b" not in picture._repr_html_() + repr(picture)
    assert "3" in page.texts
    assert "mail ×2" in repr(picture)
    assert "unsaved: late" in page.texts


def test_no_thread_is_drawn_as_a_sentence():
    picture = edges.picture((), key="total")
    assert "never started" in repr(picture)
    assert "never started" in picture._repr_html_()


# --- recorded calls


def test_a_stand_in_answers_as_the_world_did_and_does_nothing(monday):
    clock, calls, world = dict(HOURS), Recording(), Witness()
    builder = payroll(calls.record(lambda: dict(clock), "clock"), calls.record(world, "bank"))
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({}, CONFIG)
    start = list(graph.get_state_history(CONFIG))[-2].config
    clock["Bo"] = 8
    before = len(world.in_order())
    played = payroll(calls.play("clock"), calls.play("bank")).compile(checkpointer=graph.checkpointer)
    assert played.invoke(None, start)["total"] == 1010
    assert len(world.in_order()) == before
    assert graph.invoke(None, start)["total"] == 290
    assert len(world.in_order()) == before + 4


def test_answers_come_in_order_and_the_last_one_stays():
    calls = Recording()
    numbers = iter([1, 2])
    call = calls.record(lambda name: next(numbers), "number")
    assert [call("a"), call("a")] == [1, 2]
    with pytest.raises(StopIteration):
        call("a")
    stand_in = calls.play("number")
    assert [stand_in("a") for _ in range(3)] == [1, 2, 2]
    assert calls.play("number")("a") == 1


def test_a_call_that_was_not_recorded_is_an_error_that_names_it():
    calls = Recording()
    calls.record(len, "size")("abc")
    for name, arguments, said in (("size", ("xy",), r"size\('xy'\)"), ("other", (), r"other\(\)")):
        with pytest.raises(LookupError, match=said):
            calls.play(name)(*arguments)


# --- the exercise


@pytest.mark.parametrize("answer", answers("05"), ids=lambda one: one.title)
def test_kept_answers_are_judged_right(answer: Answer):
    cell = answer.functions()
    verdict = c05_time_travel.check(cell["first_bad"], cell["fork"], seed="a student")
    assert set(verdict.failed) == set(answer.fails), str(verdict)


def test_the_answers_are_enough_and_fail_each_requirement():
    kept = answers("05")
    assert sum(one.right for one in kept) >= 2
    assert sum(not one.right for one in kept) >= 4
    assert {key for one in kept for key in one.fails} == {one.key for one in c05_time_travel.REQUIREMENTS}


def test_a_plan_has_its_fault_at_the_start_at_the_end_and_between():
    plans = [c05_time_travel.draw(random.Random(seed)) for seed in range(50)]
    for plan in plans:
        last = len(plan["people"]) - 1
        assert sorted(plan["faults"]) == [0, plan["middle"], last]
        assert 0 < plan["middle"] < last
        # Wrong from there on, and only there.
        assert plan["wrong"] > sum(plan["hours"])
    assert len({str(plan) for plan in plans}) == 50


def test_an_answer_that_returns_something_else_is_told_what():
    cell = run_cell(
        "def first_bad(graph, config, is_bad):\n    return 5\n"
        "def fork(graph, snapshot, values):\n    raise NotImplementedError()\n"
    )
    verdict = c05_time_travel.check(cell["first_bad"], cell["fork"], seed=1)
    why = {line.key: line.why for line in verdict.lines}
    assert "an object of type int, not a snapshot" in why["first-bad"]
    assert {why[key] for key in ("right-result", "old-run-stays", "first-step")} == {"not written yet"}
