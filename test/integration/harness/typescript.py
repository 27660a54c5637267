"""TypeScript's compiler, and clients/typescript as whoever installs it has it."""
import json
import shutil
import subprocess

from harness import needs, peers
from harness.containers import REPO
from harness.machine import HANG

PACKAGE = REPO / "clients/typescript"

# Of a project that uses it.
OPTIONS = {"strict": True, "exactOptionalPropertyTypes": True, "module": "nodenext", "target": "es2022", "lib": ["es2023", "esnext.disposable"], "types": ["node"]}


def node():
    """The path of one that is new enough for the package and for a report of which lines are run; raises Unavailable."""
    path = needs.program("node")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=HANG).stdout.strip()
    if tuple(map(int, version[1:].split(".")[:2])) < (20, 11):
        raise needs.Unavailable(f"node is {version}: 20.11 is wanted")
    return path


def tsc(*words, cwd):
    folder = peers.folder("node-typescript") / "node_modules"
    done = subprocess.run([folder / ".bin/tsc", "--typeRoots", folder / "@types", *words], cwd=cwd, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr


def install_package(project):
    """What is published, in a project's node_modules."""
    package = project / "node_modules/toolbox-sandbox"
    tsc("-p", PACKAGE, "--outDir", package / "dist", cwd=PACKAGE)
    shutil.copy(PACKAGE / "package.json", package)
    (project / "package.json").write_text(json.dumps({"type": "module"}))
