#!/usr/bin/python3
"""Makes every call that can fail fail once, at each place in the code from which it is made, and looks at what follows.

usage: run.py [--sites PATTERN] [--stories PATTERN] [--each N] [--jobs N] [-v] TOOLBOX

TOOLBOX is the build of `make faults`. Each story (scenarios.py) is told once without a fault, to see which call sites it
reaches; then again for each of those sites and each way in which the call can fail. At most one request may then fail,
with a clear error, and has to succeed when it is made again. Nothing may crash, hang, lose or change data, or leave
processes, sockets, descriptors or temporary files behind; the sanitizers may find nothing. Sites that no story reaches
are listed with the reason (unreached.py), and those without one are an error. --each: in how many stories each site is tried (1).
"""
import argparse
import collections
import errno
import json
import multiprocessing
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
import outside  # noqa: E402
import scenarios  # noqa: E402
from unreached import UNREACHED  # noqa: E402
from board import SHORT, Board, sites  # noqa: E402
from harness import inherited, processes  # noqa: E402
from harness.machine import PATH  # noqa: E402

HANG = 40  # seconds: what takes as long is stuck

# How a call can fail. What isn't named here fails for want of memory.
_FILES = ["EMFILE", "ENOSPC"]
ERRORS = {
    "open": _FILES, "openat": _FILES, "opendir": ["EMFILE"], "fdopendir": ["ENOMEM"], "readdir": ["EIO"],
    "read": ["EINTR", "EIO", "SHORT"], "pread": ["EINTR", "EIO", "SHORT"], "recv": ["EINTR", "ENOMEM", "SHORT"],
    "write": ["EINTR", "ENOSPC", "SHORT"], "pwrite": ["EINTR", "ENOSPC", "SHORT"], "writev": ["EINTR", "ENOSPC"],
    "send": ["EINTR", "ENOMEM", "SHORT"], "sendmsg": ["EINTR", "ENOMEM", "SHORT"], "getrandom": ["EINTR"],
    "socket": ["EMFILE", "ENOMEM"], "accept4": ["EINTR", "EMFILE"], "connect": ["EINTR", "EAGAIN"], "pipe": ["EMFILE"],
    "pipe2": ["EMFILE"], "dup": ["EMFILE"], "dup2": ["EINTR"], "epoll_create1": ["EMFILE"], "epoll_ctl": ["ENOMEM"],
    "epoll_wait": ["EINTR"], "poll": ["EINTR", "ENOMEM"], "ppoll": ["EINTR", "ENOMEM"], "signalfd": ["EMFILE"],
    "inotify_init1": ["EMFILE"], "inotify_add_watch": ["ENOSPC"], "mkdir": ["ENOSPC"], "mkdirat": ["ENOSPC"],
    "renameat": ["ENOSPC"], "linkat": ["ENOSPC"], "ftruncate": ["ENOSPC"], "fallocate": ["ENOSPC", "EOPNOTSUPP", "EINTR"],
    "flock": ["EINTR", "ENOLCK"], "fork": ["EAGAIN", "ENOMEM"], "clone": ["EAGAIN", "EPERM"], "execve": ["ENOMEM", "ETXTBSY"], "waitpid": ["EINTR"],
    "waitid": ["EINTR"], "kill": ["EPERM"], "setresuid": ["EAGAIN"], "setresgid": ["EPERM"], "setgroups": ["EPERM"],
    "fcntl": ["EINTR"], "ioctl": ["EINTR", "ENOMEM"], "tcsetattr": ["EINTR"], "syscall": ["ENOSYS", "EPERM"],
}


class Wrong(Exception):
    """What must not happen."""


class Enough(Exception):
    """The fault has had an effect that ends the story early, and is as it should be."""


# Errors that say what a session or edit then can't do.
WITHOUT = ("does not tell when a command has ended",)  # the private channel of a session could not be set up


# What cannot happen: that one of these fails.
NEVER = {("kill", "end_on_hangup"): "a process may always signal itself",
         ("kill", "serve_cancel"): "and a child that has not become anybody else",
         ("epoll_ctl", "loop_remove"): "no memory is needed to stop watching"}


class Refused(Exception):
    """A request that failed as it may: with an error that says why."""


class Story:
    """One telling: folder, server directory, and the calls."""

    def __init__(self, binaries, board, folder):
        self.binaries, self.board, self.folder = binaries, board, Path(folder)
        self.dir = self.folder / "server"
        self.failed, self.more = [], {}

    # ---- calls ----

    def env(self, limit=None):
        log = self.folder / "report"
        return {"PATH": PATH, "HOME": str(self.folder), "LANG": "C.UTF-8", "TOOLBOX_DIR": str(self.dir),
                "TOOLBOX_FAULTS": self.board.path, "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": str(limit or 16 << 20),
                "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:log_path={log}",
                "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={log}", **self.more}

    def run(self, words, stdin=b"", build="this", limit=None):
        process = subprocess.Popen([self.binaries[build], *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env(limit), cwd=self.folder)
        try:
            out, err = process.communicate(stdin, timeout=HANG)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Wrong(f"{' '.join(words)}: hangs") from None
        if process.returncode < 0 or process.returncode > 125 or b"Sanitizer" in err or b"runtime error" in err:
            raise Wrong(f"{' '.join(words)}: status {process.returncode}: {err.decode(errors='replace')[:2000]}")
        if process.returncode != 0 and not err and not out:  # of many targets each has a line of its own
            raise Wrong(f"{' '.join(words)}: failed without a word")
        if process.returncode != 0:
            raise Refused(f"{' '.join(words)}: {(err or out).decode(errors='replace').strip()}")
        return out

    def call(self, do, right=lambda value: True, again=None):
        """Does it, a second time where it failed; `again` is what the second error may say where the first one took effect."""
        for attempt in (1, 2):
            try:
                value = do()
            except Refused as error:
                self.failed.append(str(error))
                if any(text in str(error) for text in WITHOUT):
                    raise Enough from None
                if attempt == 2 and again is not None and again in str(error):
                    return None
                if attempt == 2:
                    raise Wrong("; ".join(self.failed)) from None
                continue
            self.check(right(value), f"wrong answer: {str(value)[:500]}")
            return value

    refused = Refused

    def popen(self, *words, **how):
        return subprocess.Popen([self.binaries["this"], *words], env=self.env(), cwd=self.folder, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)

    def output(self, process):
        """All of it, once it has ended."""
        try:
            out, err = process.communicate(timeout=HANG)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Wrong(f"{process.args[1:]}: hangs") from None
        self.check(process.returncode in (0, 1) and b"Sanitizer" not in err, f"status {process.returncode}: {err!r}")
        return out

    def start(self, *words):
        """A server in the foreground, once it can be asked (or has failed)."""
        process = subprocess.Popen([self.binaries["this"], *words], env=self.env(), cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 5
        while process.poll() is None and time.monotonic() < until and not list(self.dir.glob("server.*")):
            time.sleep(0.01)
        time.sleep(0.05)
        return process

    def finish(self, process):
        try:
            self.check(process.wait(HANG) in (0, 1), f"status {process.returncode}")
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Wrong(f"{process.args[1:]}: hangs") from None

    def attach(self, name, keys, expected):
        def do():
            ours, theirs = os.openpty()
            process = subprocess.Popen([self.binaries["this"], "bash_session", "attach", name], env=self.env(), stdin=theirs,
                                       stdout=theirs, stderr=theirs, cwd=self.folder)
            os.close(theirs)
            seen, until = b"", time.monotonic() + HANG
            os.write(ours, keys)
            while expected not in seen and process.poll() is None and time.monotonic() < until:
                if select.select([ours], [], [], 0.1)[0]:
                    try:
                        seen += os.read(ours, 65536)
                    except OSError:
                        break  # it has gone
            os.write(ours, b"\x1d")
            self.finish(process)
            os.close(ours)
            if expected not in seen:
                raise Refused(f"attach: {seen!r}")
        self.call(do)

    def check(self, condition, what):
        if not condition:
            raise Wrong(what)

    def command(self, *words, stdin=b"", right=lambda out: True):
        return self.call(lambda: self.run(words, stdin), right)

    def _answer(self, line):
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"]["message"])
        return answer["result"] if "result" in answer else answer

    def _rpc(self, method, params, **how):
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        line = self.run(["exec"], request, **how)
        if line.count(b"\n") != 1:
            raise Wrong(f"{method}: no line: {line[:500]!r}")
        return self._answer(line)

    def rpc(self, method, right=lambda value: True, again=None, build="this", **params):
        return self.call(lambda: self._rpc(method, params, build=build), right, again)

    # ---- more of it ----

    def ended(self, pid):
        """All that a job says, until it has ended."""
        all_, seq = {"stdout": "", "stderr": ""}, 0
        while True:
            answer = self.rpc("exec_remote_wait", pid=pid, ack_seq=seq, timeout=HANG / 2)
            all_ = {**answer, "stdout": all_["stdout"] + answer["stdout"], "stderr": all_["stderr"] + answer["stderr"]}
            seq = answer["seq"]
            if answer["state"] != "running":
                return all_

    def job(self, params, right):
        def do():
            pid = self._rpc("exec_remote_start", params)["pid"]
            return self.ended(pid)
        return self.call(do, right)

    def undo(self, path, **more):
        """Where the content before an edit could not be kept, the edit has said so, and there is nothing to undo."""
        try:
            self.rpc("text_editor", command="undo_edit", path=str(path), again="", **more)
        except Wrong as error:
            self.check("to undo" in str(error), str(error))
        if len(self.failed) == 2 and all("no edit of" in text for text in self.failed):
            self.failed.pop()

    def one_of(self, path, *contents):
        """None: it may be gone."""
        text = path.read_text() if path.exists() else None
        self.check(text in contents, f"{path.name} holds {text!s:.200}")
        left = [entry.name for entry in path.parent.iterdir() if entry.name.startswith(".")]
        self.check(not left or self.call_failed == "unlinkat", f"temporary files are left: {left}")

    def whole(self, command):
        """The output of a command, fetched in pieces."""
        import base64
        name = self.rpc("bash_session_new_session")["session_name"]
        chunk = "__inspect_json_rpc_response_chunk__"

        def fetch(method, **params):
            return self.call(lambda: self._rpc(method, params, limit=65536))
        self.rpc("bash_session_run", session_name=name, command=f"sleep 0.2; {command}", timeout=0.01)
        time.sleep(0.4)
        piece = fetch("bash_session", session_name=name, wait_for_output=9, idle_timeout=2)
        self.check(not isinstance(piece, str), f"the answer is lost: {piece!s:.100}")
        piece, data = piece[chunk], b""
        while True:
            data += base64.b64decode(piece["chunk"])
            if piece["done"]:
                break
            answer = fetch(chunk, handle=piece["handle"], offset=len(data))
            piece = answer.get(chunk, answer)
        fetch(chunk, handle=piece["handle"], release=True)
        return "".join(re.findall("x{100,}", json.loads(data)["result"]))

    # ---- over the socket ----

    def _connect(self):
        path, = [path for path in self.dir.glob("server.*") if path.is_socket()][:1] or [None]
        if not path:
            self.run(["start-server"])
            raise Refused("no server")
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(HANG)
        try:
            sock.connect(str(path))
        except OSError as error:
            sock.close()
            self.run(["start-server"])
            raise Refused(str(error)) from None
        return sock

    def _post(self, sock, body, chunked=False):
        requests = [{"jsonrpc": "2.0", "id": i, **one} for i, one in enumerate(body if isinstance(body, list) else [body])]
        data = json.dumps(requests if isinstance(body, list) else requests[0]).encode()
        head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(data)
        data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data) if chunked else data
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n" + data)

    def http(self, body, right=lambda value: True, again=None, chunked=False):
        def do():
            with self._connect() as sock:
                got = b""
                try:
                    self._post(sock, body, chunked)
                    while not (m := re.match(rb"HTTP/1.1 200 OK\r\n.*?Content-Length: (\d+)\r\n\r\n(.*)", got, re.S)) or \
                            len(m[2]) < int(m[1]):
                        more = sock.recv(65536)
                        if not more:
                            raise Refused("the connection was closed")
                        got += more
                except TimeoutError:
                    raise Wrong("no answer") from None
                except OSError as error:
                    raise Refused(str(error)) from None
            return json.loads(m[2]) if isinstance(body, list) else self._answer(m[2])
        return self.call(do, right, again)

    def hang_up(self, body):
        def do():
            with self._connect() as sock:
                self._post(sock, body)
                time.sleep(0.05)
        self.call(do)

    def kill(self, title, number):
        for process in processes.descendants():
            line = processes._command_line(process.pid)
            if line == title:
                os.kill(process.pid, number)

    # ---- the end ----

    def reports(self):
        """What the sanitizers found. (They don't know that a child may have a stack of its own.)"""
        text = "".join(path.read_text(errors="replace") for path in self.folder.glob("report*"))
        lines = [line for line in text.splitlines() if not re.search("__asan_handle_no_return|False positive error|For details see", line)]
        return "\n".join(lines)[:3000]

    def end(self):
        for attempt in (1, 2):
            try:
                self.run(["stop-server"], build="other")
                self.run(["stop-server"])
                break
            except Refused as error:
                self.failed.append(str(error))
                if attempt == 2:
                    raise Wrong("stop-server: " + "; ".join(self.failed)) from None
        left = processes.Watch.left(self.watch, 6)
        sockets = [path.name for path in self.dir.glob("*") if path.is_socket()] if self.dir.exists() else []
        self.check(not left, f"processes are left: {', '.join(map(str, left))}")
        # a file that can't be removed is left until the next time
        self.check(not sockets or self.call_failed == "unlinkat", f"sockets are left: {sockets}")
        self.check(not self.reports(), self.reports())
        self.check(len(self.failed) <= 1, f"more than one request failed: {self.failed}")


def tell(binaries, board, story, fault=(0, 0, 0), call=None):
    """Tells a story with a fault. Nothing, or what is wrong."""
    folder = tempfile.mkdtemp(prefix="toolbox-faults-")
    os.chmod(folder, 0o1777)  # also for the user of one story; a place where others could move what is there is no place
    s = Story(binaries, board, folder)
    s.watch, s.call_failed = processes.Watch(), call
    board.set(*fault)
    try:
        try:
            story(s)
        except Enough:
            s.failed.clear()
        s.end()
        return None
    except Wrong as error:
        return f"{error} {s.reports()}"
    except Exception as error:  # a check of the story's own that broke
        return repr(error)
    finally:
        for process in s.watch.left():
            try:
                os.kill(process.pid, 9)
            except ProcessLookupError:
                pass
        s.watch.left(5)
        shutil.rmtree(folder, ignore_errors=True)


# ---- all of them ----

_lab = None
STORIES = {story.__name__: story for story in scenarios.ALL + outside.ALL}


class Lab:
    def __init__(self, binary, labs):
        processes.become_init()
        self.folder = tempfile.mkdtemp(dir=labs)
        os.chmod(self.folder, 0o755)
        self.binaries = {"this": f"{self.folder}/toolbox", "other": f"{self.folder}/other"}
        # what is for debuggers makes it larger than a release's file may be; addresses stay
        subprocess.run(["strip", "--strip-debug", "-o", self.binaries["this"], binary], check=True)
        data = Path(self.binaries["this"]).read_bytes()
        build = re.search(rb"build ([0-9a-f]{16})", subprocess.run([binary, "--version"], capture_output=True).stdout)[1]
        Path(self.binaries["other"]).write_bytes(data.replace(build, bytes(reversed(build))))
        os.chmod(self.binaries["other"], 0o755)
        self.board = Board(f"{self.folder}/board")
        os.chmod(self.board.path, 0o666)


def _begin(binary, labs):
    global _lab
    _lab = Lab(binary, labs)


def _count(name):
    story = STORIES[name]
    wrong = tell(_lab.binaries, _lab.board, story)
    return name, wrong, _lab.board.counts()


def _try(task):
    name, site, at, error, call = task
    number = SHORT if error == "SHORT" else getattr(errno, error)
    wrong = tell(_lab.binaries, _lab.board, STORIES[name], (site, at, number), call)
    return task, wrong, _lab.board.fired, set(_lab.board.counts())


def plan(reached, known, each):
    """The faults to try: [(story, site, which call, error)]. Each site in the stories that reach it most rarely, so that the
    faults come early and late; of many calls the first and one in the middle."""
    tasks = []
    for site, where in known.items():
        if (where.call, where.function) in NEVER:
            continue
        stories = sorted((counts[site], name) for name, counts in reached.items() if site in counts)
        for count, name in stories[:each]:
            times = {1, (count + 1) // 2} if where.call not in ("malloc", "calloc", "realloc") else \
                {max(1, count * i // 12) for i in range(12)}
            tasks += [(name, site, at, error, where.call) for at in sorted(times) for error in ERRORS.get(where.call, ["ENOMEM"])]
    return tasks


def report_missed(missed):
    """What no story has reached, by reason. How many have none, and how many reasons have nothing to explain."""
    wrong, explained = 0, set()
    for pattern, reason in UNREACHED:
        sites_ = [site for site in missed if re.search(pattern, str(site)) and site not in explained]
        explained.update(sites_)
        print(f"\n{len(sites_)} not reached: {reason}")
        print("\n".join(f"  {site}" for site in sites_) or "  WRONG: none, take it out of unreached.py")
        wrong += not sites_
    for site in missed:
        if site not in explained:
            print(f"WRONG: not reached, and not in unreached.py: {site}")
            wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", default="", help="only those whose text matches this regular expression")
    parser.add_argument("--stories", default="", help="only those")
    parser.add_argument("--each", type=int, default=1, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("-v", action="store_true", help="a line for each fault")
    parser.add_argument("toolbox")
    options = parser.parse_args()
    inherited.reset()
    known = sites(options.toolbox)
    names = [name for name in STORIES if re.search(options.stories, name)]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="toolbox-faults-lab-") as labs, \
            multiprocessing.Pool(options.jobs, _begin, [options.toolbox, labs]) as pool:
        os.chmod(labs, 0o755)
        reached = {}
        for name, wrong, counts in pool.imap_unordered(_count, names):
            reached[name] = counts
            if wrong:
                print(f"WRONG {name} without a fault: {wrong}")
                bad += 1
        hit = {site: known[site] for site in known if any(site in counts for counts in reached.values())}
        if bad:
            return 1
        tasks = plan(reached, {a: s for a, s in hit.items() if re.search(options.sites, str(s))}, options.each)
        print(f"{len(known)} call sites, {len(hit)} reached by {len(names)} stories; {len(tasks)} faults to try", flush=True)
        unfired, behind, began = collections.Counter(), set(), time.monotonic()
        for (name, site, at, error, _), wrong, fired, seen in pool.imap_unordered(_try, tasks):
            unfired[site] += not fired
            behind |= seen - set(hit)
            if wrong or options.v:
                print(f"{'WRONG' if wrong else 'ok'} {name}: {known[site]}, call {at}, {error}: {wrong or ''}", flush=True)
            bad += bool(wrong)
    print(f"{len(tasks)} faults in {time.monotonic() - began:.0f} s, {bad} wrong; {sum(unfired.values())} did not come about")
    missed = [site for address, site in known.items() if address not in hit and address not in behind]
    if len(names) == len(STORIES):
        bad += report_missed(missed)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
