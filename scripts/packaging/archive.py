"""Archives of files, the same bytes whenever they are made: members in their order, one date, no names of users.

A tree is a dict: name -> File. Folders are made for the formats that need them.
"""
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple


class File(NamedTuple):
    data: bytes
    mode: int = 0o644


def epoch():
    """Seconds: $SOURCE_DATE_EPOCH, else the newest commit's, else 1980, before which no zip can be from."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if not seconds and shutil.which("git"):
        seconds = subprocess.run(["git", "log", "-1", "--format=%ct"], capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()
    return max(int(seconds or 0), 315532800)


def tree_of(folder, below=""):
    """The files of a folder, with names that begin with `below`; who may run one may be read from its mode."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {below + path.relative_to(folder).as_posix(): File(path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644) for path in paths}


def gzipped(data):
    return gzip.compress(data, 9, mtime=0)


def _folders(names):
    """Those above the names, each once, from above."""
    found = {}
    for name in names:
        parts = name.split("/")[:-1]
        for i in range(len(parts)):
            found.setdefault("/".join(parts[: i + 1]))
    return list(found)


def tar(tree, prefix="", folders=True):
    """As people read it (pax where a name is long). `prefix` is in front of each name: "./", "package/"."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as file:
        entries = {name: None for name in (_folders(tree) if folders else [])}
        entries.update(tree)
        for name in sorted(entries):
            info = tarfile.TarInfo(prefix + name)
            info.mtime, info.uname, info.gname = epoch(), "root", "root"
            if entries[name] is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                file.addfile(info)
            else:
                info.mode, info.size = entries[name].mode, len(entries[name].data)
                file.addfile(info, io.BytesIO(entries[name].data))
    return out.getvalue()


def zipped(tree):
    """In the order of the tree."""
    out = io.BytesIO()
    date = time.gmtime(epoch())[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, entry in tree.items():
            info = zipfile.ZipInfo(name, date)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (0o100000 | entry.mode) << 16
            file.writestr(info, entry.data, compresslevel=9)
    return out.getvalue()


def ar(members):
    """[(name, bytes)], as dpkg reads it."""
    out = b"!<arch>\n"
    for name, data in members:
        out += f"{name:<16}{epoch():<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


def sha256(data):
    return hashlib.sha256(data).hexdigest()
