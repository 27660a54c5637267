"""The program of this host, wherever an installer has put it."""
from __future__ import annotations

import os
import platform
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from .errors import CannotConnect

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"  # of the wheel for hosts of any system: a program for each kind of target
ARCHES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "armv7", "armv8l": "armv7", "i386": "i386", "i586": "i386",
          "i686": "i386", "ppc64le": "ppc64le", "riscv64": "riscv64", "s390x": "s390x"}


def program_for(machine: str) -> Path | None:
    """The packed program for a Linux machine, by what `uname -m` says."""
    arch = ARCHES.get(machine.lower())
    return next(iter(sorted(PROGRAMS.glob(f"toolbox-*-linux-{arch}"))), None)


def _installed() -> Iterator[Path]:
    """Where the `toolbox` command of this very package can be: that of its environment, of its user, of `pip install --target`."""
    yield HERE / "bin" / "toolbox"
    if PROGRAMS.is_dir():  # its command is a script that asks here
        mine = program_for(platform.machine()) if platform.system() == "Linux" else None
        if mine:
            yield mine
        return
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        paths = sysconfig.get_paths(scheme)
        if str(HERE.parent) in (paths["purelib"], paths["platlib"]):
            yield Path(paths["scripts"], "toolbox")
    yield HERE.parent / "bin" / "toolbox"


def _on_path() -> str | None:
    found = shutil.which("toolbox")
    if found and PROGRAMS.is_dir():
        with open(found, "rb") as file:
            if file.read(2) == b"#!":
                return None  # it may be our own command
    return found


def find_toolbox() -> str:
    """$TOOLBOX_BINARY, the one that came with this package, or the PATH's."""
    beside = next((str(path) for path in _installed() if os.access(path, os.X_OK)), None)
    found = os.environ.get("TOOLBOX_BINARY") or beside or _on_path()
    if not found:
        raise CannotConnect("there is no program `toolbox`: put it on the PATH, or say where it is in TOOLBOX_BINARY")
    return found


def is_placing() -> bool:
    """Whether the library itself has to put programs into targets, since there is none for this host."""
    try:
        return not find_toolbox()
    except CannotConnect:
        return PROGRAMS.is_dir()
