"""The file that the processes of a run share with us (faults.c), and the call sites of the binary."""
import mmap
import os
import re
import struct
import subprocess

SITES = 8192
SHORT = -1
_HEAD = struct.Struct("QIiII")
_SITE = struct.Struct("QII")


class Board:
    """Which call is to fail, and how often each site was reached."""

    def __init__(self, path):
        self.path = str(path)
        with open(path, "wb+") as file:
            file.truncate(_HEAD.size + SITES * _SITE.size)
            self.map = mmap.mmap(file.fileno(), 0)

    def set(self, site, at, error):
        self.map[:] = bytes(len(self.map))
        self.map[:_HEAD.size] = _HEAD.pack(site, at, error, 0, 0)

    @property
    def fired(self):
        return bool(_HEAD.unpack(self.map[:_HEAD.size])[4])

    def counts(self):
        """{site: calls}"""
        return {site: n for site, n, _ in _SITE.iter_unpack(self.map[_HEAD.size:]) if site}

    def close(self):
        self.map.close()
        os.unlink(self.path)


class Site:
    def __init__(self, address, call, function, place):
        self.address, self.call, self.function, self.place = address, call, function, place

    def __str__(self):
        return f"{self.call} in {self.function} ({self.place})"


def sites(binary):
    """Every call of a wrapped function, {return address: Site}, in the order of the source."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", binary], capture_output=True, text=True, check=True).stdout
    found, call = {}, None
    for line in text.splitlines():
        instruction = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if not instruction:
            continue
        if call:
            found[int(instruction[1], 16)] = call
        wrapped = re.search(r"call\s.*<__wrap_(\w+)>", instruction[2])
        call = wrapped and wrapped[1]
    # the address before the return address is still that of the call
    asked = "".join(f"{address - 1:x}\n" for address in found)
    said = subprocess.run(["addr2line", "-f", "-e", binary], input=asked, capture_output=True, text=True, check=True).stdout
    lines = said.splitlines()
    named = []
    for (address, call), function, place in zip(found.items(), lines[::2], lines[1::2]):
        path = re.search(r"((?:core|rpc|applets|test|cjson)/.*?):(\d+|\?)", place)
        named.append(Site(address, call, function, f"{path[1]}:{path[2]}" if path else place))
    key = re.compile(r"(.*):(\d+)")
    named.sort(key=lambda site: (m[1], int(m[2])) if (m := key.match(site.place)) else (site.place, 0))
    return {site.address: site for site in named}
