"""Real agents, and the AI SDK that many are made of, in front of the model proxy: whole turns with a call of a tool, streamed.

Agents are found on the PATH or in the folder that TOOLBOX_TEST_AGENTS names, as `make agents` fills it.
"""
import json
import os
import shutil
import subprocess

import pytest

from harness import needs, peers
from harness.bridge import CALLED_ITEMS, Proxy, completion, message, response

MARK = "echo made >mark"
# ---- a model: calls the agent's shell once, then says that it is done ----
SHELLS = ("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell", "run_commands", "terminal")


def shell_of(tools):
    names = [tool.get("name") or tool.get("function", {}).get("name") for tool in tools or [] if "functionDeclarations" not in tool]
    names += [each["name"] for tool in tools or [] for each in tool.get("functionDeclarations", [])]
    return next((name for name in SHELLS if name in names), None)


def arguments_of(shell):
    if shell == "shell":
        return {"command": ["sh", "-c", MARK]}
    if shell == "run_commands":
        return {"commands": [MARK]}
    return {"cmd": MARK} if shell == "exec_command" else {"command": MARK, "description": "make a mark"}


SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # how mini-swe-agent is told that it is done
EDIT = "mark\n```\n<<<<<<< SEARCH\n=======\nmade\n>>>>>>> REPLACE\n```\n"  # aider's form of a call


def by_completions(params):
    asked = params["json_data"]
    shell, done = shell_of(asked.get("tools")), any(turn["role"] == "tool" for turn in asked["messages"])
    known = next((tool["function"]["parameters"]["properties"] for tool in asked.get("tools") or [] if tool["function"]["name"] == shell), {})
    arguments = {name: value for name, value in {**arguments_of(shell), "security_risk": "LOW"}.items() if name in known}  # some take no other
    if done and SUBMIT in json.dumps(asked["messages"]):
        arguments = {"command": f"{SUBMIT}; echo all done"}
    elif "<<<<<<< SEARCH" in json.dumps(asked["messages"][0]):
        return completion("all done\n\n" + EDIT)
    elif done or not shell:
        return completion("all done")
    call = {"id": "c", "type": "function", "function": {"name": shell, "arguments": json.dumps(arguments)}}
    answer = completion("I shall", tool_calls=[call])
    answer["choices"][0]["finish_reason"] = "tool_calls"
    return answer


USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}


def by_responses(params):
    asked = params["json_data"]
    shell, given = shell_of(asked.get("tools")), asked["input"]
    done = isinstance(given, list) and any(item.get("type", "").endswith("_call_output") for item in given)
    text = "all done" if done or not shell else "I shall"
    items = [{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}]
    if shell and not done:  # as hosts give it
        items.append({"type": "function_call", "id": None, "status": None, "call_id": "c", "name": shell,
                      "arguments": json.dumps(arguments_of(shell))})
    return response(*items, created_at=1, model=asked["model"], usage=USAGE)


def by_messages(params):
    asked = params["json_data"]
    shell = shell_of(asked.get("tools"))
    done = any(block.get("type") == "tool_result" for turn in asked["messages"] if isinstance(turn["content"], list) for block in turn["content"])
    if done or not shell:
        return message({"type": "text", "text": "all done"})
    return {**message({"type": "text", "text": "I shall"}, {"type": "tool_use", "id": "c", "name": shell, "input": arguments_of(shell)}),
            "stop_reason": "tool_use"}


def by_google(params):
    asked = params["json_data"]
    shell, done = shell_of(asked.get("tools")), any("functionResponse" in part for turn in asked["contents"] for part in turn["parts"])
    parts = [{"text": "all done"}] if done or not shell else [{"text": "I shall"}, {"functionCall": {"name": shell, "args": arguments_of(shell)}}]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}


# ---- agents ----


AGENTS_PATH = "{0}/node_modules/.bin:{0}/bin:{1}".format(os.environ.get("TOOLBOX_TEST_AGENTS", ""), os.environ["PATH"])


def program(name):
    return shutil.which(name, path=AGENTS_PATH) or needs.program(name)


def codex(home, url):
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(
        'model = "m"\nmodel_provider = "p"\n[model_providers.p]\nname = "p"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
        f'base_url = "{url}/v1"\n')
    return ["exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "go"]


def gemini(home, url):
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    return ["-y", "-m", "gemini-2.5-pro", "-p", "go"]


def opencode(home, url):
    (home / "work/opencode.json").write_text(json.dumps({
        "model": "openai/m", "permission": {"bash": "allow"},
        "provider": {"openai": {"options": {"baseURL": f"{url}/v1", "apiKey": "x"}, "models": {"m": {}}}}}))
    return ["run", "go"]


def pi(home, url, api="openai-completions", base="/v1"):
    (home / ".pi/agent").mkdir(parents=True)
    (home / ".pi/agent/models.json").write_text(json.dumps({"providers": {"p": {"baseUrl": url + base, "api": api, "apiKey": "x", "models": [{"id": "m"}]}}}))
    return ["--provider", "p", "--model", "m", "--offline", "-p", "go"]


def cn(home, url):
    (home / "config.yaml").write_text(json.dumps({"name": "a", "version": "1.0.0", "schema": "v1", "models": [
        {"name": "m", "provider": "openai", "model": "m", "apiKey": "x", "apiBase": f"{url}/v1", "roles": ["chat"], "capabilities": ["tool_use"]}]}))
    return ["--config", home / "config.yaml", "--auto", "-p", "go"]


def cline(home, url):
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    subprocess.run([program("cline"), "auth", "-p", "openai", "-k", "x", "-m", "m", "-b", f"{url}/v1"], env=env, check=True, stdout=subprocess.PIPE, timeout=100)
    return ["-P", "openai", "-m", "m", "make a mark"]


def openhands(home, url):
    return ["--headless", "--override-with-envs", "-t", "go"]


def aider(home, url):
    return ["--model", "openai/m", "--message", "go", "--yes-always", "--no-git", "--no-check-update", "--no-show-model-warnings", "--analytics-disable",
            "--edit-format", "diff", "--no-show-release-notes", "--no-detect-urls"]


def vibe(home, url):
    (home / ".vibe").mkdir()
    (home / ".vibe/config.toml").write_text(
        f'active_model = "m"\n[[providers]]\nname = "p"\napi_base = "{url}/v1"\napi_key_env_var = "OPENAI_API_KEY"\n'
        'api_style = "openai"\nbackend = "generic"\n[[models]]\nname = "m"\nprovider = "p"\nalias = "m"\n')
    return ["-p", "go", "--agent", "auto-approve"]


AGENTS = {
    "vibe": vibe,
    "pi": pi,
    "pi responses": lambda home, url: pi(home, url, "openai-responses"),
    "pi messages": lambda home, url: pi(home, url, "anthropic-messages", ""),
    "pi google": lambda home, url: pi(home, url, "google-generative-ai", "/v1beta"),
    "cn": cn,
    "cline": cline,
    "mini": lambda home, url: ["-m", "openai/m", "-t", "go", "-y", "--exit-immediately", "-l", "0"],
    "aider": aider,
    "claude": lambda home, url: ["-p", "go", "--dangerously-skip-permissions", "--model", "claude-sonnet-4-5"],
    "codex": codex,
    "gemini": gemini,
    "qwen": lambda home, url: ["-y", "--auth-type", "openai", "-m", "m", "-p", "go"],
    "opencode": opencode,
    "openhands": openhands,
}


@pytest.fixture(params=["container", "host"])
def url(bridge, toolbox, request):
    """Of the proxy that the evaluation answers, and of one on a host that passes on to it, as to a provider."""
    direct = f"http://127.0.0.1:{bridge.port}"
    if request.param == "container":
        yield direct
        return
    proxy = Proxy(toolbox, "--to", direct)
    yield f"http://127.0.0.1:{proxy.port}"
    assert proxy.end() == (0, "")


def answer(bridge):
    bridge.answers.update(generate_completions=by_completions, generate_responses=by_responses, generate_anthropic=by_messages,
                          generate_google=by_google)


def turn(bridge, url, home, name, timeout=300):
    path = program(name.split()[0])
    (home / "work").mkdir()
    arguments = AGENTS[name](home, url)
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "dumb", "IS_SANDBOX": "1", "NO_PROXY": "127.0.0.1",
           "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "x", "OPENAI_MODEL": "m", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x",
           "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true", "DISABLE_AUTOUPDATER": "1",
           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors",
           "LLM_MODEL": "openai/m", "LLM_BASE_URL": f"{url}/v1", "LLM_API_KEY": "x", "OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run([path, *arguments], env=env, cwd=home / "work", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0 and "all done" in done.stdout, done
    assert (home / "work/mark").read_text() == "made\n"
    assert (1 if name == "aider" else 2) <= len(bridge.seen) <= 4  # nothing is asked again; a title may be asked for


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_does_a_turn(bridge, url, workdir, name):
    """Slow: agents take seconds to start."""
    answer(bridge)
    turn(bridge, url, workdir, name)


# ---- the AI SDK ----

SCRIPT = """
const [, , name, base, way] = process.argv;
const sdk = await import(`@ai-sdk/${name}`);
const make = {openai: 'createOpenAI', anthropic: 'createAnthropic', google: 'createGoogleGenerativeAI'}[name];
const given = {prompt: [{role: 'user', content: [{type: 'text', text: 'x'}]}],
  tools: [{type: 'function', name: 'bash', inputSchema: {type: 'object', properties: {command: {type: 'string'}}}}]};
const {stream} = await sdk[make]({baseURL: base, apiKey: 'x'})[way]('m').doStream(given);
const parts = [];
for await (const part of stream) parts.push({type: part.type, error: part.error && String(part.error), name: part.toolName, input: part.input});
console.log(JSON.stringify(parts));
"""


@pytest.fixture
def ai_sdk(bridge, workdir):
    """Streams through a provider of the SDK, which checks each event by its schemas: the parts that it makes of them."""
    needs.program("node")
    (workdir / "node_modules").symlink_to(peers.folder("node-sdks") / "node_modules")
    (workdir / "script.mjs").write_text(SCRIPT)

    def stream(name, way):
        base = f"http://127.0.0.1:{bridge.port}/{'v1beta' if name == 'google' else 'v1'}"
        done = subprocess.run(["node", workdir / "script.mjs", name, base, way], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        parts = json.loads(done.stdout)
        assert not [part for part in parts if part["type"] == "error"], parts
        return parts

    return stream


@pytest.mark.parametrize("name, way, method, answer", [
    ("openai", "responses", "generate_responses", by_responses), ("openai", "chat", "generate_completions", by_completions),
    ("anthropic", "languageModel", "generate_anthropic", by_messages), ("google", "languageModel", "generate_google", by_google)])
def test_the_ai_sdk(bridge, ai_sdk, name, way, method, answer):
    bridge.answers[method] = answer
    [call] = [part for part in ai_sdk(name, way) if part["type"] == "tool-call"]
    assert call["name"] == "bash" and json.loads(call["input"])["command"] == MARK


# As hosts give them: what may be left out is, or is null.
ITEMS = [
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": None, "status": None},
    {"type": "custom_tool_call", "id": None, "call_id": "k", "name": "bash", "input": "x"},
    *CALLED_ITEMS,
]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["type"])
def test_the_ai_sdk_with_items_that_lack_members(bridge, ai_sdk, item):
    bridge.answers["generate_responses"] = lambda params: response(item, created_at=1, model="m", usage=USAGE)
    assert ai_sdk("openai", "responses")[-1]["type"] == "finish"
