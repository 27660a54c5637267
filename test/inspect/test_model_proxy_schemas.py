"""Each event that the model proxy streams, and each of its own answers, by the schemas of the providers' SDKs, for all kinds of items.

The SDKs themselves take whatever comes; others that are made from the same schemas don't."""
import json
import tempfile
import threading
import types
import typing
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="the providers' SDKs are not installed")
from anthropic.types import ContentBlock, ErrorResponse, MessageTokensCount, ModelInfo, RawMessageStreamEvent  # noqa: E402
from anthropic.types.beta import BetaContentBlock, BetaRawMessageStreamEvent  # noqa: E402
from google import genai  # noqa: E402
from google.genai import types as google  # noqa: E402
from harness.bridge import CALLED_ITEMS, CHAT, GOOGLE, MESSAGES, RESPONSES, Bridge  # noqa: E402
from harness.containers import REPO  # noqa: E402
from openai.types import Model  # noqa: E402
from openai.types.chat import ChatCompletionChunk  # noqa: E402
from openai.types.responses import ResponseOutputItem, ResponseStreamEvent  # noqa: E402
from pydantic import BaseModel, TypeAdapter  # noqa: E402

TEXT = "héllo \U0001F600 \"quoted\" \\ \t\n" * 10
CALL = {"id": None, "call_id": "k"}
# As hosts give them: what may be left out is, or is null.
ITEMS = [
    {"type": "message", "id": "i", "role": "assistant", "content": [
        {"type": "output_text", "text": TEXT, "annotations": [
            {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1},
            {"type": "file_citation", "file_id": "f", "filename": "n", "index": 0}]}, {"type": "refusal", "refusal": "no"}]},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": TEXT}], "content": [{"type": "reasoning_text", "text": TEXT}],
     "encrypted_content": None, "status": None},
    {"type": "function_call", **CALL, "name": "f", "arguments": json.dumps({"a": TEXT}), "status": None},
    {"type": "custom_tool_call", **CALL, "name": "f", "input": TEXT},
    *CALLED_ITEMS,
    {"type": "mcp_call", "id": "m", "name": "n", "server_label": "l", "arguments": "{}", "output": None,
     "error": {"type": "http_error", "code": 500, "message": "bad"}},
    {"type": "mcp_approval_request", "id": "a", "name": "n", "server_label": "l", "arguments": "{}"},
]
BLOCKS = [
    {"type": "text", "text": TEXT, "citations": [
        {"type": "char_location", "cited_text": "c", "document_index": 0, "document_title": "t", "start_char_index": 0, "end_char_index": 1}]},
    {"type": "text", "text": TEXT, "citations": None},
    {"type": "thinking", "thinking": TEXT, "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
    {"type": "tool_use", "id": "v", "name": "f", "input": {"a": TEXT}}, {"type": "tool_use", "id": "v", "name": "f", "input": {}},
    {"type": "server_tool_use", "id": "u", "name": "web_search", "input": {"query": TEXT}},
    {"type": "web_search_tool_result", "tool_use_id": "u", "content": []},
]
BETA_BLOCKS = [
    *BLOCKS, {"type": "mcp_tool_use", "id": "m", "name": "n", "server_name": "s", "input": {"a": 1}},
    {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": TEXT},
    {"type": "compaction", "content": TEXT, "encrypted_content": None},
    {"type": "fallback", "from_": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal", "category": None}},
]
MESSAGE = {"id": "a", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None,
           "usage": {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": None, "service_tier": "standard"}}
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
            "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1, "top_p": 1, "usage": {
                "input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0}}}
COMPLETION = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": {
    "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": TEXT, "refusal": TEXT, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": TEXT})}}]}}]}


def least(kind):
    """The smallest value of a type of the SDKs'."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return "completed" if "completed" in inner else inner[0]
    if origin in (typing.Annotated, typing.Union, types.UnionType):
        return least(inner[0])
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {field.alias or name: least(field.annotation) for name, field in kind.model_fields.items() if field.is_required()}
    return {str: "x", int: 1, float: 1.0, bool: True, list: [], dict: {}, object: {}}[origin or kind]


def every(union):
    """Each kind that it is of, by its name: with what it has to have, and with null for all else."""
    kinds = typing.get_args(typing.get_args(union)[0])
    return {kind.__name__: (least(kind), {**{name: None for name, field in kind.model_fields.items() if not field.is_required()}, **least(kind)})
            for kind in kinds}


@pytest.fixture
def bridge():
    with tempfile.TemporaryDirectory() as folder:
        bridge = Bridge(str(REPO / "toolbox"), Path(folder) / "service")
        yield bridge
        assert bridge.end() == (0, "") and bridge.files() == []


def checked(schema, events):
    """Each of them is valid, and nothing in it unknown to the schema's top."""
    adapter = TypeAdapter(schema)
    for event in events:
        adapter.validate_python(event)
    return events


def stream(bridge, path, body):
    return [data for _, data in bridge.stream(path, dict(body, stream=True)) if data != "[DONE]"]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["type"])
@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_responses(bridge, item, status):
    if item["type"] in ("function_call", "custom_tool_call"):
        whole = {**item, "id": "i"}
    else:
        whole = {"status": "completed", **item} if item["type"] not in ("reasoning", "mcp_list_tools", "mcp_approval_request") else item
    bridge.answers["generate_responses"] = lambda params: {**RESPONSE, "status": status, "output": [item]}
    events = stream(bridge, "/v1/responses", RESPONSES)
    last = {**events[-1], "response": {**events[-1]["response"], "output": [whole]}}  # the host's own
    checked(ResponseStreamEvent, [*events[:-1], last])
    assert events[-1]["type"] == f"response.{status}"


@pytest.mark.parametrize("name, item", [(name, item) for name, both in every(ResponseOutputItem).items() for item in both], ids=lambda value: value if isinstance(value, str) else "")
def test_every_item_of_a_response(bridge, name, item):
    for lacks in ((), ("id", "status")):  # which hosts leave out, or give as null
        given = {key: value for key, value in item.items() if key not in lacks}
        bridge.answers["generate_responses"] = lambda params: {**RESPONSE, "status": "completed", "output": [given]}
        events = stream(bridge, "/v1/responses", RESPONSES)
        checked(ResponseStreamEvent, [*events[:-1], {**events[-1], "response": {**events[-1]["response"], "output": [item]}}])
        whole = {key: value for key, value in given.items() if value is not None}
        assert {key: value for key, value in events[-2]["item"].items() if key in whole} == whole


@pytest.mark.parametrize("schema, name, block", [
    (schema, name, block) for schema, union in ((RawMessageStreamEvent, ContentBlock), (BetaRawMessageStreamEvent, BetaContentBlock))
    for name, both in every(union).items() for block in both], ids=lambda value: value if isinstance(value, str) else "")
def test_every_block_of_a_message(bridge, schema, name, block):
    bridge.answers["generate_anthropic"] = lambda params: {**MESSAGE, "content": [block]}
    checked(schema, [event for event in stream(bridge, "/v1/messages", MESSAGES) if event["type"] != "ping"])


def test_completions(bridge):
    bridge.answers["generate_completions"] = lambda params: COMPLETION
    checked(ChatCompletionChunk, stream(bridge, "/v1/chat/completions", dict(CHAT, stream_options={"include_usage": True})))


@pytest.mark.parametrize("schema, blocks", [(RawMessageStreamEvent, BLOCKS), (BetaRawMessageStreamEvent, BETA_BLOCKS)], ids=["plain", "beta"])
def test_messages(bridge, schema, blocks):
    bridge.answers["generate_anthropic"] = lambda params: {**MESSAGE, "content": blocks}
    checked(schema, [event for event in stream(bridge, "/v1/messages", MESSAGES) if event["type"] != "ping"])


def test_google(bridge):
    bridge.answers["generate_google"] = lambda params: {"candidates": [
        {"content": {"role": "model", "parts": [{"text": TEXT}, {"functionCall": {"name": "f", "args": {}}}]}, "finishReason": "STOP", "index": 0}]}
    checked(google.GenerateContentResponse, stream(bridge, "/v1beta/models/g:streamGenerateContent?alt=sse", GOOGLE))


def test_what_the_proxy_answers_itself(bridge):
    def ask(path, **headers):
        return json.loads(bridge.ask("GET", path, headers=headers)[2])

    checked(Model, [*ask("/v1/models")["data"], ask("/v1/models/m")])
    version = {"anthropic-version": "2023-06-01"}
    checked(ModelInfo, [*ask("/v1/models", **version)["data"], ask("/v1/models/m", **version)])
    client = genai.Client(api_key="x", http_options={"base_url": f"http://127.0.0.1:{bridge.port}"})  # it has its own names for members
    models = [*client.models.list(), client.models.get(model="m")]
    assert [model.supported_actions[0] for model in models] == ["generateContent"] * 2
    checked(MessageTokensCount, [bridge.post("/v1/messages/count_tokens", MESSAGES)[1]])
    checked(google.CountTokensResponse, [bridge.post("/v1beta/models/g:countTokens", GOOGLE)[1]])
    checked(ErrorResponse, [bridge.post("/v1/messages", {})[1]])


@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_stream_of_responses_that_fails_late(bridge, status):
    """Slow: the stream has to have begun."""
    bridge.paused.set()
    bridge.answers["generate_responses"] = lambda params: {"__inspect_provider_error__": {"status": status, "message": "no"}}
    threading.Timer(4, bridge.paused.clear).start()
    events = checked(ResponseStreamEvent, stream(bridge, "/v1/responses", RESPONSES))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert [event["sequence_number"] for event in events] == list(range(1, len(events) + 1))
