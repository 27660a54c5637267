"""Wheels and the sdist of clients/python. The one wheel that installs anywhere has the programs for all targets; those of a platform, in a folder of
their own from which pip chooses (it refuses what doesn't fit when it is named), have the self-contained program as their `toolbox` command."""
import ast
import base64
import hashlib

from .archive import File, gzipped, tar, tree_of, zipped
from .release import ROOT

CLIENT = ROOT / "clients/python"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# What a static program asks of the C library there is nothing: these are the oldest names that installers know.
PLATFORM = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"


def _project():
    """pyproject.toml: {section: {key: value}}. The interpreters that have a reader for it are newer than ours may be."""
    sections, lines, key = {}, iter((CLIENT / "pyproject.toml").read_text(encoding="utf-8").splitlines()), None
    for line in lines:
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), {})
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition(" = ")
            value = value.split("  #")[0].replace("true", "True")
            while value.count("[") > value.count("]"):
                value += next(lines)
            section[key.strip()] = ast.literal_eval(value)
    return sections


def _metadata(project, licences):
    about = project["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {about['name']}", f"Version: {about['version']}", f"Summary: {about['description']}", "License: MIT"]
    lines += [f"License-File: {name}" for name in licences]
    lines += [f"Classifier: {one}" for one in about["classifiers"]] + [f"Requires-Python: {about['requires-python']}"]
    for extra, needs in project.get("project.optional-dependencies", {}).items():
        lines += [f"Provides-Extra: {extra}"] + [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    readme = (CLIENT / "README.md").read_text(encoding="utf-8")
    return ("\n".join(lines) + "\nDescription-Content-Type: text/markdown\n\n" + readme).encode()


def _entry_points(project, commands):
    text = ""
    for section in sorted(name for name in project if name.startswith("project.entry-points.")):
        text += f"[{section.rsplit('.', 1)[1]}]\n" + "".join(f"{key} = {value}\n" for key, value in project[section].items())
    return (text + commands).encode()


def _record(tree, name):
    lines = []
    for path, file in tree.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(file.data)}\n")
    return "".join([*lines, f"{name},,\n"]).encode()


def _wheel(release, project, files, tags, pure, commands=""):
    base = f"toolbox_sandbox-{release.version}"
    info = f"{base}.dist-info"
    tree = {**tree_of(CLIENT / "src"), **{name.replace("@data", f"{base}.data"): file for name, file in files.items()}}
    tree.update({f"{base}.data/data/{name}": file for name, file in release.share.items()})
    told = [f"Tag: py3-none-{tag}\n" for tag in tags.split(".")]
    tree[f"{info}/METADATA"] = File(_metadata(project, release.licences))
    tree[f"{info}/WHEEL"] = File(f"Wheel-Version: 1.0\nGenerator: toolbox\nRoot-Is-Purelib: {str(pure).lower()}\n{''.join(told)}".encode())
    tree[f"{info}/entry_points.txt"] = File(_entry_points(project, commands))
    tree.update({f"{info}/licenses/{name}": file for name, file in release.licences.items()})
    tree[f"{info}/RECORD"] = File(_record(tree, f"{info}/RECORD"))
    release.write(f"{'' if pure else 'wheels/'}{base}-py3-none-{tags}.whl", zipped(tree))


def _sdist(release, project):
    base = f"toolbox_sandbox-{release.version}"
    names = ("pyproject.toml", "README.md")
    tree = {name: File((CLIENT / name).read_bytes()) for name in names}
    tree.update(tree_of(CLIENT / "src", "src/"))
    tree["LICENSE"] = release.licences["LICENSE"]
    tree["PKG-INFO"] = File(_metadata(project, ["LICENSE"]))
    release.write(f"{base}.tar.gz", gzipped(tar(tree, f"{base}/", folders=False)))


def write(release):
    project = _project()
    if project["project"]["version"] != release.version:
        raise SystemExit(f"clients/python is of version {project['project']['version']}, the release of {release.version}")
    for arch in release.hosts:
        files = {"@data/scripts/toolbox": release.program(arch, whole=True)}
        _wheel(release, project, files, PLATFORM.format(MACHINES[arch]), pure=False)
    programs = {f"toolbox_sandbox/programs/{release.name(arch)}": release.program(arch) for arch in release.arches}
    _wheel(release, project, programs, "any", pure=True, commands="[console_scripts]\ntoolbox = toolbox_sandbox.placing:main\n")
    _sdist(release, project)
