"""Files that aren't UTF-8: edited as text, and every byte outside of the edit is as it was."""
import random

import pytest

from harness.client import PARAMERR, RpcError

# what the editor calls it, and what Python does; of UTF-16 with a byte order mark
ENCODINGS = {"utf-16": "utf-16-le", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be", "UTF-16-BE": "utf-16-be", "cp1252": "cp1252", "windows-1252": "cp1252",
             "latin-1": "latin-1", "ISO-8859-1": "latin-1"}
MARKS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}


@pytest.fixture
def edit(client):
    return lambda path, command, **params: client.rpc("text_editor", {"command": command, "path": str(path), **params})


def letters(encoding):
    return "aäöß é\t" + ("€„”" if encoding == "cp1252" else "→😀漢" if encoding.startswith("utf") else "¤")


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("name", ENCODINGS)
def test_edits_at_random_are_exact(edit, workdir, name, marked):
    encoding, rng = ENCODINGS[name], random.Random(name)
    mark = MARKS.get(encoding, b"") if marked else b""
    given = {} if mark else {"encoding": name}
    odd = {"utf-16-le": b"\x00\xd8", "utf-16-be": b"\xdc\x01", "cp1252": b"\x81\x8d"}.get(encoding, b"\x80\xff")  # no text
    end = rng.choice(["\n", "\r\n"])
    lines = ["".join(rng.choices(letters(encoding), k=rng.randint(0, 9))) + f"{i}" for i in range(12)]
    path = workdir / "file"
    for step in range(6):
        content = mark + end.join([*lines, ""]).encode(encoding) + odd
        path.write_bytes(content)
        at, new = rng.randrange(12), "".join(rng.choices(letters(encoding), k=5)) + "neu"
        want = [*lines]
        want[at] = new
        if step % 3 == 0:
            edit(path, "str_replace", old_str=f"{lines[at]}\n" if at == 0 else f"\n{lines[at]}\n", new_str=f"{new}\n" if at == 0 else f"\n{new}\n", **given)
        elif step % 3 == 1:
            patch = f"--- a/file\n+++ b/file\n@@ -{at + 1} +{at + 1} @@\n-{lines[at]}{end}+{new}{end}"
            edit(path, "apply_patch", patch=patch, **given)
        else:
            edit(path, "insert", insert_line=at, new_str=new, **given)
            want = [*lines[:at], new, *lines[at:]]
        assert path.read_bytes() == mark + end.join([*want, ""]).encode(encoding) + odd, (step, end, at)
        edit(path, "undo_edit")
        assert path.read_bytes() == content


def test_what_is_shown(edit, workdir):
    path = workdir / "file"
    for content, given in [("é1\n".encode("utf-16"), {}), (b"\xfe\xff\0\xe9\0" + b"1\0\n", {}), (b"\xe91\n", {"encoding": "latin-1"}),
                           (b"\x801\n", {"encoding": "cp1252"}), ("é1\n".encode("utf-16-le"), {"encoding": "utf-16"})]:
        path.write_bytes(content)
        letter = "€" if content[0] == 0x80 else "é"
        assert f"     1\t{letter}1\n" in edit(path, "view", **given)
        assert f"     1\t{letter}2\n" in edit(path, "str_replace", old_str="1", new_str="2", **given)


def test_what_the_encoding_does_not_have(edit, workdir):
    path = workdir / "file"
    path.write_bytes(b"\xe9 one\n")
    for command, params in [("str_replace", {"old_str": "one", "new_str": "→"}), ("insert", {"insert_line": 1, "new_str": "→"}),
                            ("create", {"file_text": "→", "overwrite": True})]:
        for encoding in ["latin-1", "cp1252"]:
            with pytest.raises(RpcError, match="'→'"):
                edit(path, command, encoding=encoding, **params)
    with pytest.raises(RpcError) as failed:
        edit(path, "view", encoding="ebcdic")
    assert failed.value.code == PARAMERR and "cp1252" in failed.value.message
    path.write_bytes(b"abc")
    with pytest.raises(RpcError, match="odd number"):
        edit(path, "view", encoding="utf-16")
    assert path.read_bytes() == b"abc"


def test_many_edits_and_new_files(edit, client, workdir):
    wide, narrow = workdir / "wide", workdir / "narrow"
    wide.write_bytes("eins ä\n".encode("utf-16"))
    narrow.write_bytes(b"zwei \xe4\n")
    client.rpc("text_editor", {"command": "edit_many", "edits": [
        {"path": str(wide), "old_str": "ä", "new_str": "ö"}, {"path": str(narrow), "old_str": "ä", "new_str": "ö", "encoding": "latin-1"},
        {"path": str(workdir / "new"), "file_text": "ü", "encoding": "utf-16be"}]})
    assert (wide.read_bytes(), narrow.read_bytes(), (workdir / "new").read_bytes()) == ("eins ö\n".encode("utf-16"), b"zwei \xf6\n", b"\0\xfc")
    edit(workdir / "newer", "create", file_text="ü😀", encoding="utf-16")
    assert (workdir / "newer").read_bytes() == "ü😀".encode("utf-16")


@pytest.mark.parametrize("name", ENCODINGS)
def test_files_are_read_and_written_so(client, workdir, name):
    text, path = letters(ENCODINGS[name]) * 3, str(workdir / "file")
    client.rpc("file_write", {"path": path, "data": text, "encoding": name})
    written = (workdir / "file").read_bytes()
    assert written == (MARKS["utf-16-le"] if name == "utf-16" else b"") + text.encode(ENCODINGS[name])
    assert client.rpc("file_read", {"path": path, "encoding": name})["data"] == text
    got, at = "", 0
    while at < len(written):  # in pieces, which cut characters
        piece = client.rpc("file_read", {"path": path, "encoding": name, "offset": at, "length": 7})
        got, at = got + piece["data"], at + piece["length"]
        if name == "utf-16":
            break
    assert text.startswith(got) and (name == "utf-16" or got == text)


@pytest.mark.parametrize("encoding, text", [
    ("gbk", "第一行\n名字 = 1\n你好\n"), ("shift_jis", "これはテストです\nname = 1\n"), ("euc-jp", "日本語のテキスト\nname = 1\n"),
    ("euc-kr", "한국어 문서\nname = 1\n"), ("big5", "繁體中文檔案的內容\nname = 1\n"), ("cp1251", "Привет, мир\nname = 1\n")])
def test_encodings_that_are_not_known_stay_whole(edit, client, workdir, encoding, text):
    """What is ASCII is edited, all else stays."""
    path, data = workdir / "file", text.encode(encoding)
    path.write_bytes(data)
    edit(path, "str_replace", old_str="= 1", new_str="= 2")
    edit(path, "insert", insert_line=1, new_str="ascii")
    changed = data.replace(b"= 1", b"= 2").replace(b"\n", b"\nascii\n", 1)
    assert path.read_bytes() == changed
    edit(path, "apply_patch", patch="--- a/file\n+++ b/file\n@@ -2 +2 @@\n-ascii\n+text\n")
    assert path.read_bytes() == changed.replace(b"\nascii", b"\ntext")
    answer = client.answer("file_read", {"path": str(path)})["error"]
    assert answer["data"]["kind"] == "not_text" and "base64" in answer["message"]


def test_the_command(client, workdir):
    (workdir / "file").write_bytes(b"caf\xe9\n")
    done = client.cli("text_editor", "replace", str(workdir / "file"), "--old", "café", "--new", "thé", "--encoding", "latin-1")
    assert done.returncode == 0 and (workdir / "file").read_bytes() == b"th\xe9\n", done
    assert client.cli("text_editor", "view", str(workdir / "file"), "--encoding", "nothing").returncode == 2
