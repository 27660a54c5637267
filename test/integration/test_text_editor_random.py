"""Random edits through the real binary against a plain model of the file: no byte may differ, ever."""

import os
import random
import re

import pytest

from harness.client import TOOLERR, RpcError

# Files of each kind, with ten edits each.
ROUNDS = int(os.environ.get("TOOLBOX_TEST_ROUNDS", 4))

ENCODINGS = {
    "ascii": "abc xyz\t".encode(),
    "utf-8": "aé日本😀\t ".encode(),
    "latin-1": bytes(range(0xC0, 0x100)) + b" a\t",
    "utf-16": "aé日\n".encode("utf-16"),
    "binary": bytes(range(256)),
}
LINE_ENDS = {
    "lf": [b"\n"],
    "crlf": [b"\r\n"],
    "mixed": [b"\n", b"\r\n"],
    "cr": [b"\r"],
    "all": [b"\n", b"\r\n", b"\r", b"\r\r\n"],
}


LINE_END_OR_BYTE = re.compile(b"\r\n|.", re.DOTALL)


class Model:
    """What PROTOCOL says of a file, in the plainest way that says it."""

    def __init__(self, data):
        self.data, self.history = data, []

    def _set(self, data):
        self.history = (self.history + [self.data])[-10:]
        self.data = data

    def _ends(self):
        return [b"\r\n" if line.endswith(b"\r") else b"\n" for line in self.data.split(b"\n")[:-1]]

    def insert(self, line, text):
        lines, ends = self.data.split(b"\n"), self._ends()
        if not 0 <= line <= len(lines):
            return False
        end = (ends[max(line - 1, 0)] if line < len(lines) else ends[-1]) if ends else b"\n"
        text = _with_ends(text, end)
        bom = b"\xef\xbb\xbf" if line == 0 and self.data.startswith(b"\xef\xbb\xbf") else b""
        if line == len(lines):
            self._set(self.data + end + text)
        else:
            at = sum(len(piece) + 1 for piece in lines[:line]) or len(bom)
            self._set(self.data[:at] + text + end + self.data[at:])
        return True

    def replace(self, old, new):
        if self.data.count(old) == 1:
            ends = set(self._ends())
            if b"\n" not in old and b"\r" not in new and ends == {b"\r\n"}:
                new = new.replace(b"\n", b"\r\n")
            self._set(self.data.replace(old, new))
            return True
        if old in self.data or b"\n" not in old.replace(b"\r\n", b""):
            return False
        return self._replace_but_for_line_ends(old, new)

    def _replace_but_for_line_ends(self, old, new):
        """As lists of characters, of which a line end is one."""
        chars, wanted = re.findall(LINE_END_OR_BYTE, self.data), re.findall(LINE_END_OR_BYTE, old)
        plain, plain_wanted = (b"".join(b"\n" if c == b"\r\n" else c for c in x) for x in (chars, wanted))
        if plain == self.data or plain.count(plain_wanted) != 1:
            return False
        at = plain.index(plain_wanted)
        end = at + len(plain_wanted)
        ends = [c for c in chars[at:end] if c in (b"\n", b"\r\n")]
        put, n = [], 0
        for c in re.findall(LINE_END_OR_BYTE, new):
            # The n-th bare line end of the new text is as the n-th of the old one, or as the last one.
            put.append(ends[min(n, len(ends) - 1)] if c == b"\n" else c)
            n += c == b"\n"
        self._set(b"".join(chars[:at] + put + chars[end:]))
        return True

    def undo(self):
        if not self.history:
            return False
        self.data = self.history.pop()
        return True


def _with_ends(text, end):
    return text.replace(b"\r\n", b"\n").replace(b"\n", end) if end == b"\r\n" else text


class Source:
    """Random content, and random pieces of it that JSON can say."""

    def __init__(self, rng, alphabet, ends):
        self.rng, self.alphabet, self.ends = rng, alphabet, ends

    def content(self):
        lines = [
            bytes(self.rng.choices(self.alphabet, k=self.rng.choice([0, 1, 5, 40])))
            for _ in range(self.rng.choice([0, 1, 5, 30]))
        ]
        data = b"".join(line + self.rng.choice(self.ends) for line in lines)
        if self.rng.random() < 0.3:
            data += b"no newline at the end"
        return b"\xef\xbb\xbf" + data if self.rng.random() < 0.1 else data

    def text(self):
        words = [
            "",
            "x",
            "é",
            "new text",
            "\t",
            "two\nlines",
            "crlf\r\nline",
            "😀",
            "\0",
            "ends\n",
            "cr\rhere",
            "\\n $1",
            "\ufffd",
        ]
        return "".join(self.rng.choices(words, k=self.rng.choice([0, 1, 3])))

    def piece(self, data):
        """A part of the content that is valid UTF-8 (mostly), or something that may not occur."""
        for _ in range(20):
            at = self.rng.randrange(len(data) + 1)
            part = data[at : at + self.rng.choice([1, 2, 3, 8, 30])]
            if self.rng.random() < 0.3:  # as a model copies it from a view
                part = part.replace(b"\r\n", b"\n")
            try:
                if part:
                    return part.decode()
            except UnicodeDecodeError:
                pass
        return self.rng.choice(["zzz", "\n\n\n", "é"])


def _step(client, rng, source, model, path):
    """One random edit, of the file and of the model. Returns what was done, for the message."""
    kind = rng.choices(["insert", "str_replace", "undo_edit"], [4, 5, 3])[0]
    if kind == "insert":
        params = {"insert_line": rng.randrange(-1, model.data.count(b"\n") + 4), "new_str": source.text()}
        expected = model.insert(params["insert_line"], params["new_str"].encode())
    elif kind == "str_replace":
        params = {"old_str": source.piece(model.data), "new_str": source.text()}
        expected = model.replace(params["old_str"].encode(), params["new_str"].encode())
    else:
        params, expected = {}, model.undo()
    try:
        client.ed(kind, path, **params)
        done = True
    except RpcError as error:
        assert error.code == TOOLERR, error
        done = False
    assert done == expected, (kind, params, model.data)
    return kind, params


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("ends", LINE_ENDS)
def test_random_edits(client, workdir, encoding, ends):
    """40 edits for each of 25 kinds of file (by default): 1,000 in all. Slow: a thousand edits, each in a process of its own."""
    rng = random.Random(f"{encoding} {ends}")
    source = Source(rng, ENCODINGS[encoding], LINE_ENDS[ends])
    for round in range(ROUNDS):
        model = Model(source.content())
        path = workdir / f"file{round}"
        path.write_bytes(model.data)
        for _ in range(10):
            before = model.data
            done = _step(client, rng, source, model, path)
            assert path.read_bytes() == model.data, (before, done)
