"""The tools of `toolbox mcp serve`, one by one, on what containers really have in them."""
import base64
import os
import socket
import stat
import time

import pytest

from harness import needs, roots
from harness.containers import Options
from harness.mcp_client import McpClient, ToolError
from harness.processes import wait_until
from test_mcp_serve import PNG, SLEEP, sleeps


@pytest.fixture
def tree(workdir):
    """Files of all kinds."""
    for path, content in {
        "a.txt": "alpha\nbeta\ngamma\n", "src/main.c": "int main(void)\n{\n\treturn 0;\n}\n", "src/deep/er/x.c": "// Alpha\n",
        ".hidden/secret.txt": "alpha\n", "node_modules/lib/index.js": "alpha\n", "crlf.txt": "one\r\nalpha\r\n",
        "latin1.txt": b"caf\xe9 alpha\n", "binary.dat": b"alpha\x00beta", "empty": "", "no newline": "alpha",
    }.items():
        file = workdir / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.symlink("..", workdir / "src/loop")
    os.symlink("a.txt", workdir / "link")
    os.symlink("/nowhere", workdir / "dangling")
    os.mkfifo(workdir / "fifo")
    return workdir


# ---- finding ----


def test_find_files(mcp, tree):
    def find(pattern, **more):
        return mcp.call("find_files", pattern=pattern, **more)["paths"]

    assert find("*.txt") == ["a.txt", "crlf.txt", "latin1.txt"]
    assert find("*.txt", hidden=True) == [".hidden/secret.txt", "a.txt", "crlf.txt", "latin1.txt"]
    assert find("src/**/*.c") == ["src/deep/er/x.c", "src/main.c"] == find("**/*.c")
    assert find("*.{c,js}", exclude=["node_modules"]) == ["src/deep/er/x.c", "src/main.c"]
    assert find("*", type="symlink") == ["dangling", "link", "src/loop"]
    assert find("*", type="directory", exclude=["deep"]) == ["node_modules", "node_modules/lib", "src"]
    assert find("*", type="other") == ["fifo"]
    assert find("er", path="src") == ["src/deep/er"] and find("er", path=f"{tree}/src/") == [f"{tree}/src/deep/er"]
    assert find("*", path="src/deep/er/") == ["src/deep/er/x.c"]
    assert find("x") == []
    cut = mcp.call("find_files", pattern="*", limit=3)
    assert len(cut["paths"]) == 3 and cut["truncated"] and not cut["timed_out"]


def test_find_files_says_no(mcp, tree):
    for arguments, why in (({"pattern": "["}, "without ']'"), ({"pattern": "*", "exclude": ["{a"]}, "without '}'"),
                           ({"pattern": "*", "path": "nope"}, "o such file"), ({"pattern": "*", "path": "a.txt"}, "ot a directory"),
                           ({"pattern": "*", "type": "socket"}, "must be one of file, directory"), ({"pattern": "a\0b"}, "pattern"),
                           ({"pattern": "x" * 3000}, "too long"), ({}, "pattern")):
        with pytest.raises(ToolError, match=why):
            mcp.call("find_files", **arguments)


def test_list_files(mcp, tree):
    entries = mcp.call("list_files")["entries"]
    assert [entry["path"] for entry in entries] == sorted(entry["path"] for entry in entries)
    by_path = {entry["path"]: entry for entry in entries}
    assert by_path["a.txt"] == {"path": "a.txt", "type": "file", "size": 17} and by_path["src"]["type"] == "directory"
    assert by_path["link"] == {"path": "link", "type": "symlink", "target": "a.txt"} and ".hidden" not in by_path
    deep = [entry["path"] for entry in mcp.call("list_files", path="src", depth=100)["entries"]]
    assert deep == ["src/deep", "src/deep/er", "src/deep/er/x.c", "src/loop", "src/main.c"]
    assert ".hidden" in [entry["path"] for entry in mcp.call("list_files", hidden=True)["entries"]]


def test_search_files(mcp, tree):
    def search(pattern, **more):
        found = mcp.call("search_files", pattern=pattern, **more)
        return [(match["path"], match["line"], match["text"]) for match in found["matches"]]

    assert search("^alpha$") == [("a.txt", 1, "alpha"), ("no newline", 1, "alpha"), ("node_modules/lib/index.js", 1, "alpha")]
    assert ("crlf.txt", 2, "alpha") in search("alpha") and ("latin1.txt", 1, "caf\ufffd alpha") in search("alpha")
    assert search("ALPHA") == [] and ("src/deep/er/x.c", 1, "// Alpha") in search("ALPHA", ignore_case=True)
    assert search("main(void)", literal=True) == [("src/main.c", 1, "int main(void)")] and search("main(void)") == []
    assert search("MAIN(", literal=True, ignore_case=True) == [("src/main.c", 1, "int main(void)")]
    assert search("al(ph|x)a", glob="*.js") == [("node_modules/lib/index.js", 1, "alpha")]
    assert search("alpha", glob="src/**") == [] and search("beta", path="a.txt") == [("a.txt", 2, "beta")]
    assert search("secret|alpha", path=".hidden") == [(".hidden/secret.txt", 1, "alpha")]
    found = mcp.call("search_files", pattern="beta", context=1)
    assert found["matches"] == [{"path": "a.txt", "line": 2, "text": "beta", "before": "alpha\n", "after": "gamma\n"}]
    assert found["files_binary"] == 1 and found["files_searched"] == 9 and not found["truncated"]


def test_search_files_says_no(mcp, tree):
    for arguments, why in (({"pattern": "("}, r"has no '\)'"), ({"pattern": ""}, "empty"), ({"pattern": "a\nb"}, "one by one"),
                           ({"pattern": r"(a)\1"}, "references"), ({"pattern": "x", "path": "nope"}, "o such file"),
                           ({"pattern": "x", "glob": "["}, "without ']'"), ({"pattern": "a{1,99999}"}, "pattern")):
        with pytest.raises(ToolError, match=why):
            mcp.call("search_files", **arguments)
    with pytest.raises(ToolError):
        mcp.call("search_files", pattern="((a{1,200}){1,200}){1,200}")
    assert mcp.call("search_files", pattern="alpha")["matches"]


def test_search_of_much(mcp, workdir):
    (workdir / "long").write_text("x" * 3_000_000 + "needle\n" + "y" * 1000 + "needle" + "z" * 1000 + "\nneedle\n")
    (workdir / "many").write_text("needle\n" * 5000)
    with open(workdir / "large", "wb") as file:
        file.truncate(100 << 20)
    found = mcp.call("search_files", pattern="needle")
    assert len(found["matches"]) == 200 and found["truncated"]
    first, second = found["matches"][:2]
    assert first["line"] == 2 and len(first["text"]) <= 500 and "needle" in first["text"] and first["line_cut"]
    assert second == {"path": "long", "line": 3, "text": "needle"}
    assert mcp.call("search_files", pattern="needle", path="large")["files_too_large"] == 1


def test_trees_that_are_made_up_are_not_entered(mcp):
    found = mcp.call("find_files", pattern="cmdline", path="/", exclude=["tmp", "work", "usr"], timeout=5)
    assert not any(path.startswith(("/proc/", "/sys/")) for path in found["paths"])
    assert "/proc/version" in mcp.call("find_files", pattern="version", path="/proc", exclude=["[0-9]*"], timeout=5)["paths"]
    assert mcp.call("search_files", pattern=".", path="/proc/version")["matches"]


def test_what_can_not_be_read_is_counted(new_client, tree):
    needs.root("work as another user")
    (tree / "src").chmod(0)
    (tree / "a.txt").chmod(0)
    client = new_client(user=65534)
    mcp = McpClient(client.popen("mcp", "serve", cwd=tree))
    assert mcp.call("find_files", pattern="*.c")["unreadable_directories"] == 1
    assert mcp.call("search_files", pattern="alpha")["unreadable"] == 2
    with pytest.raises(ToolError, match="ermission denied"):
        mcp.call("read_file", path="a.txt")
    with pytest.raises(ToolError, match="ermission denied"):
        mcp.call("list_files", path="src")
    mcp.close()


def test_a_search_has_a_time_limit_and_can_be_cancelled(mcp, workdir):
    for i in range(300):
        (workdir / f"f{i}").write_text("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n" * 20000)
    start = time.monotonic()
    found = mcp.call("search_files", pattern="(a*)*(a*)*(a|b|ab)*(c|d)", timeout=1)
    assert found["timed_out"] and found["truncated"] and time.monotonic() - start < 20
    id = mcp.start_call("search_files", {"pattern": "(a*)*(a*)*(a|b|ab)*(c|d)", "timeout": 600}, token="t")
    assert "files searched" in mcp.receive()["params"]["message"]
    mcp.notify("notifications/cancelled", {"requestId": id})
    assert mcp.request("ping") == {}


# ---- reading and writing ----


def texts(mcp):
    return [block["text"] for block in mcp.content]


def test_read_file(mcp, tree):
    assert mcp.call("read_file", path="a.txt") == "alpha\nbeta\ngamma\n"
    assert mcp.content == [{"type": "text", "text": "alpha\nbeta\ngamma\n"}]
    mcp.call("read_file", path="a.txt", offset=6, max_bytes=4)
    assert texts(mcp) == ["beta", "[These are bytes 6 to 9 of 17; offset 10 goes on]"]
    assert mcp.call("read_file", path="a.txt", offset=1000) == ""
    with pytest.raises(ToolError, match="offset"):
        mcp.call("read_file", path="a.txt", offset=-1)
    assert base64.b64decode(mcp.call("read_file", path="binary.dat", encoding="base64")) == b"alpha\x00beta"
    assert mcp.call("read_file", path="/proc/version").startswith("Linux")
    assert mcp.call("read_file", path="empty") == ""


def test_read_file_cuts_between_characters(mcp, workdir):
    (workdir / "f").write_text("äöü" * 1000)
    text, offset, more = "", 0, True
    while more:
        mcp.call("read_file", path="f", offset=offset, max_bytes=7)
        part, *more = texts(mcp)
        text += part
        offset = more and int(more[0].split("offset ")[1].split()[0])
    assert text == "äöü" * 1000


def test_read_file_says_no(mcp, tree):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tree / "socket"))
    for path, why in (("nope", "o such file"), ("src", "list_files"), ("fifo", "FIFO"), ("socket", "socket|o such device"), ("binary.dat", "base64"),
                      ("latin1.txt", "base64"), ("dangling", "o such file"), ("", "o such file"), ("/dev/zero", "device")):
        with pytest.raises(ToolError, match=why):
            mcp.call("read_file", path=path)
    server.close()


@pytest.mark.parametrize("name, content, kind", [
    ("a.png", PNG, "image/png"), ("no-extension", b"\xff\xd8\xff\xe0" + bytes(50), "image/jpeg"), ("x.txt", b"GIF89a" + bytes(50), "image/gif"),
    ("w", b"RIFF\x10\0\0\0WEBPVP8 " + bytes(50), "image/webp"),
])
def test_images_are_seen(mcp, workdir, name, content, kind):
    (workdir / name).write_bytes(content)
    for tool, more in ("read_file", {}), ("text_editor", {"command": "view"}):
        mcp.call(tool, path=name, **more)
        image = mcp.content[0]
        assert (image["type"], image["mimeType"], base64.b64decode(image["data"])) == ("image", kind, content)
    assert mcp.call("read_file", path=name, encoding="base64") == base64.b64encode(content).decode()


def test_what_looks_like_an_image_but_is_too_large(mcp, workdir):
    with open(workdir / "large.png", "wb") as file:
        file.write(PNG)
        file.truncate(20 << 20)
    with pytest.raises(ToolError, match="8 MiB"):
        mcp.call("read_file", path="large.png")


def test_write_file(mcp, workdir):
    file = workdir / "new/dir/f"
    with pytest.raises(ToolError):
        mcp.call("write_file", path="new/dir/f", content="x")
    assert mcp.call("write_file", path="new/dir/f", content="ä\n", parents=True) == {
        "path": "new/dir/f", "created": True, "size": 3, "can_be_undone": True}
    file.chmod(0o751)
    assert mcp.call("write_file", path=str(file), content="more\n", mode="append")["size"] == 8
    assert mcp.call("write_file", path="new/dir/f", content=base64.b64encode(bytes(range(256))).decode(), encoding="base64")["created"] is False
    assert file.read_bytes() == bytes(range(256)) and stat.S_IMODE(file.stat().st_mode) == 0o751
    for want in "ä\nmore\n", "ä\n":
        mcp.call("text_editor", command="undo_edit", path="new/dir/f")
        assert file.read_text() == want
    mcp.call("write_file", path="new/dir/f", content="")
    assert file.read_bytes() == b""
    os.symlink("new/dir/f", workdir / "link")
    mcp.call("write_file", path="link", content="through")
    assert file.read_text() == "through" and (workdir / "link").is_symlink()


def test_write_file_says_no(mcp, workdir):
    (workdir / "there").write_text("old")
    (workdir / "dir").mkdir()
    for arguments, why in (({"path": "there", "content": "x", "mode": "create"}, "exists"), ({"path": "x", "content": "!", "encoding": "base64"}, "base64"),
                           ({"path": "dir", "content": "x"}, "directory"), ({"path": "there/x", "content": "x", "parents": True}, "can't be made|irectory"),
                           ({"path": "x", "content": "x", "mode": "replaced"}, "must be one of"), ({"path": "", "content": "x"}, "."),
                           ({"path": "/proc/nope", "content": "x"}, ".")):
        with pytest.raises(ToolError, match=why):
            mcp.call("write_file", **arguments)
    assert (workdir / "there").read_text() == "old"


def test_text_editor(mcp, workdir):
    assert "File created" in mcp.call("text_editor", command="create", path="f", file_text="a\nb\n")
    assert "     2\tb" in mcp.call("text_editor", command="view", path="f")
    assert mcp.content == [{"type": "text", "text": mcp.call("text_editor", command="view", path="f")}]
    mcp.call("text_editor", command="insert", path="f", insert_line=1, new_str="mid")
    mcp.call("text_editor", command="str_replace", path="f", old_str="mid", new_str="MID")
    assert (workdir / "f").read_text() == "a\nMID\nb\n"
    assert mcp.call("text_editor", command="view", path="f", view_range=[2, 2]).count("\t") == 1
    for arguments, why in (({"command": "view"}, "path"), ({"command": "fly", "path": "f"}, "must be one of view"),
                           ({"command": "str_replace", "path": "f", "old_str": "nope"}, ".")):
        with pytest.raises(ToolError, match=why):
            mcp.call("text_editor", **arguments)


# ---- shells and jobs ----


def test_shell_input_and_interrupt(mcp):
    asked = mcp.call("shell_run", command="read -p 'name? ' n; echo hello $n")
    assert asked["state"] == "awaiting_input" and "name?" in asked["output"]
    assert "hello you" in mcp.call("shell_input", text="you")["output"]
    assert mcp.call("shell_run", command=f"sleep {SLEEP}", timeout=0.1)["state"] == "timeout"
    with pytest.raises(ToolError, match="busy.*shell_input"):
        mcp.call("shell_run", command="echo")
    mcp.call("shell_interrupt")
    assert mcp.call("shell_run", command="echo $?")["output"] == "130\n" and not sleeps()
    assert mcp.call("shell_input", text="echo no ent", enter=False)["output"] == ""
    assert "no enter" in mcp.call("shell_input", text="er")["output"]


def test_long_output_is_cut_in_the_middle(mcp):
    run = mcp.call("shell_run", command="seq 100000", max_output_bytes=1000)
    assert len(run["output"]) <= 1100 and run["output"].startswith("1\n") and run["output"].endswith("100000\n") and run["omitted_bytes"] > 500000


def test_the_default_shell_can_end_and_be_had_again(mcp):
    first = mcp.call("shell_run", command="exit 4")
    assert (first["state"], first["exit_code"]) == ("exited", 4)
    with pytest.raises(ToolError, match="restart"):
        mcp.call("shell_run", command="echo")
    mcp.call("shell_restart")
    assert mcp.call("shell_run", command="echo back")["output"] == "back\n"
    mcp.call("shell_close", session=first["session"])
    second = mcp.call("shell_run", command="echo new")
    assert second["output"] == "new\n" and second["session"] != first["session"]
    with pytest.raises(ToolError):
        mcp.call("shell_run", command="echo", session=first["session"])
    with pytest.raises(ToolError):
        mcp.call("shell_run", command="echo", session="Nope")


def test_jobs(mcp, workdir):
    job = mcp.call("job_start", command="echo $A; pwd; cat; exit 5", env={"A": "b"}, cwd="/", input="in")["job"]
    end = mcp.call("job_wait", job=job)
    assert end == {"job": job, "state": "completed", "exit_code": 5, "stdout": "b\n/\nin", "stderr": "", "omitted_bytes": 0}
    assert job in [one["job"] for one in mcp.call("job_list")["jobs"]]
    assert mcp.call("job_wait", job=job)["exit_code"] == 5
    slow = mcp.call("job_start", command=f"echo first; sleep {SLEEP}", timeout=86400)["job"]
    assert mcp.call("job_wait", job=slow, for_="output")["stdout"] == "first\n"
    running = mcp.call("job_wait", job=slow, timeout=0)
    assert (running["state"], running["exit_code"], running["stdout"]) == ("running", None, "")
    assert mcp.call("job_kill", job=slow)["exit_code"] == -15
    late = mcp.call("job_start", argv=["sleep", SLEEP], timeout=0.2)["job"]
    assert mcp.call("job_wait", job=late)["timed_out"] is True
    cat = mcp.call("job_start", argv=["cat"], stdin_open=True)["job"]
    for text in "one\n", "two":
        mcp.call("job_write", job=cat, text=text)
    wait_until(lambda: [one["unread_stdout"] for one in mcp.call("job_list")["jobs"] if one["job"] == cat] == [7], "it has come back")
    mcp.call("job_write", job=cat, close=True)  # whose answer brings it along, and doesn't tell it
    assert mcp.call("job_wait", job=cat)["stdout"] == "one\ntwo"


def test_jobs_say_no(mcp):
    for tool, arguments, why in (("job_start", {}, "command"), ("job_start", {"argv": ["/no/such"]}, "/no/such: not found"), ("job_start", {"argv": []}, "command"),
                                 ("job_start", {"command": "true", "cwd": "/no/such"}, "/no/such"), ("job_wait", {"job": 999999}, "job|999999"),
                                 ("job_write", {"job": 999999, "text": "x"}, "."), ("job_write", {"job": 1}, "text"), ("job_kill", {"job": 0}, "job"),
                                 ("job_wait", {"job": "x"}, "job"), ("job_wait", {"job": 1, "for": "ever"}, "must be one of end, output")):
        with pytest.raises(ToolError, match=why):
            mcp.call(tool, **arguments)


def test_much_output_of_a_job(mcp):
    job = mcp.call("job_start", command="head -c 5000000 /dev/zero | tr '\\0' ä; echo end")["job"]
    end = mcp.call("job_wait", job=job)
    while end["state"] == "running":
        end = mcp.call("job_wait", job=job)
    assert end["stdout"].endswith("end\n") and len(end["stdout"].encode()) <= 1 << 20 and end["omitted_bytes"] > 3_000_000


@pytest.mark.parametrize("name, options", [("scratch", {}), ("busybox", {"proc": False, "pts": False}), ("scratch", {"read_only": True})])
def test_in_poor_containers(namespaces, toolbox, name, options):
    container = namespaces.start(roots.get(name), Options(files={"/toolbox": toolbox}, **options))
    try:
        mcp = McpClient(container.popen(["/toolbox", "mcp", "serve"]), "2026-07-28")
        assert mcp.request("tools/list")["tools"]
        assert "/toolbox" in [entry["path"] for entry in mcp.call("list_files", path="/")["entries"]]
        assert mcp.call("find_files", pattern="toolbox", path="/")["paths"] == ["/toolbox"]
        assert mcp.call("probe")["uid"] == 0
        if not options.get("read_only"):
            mcp.call("write_file", path="/file", content="text")
            assert mcp.call("read_file", path="/file") == "text"
            job = mcp.call("job_start", argv=["/toolbox", "--version"])["job"]
            assert mcp.call("job_wait", job=job)["stdout"].startswith("toolbox ")
        else:
            with pytest.raises(ToolError, match="ead-only"):
                mcp.call("write_file", path="/file", content="text")
        mcp.close()
    finally:
        container.destroy()
