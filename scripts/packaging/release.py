"""What packages are made of: the programs of a release that is just being filled, licences, manual and completions."""
import re
import tempfile
from pathlib import Path

from . import completion, man
from .archive import File, epoch, tree_of
from .usage import Program

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = "Hands for AI agents, inside any Linux container: one static program"


def environment():
    """(variable, meaning) of each, from the page that has them."""
    section = (ROOT / "docs/protocol.md").read_text(encoding="utf-8").split("\n## Environment\n")[1].split("\n## ")[0]
    return [(names.replace("`", ""), meaning.replace("`", "")) for names, meaning in re.findall(r"^\| (`.+`) \| (.+) \|$", section, re.M)]


def write_share(toolbox, share):
    """Manual and completions of a program that runs here, as they lie below share/ of a prefix."""
    program = Program(Path(toolbox).resolve())
    top = program.read()
    man.write(top, share / "man/man1", program.version(), epoch(), environment())
    completion.write(top, program.methods(), share)


class Release:
    def __init__(self, folder, version, toolbox):
        self.folder, self.version = Path(folder), version
        with tempfile.TemporaryDirectory() as made:
            write_share(toolbox, Path(made))
            self.share = tree_of(made, "share/")
        self.licences = {path.name: File(path.read_bytes()) for path in sorted(self.folder.glob("LICENSE*"))}

    def name(self, arch):
        return f"toolbox-{self.version}-linux-{arch}"

    @property
    def arches(self):
        """Those that the release has programs for."""
        start = self.name("")
        return sorted(path.name[len(start):] for path in self.folder.glob(start + "*") if not path.name.endswith("-all"))

    @property
    def hosts(self):
        """Those that there is a self-contained program for."""
        return [arch for arch in self.arches if (self.folder / f"{self.name(arch)}-all").exists()]

    def program(self, arch, whole=False):
        """The program for a target, or the self-contained one for a host."""
        return File((self.folder / (self.name(arch) + ("-all" if whole else ""))).read_bytes(), 0o755)

    def write(self, name, data, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
