"""Calls into a container over the engine's own socket, against an engine that is a server of the test's own, which runs
what it is told here; and by the engine's command where that can't be."""
import json
import os

import pytest

from harness import processes
from harness.engine import Engine
from harness.injection import script

BYTES = bytes(range(256)) * 8192


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
