"""Targets of a host for which there is no program `toolbox`, as macOS: the right one is put there by the runtime's own client.

What `toolbox inject` does on Linux in all kinds of places is done here for those that have a shell: two calls, and then a stream.
"""
from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Sequence

from . import host
from .connection import Connection
from .errors import CannotConnect

TIMEOUT = 60  # seconds for each call of the runtime
ENGINES = ("docker", "podman", "nerdctl")

# $1 a directory, or nothing; $2 sums: prints system and machine, the first directory in which a program can be put and run, and whether it is there.
LOOK = r"""
PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH; umask 077
user=$(id -u); name=.toolbox-bin; [ "$user" = 0 ] || name=$name-$user
echo "$(uname -s) $(uname -m)"
try() {
    [ ! -L "$1" ] && { mkdir "$1" 2>/dev/null || [ -O "$1" ]; } || return 1
    chmod 700 "$1" && printf '#!/bin/sh\nexit 0\n' 2>/dev/null >"$1/.try" && chmod 700 "$1/.try" && "$1/.try" 2>/dev/null
    status=$?; rm -f "$1/.try"; [ $status = 0 ] || rmdir "$1" 2>/dev/null
    [ $status = 0 ] || return 1
    echo "$1"
    "$1/toolbox" settle --at "$1/toolbox" --sums "$2" >/dev/null 2>&1 && echo there
    exit 0
}
[ -z "$1" ] || { try "$1" "$2"; exit 1; }
for dir in /opt /usr/local /var/tmp /run /tmp /dev/shm "$HOME"; do
    [ ! -d "$dir" ] || try "$dir/$name" "$2"
done
exit 1
"""

# $1 the directory, $2 the sum of what comes on stdin.
PLACE = r"""
umask 077; file=$1/.toolbox.$$
cat >"$file" && chmod 700 "$file" && "$file" settle --at "$file" --name toolbox --sums "$2" || { status=$?; rm -f "$file"; exit $status; }
"""

# $1 a directory, or nothing.
REMOVE = r"""
user=$(id -u); name=.toolbox-bin; [ "$user" = 0 ] || name=$name-$user
[ -z "$1" ] || { [ ! -x "$1/toolbox" ] || "$1/toolbox" settle --at "$1/toolbox" --remove; exit; }
for dir in /opt /usr/local /var/tmp /run /tmp /dev/shm "$HOME"; do
    [ ! -x "$dir/$name/toolbox" ] || "$dir/$name/toolbox" settle --at "$dir/$name/toolbox" --made "$dir/$name" --remove || exit
done
"""


def _pod(rest: str) -> list[str]:
    """[CONTEXT/][NAMESPACE/]POD[/CONTAINER]: two parts are NAMESPACE/POD, three NAMESPACE/POD/CONTAINER."""
    parts = rest.split("/")
    context, namespace, pod, container = {1: ["", "", *parts, ""], 2: ["", *parts, ""], 3: ["", *parts], 4: parts}.get(len(parts), [""] * 4)
    if not pod:
        raise CannotConnect(f"k8s:{rest}: there is no pod in that name ([CONTEXT/][NAMESPACE/]POD[/CONTAINER])", 2)
    given = {"--context": context, "--namespace": namespace, "-c": container}
    return ["kubectl", "exec", "-i", *(word for name, value in given.items() if value for word in (name, value)), pod, "--"]


class Way:
    """How a command is run in a target: `docker:web` and so on; as whom."""

    def __init__(self, target: str, user: str | None) -> None:
        self.target = target
        scheme, _, rest = target.partition(":")
        self._joins = scheme == "ssh"  # what a remote shell gets is one line
        if user and scheme not in ENGINES:
            raise CannotConnect(f"{target}: on this system a user can be chosen for {', '.join(ENGINES)} alone", 2)
        if not rest:
            raise CannotConnect(f"{target}: on this system targets are docker:, podman:, nerdctl:, k8s:, ssh: and exec:", 2)
        if scheme in ENGINES:
            as_whom = [] if user == "default" else ["-u", user or "0"]
            self._words = [scheme, "exec", "-i", *as_whom, rest]
        elif scheme == "k8s":
            self._words = _pod(rest)
        elif scheme == "ssh":
            self._words = ["ssh", "-T", "-o", "BatchMode=yes", "--", rest]
        elif scheme == "exec":
            self._words = shlex.split(rest)
        else:
            raise CannotConnect(f"{target}: on this system targets are docker:, podman:, nerdctl:, k8s:, ssh: and exec:", 2)

    def command(self, *argv: str) -> list[str]:
        return [*self._words, shlex.join(argv)] if self._joins else [*self._words, *argv]

    async def run(self, script: str, *arguments: str, input: bytes = b"") -> tuple[int, str, str]:
        """(status, stdout, stderr) of a script of the target's shell."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command("sh", "-c", script, "sh", *arguments), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        except OSError as error:
            raise CannotConnect(f"{self.target}: {self._words[0]} can't be run: {error.strerror}", 3) from error
        try:
            out, said = await asyncio.wait_for(process.communicate(input), TIMEOUT)
        except BaseException as error:
            process.kill()
            await process.wait()
            if isinstance(error, asyncio.TimeoutError):
                raise CannotConnect(f"{self.target}: no answer within {TIMEOUT} s", 4) from error
            raise
        return process.returncode or 0, out.decode(errors="replace"), said.decode(errors="replace").strip()


def _folder(options: Sequence[str]) -> str:
    """That of --dir, the one option there is here."""
    words = [part for word in options for part in word.split("=", 1)]
    if words and (len(words) != 2 or words[0] != "--dir" or not words[1].startswith("/")):
        raise CannotConnect(f"on this system there is one option, --dir DIR, not {' '.join(options)}", 2)
    return words[1] if words else ""


async def _place(way: Way, options: Sequence[str]) -> str:
    """The path of the program there, put there where it isn't."""
    data = {path.name: path.read_bytes() for path in sorted(host.PROGRAMS.glob("toolbox-*-linux-*"))}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in data.items()}
    status, out, said = await way.run(LOOK, _folder(options), ",".join(sums.values()))
    told = out.splitlines()
    if not told:
        raise CannotConnect(f"{way.target}: {said or 'nothing can be run there'} (a shell is needed, sh)", 4)
    system, _, machine = told[0].partition(" ")
    program = host.program_for(machine) if system == "Linux" else None
    if program is None:
        raise CannotConnect(f"{way.target}: there is no program for {told[0]}", 5)
    if status or len(told) < 2:
        raise CannotConnect(f"{way.target}: there is no directory that can be written to and run from", 6)
    if told[2:] != ["there"]:
        status, out, said = await way.run(PLACE, told[1], sums[program.name], input=data[program.name])
        if status:
            raise CannotConnect(f"{way.target}: {_message(out) or said or f'status {status}'}", 6)
    return f"{told[1]}/toolbox"


def _message(out: str) -> str:
    try:
        return str(json.loads(out).get("message", ""))
    except ValueError:
        return ""


async def connect(target: str, user: str | None, options: Sequence[str]) -> Connection:
    """A connection of this process's own: there is nothing here that could keep one."""
    way = Way(target, user)
    return await Connection.over(way.command(await _place(way, options), "exec", "--stream"))


async def eject(target: str, options: Sequence[str]) -> None:
    status, out, said = await Way(target, None).run(REMOVE, _folder(options))
    if status:
        raise CannotConnect(f"{target}: {_message(out) or said or f'status {status}'}", status)


def main() -> None:
    """The command `toolbox` of a package without a program for this host, or with those of all."""
    try:
        program = host.find_toolbox()
    except CannotConnect:
        sys.exit("toolbox: this package has programs for Linux alone. In Python, Sandbox.connect(\"docker:NAME\") puts the right one into a container")
    os.execv(program, ["toolbox", *sys.argv[1:]])
