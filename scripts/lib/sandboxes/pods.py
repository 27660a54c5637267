"""Pods as the kubelet makes them, by containerd's CRI: a sandbox with its pause container first, then the container, with the
volumes and the security context that a kubelet hands on. `kubectl` reaches them through an API server that has its `exec`."""
import contextlib
import hashlib
import io
import json
import os
import tarfile

from sandboxes.engines import containerd
from sandboxes.places import Place, output, program
from sandboxes.rows import row

POD, CONTAINER, NODE = 0, 1, 2  # namespaces
UID = 1000
RESTRICTED = {"run_as_user": {"value": UID}, "run_as_group": {"value": UID}, "readonly_rootfs": True, "no_new_privs": True,
              "capabilities": {"drop_capabilities": ["ALL"]}, "seccomp": {"profile_type": 0}}


def image(folder, name, files, entry):
    """An image archive: files is a folder, or {path: file}."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for path, source in files.items():
            tar.add(source, path)
    config = {"architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"), "os": "linux",
              "config": {"Entrypoint": entry}, "rootfs": {"type": "layers", "diff_ids": []}}
    members = {"layer.tar": layer.getvalue()}
    config["rootfs"]["diff_ids"] = ["sha256:" + hashlib.sha256(members["layer.tar"]).hexdigest()]
    members["config.json"] = json.dumps(config).encode()
    members["manifest.json"] = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    path = folder / (name.replace("/", "-") + ".tar")
    with tarfile.open(path, "w") as tar:
        for member, data in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@contextlib.contextmanager
def cri(lab):
    """The words of a crictl, behind which there are the images."""
    words = [program("crictl"), "--runtime-endpoint", f"unix://{lab.once(containerd)}", "--timeout", "60s"]
    root, _ = lab.root("pod")
    archives = [image(lab.folder, "sandbox.local/pause:1", {"pause": os.path.realpath(program("catatonit"))}, ["/pause", "-P"]),
                image(lab.folder, "sandbox.local/bound:1", {".": root}, [])]
    for archive in archives:
        output(program("ctr"), "-a", lab.once(containerd), "-n", "k8s.io", "images", "import", "--snapshotter", "native", archive)
    yield words


def volumes(lab, name):
    """What a kubelet mounts: /etc/hosts and the termination log, an emptyDir (0777), a projected volume (links, read-only)."""
    folder = lab.folder / f"volumes-{name}"
    projected = folder / "projected"
    (projected / "..2026_01_01").mkdir(parents=True)
    (projected / "..2026_01_01/token").write_text("secret")
    (projected / "..data").symlink_to("..2026_01_01")
    (projected / "token").symlink_to("..data/token")
    (folder / "empty").mkdir()
    (folder / "empty").chmod(0o777)
    for name in ("hosts", "termination-log"):
        (folder / name).write_text("127.0.0.1 localhost\n" if name == "hosts" else "")
        (folder / name).chmod(0o666)
    binds = [("/usr", "/usr", True), (folder / "empty", "/tmp", False), (folder / "hosts", "/etc/hosts", False),
             (folder / "termination-log", "/dev/termination-log", False),
             (projected, "/var/run/secrets/kubernetes.io/serviceaccount", True)]
    return [{"host_path": str(source), "container_path": target, "readonly": readonly} for source, target, readonly in binds]


@contextlib.contextmanager
def pod(lab, name, context, pid=CONTAINER, more=()):
    words = lab.once(cri)
    namespaces = {"network": NODE, "pid": pid, "ipc": POD}
    sandbox = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
               "linux": {"security_context": {"namespace_options": namespaces, **{k: v for k, v in context.items() if k == "seccomp"}}}}
    container = {"metadata": {"name": "main"}, "image": {"image": "sandbox.local/bound:1"}, "command": ["sleep", "infinity"],
                 "mounts": [*volumes(lab, name), *more], "linux": {"security_context": {"namespace_options": namespaces, **context}}}
    for part, config in (("pod", sandbox), ("container", container)):
        (lab.folder / f"{name}.{part}.json").write_text(json.dumps(config))
    files = [lab.folder / f"{name}.{part}.json" for part in ("container", "pod")]
    made = output(*words, "runp", files[1]).strip()
    try:
        running = output(*words, "create", made, *files).strip()
        output(*words, "start", running)
        enter = (*map(str, words), "exec", "-i", running)
        with reached(lab, name, enter) as place:
            yield place
    finally:
        output(*words, "rmp", "--force", made)


@contextlib.contextmanager
def reached(lab, name, enter):
    """By kubectl where there is one that is new enough."""
    from harness import kube

    if not kube.kubectl():
        yield Place("exec:" + " ".join(enter), ("--user", "default"), enter, scratch="/var/tmp")
        return
    folder = lab.folder / f"cluster-{name}"
    folder.mkdir()
    with kube.cluster([kube.Pod(name, {"main": list(enter)})], folder) as config:
        yield Place(f"k8s:{name}", ("--runtime", f"kubectl --kubeconfig {config}"), enter, scratch="/var/tmp")


@row("a pod (containerd, CRI), as root, an emptyDir as `/tmp`")
def root_pod(lab):
    with pod(lab, "root", {"seccomp": {"profile_type": 0}}) as place:
        yield place


@row("a pod whose containers share process ids with the pause container")
def shared_pod(lab):
    with pod(lab, "shared", {"seccomp": {"profile_type": 0}}, pid=POD) as place:
        yield place


@row("a pod, Pod Security \"restricted\" (uid 1000, read-only root, no capabilities, RuntimeDefault), an emptyDir as `/tmp`", inject="can be written to by others")
def restricted_pod(lab):
    with pod(lab, "restricted", RESTRICTED, pid=POD) as place:
        yield place
