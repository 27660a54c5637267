"""Finding and searching (file_find, file_search), and `toolbox file`."""
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess

import pytest

from harness.client import PARAMERR
from harness.machine import HANG
from harness.processes import descendants, is_stopped, wait_until
from harness.stream import Stream


@pytest.fixture
def find(client, workdir):
    def find(method="find", path=None, **params):
        return client.rpc(f"file_{method}", {"path": str(path or workdir), **params})

    return find


def make(workdir, *paths, content="x\n"):
    for path in paths:
        (workdir / path).parent.mkdir(parents=True, exist_ok=True)
        (workdir / path).write_text(content)


def below(workdir, answer):
    return [os.path.relpath(path, workdir) for path in answer["paths"]]


def test_by_name_kind_size_and_time(find, workdir):
    make(workdir, "a/b/one.c", "a/two.c", "a/two.h", ".hidden/x.c")
    (workdir / "big.c").write_bytes(b"x" * 1000)
    os.utime(workdir / "a/two.c", (0, 1000))
    os.symlink("a", workdir / "link")
    assert below(workdir, find(pattern="*.c")) == ["a/b/one.c", "a/two.c", "big.c"]
    assert below(workdir, find(pattern="a/**/*.c")) == ["a/b/one.c", "a/two.c"]
    assert below(workdir, find(pattern="*.c", hidden=True))[0] == ".hidden/x.c"
    assert below(workdir, find(type="directory")) == ["a", "a/b"] and below(workdir, find(type="symlink")) == ["link"]
    assert below(workdir, find(min_size=1000)) == ["big.c"] and "big.c" not in below(workdir, find(max_size=999))
    assert below(workdir, find(older=2000)) == ["a/two.c"] and "a/two.c" not in below(workdir, find(newer=2000))
    assert below(workdir, find(pattern="*.c", exclude=["b"])) == ["a/two.c", "big.c"]
    answer = find(limit=2)
    assert len(answer["paths"]) == 2 and answer["truncated"]


def test_what_ignore_files_say(find, workdir):
    make(workdir, "a.o", "keep.o", "build/x", "src/build/y", "src/gen/z", "src/a.log", "src/deep/a.log", "docs/x.o", "{a}.txt", "a.txt",
         ".git/config", "src/sub/only")
    (workdir / ".gitignore").write_text("# a comment\n*.o\n!keep.o\n/build\ngen/\n{a}.txt\n")
    (workdir / "src/.gitignore").write_text("/a.log\n")
    (workdir / "src/.ignore").write_text("sub\r\n")
    assert below(workdir, find(type="file")) == ["a.txt", "keep.o", "src/build/y", "src/deep/a.log"]
    assert len(below(workdir, find(type="file", ignore=False))) == 11
    assert not any(".git/" in path for path in below(workdir, find(hidden=True)))
    assert below(workdir, find(type="file", ignore=False, pattern="*.log")) == ["src/a.log", "src/deep/a.log"]


@pytest.mark.parametrize("seed", range(5))
def test_ignored_as_by_git(find, workdir, seed):
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    pick = random.Random(seed)
    names = ["a", "b", "ab", "a.o", "b.o", "x y", "lib"]
    for _ in range(60):
        at = workdir.joinpath(*pick.choices(names[:4], k=pick.randrange(3)))
        try:
            at.mkdir(parents=True, exist_ok=True)
            (at / pick.choice(names)).write_text("x")
        except OSError:
            pass
    rules = ["*.o", "!a.o", "/a", "b/", "lib", "a/b", "**/ab", "a/**", "!lib", "*b", "# x", "", "x y", "ab/*", "!/b/a"]
    for folder, _, _ in list(os.walk(workdir)):
        if pick.random() < 0.4:
            with open(os.path.join(folder, ".gitignore"), "w") as f:
                f.write("\n".join(pick.sample(rules, 3)) + "\n")
    env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(workdir), "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", "init", "-q", str(workdir)], check=True, env=env)
    listed = subprocess.run(["git", "-C", str(workdir), "ls-files", "-coz", "--exclude-standard"], check=True, capture_output=True, env=env)
    want = sorted(path for path in listed.stdout.decode().split("\0") if path and not os.path.basename(path).startswith("."))
    assert sorted(below(workdir, find(type="file"))) == want


def test_lines_and_what_is_around(find, workdir):
    make(workdir, "a.txt", content="one\ntwo needle\nthree\n")
    make(workdir, "b.c", content="Needle\n")
    (workdir / "bin").write_bytes(b"\0needle\n")
    answer = find("search", pattern="needle", context=1)
    assert answer["matches"] == [{"path": f"{workdir}/a.txt", "line": 2, "text": "two needle", "before": "one\n", "after": "three\n"}]
    assert answer["files_binary"] == 1 and not answer["truncated"]
    assert len(find("search", pattern="needle", ignore_case=True)["matches"]) == 2
    assert [m["path"] for m in find("search", pattern="needle", ignore_case=True, glob="*.c")["matches"]] == [f"{workdir}/b.c"]
    assert find("search", pattern="n.*e", literal=True)["matches"] == []
    assert find("search", path=workdir / "a.txt", pattern="^t.+$")["matches"][0]["line"] == 2


def test_names_that_are_no_text(find, workdir):
    with open(os.fsencode(workdir) + b"/odd\xff", "w") as f:
        f.write("needle")
    path = find()["paths"][0]
    assert path == f'"{workdir}/odd\\377"' and find("search", pattern="needle")["matches"][0]["path"] == path
    assert find("read", path=path)["data"] == "needle"


def test_an_expression_can_t_hang_it(find, workdir):
    make(workdir, "a", content="a" * 60000 + "\n")
    assert find("search", pattern="(a|a?)*(a*)*(b|c)$", timeout=5)["matches"] == []


@pytest.mark.parametrize("method, params, said", [
    ("search", {"pattern": "("}, "pattern"), ("search", {"pattern": ""}, "empty"), ("find", {"pattern": "[a"}, "pattern"),
    ("find", {"type": "fil"}, "type"), ("find", {"exclude": ["{"]}, "exclude"), ("find", {"limit": 0}, "limit")])
def test_wrong_words_are_refused(client, workdir, method, params, said):
    error = client.answer(f"file_{method}", {"path": str(workdir), **params})["error"]
    assert error["code"] == PARAMERR and said in error["message"]


def test_where_nothing_is(client, workdir):
    for method in ("find", "search"):
        error = client.answer(f"file_{method}", {"path": f"{workdir}/no", "pattern": "x"})["error"]
        assert error["data"]["kind"] == "not_found"


# ---- toolbox file ----


@pytest.fixture
def file(client, workdir):
    def file(*words, status=0, stdin=b""):
        done = client.cli("file", *words, stdin=stdin, cwd=workdir, timeout=HANG)
        assert done.returncode == status, done
        return done.stdout if status == 0 else done.stderr.decode()

    return file


def test_bytes_through_the_command_line(file, workdir):
    data = os.urandom(3_000_000)
    file("write", "-p", "a/b", stdin=data)
    assert (workdir / "a/b").read_bytes() == data and file("read", "a/b") == data
    assert file("read", "a/b", "--offset", "5", "--length", "7") == data[5:12]
    file("write", "--append", "a/b", stdin=b"end")
    assert file("read", "a/b", "--offset", "3000000") == b"end"
    assert "File exists" in file("write", "--exclusive", "a/b", status=1)


def test_all_commands(file, workdir):
    file("mkdir", "-p", "d/e", "f")
    file("touch", "d/x", "d/e/y", "--mtime", "1000")
    file("ln", "x", "d/link")
    file("chmod", "0640", "d/x", "d/e/y")
    assert json.loads(file("stat", "--json", "d/x"))["mode"] == 0o640
    assert b"mode            0640\n" in file("stat", "d/x") and b"1970-01-01" in file("stat", "d/x")
    assert [line.split()[-1] for line in file("list", "d", "--depth", "2").decode().splitlines()] == ["e", "e/y", "x", "x"]
    file("cp", "-r", "d", "d2")
    file("mv", "d2", "d3")
    assert file("find", ".", "y").decode().splitlines() == ["d/e/y", "d3/e/y"]
    file("write", "d/x", stdin=b"one\ntwo\nthree\n")
    assert file("search", "t[wx]o", "d", "-C", "1").decode().splitlines() == ["d/x-1-one", "d/x:2:two", "d/x-3-three"]
    file("search", "nothing like it", "d", status=1)
    assert json.loads(file("space", "--json", "."))["total_bytes"] > 0
    file("rm", "-r", "d", "d3", "f")
    assert os.listdir(workdir) == []


def test_failures_are_said_of_each(file, workdir):
    (workdir / "there").touch()
    said = file("stat", "no1", "there", "no2", status=1)
    assert "no1: No such file" in said and "no2: No such file" in said
    for words in (["chmod", "999", "there"], ["write", "--mode", "x", "there"], ["frob"], ["read"], ["read", "--offset", "x", "there"]):
        file(*words, status=2)


def test_over_a_stream_a_search_holds_up_nothing(client, workdir):
    """What comes behind it is answered before it: both are taken at once, and the search is another process's."""
    make(workdir, "a/b", content="a line\n" * 1000)
    process = client.popen("exec", "--stream", bufsize=0)
    try:
        stream = Stream(process.stdout, process.stdin, process)
        calls = [("file_search", {"path": str(workdir), "pattern": "line"}), ("file_stat", {"path": str(workdir)}), ("file_copy", {"path": str(workdir / "a"), "to": str(workdir / "c"), "recursive": True}),
                 ("file_remove", {"path": str(workdir / "missing")})]
        stream.send(*({"jsonrpc": "2.0", "id": id, "method": method, "params": params} for id, (method, params) in enumerate(calls)))
        answers = [stream.receive() for _ in calls]
        assert answers[0]["id"] == 1 and {answer["id"] for answer in answers} == {0, 1, 2, 3}
        answers = {answer["id"]: answer for answer in answers}
        assert len(answers[0]["result"]["matches"]) == 200 and answers[2]["result"]["files"] == 1 and answers[3]["error"]["data"]["kind"] == "not_found"
        assert (workdir / "c/b").exists()
        for id in range(10, 40):
            stream.request("file_search", {"path": str(workdir), "pattern": "line", "limit": 1}, id=id)
        assert {stream.receive()["id"] for _ in range(30)} == set(range(10, 40))
        stream.send({"jsonrpc": "2.0", "id": 50, "method": "file_search", "params": {"path": "/", "pattern": "no such line"}}, {"jsonrpc": "2.0", "method": "rpc.cancel", "params": {"id": 50}},
                    {"jsonrpc": "2.0", "id": 51, "method": "file_stat", "params": {"path": "/"}})
        while (message := stream.receive())["id"] != 51:
            assert message["id"] == 50
    finally:
        process.kill()
        process.communicate(timeout=HANG)


def test_a_large_tree_is_searched_by_several_and_told_in_order(find, workdir):
    """As many files as it takes for more than one process: what they find is what one would, in its order, also where it is cut."""
    rng = random.Random(3)
    want = []
    for folder in range(40):
        (workdir / f"d{folder:02}").mkdir()
        for number in range(30):
            lines = [rng.choice(["needle", "hay", "hay", "straw"]) for _ in range(3)]
            (workdir / f"d{folder:02}/f{number:02}").write_text("\n".join(lines) + "\n")
            want += [(f"d{folder:02}/f{number:02}", line + 1) for line in range(3) if lines[line] == "needle"]
    (workdir / "d20/binary").write_bytes(b"\0needle")
    answer = find("search", pattern="needle", limit=100000)
    assert [(os.path.relpath(match["path"], workdir), match["line"]) for match in answer["matches"]] == want and not answer["truncated"]
    assert (answer["files_searched"], answer["files_binary"], answer["unreadable"]) == (1201, 1, 0)
    for limit in [1, 100, len(want) - 1, len(want)]:
        answer = find("search", pattern="ne+dle", limit=limit)
        assert [(os.path.relpath(match["path"], workdir), match["line"]) for match in answer["matches"]] == want[:limit]
        assert answer["truncated"] == (limit < len(want))
    counts = find("search", pattern="needle", count=True, limit=100000)["matches"]
    assert {os.path.relpath(match["path"], workdir): match["count"] for match in counts} == {path: sum(path == other for other, _ in want) for path, _ in want}


def test_matches_over_several_lines(find, workdir):
    (workdir / "a").write_text("one\nint f(a,\n      b)\n{\n}\nint g()\n{\nend")
    found = [(match["line"], match["text"]) for match in find("search", pattern=r"\([^)]*\)\n\{", multiline=True)["matches"]]
    assert found == [(2, "int f(a,\n      b)\n{"), (6, "int g()\n{")]
    assert [match["line"] for match in find("search", pattern="b)\n{", literal=True, multiline=True)["matches"]] == [3]
    assert [match["line"] for match in find("search", pattern="^.$", multiline=True)["matches"]] == [4, 5, 7]
    assert [match["line"] for match in find("search", pattern="^end$", multiline=True)["matches"]] == [8]
    assert [match["text"] for match in find("search", pattern="one.int", multiline=True)["matches"]] == []
    match = find("search", pattern=r"a,\n *b", multiline=True, context=1)["matches"][0]
    assert (match["line"], match["before"], match["after"]) == (2, "one\n", "{\n")
    assert find("search", pattern=r"\n", multiline=True, count=True)["matches"] == [{"path": str(workdir / "a"), "count": 7}]
    assert find("search", pattern="x*", multiline=True, count=True)["matches"][0]["count"] == 8


def test_a_search_of_a_stream_ends_with_who_asks(client):
    """Also where that is killed: who reads the answers sees their end."""
    process = client.popen("exec", "--stream", bufsize=0)
    try:
        stream = Stream(process.stdout, process.stdin, process)

        def is_held():
            there = descendants(process.pid)
            if not there:
                stream.send({"jsonrpc": "2.0", "id": 1, "method": "file_search", "params": {"path": "/", "pattern": "no such line"}})
            for one in there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGSTOP)
            return any(is_stopped(one.pid) for one in there)

        wait_until(is_held, "a search is in the middle")
    finally:
        process.kill()
        process.wait(HANG)
    os.set_blocking(process.stdout.fileno(), False)

    def is_over():
        while part := process.stdout.read(65536):
            pass
        return part == b""

    wait_until(is_over, "nobody holds the output any more")
    process.stdin.close(), process.stdout.close()
