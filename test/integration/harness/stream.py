"""A client of one connection that carries any number of calls: `toolbox exec --stream`, or a socket of `toolbox connect`."""
import json
import select
import time

from harness.client import _result
from harness.machine import HANG


class Stream:
    """send() and receive() lines; call() is one after the other, acknowledged."""

    def __init__(self, source, sink, process=None):
        """Unbuffered files to read from and to write to."""
        self.source, self.sink, self.process = source, sink, process
        self.rest, self.next_id = b"", 0
        self.hello = self.receive()
        assert self.hello["method"] == "rpc.hello", self.hello

    def send_text(self, text):
        self.sink.write(text)

    def send(self, *messages):
        self.send_text(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def request(self, method, params=None, id=None):
        """Sends one, and returns its id."""
        if id is None:
            self.next_id += 1
            id = self.next_id
        self.send({"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})})
        return id

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ack(self, *ids):
        self.notify("rpc.ack", {"ids": list(ids)})

    def receive(self, timeout=HANG):
        """The next message that isn't a mere sign of life; None: the end."""
        until = time.monotonic() + timeout
        while True:
            while b"\n" not in self.rest:
                ready, _, _ = select.select([self.source], [], [], max(0, until - time.monotonic()))
                assert ready, f"nothing came within {timeout} s"
                data = self.source.read(1 << 20)
                if not data:
                    return None
                self.rest += data
            line, self.rest = self.rest.split(b"\n", 1)
            message = json.loads(line)
            if isinstance(message, list) or message.get("method") != "rpc.alive":
                return message

    def call(self, method, params=None):
        id = self.request(method, params)
        answer = self.receive()
        assert answer is not None and answer["id"] == id, answer
        self.ack(id)
        return _result(answer)

    def close(self):
        """Ends the input; what is still said is returned."""
        self.sink.close()
        said = []
        while (message := self.receive()) is not None:
            said.append(message)
        return said


def of(process):
    return Stream(process.stdout, process.stdin, process)
