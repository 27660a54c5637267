"""Tarballs for npm: toolbox-sandbox, and for each platform a package with the program, of which npm takes the one that fits. They are also
bundled in the first, so that it can be installed by itself where there is no registry."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .archive import File, gzipped, tar, tree_of
from .release import ROOT

CLIENT = ROOT / "clients/typescript"
CPUS = {"amd64": "x64", "arm64": "arm64"}
LAUNCHER = (ROOT / "scripts/packaging/toolbox.cjs").read_bytes()


def _json(value):
    return File((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def _write(release, tree, about):
    """Gives the files of the package."""
    tree = {**tree, **release.licences, "package.json": _json(about)}
    release.write(f"{about['name']}-{release.version}.tgz", gzipped(tar(tree, "package/", folders=False)))
    return tree


def _platform(release, arch):
    name = f"toolbox-sandbox-linux-{CPUS[arch]}"
    about = {"name": name, "version": release.version, "description": f"The program of toolbox-sandbox for Linux on {CPUS[arch]}", "license": "MIT",
             "os": ["linux"], "cpu": [CPUS[arch]], "preferUnplugged": True}
    return name, _write(release, {"bin/toolbox": release.program(arch, whole=True)}, about)


def _compiler():
    """The words of a TypeScript compiler that finds Node's types: $TSC, that of `scripts/setup peers`, the PATH's; None without any."""
    cache = Path(os.environ.get("TOOLBOX_CACHE") or ROOT / "build/cache")
    for folder in sorted(cache.glob("peers/node-typescript-*/node_modules")):
        if not os.environ.get("TSC") and (folder / ".bin/tsc").exists():
            return [str(folder / ".bin/tsc"), "--typeRoots", str(folder / "@types")]
    found = os.environ.get("TSC") or shutil.which("tsc")
    return [found] if found else None


def _library(release):
    """(files, package.json) of clients/typescript, compiled; of the launcher alone where there is nothing that could do that."""
    about = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    if about["version"] != release.version:
        raise SystemExit(f"clients/typescript is of version {about['version']}, the release of {release.version}")
    compiler = _compiler()
    if not compiler:
        print("packages: the npm package is without its library: there is no tsc here (scripts/setup peers installs it)", file=sys.stderr)
        return {}, {name: about[name] for name in ("name", "version", "license", "engines")}
    for name in ("scripts", "devDependencies", "files"):
        about.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([*compiler, "-p", CLIENT, "--outDir", folder, "--sourceMap", "false"], stdout=sys.stderr).returncode:
            raise SystemExit("packages: clients/typescript does not compile (above)")
        return {**tree_of(folder, "dist/"), "README.md": File((CLIENT / "README.md").read_bytes())}, about


def write(release):
    platforms = dict(_platform(release, arch) for arch in release.hosts)
    files, about = _library(release)
    about.update(description="Hands for AI agents in any Linux container: the program `toolbox`, and the library for it",
                 bin={"toolbox": "bin/toolbox.cjs"}, optionalDependencies={name: release.version for name in platforms}, bundleDependencies=list(platforms))
    pages = {f"man/{path.rsplit('/', 1)[1]}": file for path, file in release.share.items() if "/man1/" in path}
    about["man"] = [f"./{path}" for path in pages]
    bundled = {f"node_modules/{name}/{path}": file for name, tree in platforms.items() for path, file in tree.items()}
    _write(release, {**files, **pages, **bundled, "bin/toolbox.cjs": File(LAUNCHER, 0o755)}, about)
