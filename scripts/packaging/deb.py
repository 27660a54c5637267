"""Debian packages, written without dpkg's own tools."""
import hashlib

from .archive import File, ar, gzipped, tar
from .release import SUMMARY

CONTROL = """Package: toolbox-sandbox
Version: {version}
Architecture: {arch}
Maintainer: toolbox contributors <toolbox@example.org>
Installed-Size: {size}
Conflicts: podman-toolbox
Section: utils
Priority: optional
Description: {summary}
 Shell sessions that stay, background jobs, an exact file editor, MCP servers
 and a driver for a browser, in any Linux container: "toolbox inject docker:web"
 puts the program there, and nothing else is needed in it.
"""


def _data(release, arch):
    tree = {"usr/bin/toolbox": release.program(arch, whole=True)}
    for path, file in release.share.items():
        if "/man1/" in path:
            tree[f"usr/{path}.gz"] = File(gzipped(file.data))
        elif "/site-functions/" in path:
            tree["usr/share/zsh/vendor-completions/_toolbox"] = file
        else:
            tree[f"usr/{path}"] = file
    copyright = "".join(f"{'' if name == 'LICENSE' else chr(10) + name[8:] + ':' + chr(10) * 2}{file.data.decode()}" for name, file in release.licences.items())
    tree["usr/share/doc/toolbox-sandbox/copyright"] = File(copyright.encode())
    return {name: tree[name] for name in sorted(tree)}


def write(release):
    for arch in release.hosts:
        tree = _data(release, arch)
        size = sum(-(-len(file.data) // 1024) for file in tree.values())
        sums = "".join(f"{hashlib.md5(file.data).hexdigest()}  {name}\n" for name, file in tree.items())
        control = {"control": File(CONTROL.format(version=release.version, arch=arch, size=size, summary=SUMMARY).encode()), "md5sums": File(sums.encode())}
        members = [("debian-binary", b"2.0\n"), ("control.tar.gz", gzipped(tar(control, "./"))), ("data.tar.gz", gzipped(tar(tree, "./")))]
        release.write(f"toolbox-sandbox_{release.version}_{arch}.deb", ar(members))
