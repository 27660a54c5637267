"""An engine that is a server of ours: what is to be run in a container of its runs here."""
import json
import os
import socket
import subprocess
import threading

from harness.machine import HANG


class Engine:
    """Takes exec create, start and inspect."""

    def __init__(self, path, env, events=False):
        """`events`: whether it can be asked for them."""
        self.events = events
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
                if line[1].startswith("/events") and self.events:
                    one.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    while said.read1(4096):  # until nobody asks any more
                        pass
                    return
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
