"""`toolbox forward`: connections into a target and out of it, over a connection that is kept and without one."""
import contextlib
import os
import signal
import socket
import threading

import pytest

from harness import processes
from harness.injection import script
from harness.machine import HANG

BYTES = bytes(range(256)) * 8192  # two megabytes


class Echo:
    """Listens, sends back what comes, and behind its end says how much that was."""

    def __init__(self, path=None):
        self.listening = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.listening.bind(str(path) if path else ("127.0.0.1", 0))
        self.listening.listen(200)
        self.where = str(path) if path else str(self.listening.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                one, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(one,), daemon=True).start()

    @staticmethod
    def _talk(one):
        n = 0
        with one:
            try:
                while data := one.recv(65536):
                    n += len(data)
                    one.sendall(data)
                one.sendall(f" {n}".encode())
            except OSError:
                pass  # who called has gone

    def close(self):
        self.listening.close()


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def _dial(where):
    s = socket.socket(socket.AF_UNIX if where.startswith("/") else socket.AF_INET)
    s.settimeout(HANG)
    try:
        s.connect(where if where.startswith("/") else ("127.0.0.1", int(where)))
    except OSError:
        s.close()
        raise
    return s


def _talk(where, data):
    """Sends it, ends that direction, and returns all that comes."""
    with _dial(where) as s:
        sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        sender.start()
        said = bytearray()
        while more := s.recv(1 << 20):
            said += more
        sender.join()
    return bytes(said)


@pytest.fixture(params=["kept", "alone"])
def forward(request, client, workdir):
    """Starts one with these words; it listens when this returns."""
    log, there, started = workdir / "log", workdir / "there", []
    target = f"exec:{script(workdir / 'runtime', f'echo $$ >>{log}; exec ' + chr(34) + '$@' + chr(34))}"
    if request.param == "kept":
        assert client.cli("connect", "--dir", str(there), target).returncode == 0

    def start(*words, options=()):
        process = client.popen("forward", "--dir", str(there), *options, target, *words)
        started.append(process)
        process.log = log
        for _ in range(len(words) + options.count("-R")):
            assert process.stdout.readline(), process.communicate(timeout=HANG)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=HANG)
    client.cli("connect", "--stop")


def test_there_and_back_with_ends_of_their_own(forward):
    echo, port = Echo(), _free_port()
    process = forward(f"{port}:{echo.where}")
    for data in (b"", b"x", BYTES):
        assert _talk(port, data) == data + f" {len(data)}".encode()
    process.terminate()
    process.communicate(timeout=HANG)
    assert process.returncode == 128 + signal.SIGTERM
    echo.close()


def test_from_there_to_here(forward):
    echo, port = Echo(), _free_port()
    forward(options=("-R", f"{port}:{echo.where}"))
    assert _talk(port, BYTES) == BYTES + f" {len(BYTES)}".encode()
    echo.close()


@pytest.mark.parametrize("reverse", [False, True])
def test_paths(forward, workdir, reverse):
    echo, path = Echo(workdir / "echo"), str(workdir / "from")
    rule = f"{path}:{echo.where}"
    process = forward(*([] if reverse else [rule]), options=("-R", rule) if reverse else ())
    assert _talk(path, b"hello") == b"hello 5"
    assert os.stat(path).st_mode & 0o777 == 0o700
    process.terminate()
    process.communicate(timeout=HANG)
    processes.wait_until(lambda: not os.path.exists(path), "its socket to be removed")
    echo.close()


def test_names_are_looked_up_where_the_connection_is_made(forward):
    echo, port, back = Echo(), _free_port(), _free_port()
    forward(f"127.0.0.1:{port}:localhost:{echo.where}", options=("-R", f"{back}:localhost:{echo.where}"))
    assert _talk(port, b"one") == b"one 3" and _talk(back, b"two") == b"two 3"
    echo.close()


def test_many_at_once_and_none_waits_for_another(forward):
    echo, port = Echo(), _free_port()
    forward(f"{port}:{echo.where}")
    stuck = _dial(port)
    sender = threading.Thread(target=lambda: _send(stuck), daemon=True)
    sender.start()  # it reads nothing of what comes back
    said = {}
    threads = [threading.Thread(target=lambda i=i: said.update({i: _talk(port, BYTES[: 1000 * i])})) for i in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert said == {i: BYTES[: 1000 * i] + f" {1000 * i}".encode() for i in range(50)}
    with contextlib.suppress(OSError):
        stuck.shutdown(socket.SHUT_RDWR)  # closing alone wakes nobody who sends
    stuck.close()
    sender.join(HANG)
    echo.close()


def _send(where):
    try:
        where.sendall(BYTES * 16)
    except OSError:
        pass  # closed by then


@pytest.mark.parametrize("reverse", [False, True])
def test_nobody_there(forward, reverse):
    port, nobody = _free_port(), _free_port()
    rule = f"{port}:{nobody}"
    process = forward(*([] if reverse else [rule]), options=("-R", rule) if reverse else ())
    with pytest.raises(ConnectionResetError):  # or so soon that it was not yet seen to be accepted
        with _dial(port) as s:
            s.recv(1)
    assert process.poll() is None


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_taken_cannot_be_listened_at(client, workdir, reverse):
    echo = Echo()
    rule = f"{echo.where}:80"
    done = client.cli("forward", "--dir", str(workdir / "there"), *(["-R", rule] if reverse else []), "local:", *([] if reverse else [rule]))
    assert done.returncode == 1 and b"cannot listen at " + echo.where.encode() in done.stderr, done
    echo.close()


def test_the_end_of_the_targets_side(forward):
    echo, port = Echo(), _free_port()
    process = forward(f"{port}:{echo.where}")
    assert _talk(port, b"x") == b"x 1"
    os.kill(int(process.log.read_text().split()[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=HANG)
    assert process.returncode == 125 and b"the target's side has ended" in err
    echo.close()


def test_the_end_of_the_targets_side_that_listens(forward):
    process = forward(options=("-R", f"{_free_port()}:{_free_port()}"))
    os.kill(int(process.log.read_text().split()[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=HANG)
    assert process.returncode == 125 and b"ended" in err


def test_any_port_is_named_and_an_address_in_front_is_ours(client, workdir):
    echo = Echo()
    port = echo.where.rpartition(":")[2]
    process = client.popen("forward", "--dir", str(workdir / "there"), "local:", f"0:{port}", f"127.0.0.1:0:{port}")
    for front in "", "127.0.0.1:":
        said = process.stdout.readline().decode()
        where, arrow, _ = said.partition(" -> ")
        assert arrow and where.startswith(front) and int(where.rpartition(":")[2]) > 0, said
        assert _talk(where.rpartition(":")[2], b"x") == b"x 1"
    process.terminate()
    process.communicate(timeout=HANG)
    echo.close()


@pytest.mark.parametrize("words", [[], ["local:"], ["local:", "80"], ["local:", "1:2:3:4:5"], ["local:", "8080:"], ["-R", "x", "local:"], ["docker:*", "1:2"]])
def test_usage(client, words):
    done = client.cli("forward", *words)
    assert done.returncode in (1, 2) and done.stderr
