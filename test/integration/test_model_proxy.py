"""The model proxy from its clients' side: routes, streams, errors, and everything that goes wrong between the two."""
import concurrent.futures
import contextlib
import gzip
import http.client
import io
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import time
import zlib
from pathlib import Path

import pytest

from harness import needs
from harness.bridge import (
    CHAT,
    GOOGLE,
    MESSAGES,
    PATHS,
    RESPONSES,
    TEXT,
    Bridge,
    completion,
    events,
    message,
    read_all,
    response,
    send_post,
)
from harness.machine import HANG
from harness.processes import wait_until
from harness.sessions import SANITIZED

CUT_OFF = (OSError, http.client.HTTPException)  # what a client sees of a proxy that ends

# ---- what the host is asked ----


@pytest.mark.parametrize("path", PATHS)
def test_the_request_file(bridge, path):
    body = dict(PATHS[path], number=9007199254740993, text=TEXT, nested=[{"a": None}])
    status, answer = bridge.post(path, body)
    assert status == 200
    [request] = bridge.seen
    expected = {
        "/v1/chat/completions": ("generate_completions", dict(body, parallel_tool_calls=False)),
        "/v1/responses": ("generate_responses", body),
        "/v1/messages": ("generate_anthropic", body),
        "/v1beta/models/g:generateContent": ("generate_google", dict(body, model="g")),
    }[path]
    assert (request["method"], request["params"]) == (expected[0], {"json_data": expected[1]})
    assert answer == bridge.answers[expected[0]](None)


def test_parallel_calls_are_never_asked_for(bridge):
    bridge.post("/v1/chat/completions", dict(CHAT, parallel_tool_calls=True))
    assert bridge.seen[0]["params"]["json_data"]["parallel_tool_calls"] is False


@pytest.mark.parametrize("path, model", [
    ("/models/g:generateContent", "g"), ("/v1/models/g:generateContent", "g"), ("/v1beta/models/a%2Fb:generateContent?key=x", "a/b"),
    ("/v1beta/models/tuned:1:generateContent", "tuned:1"), ("/v1beta/models/%C3%A9:generateContent", "é")])
def test_google_paths(bridge, path, model):
    assert bridge.post(path, dict(GOOGLE, model="other"))[0] == 200
    assert bridge.seen[0]["params"]["json_data"]["model"] == model


@pytest.fixture
def inspect_bridge(toolbox, workdir):
    """Under the name by which the evaluation's own host places it."""
    (workdir / "inspect-sandbox-tools").symlink_to(toolbox)
    bridge = Bridge(str(workdir / "inspect-sandbox-tools"), workdir / "service")
    yield bridge
    assert bridge.end() == (0, "") and bridge.files() == []


FIELDS = {"anthropic-beta": "a,b", "X-Twice": "1", "Accept-Encoding": "gzip"}


def test_headers_are_handed_to_a_host_that_knows_them(inspect_bridge):
    for path in PATHS:
        inspect_bridge.ask("POST", path, PATHS[path], FIELDS)
        params = inspect_bridge.seen[-1]["params"]
        if "google" in inspect_bridge.seen[-1]["method"]:
            assert "headers" not in params
        else:
            assert {"anthropic-beta": "a,b", "x-twice": "1", "accept-encoding": "gzip", "content-type": "application/json"}.items() <= params["headers"].items()
    with inspect_bridge.connect() as connection:
        send_post(connection, "/v1/messages", MESSAGES, b"X-Twice: 1\r\nx-twice: 2\r\nConnection: close\r\n")
        read_all(connection)
    assert inspect_bridge.seen[-1]["params"]["headers"]["x-twice"] == "1, 2"


@pytest.mark.parametrize("stream", [False, True])
def test_a_host_from_before_there_were_headers(inspect_bridge, stream):
    """It says so once, and is asked without them from then on."""
    def old(params):
        if "headers" in params:
            raise RuntimeError("Error calling method m: generate_messages.<locals>.generate() got an unexpected keyword argument 'headers'")
        return message({"type": "text", "text": "x"})

    inspect_bridge.answers["generate_anthropic"] = old
    for _ in range(2):
        assert inspect_bridge.ask("POST", "/v1/messages", dict(MESSAGES, stream=stream))[0] == 200
    assert ["headers" in request["params"] for request in inspect_bridge.seen] == [True, False, False]


def test_an_answer_in_a_string(bridge):
    """Some hosts give the answer as the text of it."""
    bridge.answers["generate_completions"] = lambda params: json.dumps(completion())
    assert bridge.post("/v1/chat/completions", CHAT) == (200, completion())
    assert "".join(e[1]["choices"][0]["delta"].get("content", "") for e in
                   bridge.stream("/v1/chat/completions", dict(CHAT, stream=True))[:-1]) == TEXT


# ---- streams ----


def test_chat_completion_chunks(bridge):
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": TEXT})}},
             {"id": "2", "type": "custom", "custom": {"name": "c", "input": TEXT}}]
    bridge.answers["generate_completions"] = lambda params: completion(refusal="no", tool_calls=calls)
    found = bridge.stream("/v1/chat/completions", dict(CHAT, stream=True))
    assert found[-1] == (None, "[DONE]")
    chunks = [data for _, data in found[:-1]]
    assert all(chunk["object"] == "chat.completion.chunk" and chunk["id"] == "c" and chunk["model"] == "m" for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta.get("content") or "" for delta in deltas) == TEXT
    assert max(len(delta.get("content") or "") for delta in deltas) < len(TEXT) / 4
    assert "".join(delta.get("refusal") or "" for delta in deltas) == "no"
    parts = [part for delta in deltas for part in delta.get("tool_calls", [])]
    assert [(part["index"], part["id"], part["type"]) for part in parts if "id" in part] == [(0, "1", "function"), (1, "2", "custom")]
    assert "".join(part["function"]["arguments"] for part in parts if part["index"] == 0) == calls[0]["function"]["arguments"]
    assert "".join(part["custom"]["input"] for part in parts if part["index"] == 1) == TEXT
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"][0]["finish_reason"]] == ["stop"]
    assert not any("usage" in chunk for chunk in chunks)


def test_usage_where_it_is_asked_for(bridge):
    found = bridge.stream("/v1/chat/completions", dict(CHAT, stream=True, stream_options={"include_usage": True}))
    assert found[-2][1]["usage"] == {"total_tokens": 3} and found[-2][1]["choices"] == []


def test_several_choices(bridge):
    two = completion()
    two["choices"].append({"index": 1, "finish_reason": "length", "message": {"role": "assistant", "content": "b" * 200}})
    bridge.answers["generate_completions"] = lambda params: two
    found = [data["choices"][0] for _, data in bridge.stream("/v1/chat/completions", dict(CHAT, stream=True))[:-1]]
    assert "".join(c["delta"].get("content", "") for c in found if c["index"] == 1) == "b" * 200
    assert "".join(c["delta"].get("content", "") for c in found if c["index"] == 0) == TEXT


ITEMS = [
    ({"type": "function_call", "id": "i", "name": "f", "arguments": TEXT, "status": "completed"},
     "function_call_arguments.delta function_call_arguments.done"),
    ({"type": "custom_tool_call", "id": "i", "input": "x"}, "custom_tool_call_input.delta custom_tool_call_input.done"),
    ({"type": "web_search_call", "id": "i"}, "web_search_call.in_progress web_search_call.searching web_search_call.completed"),
    ({"type": "file_search_call", "id": "i"}, "file_search_call.in_progress file_search_call.searching file_search_call.completed"),
    ({"type": "image_generation_call", "id": "i"},
     "image_generation_call.in_progress image_generation_call.generating image_generation_call.completed"),
    ({"type": "code_interpreter_call", "id": "i", "code": "1"},
     "code_interpreter_call.in_progress code_interpreter_call_code.delta code_interpreter_call_code.done"
     " code_interpreter_call.interpreting code_interpreter_call.completed"),
    ({"type": "mcp_call", "id": "i", "arguments": "{}"},
     "mcp_call.in_progress mcp_call_arguments.delta mcp_call_arguments.done mcp_call.completed"),
    ({"type": "mcp_call", "id": "i", "arguments": "", "error": "bad"},
     "mcp_call.in_progress mcp_call_arguments.done mcp_call.failed"),
    ({"type": "mcp_list_tools", "id": "i"}, "mcp_list_tools.in_progress mcp_list_tools.completed"),
    ({"type": "computer_call", "id": "i", "action": {"type": "wait"}}, ""),
    ({"type": "not_known_yet", "id": "i", "x": [1]}, ""),
    ({"type": "message", "id": "i", "content": [{"type": "refusal", "refusal": "no"}]},
     "content_part.added refusal.delta refusal.done content_part.done"),
    ({"type": "reasoning", "id": "i", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}]},
     "reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done"
     " content_part.added reasoning_text.delta reasoning_text.done content_part.done"),
]


@pytest.mark.parametrize("item, names", ITEMS, ids=lambda value: value.get("type") if isinstance(value, dict) else "")
def test_responses_events(bridge, item, names):
    bridge.answers["generate_responses"] = lambda params: response({"type": "other"}, item)
    found = bridge.stream("/v1/responses", dict(RESPONSES, stream=True))
    assert all(name == data["type"] for name, data in found)
    assert [data["sequence_number"] for _, data in found] == list(range(1, len(found) + 1))
    kinds = [name.removeprefix("response.") for name, _ in found]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "output_item.done"] and kinds[-1] == "completed"
    own = found[4:-1]
    inner = [name for i, name in enumerate(kinds[4:-1]) if not (name.endswith(".delta") and kinds[3 + i] == name)]
    assert inner == ["output_item.added", *names.split(), "output_item.done"]
    status = {} if item["type"] in ("reasoning", "mcp_list_tools", "not_known_yet") else {"status": "completed"}
    assert all(data["output_index"] == 1 for _, data in own) and own[-1][1]["item"] == {**item, **status}
    assert own[0][1]["item"].get("status") == (status and "in_progress" or None)
    assert all(data["item_id"] == "i" for _, data in own[1:-1])
    streamed = {"function_call": "arguments", "message": None}.get(item["type"])
    if streamed:
        assert "".join(data["delta"] for _, data in own if "delta" in data) == item[streamed]
        assert own[0][1]["item"][streamed] == ""
    assert found[0][1]["response"]["output"] == [] and found[0][1]["response"]["status"] == "in_progress"
    assert found[-1][1]["response"] == bridge.answers["generate_responses"](None)


def test_a_response_s_text(bridge):
    notes = [{"type": "url_citation", "url": "u"}, {"type": "url_citation", "url": "v"}]
    item = {"type": "message", "id": "i", "status": "completed", "content": [{"type": "output_text", "text": TEXT, "annotations": notes}]}
    bridge.answers["generate_responses"] = lambda params: response(item)
    found = bridge.stream("/v1/responses", dict(RESPONSES, stream=True))
    assert "".join(data["delta"] for name, data in found if name == "response.output_text.delta") == TEXT
    assert [data["annotation"] for name, data in found if name == "response.output_text.annotation.added"] == notes
    [added] = [data for name, data in found if name == "response.content_part.added"]
    assert added["part"] == {"type": "output_text", "text": "", "annotations": []}
    [begun] = [data for name, data in found if name == "response.output_item.added"]
    assert begun["item"] == {"type": "message", "id": "i", "status": "in_progress", "content": []}


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_a_response_that_did_not_complete(bridge, status):
    bridge.answers["generate_responses"] = lambda params: response(status=status)
    assert bridge.stream("/v1/responses", dict(RESPONSES, stream=True))[-1][0] == f"response.{status}"


def test_anthropic_events(bridge):
    tool = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": TEXT, "b": 1.50}}
    blocks = [{"type": "thinking", "thinking": TEXT, "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
              {"type": "text", "text": TEXT, "citations": [{"type": "page_location", "n": 1}]}, tool,
              {"type": "server_tool_use", "id": "u", "name": "web_search", "input": {}},
              {"type": "web_search_tool_result", "tool_use_id": "u", "content": [1]}]
    bridge.answers["generate_anthropic"] = lambda params: message(*blocks)
    found = bridge.stream("/v1/messages", dict(MESSAGES, stream=True))
    assert all(name == data["type"] for name, data in found)
    names = [name for name, _ in found]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    start = found[0][1]["message"]
    assert start["model"] == "m" and start["content"] == [] and start["usage"] == {"input_tokens": 0, "output_tokens": 0}
    begun = [data["content_block"] for name, data in found if name == "content_block_start"]
    assert begun == [{"type": "thinking", "thinking": "", "signature": ""}, blocks[1], {"type": "text", "text": ""},
                     dict(tool, input={}), blocks[4], blocks[5]]

    def deltas(index, key):
        return [data["delta"][key] for name, data in found
                if name == "content_block_delta" and data["index"] == index and key in data["delta"]]

    assert "".join(deltas(0, "thinking")) == TEXT and deltas(0, "signature") == ["s"]
    assert "".join(deltas(2, "text")) == TEXT and deltas(2, "citation") == blocks[2]["citations"]
    assert json.loads("".join(deltas(3, "partial_json"))) == tool["input"] and len(deltas(3, "partial_json")) > 4
    assert found[-2][1]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert found[-2][1]["usage"] == {"input_tokens": 5, "output_tokens": 7}


def test_blocks_of_a_message_that_hosts_write_otherwise(bridge):
    blocks = [{"type": "fallback", "from_": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}},
              {"type": "compaction", "content": TEXT, "encrypted_content": "e"}, {"type": "fallback", "from": {"model": "c"}}]
    bridge.answers["generate_anthropic"] = lambda params: message(*blocks)
    found = bridge.stream("/v1/messages", dict(MESSAGES, stream=True))
    starts = [data["content_block"] for name, data in found if name == "content_block_start"]
    assert starts == [{"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}},
                      {"type": "compaction", "content": "", "encrypted_content": "e"}, blocks[2]]
    assert [data["delta"] for name, data in found if name == "content_block_delta"] == [
        {"type": "compaction_delta", "content": TEXT, "encrypted_content": "e"}]


def test_items_that_lack_what_clients_demand(bridge):
    """Members that hosts leave out, or give as null."""
    tools = [{"name": "t", "input_schema": {"type": "object"}, "annotations": None, "description": None}]
    bridge.answers["generate_responses"] = lambda params: response(
        {"type": "function_call", "id": None, "status": None, "call_id": "k", "name": "f", "arguments": "{}"},
        {"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": tools, "error": None},
        {"type": "function_call", "id": "i", "status": "incomplete", "call_id": "k", "name": "f", "arguments": "{"},
        {"type": "apply_patch_call_output", "id": "o", "call_id": "k", "status": "failed"},
        {"type": "program_output", "id": "o", "call_id": "k", "result": "x"})
    found = bridge.stream("/v1/responses", dict(RESPONSES, stream=True))
    added, done = ([data["item"] for name, data in found if name == f"response.output_item.{when}"] for when in ("added", "done"))
    assert (added[0]["id"], added[0]["status"], done[0]["id"], done[0]["status"]) == ("item_0", "in_progress", "item_0", "completed")
    assert {data["item_id"] for _, data in found if data.get("output_index") == 0 and "item_id" in data} == {"item_0"}
    assert done[1] == {"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": [{"name": "t", "input_schema": {"type": "object"}}]}
    assert done[2]["status"] == "incomplete" and done[2]["id"] == "i"
    assert [item["status"] for item in added[3:]] == [item["status"] for item in done[3:]] == ["failed", "completed"]  # no output is in progress


def test_a_message_starts_before_there_is_an_answer(bridge):
    bridge.paused.set()
    with bridge.connect() as connection:
        send_post(connection, "/v1/messages", dict(MESSAGES, stream=True))
        text = b""
        while b"event: ping" not in text:  # after 5 s
            text += connection.recv(65536)
        assert text.index(b"event: message_start") < text.index(b"event: ping")
        bridge.paused.clear()
        while b"message_stop" not in text:
            text += connection.recv(65536)


def test_google_stream(bridge):
    answer = {"candidates": [{"content": {"parts": [{"text": TEXT}]}}]}
    bridge.answers["generate_google"] = lambda params: answer
    assert bridge.stream("/v1beta/models/g:streamGenerateContent?alt=sse", GOOGLE) == [(None, answer)]


def test_an_old_client_gets_a_stream_that_ends_with_the_connection(bridge):
    with bridge.connect() as connection:
        body = json.dumps(dict(CHAT, stream=True)).encode()
        connection.sendall(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        head, _, text = read_all(connection).partition(b"\r\n\r\n")
    assert b"chunked" not in head and events(text)[-1] == (None, "[DONE]")


# ---- answers that take long ----


SLOW = {"/v1/chat/completions": b": waiting\n\n", "/v1/responses": b'"type":"response.in_progress"', "/v1beta/models/g:streamGenerateContent?alt=sse": b"\n"}


def ask_slowly(bridge, path, body):
    """A connection whose request is with the host, which is paused."""
    bridge.paused.set()
    connection = bridge.connect()
    send_post(connection, path, body, b"Connection: close\r\n")
    wait_until(lambda: len(bridge.files()) == 1, "the request file")
    return connection


@pytest.mark.parametrize("path", SLOW)
@pytest.mark.parametrize("error", [False, True])
def test_a_stream_begins_before_there_is_an_answer(bridge, path, error):
    """Its client would give up otherwise, and ask again. Slow: a host is given some seconds to say no with a status."""
    plain = path.replace(":streamGenerate", ":generate").partition("?")[0]
    method = METHODS[plain]
    if error:
        bridge.answers[method] = provider_error(429)
    body = dict(PATHS[plain], stream=True)
    with ask_slowly(bridge, path, body) as connection:
        text = b""
        while SLOW[path] not in text.partition(b"\r\n\r\n")[2].partition(b"\r\n")[2]:
            piece = connection.recv(4096)
            assert piece
            text += piece
        assert text.startswith(b"HTTP/1.1 200") and b"text/event-stream" in text and bridge.seen == []
        bridge.paused.clear()
        rest = read_all(connection)
    assert rest.endswith(b"0\r\n\r\n")
    if path == "/v1/responses":
        assert b'"type":"response.created","sequence_number":1' in text and b"response.created" not in rest
        assert error or b'"sequence_number":3' in rest
    if not error:
        assert {"/v1/chat/completions": b"[DONE]", "/v1/responses": b"response.completed"}.get(path, b"candidates") in rest
    elif path == "/v1/responses":
        assert b'"type":"error","sequence_number":3' in rest and b'"code":"rate_limit_exceeded"' in rest and b"event: response.failed" in rest
    else:
        assert b"data: {\"error\":" in rest and b"said so" in rest


def test_an_answer_as_a_whole_begins_before_it_is_there(bridge):
    """Of Gemini's clients each gives up after a minute without a head. Slow: that is why it begins as late as it can."""
    with ask_slowly(bridge, "/v1/chat/completions", CHAT) as connection:
        connection.settimeout(HANG + 60)
        text = connection.recv(4096)
        assert text.startswith(b"HTTP/1.1 200") and b"application/json" in text
        bridge.paused.clear()
        answer = http.client.HTTPResponse(Replay(connection, text))
        answer.begin()
        whole = answer.read()
    assert whole.startswith(b" ") and json.loads(whole) == completion()


class Replay:
    """A socket of which some has been read."""

    def __init__(self, connection, text):
        self.connection, self.text = connection, text

    def makefile(self, mode):
        return io.BytesIO(self.text + read_all(self.connection))


# ---- errors ----


FORMS = {
    "/v1/chat/completions": lambda e: (e["error"]["message"], e["error"]["type"]),
    "/v1/responses": lambda e: (e["error"]["message"], e["error"]["type"]),
    "/v1/messages": lambda e: (e["error"]["message"], e["error"]["type"]) if e["type"] == "error" else None,
    "/v1beta/models/g:generateContent": lambda e: (e["error"]["message"], e["error"]["status"]),
}


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\"x\"", b"\xff", b"{}x", b"[" * 100000])
def test_a_body_that_is_no_object(bridge, path, body):
    status, answer = bridge.post(path, body)
    assert status == 400 and FORMS[path](answer)[1] in ("invalid_request_error", "INVALID_ARGUMENT")
    assert bridge.seen == []


@pytest.mark.parametrize("path, member", [
    (path, member) for path, body in PATHS.items() if path != "/v1beta/models/g:generateContent"
    for member in ("model", "input" if "input" in body else "messages")])
def test_a_body_that_lacks_something(bridge, path, member):
    for value in ({}, {member: None}):
        body = {key: v for key, v in PATHS[path].items() if key != member} | value
        status, answer = bridge.post(path, body)
        assert status == 400 and f"'{member}'" in FORMS[path](answer)[0]
        if path != "/v1/messages":
            assert (answer["error"]["param"], answer["error"]["code"]) == (member, "missing_required_parameter")
    assert bridge.seen == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
@pytest.mark.parametrize("model", ["", 7, ["m"], {}, True])
def test_a_model_that_is_none(bridge, path, model):
    status, answer = bridge.post(path, dict(PATHS[path], model=model))
    assert status == 400 and "'model'" in FORMS[path](answer)[0] and bridge.seen == []


STATUSES = {
    "/v1/chat/completions": {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 503: "server_error"},
    "/v1/messages": {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
                     408: "invalid_request_error", 409: "conflict_error", 413: "request_too_large", 422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error",
                     504: "timeout_error", 529: "overloaded_error"},
    "/v1beta/models/g:generateContent": {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED",
                                         500: "INTERNAL", 503: "UNAVAILABLE"},
}
METHODS = {"/v1/chat/completions": "generate_completions", "/v1/responses": "generate_responses",
           "/v1/messages": "generate_anthropic", "/v1beta/models/g:generateContent": "generate_google"}


def provider_error(status, **more):
    return lambda params: {"__inspect_provider_error__": {"status": status, "message": "said so", **more}}


@pytest.mark.parametrize("path, status", [(path, status) for path, known in STATUSES.items() for status in known])
def test_a_provider_s_error(bridge, path, status):
    bridge.answers[METHODS[path]] = provider_error(status)
    got, answer = bridge.post(path, PATHS[path])
    assert (got, FORMS[path](answer)) == (status, ("said so", STATUSES[path][status]))


@pytest.mark.parametrize("status", [None, 200, 99, 1000, "429", [429], True])
def test_a_provider_s_error_without_a_status(bridge, status):
    bridge.answers["generate_completions"] = provider_error(status)
    assert bridge.post("/v1/chat/completions", CHAT)[0] == 400


def test_a_provider_s_own_words(bridge):
    body = {"message": "theirs", "type": "tokens", "code": "rate_limit", "extra": [1]}
    bridge.answers["generate_completions"] = provider_error(429, body=body)
    assert bridge.post("/v1/chat/completions", CHAT)[1]["error"] == dict(body, param=None)
    bridge.answers["generate_completions"] = provider_error(429, body={"code": "slow"})
    assert bridge.post("/v1/chat/completions", CHAT)[1]["error"] == {
        "message": "said so", "type": "rate_limit_error", "param": None, "code": "slow"}


def test_a_provider_s_error_in_a_stream(bridge):
    for path, method in METHODS.items():
        bridge.answers[method] = provider_error(529)
        if path == "/v1/messages":
            found = bridge.stream(path, dict(MESSAGES, stream=True))
            assert [name for name, _ in found] == ["message_start", "error"]
            assert found[1][1]["error"] == {"type": "overloaded_error", "message": "said so"}
        else:
            assert bridge.post(path.replace(":generate", ":streamGenerate"), dict(PATHS[path], stream=True))[0] == 529


@pytest.mark.parametrize("answer, said", [
    ("the host says no", "the host says no"), (None, "no object"), (17, "no object"), ("[]", "no object"), ("{", "no object")])
@pytest.mark.parametrize("stream", [False, True])
def test_a_host_that_fails_ends_the_proxy(toolbox, workdir, answer, said, stream):
    bridge = Bridge(toolbox, workdir / "service")

    def give(params):
        if answer == "the host says no":
            raise RuntimeError(answer)
        return answer

    bridge.answers = {"generate_anthropic": give}
    with contextlib.suppress(*CUT_OFF):
        bridge.ask("POST", "/v1/messages", dict(MESSAGES, stream=stream))
    status, text = bridge.ended()
    assert status == 1 and said in text and "generate_anthropic" in text and text.count("\n") == 1
    assert bridge.files() == []


@pytest.mark.parametrize("path, method", [("/v1/chat/completions", "generate_completions"), ("/v1/responses", "generate_responses"),
                                          ("/v1/messages", "generate_anthropic")])
def test_an_object_that_is_no_answer_can_t_be_streamed(toolbox, workdir, path, method):
    bridge = Bridge(toolbox, workdir / "service")
    bridge.answers = {method: lambda params: {"a": 1}}
    with contextlib.suppress(*CUT_OFF):
        bridge.ask("POST", path, dict(PATHS[path], stream=True))
    status, text = bridge.ended()
    assert status == 1 and method in text


@pytest.mark.parametrize("method, path, form", [
    ("POST", "/", "message"), ("POST", "/v1/completions", "message"), ("GET", "/v1/chat/completions", "message"),
    ("PUT", "/v1/responses", "message"), ("DELETE", "/v1/messages", "anthropic"), ("POST", "/v1/messages/batches", "anthropic"),
    ("POST", "/v1beta/models/g:embedContent", "google"), ("POST", "/v1beta/models/g", "google"), ("GET", "/v1beta/files", "google"),
    ("POST", "/v1/moderations", "message"), ("POST", "/v1/embeddings", "message"), ("POST", "/v1/responses/compact", "message"),
    ("GET", "/v1/responses/r", "message"), ("GET", "/v1x/models", "message"), ("GET", "/v1/modelsx", "message"), ("DELETE", "/v1/models/m", "message"),
    ("POST", "//mcp/host", "message"), ("GET", "/v1", "message")])
def test_what_is_not_there(bridge, method, path, form):
    status, _, text = bridge.ask(method, path, b"{}")
    answer = json.loads(text)
    assert status == 404
    assert path in answer["error"]["message"]
    assert {"message": "code", "google": "status", "anthropic": "type"}[form] in answer["error"]
    assert (answer.get("type") == "error") == (form == "anthropic")


def test_the_models(bridge):
    def ask(path, **headers):
        status, _, text = bridge.ask("GET", path, headers=headers)
        assert status == 200
        return json.loads(text)

    of_anthropic, of_google = {"anthropic-version": "2023-06-01"}, {"x-goog-api-key": "k"}
    for path in ("/v1/models", "/models", "/v1/models/", "//v1//models"):
        found = ask(path)
        assert found["object"] == "list" and found["data"][0]["object"] == "model"
    assert ask("/v1/models", **of_anthropic)["data"][0]["type"] == "model" and ask("/v1/models", **of_anthropic)["has_more"] is False
    for found in (ask("/v1beta/models"), ask("/v1/models", **of_google)):
        assert "generateContent" in found["models"][0]["supportedGenerationMethods"]
    for path in ("/v1/models/some/name:1", "/models/some%2Fname:1"):
        assert ask(path)["id"] == "some/name:1" and ask(path, **of_anthropic)["id"] == "some/name:1"
    assert ask("/v1beta/models/g")["name"] == "models/g"


@pytest.mark.parametrize("path", ["/", "/healthz", "/health", "/api/hello", "/healthz/", "/v1", "/v1/", "/v1beta/healthz"])
def test_whether_it_is_there(bridge, path):
    assert bridge.ask("GET", path)[::2] == (200, b'{"status":"ok"}')
    assert bridge.ask("HEAD", path)[::2] == (200, b"")


@pytest.mark.parametrize("path, as_path", [
    ("/chat/completions", "/v1/chat/completions"), ("//v1/chat/completions", "/v1/chat/completions"), ("/v1/v1/messages/", "/v1/messages"),
    ("/messages", "/v1/messages"), ("/v1/responses/", "/v1/responses"), ("/responses", "/v1/responses"),
    ("/v1//messages?beta=true", "/v1/messages"), ("/v1alpha/models/g:generateContent", "/v1beta/models/g:generateContent"),
    ("/v1/v1beta/models/g:generateContent", "/v1beta/models/g:generateContent")])
def test_paths_as_bases_make_them(bridge, path, as_path):
    assert bridge.post(path, PATHS[as_path])[0] == 200
    assert bridge.seen[0]["method"] == METHODS[as_path]


@pytest.mark.parametrize("path, member", [("/v1/messages/count_tokens", "input_tokens"), ("/v1/responses/input_tokens", "input_tokens"),
                                          ("/v1beta/models/g:countTokens", "totalTokens")])
def test_tokens_are_counted_on_the_safe_side(bridge, path, member):
    def count(text):
        status, headers, answer = bridge.ask("POST", path, {"model": "m", "messages": [{"role": "user", "content": text}]})
        assert status == 200 and headers["X-Toolbox-Estimate"] == "true"
        return json.loads(answer)[member]

    assert 1 <= count("") < 100
    english, code = "The quick brown fox jumps over the lazy dog. " * 200, "for (int i = 0; i < n; i++) { a[i] += b->c; }\n" * 200
    assert 10 * 200 <= count(english) < 2.5 * 10 * 200  # ten tokens, by any tokenizer
    assert 20 * 200 <= count(code) < 2.5 * 24 * 200
    assert 2000 <= count("漢字" * 1000) < 8000
    picture = "iVBORw0KGgo" + "A0b+" * 50000
    assert 1600 < count(picture) < 10000 and 1600 < count("data:image/png;base64," + picture) < 10000
    assert count("JVBERi0xLjcK" + "A0b+" * 500000) > 50000  # any number of pages
    for bad in (b"", b"[]", b"{", b"7"):
        assert bridge.ask("POST", path, bad)[0] == 400
    assert bridge.seen == []


# ---- compressed bodies ----


def raw_deflate(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def zstd_frame(*blocks, window=0x38):
    """Of blocks (kind, size, bytes): 0 raw, 1 one byte many times."""
    parts = [b"\x28\xb5\x2f\xfd\x00", bytes([window])]
    for i, (kind, size, data) in enumerate(blocks):
        parts += [(size << 3 | kind << 1 | (i == len(blocks) - 1)).to_bytes(3, "little"), data]
    return b"".join(parts)


def raw_zstd(data):
    pieces = [data[i:i + 100000] for i in range(0, len(data), 100000)]
    return b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd_frame(*((0, len(piece), piece) for piece in pieces))  # behind one to be skipped


def real_zstd(*options):
    def pack(data):
        return subprocess.run([needs.program("zstd"), "-c", *options], input=data, stdout=subprocess.PIPE, check=True).stdout

    return pack


def two_frames(data):
    return raw_zstd(data[:50]) + real_zstd("-19")(data[50:])


PACKED = {"gzip": gzip.compress, "x-gzip": gzip.compress, "GZIP": lambda data: gzip.compress(data, 0), "deflate": zlib.compress,
          "Deflate": raw_deflate, "identity": bytes, "zstd": raw_zstd, "ZSTD": real_zstd("-3"), "zstd ": real_zstd("-1", "--no-check"),
          "zstd  ": real_zstd("--ultra", "-22"), "zstd   ": two_frames}


@pytest.mark.parametrize("coding", PACKED)
@pytest.mark.parametrize("path", [*PATHS, "/v1/messages/count_tokens"])
def test_a_compressed_body(bridge, coding, path):
    body = dict(PATHS.get(path, MESSAGES), more=[TEXT + str(i * i) for i in range(500)])
    packed = PACKED[coding](json.dumps(body).encode())
    assert bridge.ask("POST", path, packed, {"Content-Encoding": coding})[0] == 200
    if path in PATHS:
        assert bridge.seen[0]["params"]["json_data"]["more"] == body["more"]


@pytest.mark.parametrize("coding, pack", [("gzip", lambda text: gzip.compress(text, 6)), ("zstd", real_zstd("-3"))])
def test_a_large_compressed_body(bridge, coding, pack):
    body = dict(CHAT, more=[str(i * 7919) for i in range(900000)])
    text = json.dumps(body).encode()
    assert bridge.ask("POST", "/v1/chat/completions", pack(text), {"Content-Encoding": coding})[0] == 200
    assert len(text) > 10_000_000 and bridge.seen[0]["params"]["json_data"]["more"] == body["more"]


def test_a_compressed_call_of_a_tool(bridge):
    packed = gzip.compress(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode())
    assert b'"tools"' in bridge.ask("POST", "/mcp/srv", packed, {"Content-Encoding": "gzip"})[2]


@pytest.mark.parametrize("coding, body, status", [
    ("br", b"x", 415), ("compress", b"x", 415), ("zstd", b"x", 400), ("zstd", json.dumps(CHAT).encode(), 400), ("zstd", raw_zstd(b"{}")[:-1], 400),
    ("zstd", raw_zstd(b"{}") + b"x", 400), ("zstd", bytes.fromhex("28b52ffd04586d00003868656c6c6f200a0100b94b116b1f0868"), 400),
    ("zstd", zstd_frame((0, 2, b"{}"), window=0xA8), 413), ("zstd", zstd_frame(*[(1, 100000, b" ")] * 1000), 413), ("zstd", raw_zstd(b"{"), 400),
     ("gzip, gzip", b"x", 415), ("gzip", b"x", 400), ("gzip", json.dumps(CHAT).encode(), 400),
    ("gzip", gzip.compress(json.dumps(CHAT).encode())[:-9], 400), ("deflate", b"\x07", 400), ("gzip", gzip.compress(b"{"), 400),
    ("gzip", gzip.compress(b" " * 50_000_000), 413), ("deflate", zlib.compress(b" " * 50_000_000), 413)],
    ids=lambda value: None if isinstance(value, bytes) else value)
def test_a_body_that_can_t_be_unpacked(bridge, coding, body, status):
    got, headers, text = bridge.ask("POST", "/v1/messages", body, {"Content-Encoding": coding})
    assert got == status and json.loads(text)["type"] == "error" and bridge.seen == []
    assert status != 415 or (headers["Accept-Encoding"] == "gzip, deflate, zstd" and coding in json.loads(text)["error"]["message"])


# ---- Ollama's ----

CALL = {"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": {"b": 1}}'}}
ASKED = {"model": "m", "messages": [
    {"role": "user", "content": "look", "images": ["AAAA"]},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]},
    {"role": "tool", "content": "one", "tool_name": "f"}, {"role": "tool", "content": "two"}],
    "tools": [{"type": "function", "function": {"name": "f"}}], "format": {"type": "object"}, "keep_alive": "5m", "think": True,
    "options": {"temperature": 0.5, "num_predict": 7, "num_ctx": 9, "stop": ["x"], "seed": 3}}


def test_what_ollama_is_asked(bridge):
    assert bridge.ask("POST", "/api/chat", dict(ASKED, stream=False))[0] == 200
    image = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    calls = [{"type": "function", "id": f"call_{n}", "function": {"name": name, "arguments": text}}
             for n, name, text in ((1, "f", '{"a":1}'), (2, "g", "{}"))]
    assert bridge.seen[0]["params"]["json_data"] == {
        "model": "m", "tools": ASKED["tools"], "temperature": 0.5, "stop": ["x"], "seed": 3, "max_tokens": 7, "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "format", "schema": {"type": "object"}}},
        "messages": [{"role": "user", "content": image}, {"role": "assistant", "content": "", "tool_calls": calls},
                     {"role": "tool", "content": "one", "tool_call_id": "call_1"}, {"role": "tool", "content": "two", "tool_call_id": "call_2"}]}
    bridge.ask("POST", "/api/generate", {"model": "m", "prompt": "p", "system": "s", "format": "json", "options": {"num_predict": -1}})
    assert bridge.seen[1]["params"]["json_data"] == {
        "model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}], "parallel_tool_calls": False,
        "response_format": {"type": "json_object"}}


@pytest.mark.parametrize("path, text_of", [("/api/chat", lambda line: line["message"]["content"]), ("/api/generate", lambda line: line["response"])])
def test_what_ollama_answers(bridge, path, text_of):
    bridge.answers["generate_completions"] = lambda params: dict(
        completion(tool_calls=[CALL, {"function": {"name": "g", "arguments": "[nonsense"}}], reasoning_content="hm"),
        usage={"prompt_tokens": 3, "completion_tokens": 4})
    asked = dict(ASKED, prompt="p") if path == "/api/generate" else ASKED
    status, head, text = bridge.ask("POST", path, asked)
    lines = [json.loads(line) for line in text.splitlines()]
    assert status == 200 and head["Content-Type"] == "application/x-ndjson" and len(lines) > 3
    assert "".join(map(text_of, lines)) == TEXT and [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    whole = json.loads(bridge.ask("POST", path, dict(asked, stream=False))[2])
    assert text_of(whole) == TEXT
    for last in (lines[-1], whole):
        assert (last["done_reason"], last["prompt_eval_count"], last["eval_count"], last["model"]) == ("stop", 3, 4, "m")
        if path == "/api/chat":
            assert last["message"]["thinking"] == "hm" and last["message"]["tool_calls"] == [
                {"function": {"name": "f", "arguments": {"a": {"b": 1}}}}, {"function": {"name": "g", "arguments": {}}}]
        assert last["created_at"].endswith("Z")


def test_ollama_says_no_in_its_own_words(bridge):
    bridge.answers["generate_completions"] = lambda params: {"__inspect_provider_error__": {"status": 429, "message": "slow"}}
    assert [bridge.ask("POST", "/api/chat", dict(ASKED, stream=stream))[::2] for stream in (True, False)] == [(429, b'{"error":"slow"}')] * 2
    for path, body, status in (("/api/embed", {"model": "m", "input": "x"}, 404), ("/api/chat", {"model": "m"}, 400), ("/api/chat", b"{", 400)):
        got, _, text = bridge.ask("POST", path, body)
        assert got == status and list(json.loads(text)) == ["error"]
    for method, path, member in (("GET", "/api/version", "version"), ("GET", "/api/tags", "models"), ("GET", "/api/ps", "models"),
                                 ("POST", "/api/show", "capabilities")):
        assert member in json.loads(bridge.ask(method, path, None if method == "GET" else {"model": "m"})[2])


def test_ollama_waits_with_lines(bridge):
    """Slow: the first comes after two and a half seconds."""
    bridge.paused.set()
    with bridge.connect() as connection:
        send_post(connection, "/api/chat", ASKED)
        text = b""
        while b"}\n" not in text:
            text += connection.recv(65536)
        bridge.paused.clear()
        while b"\r\n0\r\n\r\n" not in text:
            text += connection.recv(65536)
    assert b'"content":""},"done":false}\n' in text and b'"done":true' in text


# ---- what else there is in answers ----


def test_google_streams_are_arrays_unless_asked_otherwise(bridge):
    path = "/v1beta/models/g:streamGenerateContent"
    assert json.loads(bridge.ask("POST", path, GOOGLE)[2]) == [{"candidates": []}]
    assert json.loads(bridge.ask("POST", path + "?key=x", GOOGLE)[2]) == [{"candidates": []}]
    status, head, text = bridge.ask("POST", path + "?alt=sse&key=x", GOOGLE)
    assert text == b'data: {"candidates":[]}\n\n' and head["Content-Type"].startswith("text/event-stream")


def test_as_many_choices_as_were_asked_for(bridge):
    two = completion("a")
    two["choices"].append(dict(completion("b")["choices"][0], index=1))
    bridge.answers["generate_completions"] = lambda params: two
    assert bridge.post("/v1/chat/completions", dict(CHAT, n=2))[1] == two and bridge.seen[0]["params"]["json_data"]["n"] == 2
    found = {0: "", 1: ""}
    for _, chunk in bridge.stream("/v1/chat/completions", dict(CHAT, n=2, stream=True, stream_options={"include_usage": True})):
        for choice in [] if chunk == "[DONE]" else chunk["choices"]:
            found[choice["index"]] += choice["delta"].get("content") or ""
    assert found == {0: "a", 1: "b"}


@pytest.mark.parametrize("path", PATHS)
def test_an_error_says_when_to_try_again(bridge, path):
    said = {"status": 429, "message": "slow", "headers": {"Retry-After": 7, "x-ratelimit-reset-tokens": "6s", "Set-Cookie": "a", "x-ratelimit-a": "b\r\nc: d"}}
    for method in ("completions", "responses", "anthropic", "google"):
        bridge.answers[f"generate_{method}"] = lambda params: {"__inspect_provider_error__": said}
    status, head, _ = bridge.ask("POST", path, PATHS[path])
    assert status == 429 and (head["retry-after"], head["x-ratelimit-reset-tokens"]) == ("7", "6s")
    assert not {"Set-Cookie", "x-ratelimit-a", "c"} & set(head)



def test_a_socket_is_declined(bridge):
    """What Codex tries first: it goes on over HTTP at once where it is told so."""
    asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x"}
    status, headers, text = bridge.ask("GET", "/v1/responses", headers=asked)
    assert status == 426 and headers["Upgrade"] and "WebSocket" in json.loads(text)["error"]["message"]


def test_head_has_no_body(bridge):
    with bridge.connect() as connection:
        connection.sendall(b"HEAD /x HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text = read_all(connection)
    assert text.count(b"HTTP/1.1 ") == 2 and text.index(b"HTTP/1.1 200") == text.index(b"\r\n\r\n") + 4


# ---- MCP ----


def call(bridge, method, params=None, **more):
    status, answer = bridge.post("/mcp/srv", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **more})
    assert status == 200 and answer["id"] == more.get("id", 1)
    return answer.get("result", answer.get("error"))


def test_mcp(bridge):
    for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
        found = call(bridge, "initialize", {"protocolVersion": revision})
        assert found["protocolVersion"] == revision and found["serverInfo"]["name"] == "srv" and "tools" in found["capabilities"]
    assert call(bridge, "initialize", {"protocolVersion": "1999-01-01"})["protocolVersion"] == "2025-11-25"
    assert call(bridge, "ping") == {}
    assert call(bridge, "tools/list", id="x") == {"tools": bridge.answers["list_tools"](None)}
    assert bridge.seen[-1]["params"] == {"server": "srv"}
    assert call(bridge, "tools/call", {"name": "t", "arguments": {"a": TEXT}}) == {"content": [{"type": "text", "text": "done"}]}
    assert bridge.seen[-1]["params"] == {"server": "srv", "tool": "t", "arguments": {"a": TEXT}}
    assert call(bridge, "tools/call", {"name": "t"})["content"] and bridge.seen[-1]["params"]["arguments"] == {}
    assert call(bridge, "tools/call", {})["code"] == -32602
    assert call(bridge, "resources/list")["code"] == -32601
    status, _, text = bridge.ask("POST", "/mcp/srv", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (status, text) == (202, b"")
    for method in ("GET", "DELETE"):
        status, headers, _ = bridge.ask(method, "/mcp/srv")
        assert status == 405 and headers["Allow"] == "POST"


def test_mcp_without_a_handshake(bridge):
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    found = call(bridge, "server/discover", meta)
    assert "2026-07-28" in found["supportedVersions"] and found["resultType"] == "complete"
    assert call(bridge, "tools/list", meta)["resultType"] == "complete"


@pytest.mark.parametrize("result, content", [
    ([{"type": "image", "data": "AA", "mimeType": "image/png"}], [{"type": "image", "data": "AA", "mimeType": "image/png"}]),
    ({"a": 1}, [{"type": "text", "text": "{\"a\":1}"}]), (None, [{"type": "text", "text": "null"}])])
def test_what_a_tool_gives(bridge, result, content):
    bridge.answers["call_tool"] = lambda params: result
    assert call(bridge, "tools/call", {"name": "t"}) == {"content": content}


def test_a_tool_that_fails_is_an_answer(bridge):
    def fail(params):
        raise RuntimeError("no such tool")

    bridge.answers["call_tool"] = fail
    assert call(bridge, "tools/call", {"name": "t"}) == {"code": -32603, "message": "no such tool"}


@pytest.mark.parametrize("result", [None, 17, "x", {"tools": []}])
def test_a_list_of_tools_that_is_none(bridge, result):
    bridge.answers["list_tools"] = lambda params: result
    assert call(bridge, "tools/list")["code"] == -32603


def test_a_tool_s_content_is_a_list(bridge):
    bridge.answers["call_tool"] = lambda params: {"content": "x"}
    assert call(bridge, "tools/call", {"name": "t"}) == {"content": [{"type": "text", "text": "{\"content\":\"x\"}"}]}


@pytest.mark.parametrize("answer", [{"result": None}, {"error": {"code": 1, "message": "x"}}])
def test_an_mcp_answer_to_nothing(bridge, answer):
    assert bridge.ask("POST", "/mcp/srv", {"jsonrpc": "2.0", "id": 1, **answer})[0] == 202


@pytest.mark.parametrize("body, code", [
    (b"{", -32700), (b"[]", -32600), (b"7", -32600), (b"{}", -32600), (b'{"id":1}', -32600), (b'{"id":1,"method":7}', -32600),
    (b'{"id":{},"method":"ping"}', -32600), (b'{"id":[1],"method":"ping"}', -32600), (b'{"id":true,"method":"ping"}', -32600)])
def test_mcp_nonsense(bridge, body, code):
    status, answer = bridge.post("/mcp/srv", body)
    assert status == 400 and answer["error"]["code"] == code and answer["id"] is None


# ---- connections ----


def test_requests_in_a_row_and_ahead(bridge):
    with bridge.connect() as connection:
        for path in ("/v1/chat/completions", "/v1/responses", "/nothing", "/v1/messages"):
            send_post(connection, path, dict(PATHS.get(path, {}), stream=path.endswith("completions")))
        send_post(connection, "/v1/chat/completions", CHAT, b"Connection: close\r\n")
        text = read_all(connection)
    assert [text.count(b"HTTP/1.1 200"), text.count(b"HTTP/1.1 404")] == [4, 1]
    assert text.count(b"Connection: close") == 1


def test_a_body_in_chunks(bridge):
    with bridge.connect() as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        data = json.dumps(CHAT).encode()
        for at in range(0, len(data), 7):
            piece = data[at:at + 7]
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
        assert b"HTTP/1.1 200" in read_all(connection)
    assert bridge.seen[0]["params"]["json_data"]["model"] == "m"


def test_expect(bridge):
    with bridge.connect() as connection:
        body = json.dumps(CHAT).encode()
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n"
                           b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert b"HTTP/1.1 200" in read_all(connection)


@pytest.mark.parametrize("text, status", [
    (b"NONSENSE\r\n\r\n", 400), (b"POST / HTTP/9.0\r\n\r\n", 505), (b"FROBNICATE / HTTP/1.1\r\n", 501),
    (b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", 413),
    (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 400),  # TLS, which ends no line
    (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n", 431), (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n", 400)])
def test_what_is_no_request(bridge, text, status):
    with bridge.connect() as connection:
        connection.sendall(text)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 %d " % status) and b"Connection: close" in answer


def test_a_client_that_goes(bridge):
    """Its request is withdrawn; what the host answers all the same is removed."""
    bridge.paused.set()
    with bridge.connect() as connection:
        send_post(connection, "/v1/chat/completions", CHAT)
        wait_until(lambda: len(bridge.files()) == 1, "the request file")
        [request] = bridge.requests.glob("*.json")
        number = request.name
    wait_until(lambda: bridge.files() == [], "the request to be withdrawn")
    (bridge.responses / number).write_text(json.dumps({"result": completion()}))
    wait_until(lambda: bridge.files() == [], "the answer to be removed")


def test_a_client_that_goes_with_requests_ahead(bridge):
    """More of them than the proxy reads, so that the end of the connection stands behind what it doesn't read."""
    bridge.paused.set()
    with bridge.connect() as connection:
        send_post(connection, "/v1/chat/completions", CHAT)
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n" * 8000)
        wait_until(lambda: len(bridge.files()) == 1, "the request file")
    wait_until(lambda: bridge.files() == [], "the request to be withdrawn")


def test_more_clients_than_descriptors(bridge):
    """Those that are too many wait; each that is let in has its files. Slow: 60 clients, few at a time."""
    resource.prlimit(bridge.process.pid, resource.RLIMIT_NOFILE, (32, 32))
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(bridge.connect()) for _ in range(60)]
        for connection in connections:
            send_post(connection, "/v1/chat/completions", CHAT, b"Connection: close\r\n")
        assert all(read_all(connection).startswith(b"HTTP/1.1 200") for connection in connections)


@pytest.mark.parametrize("stream", [False, True])
def test_clients_that_go_at_any_moment(bridge, stream):
    bridge.answers["generate_completions"] = lambda params: completion("x" * 3_000_000)
    for pause in (0, 0.001, 0.003, 0.01, 0.03, 0.1):
        with bridge.connect() as connection:
            send_post(connection, "/v1/chat/completions", dict(CHAT, stream=stream))
            time.sleep(pause)
    assert bridge.post("/v1/chat/completions", CHAT)[0] == 200
    wait_until(lambda: bridge.files() == [], "all files to go")


def resident_kb(bridge):
    with open(f"/proc/{bridge.process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def test_a_slow_reader_costs_the_answer_only(bridge):
    size = 20_000_000
    bridge.answers["generate_completions"] = lambda params: completion("y" * size)
    with bridge.connect() as connection:
        send_post(connection, "/v1/chat/completions", dict(CHAT, stream=True), b"Connection: close\r\n")
        assert connection.recv(1)
        time.sleep(0.3)
        if not SANITIZED:
            assert resident_kb(bridge) < 3 * size / 1024
        assert bridge.post("/v1/responses", RESPONSES)[0] == 200  # others are served meanwhile
        text = read_all(connection)
    assert text.count(b"y") >= size and text.endswith(b"0\r\n\r\n")


def test_fifty_megabytes(bridge):
    big = "z" * (50 << 20)
    assert bridge.post("/v1/chat/completions", dict(CHAT, filler=big))[0] == 200
    assert bridge.seen[0]["params"]["json_data"]["filler"] == big


def test_a_hundred_streams_at_once(bridge):
    bridge.answers["generate_completions"] = lambda params: completion(params["json_data"]["user"] * 20000)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda n: bridge.stream("/v1/chat/completions", dict(CHAT, stream=True, user=f"<{n}>")), range(100)))
    for n, found in enumerate(answers):
        assert "".join(data["choices"][0]["delta"].get("content", "") for _, data in found[:-1]) == f"<{n}>" * 20000


# ---- the files ----


def test_an_answer_that_is_seen_half_written(bridge):
    bridge.paused.set()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(bridge.post, "/v1/chat/completions", CHAT)
        [request] = wait_until(lambda: list(bridge.requests.glob("*.json")), "the request")
        text = json.dumps({"result": completion(), "error": None})
        with open(bridge.responses / request.name, "w") as file:
            for at in range(0, len(text), 100):
                assert not waiting.done()  # it may be as soon as the text is whole
                file.write(text[at:at + 100])
                file.flush()
                os.utime(file.fileno())
                time.sleep(0.02)
        assert waiting.result(HANG) == (200, completion())
        request.unlink(missing_ok=True)


def test_an_answer_that_is_written_in_two_goes(bridge):
    """Closed in between, as a copy over a slow line may be; nobody tells of what is appended but the poll."""
    bridge.paused.set()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(bridge.post, "/v1/chat/completions", CHAT)
        [request] = wait_until(lambda: list(bridge.requests.glob("*.json")), "the request")
        text = json.dumps({"result": completion()})
        for part in (text[:200], text[200:]):
            with open(bridge.responses / request.name, "a") as file:
                file.write(part)
            time.sleep(0.1)
        assert waiting.result(HANG) == (200, completion())
        request.unlink(missing_ok=True)


BROKEN = {"a number that is none": b'{"result": NaN}', "no UTF-8": b'{"result": "\xff"}', "more behind it": b'{"result": {}}\0\0\0'}


def test_answers_that_can_t_become_json(toolbox, workdir):
    """Slow: a wrong answer may be replaced for 5 s."""
    bridges = {what: Bridge(toolbox, workdir / what) for what in BROKEN}
    with contextlib.ExitStack() as stack:
        for what, bridge in bridges.items():
            bridge.paused.set()
            send_post(stack.enter_context(bridge.connect()), "/v1/chat/completions", CHAT)
            [request] = wait_until(lambda bridge=bridge: list(bridge.requests.glob("*.json")), "the request")
            (bridge.responses / request.name).write_bytes(BROKEN[what])
        for what, bridge in bridges.items():
            status, said = bridge.ended()  # after 5 s
            assert status == 1 and "Not valid JSON" in said and bridge.files() == [], what


def test_a_broken_answer_may_be_replaced(bridge):
    bridge.paused.set()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(bridge.post, "/v1/chat/completions", CHAT)
        [request] = wait_until(lambda: list(bridge.requests.glob("*.json")), "the request")
        (bridge.responses / request.name).write_bytes(bytes(400))  # a length that is filled in later
        time.sleep(1)
        (bridge.responses / request.name).write_text(json.dumps({"result": completion()}))
        assert waiting.result(HANG) == (200, completion())
        request.unlink(missing_ok=True)


def test_an_answer_that_is_no_file(bridge):
    """It is removed as well, so that nothing is left of the call."""
    bridge.paused.set()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(call, bridge, "tools/list")
        [request] = wait_until(lambda: list(bridge.requests.glob("*.json")), "the request")
        os.mkfifo(bridge.responses / request.name)
        found = waiting.result(HANG)
    assert found["code"] == -32603 and "is no file" in found["message"]
    assert bridge.files() == []


def test_a_directory_that_appears_late(toolbox, workdir):
    bridge = Bridge(toolbox, workdir / "later" / "service", make_dirs=False)
    bridge.answers = {"generate_completions": lambda params: completion()}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(bridge.post, "/v1/chat/completions", CHAT)
        time.sleep(0.3)
        assert not waiting.done()
        bridge.make_dirs()
        assert waiting.result(HANG)[0] == 200
    shutil.rmtree(bridge.directory)
    bridge.make_dirs()  # as a host does that starts anew
    assert bridge.post("/v1/chat/completions", CHAT)[0] == 200
    status, said = bridge.end()
    assert status == 0 and said.count("\n") == 1 and f"{bridge.directory} is not there" in said, "it is said at the start, once"


def test_who_reads_where_it_listens_can_end_it_at_once(toolbox, workdir):
    """Most of these died of the signal when it was told before the signal was expected."""
    for i in range(20):
        bridge = Bridge(toolbox, workdir / f"service-{i}")
        assert bridge.end() == (0, "")


def test_a_directory_that_can_t_be_written_ends_it(toolbox, workdir):
    (workdir / "service").mkdir()
    (workdir / "service" / "requests").write_text("a file")
    bridge = Bridge(toolbox, workdir / "service", make_dirs=False)
    with contextlib.suppress(*CUT_OFF):
        bridge.ask("POST", "/v1/chat/completions", CHAT)
    status, said = bridge.ended()
    assert status == 1 and "requests" in said and "Not a directory" in said


def test_a_stopped_proxy_leaves_no_request(bridge):
    bridge.paused.set()
    with bridge.connect() as one, bridge.connect() as two:
        send_post(one, "/v1/chat/completions", CHAT)
        send_post(two, "/v1/messages", dict(MESSAGES, stream=True))
        wait_until(lambda: len(bridge.files()) == 2, "both requests")
        bridge.process.terminate()
        wait_until(lambda: bridge.process.poll() is not None, "the proxy to end")
        assert bridge.files() == []


@pytest.mark.skipif(SANITIZED, reason="leaks can't be looked for under strace")
@pytest.mark.skipif(os.geteuid() != 0, reason="strace of a process of one's own may be forbidden")
@needs.programs("strace")
@pytest.mark.skipif(SANITIZED, reason="sanitizers have memory of their own")
def test_who_is_asked_nothing_needs_little_memory(bridge):
    """About 400 KB on amd64; what was mapped of the program for an answer is given back."""
    def resident():
        status = Path(f"/proc/{bridge.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)[1])

    for path, body in PATHS.items():
        bridge.post(path, body)
    busy = resident()
    wait_until(lambda: resident() < max(500, busy * 0.7), "pages of code to be given back")


def test_without_inotify(toolbox, workdir):
    """Where the kernel gives no watch the files are looked at."""
    wrapper = workdir / "wrapper"
    wrapper.write_text(f"#!/bin/sh\nexec strace -D -o /dev/null -e inject=inotify_init1:error=EMFILE {toolbox} \"$@\"\n")
    wrapper.chmod(0o755)
    bridge = Bridge(str(wrapper), workdir / "service")
    bridge.answers = {"generate_completions": lambda params: completion()}
    assert bridge.post("/v1/chat/completions", CHAT) == (200, completion())
    assert bridge.end() == (0, "")


# ---- the command ----


def test_the_variables(toolbox, workdir):
    """As the host sets them; the directory is a fixed one, so it is only looked at that it is waited for."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([toolbox, "model_proxy"], env={"BRIDGE_MODEL_SERVICE_PORT": str(port)}, capture_output=True, timeout=HANG)
        assert done.returncode == 1 and str(port).encode() in done.stderr and b"in use" in done.stderr
    for port in ("x", "-1", "70000", "13131 "):
        done = subprocess.run([toolbox, "model_proxy"], env={"BRIDGE_MODEL_SERVICE_PORT": port}, capture_output=True, timeout=HANG)
        assert done.returncode == 2 and done.stdout == b""


def listening(pid, table):
    with open(f"/proc/{pid}/net/{table}") as file:
        return [line.split()[1] for line in file if line.split()[3] == "0A"]


def test_only_this_machine_can_ask(bridge):
    own = [address for table in ("tcp", "tcp6") for address in listening(bridge.process.pid, table) if address.endswith(f":{bridge.port:04X}")]
    assert own[0] == f"0100007F:{bridge.port:04X}" and set(own[1:]) <= {f"{'0' * 24}01000000:{bridge.port:04X}"}


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="there is no [::1] here")
def test_both_addresses_of_localhost(bridge, toolbox):
    connection = http.client.HTTPConnection("::1", bridge.port, timeout=HANG)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:  # by somebody who would get what is asked of localhost
        done = subprocess.run([toolbox, "model_proxy", "--port", str(taken.getsockname()[1])], capture_output=True, timeout=HANG)
    assert done.returncode == 1 and b"[::1]" in done.stderr and b"in use" in done.stderr


def test_where_it_is_told_to_listen(toolbox, workdir):
    (workdir / "requests").mkdir()
    (workdir / "responses").mkdir()
    command = [toolbox, "model_proxy", "--directory", workdir, "--listen", "0.0.0.0:0", "--listen", workdir / "socket", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = [process.stdout.readline().strip() for _ in range(3)]
        assert [line.rsplit(":", 1)[0] for line in said] == [
            "Server running on http://0.0.0.0", "Server running on unix", "Server running on http://127.0.0.1"]
        assert (workdir / "socket").stat().st_mode & 0o777 == 0o700
        for line in said:
            connection = http.client.HTTPConnection("localhost", timeout=HANG)
            connection.sock = socket.socket(socket.AF_UNIX if "unix" in line else socket.AF_INET)
            connection.sock.connect(line.split("unix:")[1] if "unix" in line else ("127.0.0.1", int(line.rsplit(":", 1)[1])))
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()
        process.terminate()
        assert process.wait(HANG) == 0 and not (workdir / "socket").exists()
    done = subprocess.run([toolbox, "model_proxy", "--listen", "nonsense"], capture_output=True, timeout=HANG)
    assert done.returncode == 1 and b"'nonsense'" in done.stderr
