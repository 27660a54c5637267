"""Responses that are made in the background: asked for, looked after, cancelled and deleted by their id."""
import json
import time

import pytest

from harness.bridge import RESPONSES, Bridge, Proxy, response
from harness.processes import wait_until

ASKED = {**RESPONSES, "background": True, "metadata": {"a": "b"}}
ITEM = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "x", "annotations": []}]}


def begin(proxy, **more):
    status, begun = proxy.post("/v1/responses", {**ASKED, **more})
    assert status == 200 and begun["status"] == "queued" and begun["background"] is True and begun["output"] == [], begun
    assert begun["model"] == "m" and begun["metadata"] == {"a": "b"} and abs(begun["created_at"] - time.time()) < 600
    return begun["id"]


def look(proxy, id, method="GET", path=""):
    status, _, text = proxy.ask(method, f"/v1/responses/{id}{path}")
    return status, json.loads(text)


def wait_for(proxy, id):
    wait_until(lambda: look(proxy, id)[1]["status"] not in ("queued", "in_progress"), "the response to be made")
    return look(proxy, id)[1]


def test_it_is_made_while_nobody_waits(bridge):
    bridge.answers["generate_responses"] = lambda params: response(ITEM, metadata={"a": "b"})
    bridge.paused.set()
    one, other = begin(bridge), begin(bridge, model="m")
    assert one != other and one.startswith("resp_")
    assert look(bridge, one)[1]["status"] == look(bridge, other)[1]["status"] == "in_progress"
    bridge.paused.clear()
    for id in (one, other):
        made = wait_for(bridge, id)
        assert (made["id"], made["status"], made["background"], made["output"]) == (id, "completed", True, [ITEM])
        assert look(bridge, id)[1] == made  # as often as one likes
    assert [request["params"]["json_data"]["background"] for request in bridge.seen] == [True] * 2


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_its_own_end_is_told(bridge, status):
    bridge.answers["generate_responses"] = lambda params: {**response(), "status": status, "error": {"code": "c", "message": "no"}}
    made = wait_for(bridge, begin(bridge))
    assert made["status"] == status and made["error"] == {"code": "c", "message": "no"}


def test_a_provider_s_error_is_the_response_s(bridge):
    bridge.answers["generate_responses"] = lambda params: {"__inspect_provider_error__": {"status": 429, "message": "slowly"}}
    made = wait_for(bridge, begin(bridge))
    assert made["status"] == "failed" and made["error"] == {"code": "rate_limit_exceeded", "message": "slowly"}


def test_the_host_s_failure_ends_the_proxy_all_the_same(toolbox, workdir):
    bridge = Bridge(toolbox, workdir / "service")
    bridge.answers["generate_responses"] = lambda params: "no response"
    bridge.paused.set()
    begin(bridge)
    bridge.paused.clear()
    status, said = bridge.ended()
    assert status == 1 and "the host failed a request" in said


def test_it_can_be_cancelled(bridge):
    bridge.paused.set()
    id = begin(bridge)
    wait_until(bridge.files, "the request's file")
    assert look(bridge, id, "POST", "/cancel")[1]["status"] == "cancelled"
    wait_until(lambda: bridge.files() == [], "the request to be withdrawn")
    assert look(bridge, id)[1]["status"] == look(bridge, id, "POST", "/cancel")[1]["status"] == "cancelled"
    assert bridge.seen == []


def test_what_is_done_can_t_be_cancelled_any_more(bridge):
    made = wait_for(bridge, id := begin(bridge))
    assert look(bridge, id, "POST", "/cancel") == (200, made)


@pytest.mark.parametrize("done", [False, True])
def test_it_can_be_deleted(bridge, done):
    if not done:
        bridge.paused.set()
    id = begin(bridge)
    if done:
        wait_for(bridge, id)
    assert look(bridge, id, "DELETE") == (200, {"id": id, "object": "response", "deleted": True})
    wait_until(lambda: bridge.files() == [], "the request to be withdrawn")
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel")):
        status, answer = look(bridge, id, method, path)
        assert status == 404 and id in answer["error"]["message"]


@pytest.mark.parametrize("path", ["/cancel", ""])
def test_a_post_without_a_body_needs_no_type(bridge, path):
    """As clients cancel; nothing else is done by one."""
    with bridge.connect() as connection:
        connection.sendall(b"POST /v1/responses%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % (path and "/resp_1/cancel").encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 %d " % (404 if path else 400))
    assert bridge.seen == []


def test_a_stream_is_one_all_the_same(bridge):
    bridge.answers["generate_responses"] = lambda params: response(ITEM)
    assert bridge.stream("/v1/responses", {**ASKED, "stream": True})[-1][0] == "response.completed"


def test_the_oldest_go(bridge):
    ids = [begin(bridge) for _ in range(3)]
    for id in ids:
        wait_for(bridge, id)
    bridge.paused.set()
    running = [begin(bridge) for _ in range(98)]
    assert [look(bridge, id)[0] for id in ids] == [404, 200, 200]
    running += [begin(bridge), begin(bridge)]
    status, answer = bridge.post("/v1/responses", ASKED)
    assert status == 429 and "cancel" in answer["error"]["message"]
    look(bridge, running[0], "DELETE")
    begin(bridge)


def test_what_runs_is_withdrawn_at_the_end(bridge):
    bridge.paused.set()
    begin(bridge)
    wait_until(bridge.files, "the request's file")
    assert bridge.end() == (0, "") and bridge.files() == []


def test_what_a_program_has_made_is_counted(toolbox, workdir):
    answer = json.dumps(response(ITEM, usage={"input_tokens": 400, "output_tokens": 600}))
    (workdir / "answer").write_text(answer)
    proxy = Proxy(toolbox, "--to-exec", f"cat '{workdir}/answer'", "--budget", "tokens=1000")
    wait_for(proxy, begin(proxy))
    status, refused = proxy.post("/v1/responses", RESPONSES)
    assert status == 429 and refused["error"]["code"] == "insufficient_quota"
    assert proxy.end() == (0, "")
