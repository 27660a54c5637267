"""Calls into a container over the engine's own socket, against an engine that is a server of the test's own, which runs
what it is told here; and by the engine's command where that can't be."""
import json
import os
import socket
import subprocess
import threading

import pytest

from harness import processes
from harness.injection import script
from harness.machine import HANG

BYTES = bytes(range(256)) * 8192


class Engine:
    """Takes exec create, start and inspect."""

    def __init__(self, path, env):
        self.env, self.path, self.made, self.refuses, self.status, self.ends = env, path, [], None, {}, False
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen(100)
        self.threads = [threading.Thread(target=self._serve)]
        self.threads[0].start()

    def _serve(self):
        while True:
            one, _ = self.listening.accept()
            if self.ends:
                one.close()
                return
            thread = threading.Thread(target=self._talk, args=(one,))
            self.threads.append(thread)
            thread.start()

    def _talk(self, one):
        with one, one.makefile("rb") as said:
            while line := said.readline().decode().split():
                fields = dict(field.decode().strip().lower().split(": ", 1) for field in iter(said.readline, b"\r\n"))
                if line[1].startswith("/events"):
                    self._answer(one, line, {}, 404)
                    continue
                body = json.loads(said.read(int(fields["content-length"])) or b"{}")
                if line[1].endswith("/start"):
                    one.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
                    self._run(one, said, int(line[1].split("/")[2]), body)
                    return
                self._answer(one, line, body)

    def _answer(self, one, line, body, status=200):
        answer = {}
        if status != 200:
            pass
        elif line[0] == "GET":
            answer = {"Running": False, "ExitCode": self.status[int(line[1].split("/")[2])]}
        elif self.refuses:
            status, answer = self.refuses, {"message": "No such container: web"}
        else:
            status, answer = 201, {"Id": str(len(self.made))}
            self.made.append((line[1], body))
        text = json.dumps(answer).encode()
        one.sendall(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)

    def _run(self, one, said, number, body):
        assert body == {"Detach": False, "Tty": False}
        program = subprocess.Popen(self.made[number][1]["Cmd"], env={**os.environ, **self.env},
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lock = threading.Lock()

        def hand_on(pipe, kind):
            while data := pipe.read1(5000):
                with lock:
                    one.sendall(bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data)

        def feed():
            try:
                while data := said.read1(65536):
                    program.stdin.write(data)
                    program.stdin.flush()
                program.stdin.close()
            except OSError:
                pass

        outs = [threading.Thread(target=hand_on, args=pair) for pair in ((program.stdout, 1), (program.stderr, 2))]
        feeds = threading.Thread(target=feed)
        for thread in (*outs, feeds):
            thread.start()
        self.status[number] = program.wait()
        for thread in outs:
            thread.join()
        one.shutdown(socket.SHUT_RDWR)
        feeds.join()
        for pipe in (program.stdin, program.stdout, program.stderr):
            try:
                pipe.close()
            except OSError:
                pass

    def close(self):
        self.ends = True
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.path))
        for thread in self.threads:
            thread.join(HANG)
        self.listening.close()


@pytest.fixture
def engine(client, workdir):
    engine = Engine(workdir / "engine.sock", client.env)
    yield engine
    engine.close()


@pytest.fixture
def docker(workdir):
    """A command of that name that writes down that it was run, and runs what it is told here."""
    log, folder = workdir / "log", workdir / "bin"
    folder.mkdir()
    script(folder / "docker", f'echo "$*" >>{log}; shift 2; [ "$1" != -u ] || shift 2; shift; exec "$@"')
    return folder, log


@pytest.fixture
def run(client, engine, docker, workdir):
    """Runs these words in docker:web."""
    folder, _ = docker
    env = {"DOCKER_HOST": f"unix://{engine.path}", "PATH": f"{folder}:{os.environ['PATH']}", "DOCKER_CONFIG": str(workdir)}

    def run(*words, options=(), stdin=b"", **more):
        return client.cli("run", "--no-share", *options, "--dir", str(workdir / "there"), "docker:web", "--", *words, stdin=stdin, env={**env, **more})

    return run


def test_bytes_both_ways_and_the_status(run, engine, docker):
    done = run("sh", "-c", "cat; echo err >&2; exit 7", options=["-i"], stdin=BYTES)
    assert (done.returncode, done.stdout, done.stderr) == (7, BYTES, b"err\n")
    assert not docker[1].exists()  # no client was started
    paths, bodies = zip(*engine.made)
    assert set(paths) == {"/containers/web/exec"}
    assert all(body["AttachStdin"] and body["AttachStdout"] and body["AttachStderr"] and not body["Tty"] for body in bodies)
    assert bodies[0]["User"] == "0"


def test_an_engine_that_says_no_is_left_to_its_client(run, engine, docker):
    for engine.refuses in (403, 404, 500):
        done = run("echo", "x")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"x\n", b"")
    assert not engine.made and "exec -i" in docker[1].read_text()


@pytest.mark.parametrize("host", ["tcp://127.0.0.1:1", "unix:///nowhere/at/all", "ssh://x"])
def test_another_engine_is_its_clients_matter(run, engine, docker, host):
    done = run("echo", "x", DOCKER_HOST=host)
    assert (done.returncode, done.stdout) == (0, b"x\n")
    assert not engine.made and docker[1].exists()


@pytest.fixture
def connect(client, engine, docker, workdir):
    """Makes a connection to docker:web that is kept, and says what there is of it."""
    env = {"DOCKER_HOST": f"unix://{engine.path}", "PATH": f"{docker[0]}:{os.environ['PATH']}", "DOCKER_CONFIG": str(workdir)}
    words = ["--dir", str(workdir / "there"), "docker:web"]

    def connect():
        done = client.cli("connect", "--json", *words, env=env)
        return json.loads(done.stdout)[0] if done.returncode == 0 else done

    connect.call = lambda *call: client.cli("call", *words, *call, env=env)
    connect.run = lambda *command: client.cli("run", "-i", *words, "--", *command, stdin=BYTES, env=env)
    yield connect
    assert client.cli("connect", "--stop", env=env).returncode == 0


def _children(pid):
    return [str(process) for process in processes.descendants(pid) if not processes.is_zombie(process)]


def test_a_connection_speaks_to_the_engine_itself(connect, engine, docker):
    """What has opened its stream has gone; what the program says on stderr is no part of it."""
    pid = connect()["pid"]
    processes.wait_until(lambda: not _children(pid), "nobody to be between")
    made = len(engine.made)
    for _ in range(20):
        assert connect.call("version").returncode == 0
    done = connect.run("sh", "-c", "echo err >&2; cat")  # frames of all lengths, cut anywhere
    assert (done.returncode, done.stdout, done.stderr) == (0, BYTES, b"err\n")
    assert len(engine.made) == made and not docker[1].exists()


def test_a_connection_that_the_engine_refuses_is_left_to_its_client(connect, engine, docker):
    engine.refuses = 403
    pid = connect()["pid"]
    assert len(_children(pid)) == 1 and docker[1].exists()
    assert connect.call("version").returncode == 0


def test_the_report_says_which(client, engine, docker, workdir):
    env = {"DOCKER_HOST": f"unix://{engine.path}", "PATH": f"{docker[0]}:{os.environ['PATH']}"}
    done = client.cli("inject", "-v", "--dir", str(workdir / "there"), "docker:web", env=env)
    assert done.returncode == 0 and f"over {engine.path}".encode() in done.stdout, done
    done = client.cli("inject", "-v", "--dir", str(workdir / "there"), "docker:web", env={**env, "DOCKER_HOST": "ssh://x"})
    assert done.returncode == 0 and b" over " not in done.stdout, done
