"""What a target may say over a kept connection when it isn't ours any more, and what a client of one may leave unread: the host
goes on, bounded in memory, and whoever else shares the connection gets what is his."""
import json
import os
import re
import stat
import sys
import time

import pytest

from harness import processes, stream
from harness.machine import HANG
from harness.server import dial

# Says the hello of the real program, and then for each request line what SAYS makes of its id.
FAKE = """
import json, os, subprocess, sys
real = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
hello = real.stdout.readline()
real.kill(), real.wait(), real.stdin.close(), real.stdout.close()
def say(data):
    while data:
        data = data[os.write(1, data):]
def frame(kind, number, data=b""):
    return b"\\x02" + kind + number.to_bytes(4, "big") + len(data).to_bytes(4, "big") + data
def answer(id, result):
    return json.dumps({{"jsonrpc": "2.0", "id": id, "result": result}}).encode() + b"\\n"
say(hello)
rest = b""
while data := os.read(0, 65536):
    rest += data
    while rest:
        if rest[:1] == b"\\x02":
            length = int.from_bytes(rest[6:10], "big")
            if len(rest) < 10 or len(rest) < 10 + length:
                break
            kind, number = rest[1:2], int.from_bytes(rest[2:6], "big")
            rest = rest[10 + length:]
            framed(kind, number) if "framed" in globals() else None
            continue
        if b"\\n" not in rest:
            break
        line, rest = rest.split(b"\\n", 1)
        message = json.loads(line)
        id, method = message.get("id"), message.get("method")
{says}
"""


class Hostile:
    def __init__(self, client, workdir):
        self.client, self.workdir = client, workdir
        self.target = f"exec:{workdir / 'runtime'}"

    def connect(self, says, before=""):
        """A connection to a target whose stream says that. What it is, or the command that has failed."""
        fake = self.workdir / "fake.py"
        text = FAKE.format(says="\n".join(" " * 8 + line for line in says.splitlines()))
        fake.write_text(text.replace("say(hello)\n", before + "\nsay(hello)\n"))
        runtime = self.workdir / "runtime"
        runtime.write_text(f'#!/bin/sh\ncase "$*" in *--stream*) exec {sys.executable} {fake} "$@";; *) exec "$@";; esac\n')
        runtime.chmod(runtime.stat().st_mode | stat.S_IXUSR)
        done = self.client.cli("connect", "--json", "--persist=600", *self.words())
        self.about = json.loads(done.stdout)[0] if done.returncode == 0 else None
        return self.about or done

    def words(self):
        return ["--dir", str(self.workdir / "there"), self.target]

    def call(self, *call):
        return self.client.cli("call", *self.words(), *call)

    def socket(self):
        where = dial(self.about["socket"], HANG)
        file = where.makefile("rwb", buffering=0)
        where.close()
        return stream.Stream(file, file)


@pytest.fixture
def hostile(client, workdir):
    hostile = Hostile(client, workdir)
    yield hostile
    assert client.cli("connect", "--stop").returncode == 0
    if hostile.about:
        processes.wait_until(lambda: not os.path.exists(f"/proc/{hostile.about['pid']}"), "the connection to end")


def _resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


@pytest.mark.parametrize("says", [
    r'say(b"garbage\n")', r'say(b"\0" * 100 + b"\n")', r'say(b"\x02?" + bytes(8))', r'say(b"[]\n")', r'say(b"\x02d" + bytes(4) + b"\xff" * 4)',
    r'say(b"\x02w" + bytes(4) + b"\0\0\0\x05" + bytes(5))', r'say(b"{\"id\":1,\"id\":" + b"[" * 100000 + b"\n")',
], ids=["words", "zeros", "no-kind", "array", "giant-frame", "long-window", "deep"])
def test_what_makes_no_sense_ends_it(hostile, says):
    hostile.connect(f"if id is not None: {says}")
    s = hostile.socket()
    id = s.request("remote_version")
    said = s.receive()
    assert said["method"] == "rpc.ended" and said["params"] == {"reason": "what the target's side says makes no sense", "open": [id]}, said
    assert s.receive() is None


@pytest.mark.parametrize("says", [
    "say(answer(2**63, 'x') + answer(-1, 'x') + answer(0, 'x') + answer('abc', 'x') + answer(None, 'x') + answer(id, 'right') + answer(id, 'wrong'))",
    r'''say(b'{"jsonrpc":"2.0","method":"rpc.hello","params":{"instance":"other"}}\n' + answer(id, 'right'))''',
    r'''say(b''.join(b'{"jsonrpc":"2.0","method":"rpc.event","params":{"subscription":%d,"seq":18446744073709551616,"event":{}}}\n' % n for n in (0, 7, 2**63)) + answer(id, 'right'))''',
    r'''say(b''.join(frame(k, n, b"1234") for k in (b"o", b"d", b"e", b"r", b"w") for n in (0, 1, 7, 2**32 - 1)) + answer(id, 'right'))''',
    r'''say(b'{"jsonrpc":"2.0","method":"rpc.ended","params":{}}\n' + b'{"jsonrpc":"2.0","method":"rpc.alive"}\n' * 1000 + answer(id, 'right'))''',
], ids=["ids", "hello-again", "events", "frames", "notifications"])
def test_what_nobody_asked_for_reaches_nobody(hostile, says):
    hostile.connect(f"if id is not None: {says}")
    for _ in range(3):
        done = hostile.call("remote_version")
        assert (done.returncode, json.loads(done.stdout)) == (0, "right"), done


def test_the_same_answer_and_event_again_and_again(hostile):
    """Each event is one more until it is acknowledged; behind the answer there are none."""
    hostile.connect(r'''if id is not None:
    say(b'{"jsonrpc":"2.0","method":"rpc.event","params":{"subscription":%d,"seq":9223372036854775808,"event":{"cursor":0}}}' % id + b"\n")
    say(answer(id, "right") * 3 + b'{"jsonrpc":"2.0","method":"rpc.event","params":{"subscription":%d,"seq":1,"event":{}}}' % id + b"\n")''')
    s = hostile.socket()
    id = s.request("server_watch", {})
    assert s.receive()["params"] == {"subscription": id, "seq": 1, "event": {"cursor": 0}}
    assert s.receive()["result"] == "right"
    s.ack(id)
    id = s.request("rpc.connection", {})
    assert s.receive()["id"] == id


@pytest.mark.parametrize("words", [
    'frame(b"w", number, b"\\xff\\xff\\xff\\xff")',
    'frame(b"w", number, b"\\x00\\x10\\x00\\x00") * 2', 'frame(b"e", number) + frame(b"d", number, b"x")', 'frame(b"o", number, b"{}")',
], ids=["a-window-of-4-GiB", "windows-that-add-up", "bytes-behind-the-end", "opened-again"])
def test_a_stream_that_breaks_its_window_ends_alone(hostile, words):
    """The program that is run over it fails; a call over the same connection is answered."""
    hostile.connect("if id is not None: say(answer(id, 'right'))", before=f"def framed(kind, number):\n    if kind == b'o': say({words} * 2)")
    done = hostile.client.cli("run", *hostile.words(), "--", "true")
    assert done.returncode not in (0, -6, -11) and done.returncode < 128, done
    done = hostile.call("remote_version")
    assert (done.returncode, json.loads(done.stdout)) == (0, "right"), done


def test_an_answer_longer_than_a_client_may_leave_unread(hostile):
    """It goes to its client whole. Slow: 70 MB of JSON."""
    hostile.connect("if id is not None: say(answer(id, 'x' * (70 << 20)))")
    where = dial(hostile.about["socket"], HANG)
    with where, where.makefile("rb", buffering=1 << 20) as said:
        said.readline()
        where.sendall(b'{"jsonrpc":"2.0","id":1,"method":"remote_version"}\n')
        line = next(line for line in said if b'"rpc.alive"' not in line[:100])
        assert len(line) > 70 << 20 and line.endswith(b"}\n")


def test_who_reads_nothing_is_closed_while_others_go_on(hostile):
    """Slow: it takes so many answers of 4 MB until one has enough unread."""
    hostile.connect("if id is not None: say(answer(id, 'x' * (4 << 20) if method == 'remote_version' else 'right'))")
    silent, other = dial(hostile.about["socket"], HANG), hostile.socket()
    with silent:
        for i in range(40):
            try:
                silent.sendall(b'{"jsonrpc":"2.0","id":%d,"method":"remote_version"}\n' % i)
            except OSError:
                break
            assert other.call("server_status") == "right"
        processes.wait_until(lambda: other.call("rpc.connection")["clients"] == 1, "it to be closed")
    processes.wait_until(lambda: _resident_kb(hostile.about["pid"]) < 100_000, "its memory to be free")


def test_one_that_is_stopped_is_not_waited_for(hostile):
    """`call` over a connection whose process doesn't run: it goes on when that does."""
    hostile.connect("if id is not None: say(answer(id, 'right'))")
    os.kill(hostile.about["pid"], 19)
    caller = hostile.client.popen("call", *hostile.words(), "remote_version")
    time.sleep(0.2)
    os.kill(hostile.about["pid"], 18)
    out, err = caller.communicate(timeout=HANG)
    assert (caller.returncode, json.loads(out)) == (0, "right"), err
