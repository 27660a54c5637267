"""The providers' own SDKs in front of the model proxy, and inspect_ai's agent bridge with it inside a sandbox."""
import asyncio
import json
import shutil
import tempfile
from pathlib import Path

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors
from harness.bridge import Bridge
from harness.containers import REPO
from inspect_ai.agent import AgentState, sandbox_agent_bridge
from inspect_ai.model import ChatMessageUser, ModelOutput
from inspect_ai.util import sandbox as current
from samples import Sandbox, model_of

TEXT = "héllo \U0001F600 \"quoted\" \\ \t\n" * 40
ASKED = [{"role": "user", "content": "x"}]
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "input_tokens_details": {"cached_tokens": 0},
         "output_tokens_details": {"reasoning_tokens": 0}}
COMPLETION = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": TEXT, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": TEXT})}},
            {"id": "2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}}]}
OUTPUT = [
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": TEXT}], "status": "completed",
     "content": [{"type": "reasoning_text", "text": TEXT}]},
    {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": TEXT, "annotations": [
            {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}]},
        {"type": "refusal", "refusal": "no"}]},
    {"type": "function_call", "id": "f", "call_id": "k", "name": "f", "arguments": json.dumps({"a": TEXT}), "status": "completed"},
    {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "code_interpreter_call", "id": "n", "code": "1", "container_id": "c", "status": "completed", "outputs": []},
    {"type": "mcp_call", "id": "m", "name": "n", "server_label": "l", "arguments": "{}", "output": "o"},
    {"type": "mcp_list_tools", "id": "l", "server_label": "l", "tools": []},
    {"type": "custom_tool_call", "id": "t", "call_id": "k", "name": "n", "input": TEXT},
    {"type": "computer_call", "id": "p", "call_id": "k", "action": {"type": "screenshot"}, "pending_safety_checks": [],
     "status": "completed"},
]
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": OUTPUT, "parallel_tool_calls": False,
            "tool_choice": "auto", "tools": [], "status": "completed", "error": None, "incomplete_details": None,
            "instructions": None, "metadata": {}, "temperature": 1, "top_p": 1, "usage": USAGE}
MESSAGE = {
    "id": "a", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 1}, "content": [
        {"type": "thinking", "thinking": TEXT, "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": TEXT, "citations": [
            {"type": "char_location", "cited_text": "c", "document_index": 0, "document_title": "t", "start_char_index": 0,
             "end_char_index": 1}]},
        {"type": "server_tool_use", "id": "u", "name": "web_search", "input": {"query": TEXT}},
        {"type": "web_search_tool_result", "tool_use_id": "u", "content": []},
        {"type": "tool_use", "id": "v", "name": "f", "input": {"a": TEXT, "b": [1, 2.5e10]}},
        {"type": "tool_use", "id": "w", "name": "g", "input": {}}]}
CANDIDATES = {"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT}]}, "finishReason": "STOP", "index": 0}],
              "usageMetadata": {"promptTokenCount": 1}}


@pytest.fixture
def bridge():
    with tempfile.TemporaryDirectory() as folder:
        bridge = Bridge(str(REPO / "toolbox"), Path(folder) / "service")
        bridge.answers = {"generate_completions": lambda params: COMPLETION, "generate_responses": lambda params: RESPONSE,
                          "generate_anthropic": lambda params: MESSAGE, "generate_google": lambda params: CANDIDATES}
        yield bridge
        assert bridge.end() == (0, "") and bridge.files() == []


@pytest.fixture
def of_openai(bridge):
    return openai.OpenAI(api_key="x", base_url=f"http://127.0.0.1:{bridge.port}/v1", max_retries=0)


@pytest.fixture
def of_anthropic(bridge):
    return anthropic.Anthropic(api_key="x", base_url=f"http://127.0.0.1:{bridge.port}", max_retries=0)


@pytest.fixture
def of_google(bridge):
    return genai.Client(api_key="x", http_options={"base_url": f"http://127.0.0.1:{bridge.port}"})


def test_chat_completions(of_openai):
    assert of_openai.chat.completions.create(model="m", messages=ASKED).choices[0].message.content == TEXT
    with of_openai.chat.completions.stream(model="m", messages=ASKED, stream_options={"include_usage": True}) as stream:
        assert sum(event.type == "content.delta" for event in stream) > 10
        found = stream.get_final_completion()
    message = found.choices[0].message
    assert message.content == TEXT and found.choices[0].finish_reason == "tool_calls" and found.usage.total_tokens == 3
    assert [(call.id, call.type, call.function.name) for call in message.tool_calls] == [("1", "function", "f"), ("2", "function", "g")]
    assert json.loads(message.tool_calls[0].function.arguments) == {"a": TEXT}


def test_responses(of_openai):
    assert [item.type for item in of_openai.responses.create(model="m", input="x").output] == [item["type"] for item in OUTPUT]
    with of_openai.responses.stream(model="m", input="x") as stream:
        events = list(stream)
        found = stream.get_final_response()
    assert [item.type for item in found.output] == [item["type"] for item in OUTPUT]
    assert found.output_text == TEXT and found.output[0].summary[0].text == TEXT
    assert found.output[2].arguments == OUTPUT[2]["arguments"]
    assert [event.sequence_number for event in events] == list(range(1, len(events) + 1))
    assert not [event for event in events if event.type not in openai_event_types()]


def test_responses_in_the_background(bridge, of_openai):
    made = [of_openai.responses.create(model="m", input="x", background=True) for _ in range(3)]
    assert [each.status for each in made] == ["queued"] * 3 and len({each.id for each in made}) == 3
    found = made[0]
    while found.status in ("queued", "in_progress"):
        found = of_openai.responses.retrieve(found.id)
    assert found.id == made[0].id and found.status == "completed" and found.output_text == TEXT
    assert of_openai.responses.cancel(made[1].id).id == made[1].id
    of_openai.responses.delete(made[2].id)
    with pytest.raises(openai.NotFoundError, match=made[2].id):
        of_openai.responses.retrieve(made[2].id)


def openai_event_types():
    """All that the SDK has a class for."""
    from openai.types.responses import response_stream_event
    import typing

    union = typing.get_args(response_stream_event.ResponseStreamEvent)[0]
    return {typing.get_args(member.model_fields["type"].annotation)[0] for member in typing.get_args(union)}


def test_messages(of_anthropic):
    given = {"model": "m", "max_tokens": 9, "messages": ASKED}
    assert of_anthropic.messages.create(**given).content[2].text == TEXT
    with of_anthropic.messages.stream(**given) as stream:
        assert sum(event.type == "content_block_delta" for event in stream) > 10
        found = stream.get_final_message()
    thinking, redacted, text, search, _, call, empty = found.content
    assert (thinking.thinking, thinking.signature, redacted.data) == (TEXT, "s", "d")
    assert text.text == TEXT and text.citations[0].cited_text == "c"
    assert (search.input, call.input, empty.input) == ({"query": TEXT}, {"a": TEXT, "b": [1, 2.5e10]}, {})
    assert (found.usage.input_tokens, found.usage.output_tokens, found.stop_reason) == (5, 7, "tool_use")


def test_google(of_google):
    assert of_google.models.generate_content(model="g", contents="x").text == TEXT
    assert "".join(part.text for part in of_google.models.generate_content_stream(model="g", contents="x")) == TEXT


@pytest.mark.parametrize("status, kind", [(400, openai.BadRequestError), (401, openai.AuthenticationError),
                                          (429, openai.RateLimitError), (503, openai.InternalServerError)])
def test_errors_of_openai(bridge, of_openai, status, kind):
    bridge.answers["generate_completions"] = bridge.answers["generate_responses"] = lambda params: {
        "__inspect_provider_error__": {"status": status, "message": "said so", "body": {"code": "c"}}}
    for ask in (lambda: of_openai.chat.completions.create(model="m", messages=ASKED),
                lambda: of_openai.chat.completions.create(model="m", messages=ASKED, stream=True),
                lambda: of_openai.responses.create(model="m", input="x", stream=True)):
        with pytest.raises(kind, match="said so") as caught:
            ask()
        assert (caught.value.status_code, caught.value.code) == (status, "c")


@pytest.mark.parametrize("stream", [False, True])
def test_errors_of_anthropic(bridge, of_anthropic, stream):
    bridge.answers["generate_anthropic"] = lambda params: {"__inspect_provider_error__": {"status": 529, "message": "said so"}}
    with pytest.raises(anthropic.APIStatusError) as caught:
        answer = of_anthropic.messages.create(model="m", max_tokens=9, messages=ASKED, stream=stream)
        list(answer)
    assert caught.value.body["error"] == {"type": "overloaded_error", "message": "said so"}


def test_errors_of_google(bridge, of_google):
    bridge.answers["generate_google"] = lambda params: {"__inspect_provider_error__": {"status": 403, "message": "said so"}}
    with pytest.raises(genai_errors.ClientError, match="PERMISSION_DENIED.*said so"):
        of_google.models.generate_content(model="g", contents="x")


def test_the_mcp_client(bridge):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    bridge.answers["list_tools"] = lambda params: [{"name": "t", "inputSchema": {"type": "object", "properties": {}}}]
    bridge.answers["call_tool"] = lambda params: f"{params['server']} {params['tool']} {params['arguments']['a']}"

    async def talk():
        async with streamable_http_client(f"http://127.0.0.1:{bridge.port}/mcp/srv") as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                names = [found.name for found in (await session.list_tools()).tools]
                return names, (await session.call_tool("t", {"a": TEXT})).content[0].text

    assert asyncio.run(talk()) == (["t"], f"srv t {TEXT}")


# ---- the agent bridge ----


POST = """
import json, sys, urllib.request
url, body = sys.argv[1:]
request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
print(urllib.request.urlopen(request, timeout=60).read().decode())
"""
REQUESTS = {
    "v1/chat/completions": {"model": "inspect", "messages": ASKED},
    "v1/responses": {"model": "inspect", "input": "x"},
    "v1/messages": {"model": "inspect", "max_tokens": 99, "messages": ASKED},
    "v1beta/models/inspect:generateContent": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
}


def client(kind, url, body):
    """A program in the sandbox that asks a model: what there is."""
    if kind == "local":
        return [shutil.which("python3"), "-c", POST, url, json.dumps(body)]
    return ["sh", "-c", 'wget -q -O - --header "Content-Type: application/json" --post-data "$1" "$0"', url, json.dumps(body)]


@pytest.mark.parametrize("kind", ["local", "busybox"])
def test_an_agent_in_the_sandbox(kind, request):
    sandbox = Sandbox("local") if kind == "local" else request.getfixturevalue("containers")("busybox")

    async def body(n):
        told = {}
        async with sandbox_agent_bridge(AgentState(messages=[ChatMessageUser(content="x")]), port=13131 + n) as bridge:
            for path, asked in REQUESTS.items():
                for stream in (False, True):
                    path = path.replace(":generate", ":streamGenerate").replace("Content", "Content?alt=sse") if stream else path
                    result = await current().exec(client(kind, f"http://127.0.0.1:{bridge.port}/{path}", dict(asked, stream=stream)))
                    told[path, stream] = (result.success, result.stdout + result.stderr)
        return told

    outputs = [ModelOutput.from_content("mockllm/model", TEXT) for _ in range(2 * len(REQUESTS))]
    [told] = sandbox.run(body, model=model_of(outputs))
    assert len(told) == 8
    for (path, stream), (success, text) in told.items():
        assert success, (path, stream, text)
        assert json.dumps(TEXT)[1:-1] in json.dumps(rejoined(text) if stream else json.loads(text)), (path, stream, text)


def rejoined(stream):
    """The text of a stream, its pieces put together."""
    pieces = []
    for line in stream.splitlines():
        if line.startswith("data: {"):
            data = json.loads(line[6:])
            pieces.append(data.get("delta") if isinstance(data.get("delta"), str) else (data.get("delta") or {}).get("text") or "")
            for choice in data.get("choices", []):
                pieces.append(choice["delta"].get("content") or "")
            for candidate in data.get("candidates", []):
                pieces.extend(part.get("text", "") for part in candidate["content"]["parts"])
    return "".join(pieces)
