"""Releases for tests: folders as `make dist` makes them (applets/host/release/release_record.h), of any bytes."""
import hashlib
import json
import platform
import subprocess
from pathlib import Path

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
OTHER = "arm64" if ARCH == "amd64" else "amd64"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def mark(kind, lines):
    return lines + b"#toolbox %s %08d\n" % (kind.encode(), len(lines) + 23)


def sums_record(programs):
    """programs: {file name: bytes}"""
    return mark("sums", "".join(f"{sha256(data)}  {name}\n" for name, data in programs.items()).encode())


def pack(files):
    """The self-contained program: files behind each other, {name: bytes}, the own one first."""
    lines = "".join(f"{len(data)} {name}\n" for name, data in files.items()).encode()
    return b"".join(files.values()) + mark("pack", lines)


class Release:
    """A release of one program for this machine and made-up ones for others, or those of {architecture: bytes}."""

    def __init__(self, toolbox, version=None, others=(OTHER, "riscv64")):
        self.toolbox = Path(toolbox)
        self.version = version or subprocess.run([toolbox, "--version"], capture_output=True, text=True,
                                                 check=True).stdout.split()[1]
        programs = {self.name(ARCH): self.toolbox.read_bytes()}
        for i, arch in enumerate(others):
            programs[self.name(arch)] = others[arch] if isinstance(others, dict) else arch.encode() * (50000 + i)
        record = sums_record(programs)
        self.files = {name: data + record for name, data in programs.items()}

    def name(self, arch):
        return f"toolbox-{self.version}-linux-{arch}"

    def sums(self, extra=()):
        files = {**self.files, **dict(extra)}
        return "".join(f"{sha256(data)}  {name}\n" for name, data in sorted(files.items())).encode()

    def write(self, folder, key=None, packed=False):
        """The folder; with a key (a Key) signed; the path of this machine's program."""
        folder.mkdir(exist_ok=True)
        extra = {"LICENSE": b"do what you like\n"}
        if packed:
            extra[self.name(ARCH) + "-all"] = pack(self.files)
        for name, data in {**self.files, **extra, "SHA256SUMS": self.sums(extra)}.items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o755 if name.startswith("toolbox-") else 0o644)
        if key:
            key.sign(folder)
        return folder / self.name(ARCH)


def openssl(*argv, cwd=None):
    subprocess.run(["openssl", *map(str, argv)], cwd=cwd, check=True, capture_output=True, timeout=60)


class Key:
    """A throwaway key for signing releases."""

    def __init__(self, folder, name="key", curve="prime256v1"):
        self.private, self.public = folder / f"{name}.pem", folder / f"{name}.pub"
        openssl("ecparam", "-genkey", "-name", curve, "-noout", "-out", self.private)
        openssl("ec", "-in", self.private, "-pubout", "-out", self.public)

    def sign(self, folder):
        openssl("dgst", "-sha256", "-sign", self.private, "-out", folder / "SHA256SUMS.sig", folder / "SHA256SUMS")


def listed(toolbox, env=None):
    """What `release list` says, by architecture."""
    done = subprocess.run([toolbox, "release", "list", "--json"], capture_output=True, text=True, env=env, timeout=60)
    return {entry["arch"]: entry for entry in json.loads(done.stdout)}
