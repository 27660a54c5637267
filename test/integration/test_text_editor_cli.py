"""`toolbox text_editor` as people and scripts call it."""

import json
import os

import pytest


@pytest.fixture
def cli(client, workdir):
    """Runs the applet in the folder: cli(words..., stdin=) -> (exit status, stdout, stderr)."""

    def run(*words, **how):
        done = client.cli("text_editor", *words, cwd=workdir, **how)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def test_a_whole_life(cli, workdir):
    assert cli("create", "f", "--text", "one\ntwo\n")[0] == 0
    assert cli("view", "f") == (
        0,
        f"Output of running `cat -n` on {workdir}/f:\n     1\tone\n     2\ttwo\n     3\t\n",
        "",
    )
    assert (
        "     2\ttwo" in cli("view", "f", "--range", "2,2")[1]
        and "one" not in cli("view", "f", "--range", "2,2")[1]
    )
    assert cli("replace", "f", "--old", "two", "--new", "2")[0] == 0
    assert cli("insert", "f", "1", "--text", "between")[0] == 0
    assert (workdir / "f").read_text() == "one\nbetween\n2\n"
    status, out, _ = cli("history", "f")
    assert status == 0 and len(out.splitlines()) == 3 and "created" in out.splitlines()[-1]
    for text in ("one\n2\n", "one\ntwo\n"):
        assert cli("undo", "f")[0] == 0
        assert (workdir / "f").read_text() == text
    assert cli("undo", "f")[0] == 0 and not (workdir / "f").exists()
    assert "no edit" in cli("history", "f")[1]


def test_every_place_over_a_file_and_with_directories(cli, workdir):
    assert cli("create", "a/b/f", "--text", "x x x\n", "--parents")[0] == 0
    status, _, said = cli("replace", "a/b/f", "--old", "x", "--new", "y")
    assert status == 1 and "3 times" in said and "--all" in said
    status, _, said = cli("replace", "a/b/f", "--old", "x", "--new", "y", "--count", "2")
    assert status == 1 and "--count says 2" in said
    assert cli("replace", "a/b/f", "--old", "x", "--count", "none")[0] == 2
    assert cli("replace", "a/b/f", "--old", "x", "--new", "y", "--count", "3")[0] == 0
    assert cli("replace", "a/b/f", "--old", "y", "--new", "z", "--all")[0] == 0
    assert (workdir / "a/b/f").read_text() == "z z z\n"
    status, _, said = cli("create", "a/b/f", "--text", "new")
    assert status == 1 and "--overwrite" in said
    assert cli("create", "a/b/f", "--text", "new", "--overwrite")[0] == 0 and (workdir / "a/b/f").read_text() == "new"


def test_texts_from_files_and_stdin(cli, workdir):
    assert cli("create", "f", stdin=b"from \xff stdin\0\n")[0] == 0
    assert (workdir / "f").read_bytes() == b"from \xff stdin\0\n"
    (workdir / "old").write_bytes(b"\xff stdin\0")
    (workdir / "new").write_bytes(b"a file")
    assert cli("replace", "f", "--old-file", "old", "--new-file", "new")[0] == 0
    assert (workdir / "f").read_bytes() == b"from a file\n"
    assert cli("replace", "f", "--old", "a file", "--new-file", "-", stdin=b"stdin")[0] == 0
    assert cli("insert", "f", "0", stdin=b"first")[0] == 0
    assert cli("insert", "f", "0", "--file", "new")[0] == 0
    assert (workdir / "f").read_bytes() == b"a file\nfirst\nfrom stdin\n"
    assert cli("replace", "f", "--old", "first\n")[0] == 0
    assert (workdir / "f").read_bytes() == b"a file\nfrom stdin\n"


@pytest.mark.parametrize("text,lines", [(b"x", b"x\n"), (b"x\n", b"x\n"), (b"x\n\n", b"x\n\n"), (b"x\r\n", b"x\n"), (b"\n", b"\n")])
def test_insert_takes_a_last_newline_for_the_lines_end(cli, workdir, text, lines):
    """`echo x | toolbox text_editor insert` inserts one line; a text on the command line is taken to the byte."""
    (workdir / "f").write_bytes(b"1\n2\n")
    (workdir / "text").write_bytes(text)
    assert cli("insert", "f", "1", stdin=text)[0] == 0
    assert (workdir / "f").read_bytes() == b"1\n" + lines + b"2\n"
    assert cli("undo", "f")[0] == 0 and cli("insert", "f", "1", "--file", "text")[0] == 0
    assert (workdir / "f").read_bytes() == b"1\n" + lines + b"2\n"
    assert cli("undo", "f")[0] == 0 and cli("insert", "f", "1", "--text", "x\n")[0] == 0
    assert (workdir / "f").read_bytes() == b"1\nx\n\n2\n"


def test_names_that_look_like_options(cli, workdir):
    assert cli("create", "--text", "x", "--", "--json")[0] == 0
    assert (workdir / "--json").read_text() == "x"
    assert cli("view", "--", "--json")[0] == 0


def test_names_that_are_no_utf8(cli, workdir):
    path = os.fsencode(workdir) + b"/\xff\xfe"
    with open(path, "wb") as made:
        made.write(b"x\n")
    status, out, _ = cli("view", os.fsdecode(b"\xff\xfe"))
    assert status == 0 and '\\377\\376"' in out


def test_json(cli):
    status, out, err = cli("create", "f", "--text", "x", "--json")
    assert status == 0 and err == "" and "created" in json.loads(out)["result"]
    status, out, err = cli("create", "f", "--text", "x", "--json")
    assert status == 1 and err == ""
    assert json.loads(out)["error"]["code"] == -32099 and "exists" in json.loads(out)["error"]["message"]


def test_refusals(cli, workdir):
    status, out, err = cli("view", "missing")
    assert (status, out) == (1, "") and err.startswith("toolbox text_editor: ") and "missing" in err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["view"],
        ["cut", "f"],
        ["view", "f", "g"],
        ["view", "f", "--range", "1"],
        ["view", "f", "--range", "a,b"],
        ["view", "f", "--range", "1,2,3"],
        ["view", "f", "--range"],
        ["view", "f", "--old", "x"],
        ["create", "f", "--old", "x"],
        ["replace", "f"],
        ["replace", "f", "--text", "x"],
        ["insert", "f"],
        ["insert", "f", "x", "--text", "y"],
        ["insert", "f", "1x", "--text", "y"],
        ["undo", "f", "--bad"],
        ["create", "f", "--range", "1,2"],
        ["replace", "f", "--old-file", "-", "--new-file", "-"],
        ["--bad"],
    ],
)
def test_usage_errors(cli, workdir, words):
    status, out, err = cli(*words)
    assert status == 2 and out == "" and err.startswith("toolbox text_editor: ")
    assert os.listdir(workdir) == []


def test_help(cli):
    for words, begin in ((["--help"], "COMMAND"), (["view", "--help"], "view [OPTION]... PATH"), (["-h"], "COMMAND")):
        status, out, err = cli(*words)
        assert status == 0 and out.startswith(f"Usage: toolbox text_editor {begin}") and err == ""
    assert cli("create", "f", "--text", "--help")[0] == 0
