"""What methods answer, as far as this package relies on it. There can be more members: docs/protocol.md and docs/files.md name them all."""
from __future__ import annotations

from typing import Any, TypedDict


class Hello(TypedDict):
    """What the program in the target says of itself."""

    version: str
    build: str
    instance: str
    pid: int
    features: list[str]
    limits: dict[str, int]
    alive_s: int


class _Stat(TypedDict):
    type: str
    size: int
    mode: int
    mtime: float
    uid: int
    gid: int
    user: str | None
    group: str | None
    links: int
    inode: int
    disk_bytes: int


class Stat(_Stat, total=False):
    """What is known of a file. `target`: where a link leads; `sha256`: where it was asked for."""

    target: str
    sha256: str


class Entry(Stat):
    """A file in a directory."""

    path: str


class Change(TypedDict):
    """What has become of a path below a directory that is watched: `created`, `changed` or `deleted`; `overflow`: more than could be told one by one,
    so all was compared; `dropped`: more than was kept until somebody asked."""

    path: str
    change: str
    directory: bool


class Found(TypedDict):
    """Names that match."""

    paths: list[str]
    truncated: bool
    timed_out: bool
    unreadable_directories: int


class _Match(TypedDict):
    path: str
    line: int
    text: str


class Match(_Match, total=False):
    """A line that matches, and those around it where they were asked for."""

    line_cut: bool
    before: list[str]
    after: list[str]


class SearchResult(TypedDict):
    """Lines that match."""

    matches: list[Match]
    files_searched: int
    files_binary: int
    files_too_large: int
    unreadable: int
    truncated: bool
    timed_out: bool


class Copied(TypedDict):
    """The sum of what was copied."""

    ok: bool
    files: int
    directories: int
    links: int
    others: int
    bytes: int
    deleted: int
    skipped: int
    failed: int
    seconds: float


class Check(TypedDict):
    """Something that the tools rest on: `state` is works, falls_back or fails."""

    name: str
    state: str
    tools: Any
    seen: str | None
    instead: str | None
    change: str | None


class Doctor(TypedDict):
    """What the tools rest on, tried."""

    ok: bool
    checks: list[Check]


class _Page(TypedDict):
    web_url: str
    main_content: str | None
    web_at: str
    error: str | None


class Page(_Page, total=False):
    """A page as text."""

    notes: list[str]
