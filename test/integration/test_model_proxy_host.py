"""`model_proxy` on a host: answers of a real provider, a program or a record, and rules for who asks."""
import json
import os
import shlex
import socket
import subprocess
import threading
import time

import pytest

from harness import containers, needs, roots
from harness.bridge import CHAT, GOOGLE, MESSAGES, PATHS, Proxy, completion, message, send_post
from harness.injection import script
from harness.machine import HANG
from harness.processes import wait_until
from harness.provider import Provider, usual
from harness.webserver import Authority

CLEAN = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
STREAM = ['data: {"choices":[{"index":0,"delta":{"content":"he"}}]}\n\n', 'data: {"choices":[{"index":0,"delta":{"content":"y"}}]}\n\n',
          'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n', "data: [DONE]\n\n"]


@pytest.fixture
def provider():
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def start(toolbox):
    """Starts one with these options; each ends well, and says nothing but what was asked of it."""
    started = []

    def make(*options, env=None):
        started.append(Proxy(toolbox, *options, env={**CLEAN, **(env or {})}))
        return started[-1]

    yield make
    for proxy in started:
        assert proxy.end()[0] == 0


def chat(proxy, body=None, path="/v1/chat/completions", **more):
    return proxy.ask("POST", path, {**(body or CHAT), **more})


# ---- a provider ----


@pytest.mark.parametrize("path", PATHS)
def test_it_is_passed_on_as_it_is(provider, start, path):
    proxy = start("--to", provider.url)
    body = dict(PATHS[path], number=9007199254740993, text="é\u2028")
    status, head, text = proxy.ask("POST", path, body, headers={"X-Mine": "1", "Authorization": "Bearer of-the-agent",
                                                               "X-Api-Key": "of-the-agent"})
    assert (status, json.loads(text)) == (200, usual(body, path)) and head["Content-Type"] == "application/json"
    [(method, asked, headers, got)] = provider.asked
    assert (method, asked, got) == ("POST", path, body) and headers["x-mine"] == "1"
    assert not {"authorization", "x-api-key"} & set(headers) and "of-the-agent" not in str(headers)


@pytest.mark.parametrize("base, asked, becomes", [
    ("", "/v1/models", "/v1/models"), ("", "/models", "/v1/models"), ("/v1", "/v1/models", "/v1/models"),
    ("/api/v1/", "/models/a%2Fb?limit=3", "/api/v1/models/a/b?limit=3"), ("/gate", "/v1beta/models?key=mine&pageSize=2",
                                                                       "/gate/v1beta/models?pageSize=2"),
    ("", "/v1/v1/models", "/v1/models"), ("", "//v1alpha/models/", "/v1alpha/models"), ("", "/v1/files/a%20b", "/v1/files/a%20b")])
def test_paths(provider, start, base, asked, becomes):
    proxy = start("--to", provider.url + base)
    assert proxy.ask("GET", asked)[0] == 200
    assert provider.asked[0][:2] == ("GET", becomes)


def test_what_else_there_is_is_the_providers(provider, start):
    proxy = start("--to", provider.url)
    for path in ("/v1/embeddings", "/v1/messages/count_tokens", "/v1beta/models/g:countTokens", "/v1/moderations"):
        assert proxy.ask("POST", path, {"input": "x"})[0] == 200
    assert [asked[1] for asked in provider.asked] == ["/v1/embeddings", "/v1/messages/count_tokens", "/v1beta/models/g:countTokens",
                                                     "/v1/moderations"]
    assert proxy.ask("GET", "/healthz")[2] == b'{"status":"ok"}' and len(provider.asked) == 4


def test_a_stream_comes_as_it_comes(provider, start):
    """The second piece is sent only when the first has arrived."""
    arrived = threading.Event()

    def pieces():
        yield STREAM[0]
        assert arrived.wait(HANG)
        yield from STREAM[1:]

    provider.answer = lambda body, path: pieces()
    proxy = start("--to", provider.url)
    with proxy.connect() as connection:
        send_post(connection, "/v1/chat/completions", dict(CHAT, stream=True))
        text = b""
        while STREAM[0].encode() not in text:
            text += connection.recv(65536)
        arrived.set()
        while b"[DONE]" not in text:
            text += connection.recv(65536)
    assert b"text/event-stream" in text


def test_keys_stay_on_the_host(provider, start, workdir):
    (workdir / "key").write_text("from-file\n")
    proxy = start("--to", provider.url, "--key-env", "MY_KEY", "--key-file", f"anthropic={workdir / 'key'}", env={"MY_KEY": "from-env"})
    for path in PATHS:
        proxy.ask("POST", path, PATHS[path], headers={"Authorization": "Bearer none", "x-goog-api-key": "none"}
                  if path.startswith("/v1beta") else {"Authorization": "Bearer none"})
    headers = [asked[2] for asked in provider.asked]
    assert [h.get("authorization") for h in headers] == ["Bearer from-env", "Bearer from-env", None, None]
    assert (headers[2]["x-api-key"], headers[2]["anthropic-version"]) == ("from-file", "2023-06-01")
    assert headers[3]["x-goog-api-key"] == "from-env"
    assert "from-" not in " ".join(open(f"/proc/{proxy.process.pid}/cmdline").read().split("\0"))


def test_usual_keys_go_to_https_alone(provider, start, tmp_path):
    needs.program("openssl")
    authority = Authority(tmp_path)
    secure = Provider(authority.certificate("server.pem"))
    keys = {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g", "SSL_CERT_FILE": str(authority.file)}
    plain, safe = start("--to", provider.url, env=keys), start("--to", secure.url, env=keys)
    for path in PATHS:
        assert plain.ask("POST", path, PATHS[path])[0] == safe.ask("POST", path, PATHS[path])[0] == 200
    fields = ("authorization", "x-api-key", "x-goog-api-key")
    assert [[asked[2].get(field) for field in fields] for asked in provider.asked] == [[None] * 3] * 4
    assert [[asked[2].get(field) for field in fields] for asked in secure.asked] == [
        ["Bearer o", None, None], ["Bearer o", None, None], [None, "a", None], [None, None, "g"]]
    secure.close()


def test_each_dialect_may_have_its_own(provider, start):
    other = Provider()
    proxy = start("--to", provider.url, "--to", f"anthropic={other.url}/v1")
    for path in PATHS:
        assert proxy.ask("POST", path, PATHS[path])[0] == 200
    assert [asked[1] for asked in other.asked] == ["/v1/messages"] and len(provider.asked) == 3
    other.close()


def test_errors_come_with_what_they_say_of_trying_again(provider, start):
    said = {"error": {"message": "slow down", "type": "tokens", "code": "rate_limit_exceeded"}}
    provider.answer = lambda body, path: (429, {"Retry-After": "7", "x-ratelimit-reset-tokens": "6s", "x-should-retry": "true",
                                                "request-id": "r1", "Set-Cookie": "a=b"}, said)
    status, head, text = chat(start("--to", provider.url), stream=True)
    assert (status, json.loads(text)) == (429, said) and "Set-Cookie" not in head
    assert [head[name] for name in ("retry-after", "x-ratelimit-reset-tokens", "x-should-retry", "request-id")] == ["7", "6s", "true", "r1"]


def test_one_that_cannot_be_asked(start):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        proxy = start("--to", f"http://127.0.0.1:{s.getsockname()[1]}")
        for path, of in (("/v1/chat/completions", lambda e: e["error"]["type"]), ("/v1/messages", lambda e: e["error"]["type"]),
                         ("/v1beta/models/g:generateContent", lambda e: e["error"]["status"])):
            status, _, text = proxy.ask("POST", path, PATHS[path])
            assert status == 502 and "can't be asked" in json.loads(text)["error"]["message"] and of(json.loads(text)), path


@pytest.mark.parametrize("path, ends", [("/v1/chat/completions", b'data: {"error"'), ("/v1/messages", b'event: error\ndata: {"type":"error"'),
                                        ("/v1beta/models/g:streamGenerateContent?alt=sse", b'data: {"error"')])
def test_a_late_one_is_waited_for_with_signs_of_life(provider, start, path, ends):
    """Slow: the first sign comes after two and a half seconds. What fails then is an event."""
    go = threading.Event()
    provider.answer = lambda body, asked: go.wait(HANG) and (503, {}, b'{"error":\n {"message": "m", "type": "t"}, "type":"error"}')
    proxy = start("--to", provider.url)
    with proxy.connect() as connection:
        send_post(connection, path, dict(PATHS.get(path, GOOGLE), stream=True))
        text = connection.recv(65536)
        assert text.startswith(b"HTTP/1.1 200") and b"text/event-stream" in text
        go.set()
        while b"\r\n0\r\n\r\n" not in text:
            text += connection.recv(65536)
    assert ends.split(b"{")[0] in text and b'"message":' in text


def test_a_client_that_goes_ends_what_asks_for_it(provider, start):
    came, gone = threading.Event(), threading.Event()

    def slow(body, path):
        came.set()
        for _ in range(10000):
            yield ": more\n\n" * 1000
        gone.set()

    provider.answer = slow
    proxy = start("--to", provider.url)
    with proxy.connect() as connection:
        send_post(connection, "/v1/chat/completions", dict(CHAT, stream=True))
        assert came.wait(HANG) and connection.recv(1000)
    children = f"/proc/{proxy.process.pid}/task/{proxy.process.pid}/children"
    wait_until(lambda: open(children).read() == "", "what asks the provider to end")
    assert not gone.is_set()


def test_into_a_container_without_a_network(provider, start, client, namespaces, workdir):
    """The held connection carries it: `forward -R` there, `--to` here; nothing else is needed."""
    container = namespaces.start(roots.get("busybox"), containers.Options())
    words, _ = container.command([], {}, None, None)
    target = f"exec:{script(workdir / 'runtime', 'exec ' + shlex.join(words) + ' ' + chr(34) + '$@' + chr(34))}"
    proxy = start("--to", provider.url, "--key-env", "MY_KEY", env={"MY_KEY": "of-the-host"})
    assert container.run([containers.BUSYBOX, "ifconfig", "lo", "up"]).returncode == 0
    forward = client.popen("forward", target, "-R", f"13131:{proxy.port}")
    try:
        assert forward.stdout.readline(), forward.communicate(timeout=HANG)
        asked = container.run([containers.BUSYBOX, "wget", "-q", "-O", "-", "--header", "Content-Type: application/json", "--post-data",
                               json.dumps(CHAT), "http://127.0.0.1:13131/v1/chat/completions"])
        assert json.loads(asked.stdout) == completion("hello"), asked.stderr
        assert provider.asked[0][2]["authorization"] == "Bearer of-the-host"
    finally:
        forward.terminate()
        forward.communicate(timeout=HANG)
        client.cli("eject", target)
        container.destroy()


# ---- a program ----


def test_a_program_answers(start, workdir):
    program = script(workdir / "answer", 'read -r line; printf "%s\\n" "$line" >>"$LOG"; cat "$ANSWER"')
    answer, log = workdir / "a", workdir / "log"
    proxy = start("--to-exec", str(program), env={"ANSWER": str(answer), "LOG": str(log)})
    answer.write_text(json.dumps({"result": completion("hey")}) + "\n")
    assert json.loads(chat(proxy)[2]) == completion("hey")
    answer.write_text(json.dumps(completion("hey")))  # without {"result"}, and without an end of line
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for _, chunk in proxy.stream(
        "/v1/chat/completions", dict(CHAT, stream=True)) if chunk != "[DONE]" and chunk["choices"]) == "hey"
    answer.write_text(json.dumps({"result": message({"type": "text", "text": "hey"})}))
    assert proxy.stream("/v1/messages", dict(MESSAGES, stream=True))[-1][0] == "message_stop"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["generate_completions"] * 2 + ["generate_anthropic"]
    assert lines[0]["params"]["json_data"]["messages"] == CHAT["messages"] and lines[2]["params"]["headers"]["content-type"]


@pytest.mark.parametrize("command, status, says", [
    ("""echo '{"error": {"status": 429, "message": "slow", "headers": {"retry-after": 3}}}'""", 429, "slow"),
    ("""echo '{"error": "no"}'""", 500, "no"), ("echo nonsense", 502, "no JSON object"), ("exit 3", 502, "status 3"),
    ("kill -9 $$", 502, "signal 9"), ("true", 502, "status 0 and no line"), ("echo '[]'; exit 1", 502, "no JSON object")])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_program_that_fails_is_an_error_of_the_provider(start, command, status, says, path):
    proxy = start("--to-exec", command)
    for _ in range(2):  # and it goes on
        got, head, text = proxy.ask("POST", path, PATHS[path])
        assert got == status and says in json.loads(text)["error"]["message"]
        assert (head["retry-after"] == "3") == (status == 429)


def test_a_client_that_goes_ends_the_program(start, workdir):
    proxy = start("--to-exec", f"echo $$ >{workdir / 'pid'}; sleep 1000")
    with proxy.connect() as connection:
        send_post(connection, "/v1/chat/completions", CHAT)
        wait_until(lambda: (workdir / "pid").exists() and (workdir / "pid").read_text(), "the program to begin")
    wait_until(lambda: not os.path.exists(f"/proc/{(workdir / 'pid').read_text().strip()}"), "the program to end")


# ---- a record ----


def test_record_and_replay(provider, start, workdir):
    record = workdir / "record"
    count = iter(range(100))
    provider.answer = lambda body, path: STREAM if body.get("stream") else completion(f"n{next(count)}")
    proxy = start("--to", provider.url, "--record", record, "--key-env", "MY_KEY", env={"MY_KEY": "secret"})
    asked = [dict(CHAT), dict(CHAT), dict(CHAT, temperature=1), dict(CHAT, stream=True)]
    answers = [chat(proxy, body)[2] for body in asked]
    assert json.loads(answers[2]) == completion("n2") and answers[3] == "".join(STREAM).encode()
    answers[:3] = [json.loads(answer) for answer in answers[:3]]
    assert os.stat(record).st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["request"]["body"] for line in lines] == asked and "secret" not in record.read_text()
    assert lines[0]["response"]["body"] == completion("n0") and lines[3]["response"]["body"] == "".join(STREAM)
    again = start("--replay", record)
    other_order = dict(reversed(list(CHAT.items())), metadata={"user_id": "another"}, prompt_cache_key="k")
    found = [chat(again, body)[2] for body in [other_order] + asked[1:]]
    assert [json.loads(answer) for answer in found[:3]] + found[3:] == answers
    assert json.loads(chat(again, path="/chat/completions")[2]) == answers[1]  # of several, the last one stays
    status, _, text = chat(again, temperature=2)
    assert status == 400 and "4 to that path" in json.loads(text)["error"]["message"]
    assert len(provider.asked) == 4


def test_a_record_in_order(provider, start, workdir):
    record = workdir / "record"
    count = iter(range(100))
    provider.answer = lambda body, path: completion(f"n{next(count)}")
    proxy = start("--to", provider.url, "--record", record)
    answers = [json.loads(chat(proxy)[2]) for _ in range(3)]
    again = start("--replay", record, "--match", "order")
    assert [json.loads(chat(again, seed=n)[2]) for n in range(3)] == answers
    assert chat(again)[0] == 400


@pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"request":{},"response":{}}', '{"request":{"method":"POST","path":1},"response":{}}'])
def test_what_is_no_record(toolbox, workdir, line):
    (workdir / "record").write_text("\n" + line + "\n")
    run = subprocess.run([toolbox, "model_proxy", "--port", "0", "--replay", workdir / "record"], capture_output=True, text=True, timeout=HANG)
    assert run.returncode == 1 and "line 2 of" in run.stderr


def test_everything_can_be_recorded(start, workdir):
    record = workdir / "record"
    proxy = start("--to-exec", f"echo '{json.dumps(completion('hey'))}'", "--record", record)
    streamed = chat(proxy, stream=True)[2]
    assert chat(start("--replay", record), stream=True)[2] == streamed


# ---- rules ----


def test_models_and_parameters(provider, start):
    proxy = start("--to", provider.url, "--model", "gpt-*=small", "--model", "m=other/model", "--set", "temperature=0", "--set",
                  "reasoning.effort=low", "--set", 'stop=["a"]', "--unset", "top_p", "--unset", "metadata.user_id")
    chat(proxy, model="gpt-5", top_p=1, temperature=1, metadata={"user_id": 1, "b": 2})
    chat(proxy, model="claude")
    proxy.ask("POST", "/v1beta/models/m:generateContent", {"contents": [], "generationConfig": {"temperature": 1, "topK": 2}})
    bodies = [asked[3] for asked in provider.asked]
    forced = {"temperature": 0, "reasoning": {"effort": "low"}, "stop": ["a"]}
    assert bodies[0] == {**CHAT, "model": "small", "metadata": {"b": 2}, **forced}
    assert bodies[1] == {**CHAT, "model": "claude", **forced}
    assert bodies[2]["generationConfig"] == {"temperature": 0, "topK": 2}
    assert provider.asked[2][1] == "/v1beta/models/other/model:generateContent"


def test_rules_hold_for_a_program_too(start, workdir):
    proxy = start("--to-exec", f"cat >{workdir / 'log'}; echo '{json.dumps(completion('hey'))}'", "--set", "seed=7", "--model", "*=x")
    assert chat(proxy)[0] == 200
    body = json.loads((workdir / "log").read_text())["params"]["json_data"]
    assert (body["seed"], body["model"]) == (7, "x")


def refusals(proxy):
    found = {}
    for path in PATHS:
        status, head, text = proxy.ask("POST", path, PATHS[path])
        found[path] = status, head, json.loads(text)["error"]
    return found["/v1/chat/completions"], found["/v1/messages"], found["/v1beta/models/g:generateContent"]


def test_a_budget_of_requests(provider, start):
    proxy = start("--to", provider.url, "--budget", "requests=2")
    assert [chat(proxy)[0], chat(proxy)[0]] == [200, 200]
    openai, anthropic, google = refusals(proxy)
    assert openai[0] == 429 and (openai[2]["type"], openai[2]["code"]) == ("insufficient_quota",) * 2
    assert openai[1]["x-should-retry"] == "false" and "all 2 requests" in openai[2]["message"]
    assert anthropic[0] == 400 and anthropic[2]["type"] == "invalid_request_error"
    assert google[0] == 429 and google[2]["status"] == "RESOURCE_EXHAUSTED" and "QuotaFailure" in google[2]["details"][0]["@type"]
    assert len(provider.asked) == 2 and proxy.ask("GET", "/v1/models")[0] == 200


@pytest.mark.parametrize("body, tokens", [
    ({"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}, 7), ({"usage": {"total_tokens": 7}}, 7),
    ({"usage": {"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 4}}, 7),
    ({"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 3, "thoughtsTokenCount": 1}}, 7),
    (STREAM, 7), (['event: message_start\ndata: {"message":{"usage":{"input_tokens":3,"output_tokens":1}}}\n\n',
                   'data: {"usage":{"output_tokens":4}}\n\n'], 7), (['data: {"response":{"usage":{"input_tokens":3,"output_tokens":4}}}\n\n'], 7)])
def test_a_budget_of_tokens(provider, start, body, tokens):
    provider.answer = lambda *_: body
    exact, more = start("--to", provider.url, "--budget", f"tokens={tokens}"), start("--to", provider.url, "--budget", f"tokens={tokens + 1}")
    assert [chat(exact)[0], chat(exact)[0]] == [200, 429]
    assert [chat(more)[0], chat(more)[0], chat(more)[0]] == [200, 200, 429]


def test_a_rate_is_refused_as_the_providers_do(provider, start):
    proxy = start("--to", provider.url, "--rate", "requests=1")
    assert chat(proxy)[0] == 200
    openai, anthropic, google = refusals(proxy)
    assert openai[0] == anthropic[0] == google[0] == 429
    assert (openai[2]["type"], openai[2]["code"]) == ("requests", "rate_limit_exceeded")
    assert openai[1]["x-ratelimit-limit-requests"] == "1" and openai[1]["x-ratelimit-remaining-requests"] == "0"
    assert openai[1]["x-ratelimit-reset-requests"].endswith("ms") and 0 < int(openai[1]["retry-after-ms"]) <= 60001
    assert anthropic[2]["type"] == "rate_limit_error" and 0 < int(anthropic[1]["retry-after"]) <= 61
    assert anthropic[1]["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert google[2]["details"][0]["retryDelay"].endswith("s") and google[2]["status"] == "RESOURCE_EXHAUSTED"


def test_a_rate_of_tokens(provider, start):
    provider.answer = lambda *_: {"usage": {"total_tokens": 1000000}}
    proxy = start("--to", provider.url, "--rate", "tokens=10")
    assert chat(proxy)[0] == 200
    status, head, text = chat(proxy)
    assert status == 429 and json.loads(text)["error"]["type"] == "tokens" and int(head["retry-after"]) > 60


@pytest.mark.parametrize("of", ["provider", "program"])
def test_so_many_at_the_same_time(provider, start, workdir, of):
    """The others wait for their turn."""
    lock, now, most = threading.Lock(), [0], [0]

    def answer(body, path):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return completion("hey")

    provider.answer = answer
    program = f"mkdir {workdir}/one || mkdir {workdir}/two || exit 9; sleep 0.05; rmdir {workdir}/one || rmdir {workdir}/two; echo '{json.dumps(completion('hey'))}'"
    proxy = start(*(("--to", provider.url) if of == "provider" else ("--to-exec", f"exec 2>/dev/null; {program}")), "--concurrency", "2")
    found = []
    threads = [threading.Thread(target=lambda: found.append(chat(proxy)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 8 and most[0] <= 2


@pytest.mark.parametrize("options, says", [
    (("--to", "ftp://x"), "https:// addresses can"), (("--to", "http://x", "--to-exec", "true"), "one of them is enough"),
    (("--to", "http://x", "--key-env", "NOT_SET_"), "NOT_SET_ is not set"), (("--to", "http://x", "--key-file", "/nowhere/at/all"), "/nowhere"),
    (("--replay", "/nowhere/at/all"), "/nowhere"), (("--record", "/nowhere/x"), "/nowhere/x"), (("--match", "luck"), "body or order"),
    (("--budget", "requests=0"), "requests=N"), (("--rate", "beans=3"), "requests=N"), (("--concurrency", "none"), "a number"),
    (("--set", "temperature"), "NAME=VALUE"), (("--model", "=x"), "NAME=VALUE"), (("--unset", "a=b"), "a name")])
def test_what_makes_no_sense_is_said(toolbox, options, says):
    run = subprocess.run([toolbox, "model_proxy", "--port", "0", *options], capture_output=True, text=True, timeout=HANG, env=CLEAN)
    assert run.returncode in (1, 2) and says in run.stderr, run.stderr
