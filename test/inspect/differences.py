"""What the answers of both say, compared as far as it matters to a host: kind and code, what is in a file, what a view
shows, what a program printed. Wording is each side's own."""
import json
import re
import time

from both import sides

NUMBERED = re.compile(r"^ *\d+\t.*$", re.M)


def plain(side, value):
    """A text without what differs by nature: folders, process ids, the host's name."""
    text = value.replace(str(side.work), "$T").replace(str(side.folder), "$F").replace("\r", "")
    return re.sub(r"(bash: )?line \d+: ", "", text)


def essence(side, method, params, answer):
    if answer is None:
        return "nothing"
    if not isinstance(answer, dict):
        return [essence(side, method, params, each) for each in answer]
    envelope = {name: member for name, member in answer.items() if name in ("jsonrpc", "id")}
    if "error" in answer:
        return {**envelope, "error": answer["error"]["code"]}
    result = answer.get("result")
    if method == "text_editor":
        path = str(params.get("path", "")) if isinstance(params, dict) else ""
        listing = sorted(plain(side, line).strip("/") for line in result.split("\n")[1:] if line) if path.endswith("/.") else None
        return {**envelope, "shows": listing or NUMBERED.findall(result), "files": side.files()}
    if method in ("remote_version", "version", "exec_remote_start", "mcp_launch_server", "bash_session_new_session"):
        return {**envelope, "result": type(result).__name__}
    if isinstance(result, dict):
        # What has come by the time of a write or a kill is a matter of chance.
        left_out = {"seq"} if "state" in result else {"seq", "stdout", "stderr"}
        result = {name: plain(side, member) if isinstance(member, str) else member
                  for name, member in result.items() if name not in left_out}
    if method == "mcp_send_request":
        result = plain(side, json.dumps(result, sort_keys=True))
    return {**envelope, "result": plain(side, result) if isinstance(result, str) else result}


def settle(side):
    """All polls of a job, taken together."""
    out, err, ack = "", "", 0
    for _ in range(300):
        answer = side.call("exec_remote_poll", {"pid": "$P", "ack_seq": ack})
        if "error" in answer:
            return answer
        result = answer["result"]
        out, err, ack = out + result["stdout"], err + result["stderr"], result["seq"]
        if result["state"] != "running":
            break
        time.sleep(0.05)
    return {**answer, "result": {**result, "stdout": out, "stderr": err}}


def step(side, method, params):
    if method == "pause":
        time.sleep(1)
        return "pause"
    answer = settle(side) if method == "wait" else side.call(method, params)
    return essence(side, method, side.filled(params), answer)


def run_group(side, steps):
    for path in sorted(side.work.rglob("*"), reverse=True):
        path.unlink() if path.is_file() or path.is_symlink() else path.rmdir()
    return [step(side, method, params) for method, params in steps]


def raw(side, text):
    answer, status = side.exec(text)
    return {"answer": essence(side, "version", {}, answer), "status": status}


def compare(artefact, toolbox, groups, texts):
    """Yields (name, request, what the reference says, what toolbox says)."""
    with sides(artefact, toolbox) as (reference, ours):
        for name, steps in groups.items():
            one, other = run_group(reference, steps), run_group(ours, steps)
            for number, (request, a, b) in enumerate(zip(steps, one, other)):
                yield f"{name}: {number}", request, a, b
        for number, text in enumerate(texts):
            yield f"raw: {number}", text, raw(reference, text), raw(ours, text)
