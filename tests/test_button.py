"""The button test: its model, its panel, and a click as the page sends it to a real kernel."""

import asyncio
import threading
import time
from queue import Empty

import pytest
from jupyter_client.manager import start_new_kernel

from fixtures.labs.button import ButtonTest, Heard

TIME_LIMIT_S = 60


def test_the_model_counts_presses_and_tells_whoever_looks():
    told = []
    heard = Heard(on_change=lambda: told.append(heard.sentence))
    assert not heard.answered
    assert heard.sentence == "No press has arrived yet."
    heard.press()
    heard.press()
    assert heard.answered
    assert told == [
        "✔ The kernel answers: you pressed once.",
        "✔ The kernel answers: you pressed 2 times.",
    ]


async def test_a_click_from_another_thread_is_answered_on_the_thread_of_the_cell():
    panel = ButtonTest()
    assert "No press" in panel.answer.value
    answered, threads = asyncio.Event(), []

    def seen(_change):
        threads.append(threading.current_thread())
        answered.set()

    panel.answer.observe(seen, "value")
    await asyncio.to_thread(panel.button.click)
    await asyncio.wait_for(answered.wait(), TIME_LIMIT_S)
    assert "pressed once" in panel.answer.value
    assert threads == [threading.current_thread()]


async def test_without_a_page_the_panel_is_a_sentence_that_says_what_to_do():
    panel = ButtonTest()
    bundle = panel._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/plain"] == repr(panel)
    assert "run this cell" in repr(panel)
    assert "application/vnd.jupyter.widget-view+json" in data


def test_in_a_plain_script_there_is_no_loop_to_answer_in():
    with pytest.raises(RuntimeError, match="no running event loop"):
        ButtonTest()


@pytest.fixture(scope="module")
def kernel():
    """A real kernel, with a panel that was made in a cell which has long ended."""
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=TIME_LIMIT_S)
    try:
        code = "from fixtures.labs.button import ButtonTest\npanel = ButtonTest()"
        reply = client.execute_interactive(code, timeout=TIME_LIMIT_S, output_hook=lambda _message: None)
        assert reply["content"]["status"] == "ok", reply["content"]
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def value_of(client, expression):
    reply = client.execute_interactive(
        "", user_expressions={"value": expression}, timeout=TIME_LIMIT_S, output_hook=lambda _message: None
    )
    return reply["content"]["user_expressions"]["value"]["data"]["text/plain"].strip("'")


def answer_in_the_page(client):
    """Wait for the change of the answer's text that the kernel sends to the page."""
    until = time.monotonic() + TIME_LIMIT_S
    while time.monotonic() < until:
        try:
            message = client.get_iopub_msg(timeout=1)
        except Empty:
            continue
        state = message["content"].get("data", {}).get("state", {})
        if message["msg_type"] == "comm_msg" and "pressed" in state.get("value", ""):
            return state["value"]
    raise AssertionError(f"no answer within {TIME_LIMIT_S} s")


@pytest.mark.parametrize("way", ["main shell", "subshell"])
def test_a_click_as_the_page_sends_it_is_answered_by_a_kernel(kernel, way):
    before = int(value_of(kernel, "panel.heard.presses"))
    click = {"comm_id": value_of(kernel, "panel.button.model_id")}
    click["data"] = {"method": "custom", "content": {"event": "click"}}
    message = kernel.session.msg("comm_msg", click)
    if way == "subshell":
        message["header"]["subshell_id"] = subshell_of(kernel)
    kernel.shell_channel.send(message)
    times = "once" if before == 0 else f"{before + 1} times"
    assert f"you pressed {times}." in answer_in_the_page(kernel)


def subshell_of(client):
    """Make a subshell, as JupyterLab does for a widget's messages where the kernel has them."""
    client.kernel_info()
    features = client.get_shell_msg(timeout=TIME_LIMIT_S)["content"].get("supported_features", [])
    if "kernel subshells" not in features:
        pytest.skip("this ipykernel has no subshells")
    client.control_channel.send(client.session.msg("create_subshell_request"))
    return client.get_control_msg(timeout=TIME_LIMIT_S)["content"]["subshell_id"]
