"""Every applet and every command of one explains itself, and puts right what is nearly its name."""
import re
import shlex
import shutil
import subprocess

import pytest

from harness.machine import HANG

APPLETS = ["exec", "probe", "bash_session", "exec_remote", "text_editor", "mcp", "web_browser", "computer", "model_proxy", "file", "inject", "eject", "call", "connect", "run", "confine", "policy", "shell", "forward",
           "cp", "sync", "settle", "transfer", "methods", "server", "start-server", "stop-server", "healthcheck", "status", "upgrade", "release"]
WITH_COMMANDS = {"bash_session": 14, "exec_remote": 11, "text_editor": 7, "mcp": 7, "web_browser": 29, "computer": 13, "release": 4, "file": 17}
VERSION = re.compile(r"toolbox \d+\.\d+\.\d+ \(build [0-9a-f]{16}\)\n")


def said(done, status=0):
    assert done.returncode == status, done
    out, other = (done.stdout, done.stderr) if status == 0 else (done.stderr, done.stdout)
    assert other == b"", done
    return out.decode()


def commands(client, applet):
    """The names in the list that --help shows."""
    block = said(client.cli(applet, "--help")).split("\n\n")[2]
    return [line.split()[0] for line in block.splitlines() if re.match(r"  \S", line)]


@pytest.mark.parametrize("applet", WITH_COMMANDS)
def test_every_command_has_its_own_help(client, applet):
    names = commands(client, applet)
    assert len(names) == len(set(names)) == WITH_COMMANDS[applet]
    for name in names:
        text = said(client.cli(applet, name, "--help"))
        for words in ((applet, name, "-h"), ("help", applet, name), (applet, "help", name)):
            assert said(client.cli(*words)) == text, words
        assert text.startswith(f"Usage: toolbox {applet} {name}") and max(map(len, text.splitlines())) <= 80
        if (applet, name) == ("mcp", "serve"):
            continue  # it explains itself
        # what it says of itself, its options, and an example that is no other command's
        assert re.search(r"^  -h, --help +this text$", text, re.M)
        (example,) = re.findall(r"^Example:\n  (.*)$", text, re.M)
        assert shlex.split(example)[:3] == ["toolbox", applet, name]
        for option in re.findall(r"--[a-z-]+", example):
            assert re.search(rf"^  (-\w, )?{option}\b", text, re.M), f"{option} of the example isn't explained"
        assert ("[OPTION]" in text.splitlines()[0]) == (len(re.findall(r"^  (?:-\w, )?--\w", text, re.M)) > 1)
    assert not client.dir.exists(), "help has started something"


def _options(text):
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M))


def test_only_an_option_that_would_be_taken_is_meant(client):
    """Options of neighbours, misspelt: what is suggested is one that stands in the applet's own help."""
    helps = {applet: said(client.cli(applet, "--help")) for applet in APPLETS if applet not in WITH_COMMANDS}
    every = set().union(*map(_options, helps.values()))
    assert {"--links", "--persist", "--log-level"} <= every
    for applet, text in helps.items():
        for option in every - _options(text):
            if (applet, option) == ("upgrade", "--to"):  # which builds say to each other
                continue
            done = client.cli(applet, option, "x", "y")
            assert done.returncode == 2 and done.stdout == b"", (applet, option, done)
            meant = re.search(r"did you mean '(--[a-z-]+)'", client.cli(applet, option[:-1], "x", "y").stderr.decode())
            assert not meant or meant[1] in text + " --version", (applet, option, meant)


@pytest.mark.parametrize("applet", WITH_COMMANDS)
def test_unknown_words_of_commands(client, applet):
    for name in commands(client, applet):
        if len(name) > 3:
            near = name[:-1] + name[-1] * 2
            assert f"did you mean '{name}'?" in said(client.cli(applet, near), 2)
            assert f"did you mean '{name}'?" in said(client.cli("help", applet, near), 2)
        text = said(client.cli(applet, name, "--frobnicate"), 2)
        assert "--frobnicate" in text and (name == "serve" or f"Try 'toolbox {applet} {name} --help'." in text)
        usage = said(client.cli(applet, name, "--help"))
        for option in re.findall(r"^  (?:-\w, )?(--[a-z-]{4,})", usage, re.M):
            wrong = option + option[-1] if option[-1] != option[-2] else option[:-1] + "q"
            assert f"did you mean '{option}'?" in said(client.cli(applet, name, wrong), 2), wrong
    assert not client.dir.exists()


def test_every_example_of_the_browser_is_a_command(client):
    """Each finds its method: what is wrong is the session, which isn't there."""
    for name in commands(client, "web_browser"):
        example = re.findall(r"^Example:\n  toolbox web_browser (.*)$", said(client.cli("web_browser", name, "--help")), re.M)[0]
        if name in ("new", "list"):
            continue
        done = client.cli("web_browser", *shlex.split(example), "--session", "WebBrowser_77")
        assert done.returncode == 1 and b"no browser session 'WebBrowser_77'" in done.stderr, (name, done)


def test_every_example_of_the_computer_is_a_command(client):
    for name in commands(client, "computer"):
        example = re.findall(r"^Example:\n  toolbox computer (.*)$", said(client.cli("computer", name, "--help")), re.M)[0]
        if name in ("new", "list"):
            continue
        done = client.cli("computer", *shlex.split(example), "--session", "Computer_77")
        assert done.returncode == 1 and b"no desktop session 'Computer_77'" in done.stderr, (name, done)


def test_an_option_of_another_command(client):
    text = said(client.cli("bash_session", "read", "S", "--timeout", "3"), 2)
    assert "read takes no option --timeout" in text and "Try 'toolbox bash_session read --help'." in text


@pytest.mark.parametrize("applet", APPLETS)
def test_version_everywhere(client, applet):
    text = said(client.cli("--version"))
    assert VERSION.fullmatch(text)
    for words in (["-V"], ["version"], [applet, "-V"], [applet, "--version"]):
        assert said(client.cli(*words)) == text, words
    if applet in WITH_COMMANDS:
        assert said(client.cli(applet, "version")) == text
        for name in commands(client, applet):
            assert said(client.cli(applet, name, "-V")) == said(client.cli(applet, name, "--version")) == text
    else:
        assert "has no commands" in said(client.cli("help", applet, "x"), 2)
    assert not client.dir.exists()


@pytest.mark.parametrize("words", [["status", "--json"], ["probe", "--json"], ["start-server", "--log-level", "info"], ["exec", "--whole"],
                                   ["inject", "local:"], ["call", "local:", "version"]], ids=" ".join)
def test_help_behind_other_words(client, words):
    assert said(client.cli(*words, "--help")) == said(client.cli(words[0], "-h"))
    assert not client.dir.exists()


def test_a_program_keeps_its_own_options(client):
    """What stands behind the program is the program's, however it looks."""
    assert said(client.cli("exec_remote", "run", "echo", "--help", "-V", "--timeout")) == "--help -V --timeout\n"
    assert said(client.cli("exec_remote", "run", "--", "echo", "-h")) == "-h\n"


# ---- examples ----

# What is not run as it stands, and why.
NOT_RUN = {
    r"release fetch|mcp launch|web_browser ": "it takes a network; those of web_browser: test_every_example_of_the_browser_is_a_command",
    r"settle --at /opt": "it would remove what is there on this machine",
    r"toolbox computer ": "it takes a display: test_every_example_of_the_computer_is_a_command",
    r"model_proxy": "it takes a port and a folder that others may have",
}


def examples(text):
    """The lines below Example: or Examples:, as they would be typed."""
    blocks = re.findall(r"^Examples?:\n((?:  .*\n)+)", text, re.M)
    return [line.strip() for block in blocks for line in re.sub(r"\\\n +", "", block).splitlines()]


def all_examples(client):
    for applet in said(client.cli("--list")).split():
        yield from examples(said(client.cli(applet, "--help")))
        for name in commands(client, applet) if applet in WITH_COMMANDS else ():
            yield from examples(said(client.cli(applet, name, "--help")))


def test_every_usage_text_has_an_example_and_its_help(client):
    for applet in said(client.cli("--list")).split():
        text = said(client.cli(applet, "--help"))
        assert examples(text) and examples(text)[0].startswith("toolbox ") , applet
        assert re.search(r"^  -h, --help +this text", text, re.M) and max(map(len, text.splitlines())) <= 80, applet
        assert said(client.cli(applet, "-h")) == text


def test_every_example_is_understood_as_typed(client, workdir):
    """Each is run by a shell, in their order: where something isn't there (a job, a container) that is said, and nothing else is wrong.
    No program of an engine or of a cluster is to be found: they would be taken for the examples' own."""
    path = workdir / "bin"
    path.mkdir()
    for name, program in {"toolbox": client.binary, **{name: shutil.which(name) for name in ("cat", "sleep", "make", "sh")}}.items():
        if program:
            (path / name).symlink_to(program)
    (workdir / "Makefile").write_text("test:\n\t@echo tested\n")
    (workdir / "record").write_text("x")
    (workdir / "params.json").write_text("{}")
    (workdir / "toolbox").write_text("x")
    run, lines = [], list(dict.fromkeys(all_examples(client)))
    for line in lines:
        if any(re.search(pattern, line) for pattern in NOT_RUN):
            continue
        assert line.startswith(("toolbox ", 'eval "$(toolbox ')), line
        done = subprocess.run(["/bin/sh", "-c", line], env={**client.env, "PATH": str(path)}, cwd=workdir, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=HANG)
        said_ = done.stderr.decode()
        assert "Try 'toolbox" not in said_ and done.returncode in range(126), (line, done)
        assert done.returncode == 0 or said_ or done.stdout, line
        run.append(line)
    assert len(run) > 40 and all(any(re.search(pattern, line) for line in lines) for pattern in "|".join(NOT_RUN).split("|"))
