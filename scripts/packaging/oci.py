"""An image archive, FROM scratch with the program: an OCI layout of both architectures with an index, and beside it what older engines read."""
import json
import time

from .archive import File, epoch, gzipped, sha256, tar
from .release import SUMMARY

KIND = "application/vnd.oci.image"


def _blob(blobs, data):
    digest = sha256(data)
    blobs[f"blobs/sha256/{digest}"] = File(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def _json(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _image(release, arch, blobs):
    """(descriptor of the manifest, what docker's own format says of it)"""
    layer = tar({"toolbox": release.program(arch)})
    packed = _blob(blobs, gzipped(layer))
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch()))
    config = _blob(blobs, _json({
        "architecture": arch, "os": "linux", "created": created,
        "config": {"Entrypoint": ["/toolbox"], "Env": ["PATH=/"], "Labels": {"org.opencontainers.image.title": "toolbox", "org.opencontainers.image.version": release.version,
                   "org.opencontainers.image.description": SUMMARY, "org.opencontainers.image.licenses": "MIT"}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer)}"]},
        "history": [{"created": created, "created_by": "COPY toolbox /toolbox"}]}))
    manifest = _blob(blobs, _json({"schemaVersion": 2, "mediaType": f"{KIND}.manifest.v1+json", "config": {"mediaType": f"{KIND}.config.v1+json", **config},
                                   "layers": [{"mediaType": f"{KIND}.layer.v1.tar+gzip", **packed}]}))
    paths = {"Config": "blobs/sha256/" + config["digest"][7:], "Layers": ["blobs/sha256/" + packed["digest"][7:]]}
    return {"mediaType": f"{KIND}.manifest.v1+json", **manifest, "platform": {"architecture": arch, "os": "linux"}}, paths


def write(release):
    """An engine that reads manifest.json alone has no index: there the tag of the version is amd64's, and each has one of its own."""
    blobs, entries, old = {}, [], []
    tag = f"toolbox:{release.version}"
    for arch in release.hosts:
        descriptor, paths = _image(release, arch, blobs)
        entries.append(descriptor)
        tags = [f"{tag}-{arch}"] + ([tag] if arch == release.hosts[0] else [])
        old.append({**paths, "RepoTags": tags})
    index = _blob(blobs, _json({"schemaVersion": 2, "mediaType": f"{KIND}.index.v1+json", "manifests": entries}))
    names = {"io.containerd.image.name": f"docker.io/library/{tag}", "org.opencontainers.image.ref.name": release.version}
    top = {"schemaVersion": 2, "mediaType": f"{KIND}.index.v1+json", "manifests": [{"mediaType": f"{KIND}.index.v1+json", **index, "annotations": names}]}
    tree = {**blobs, "index.json": File(_json(top)), "manifest.json": File(_json(old)), "oci-layout": File(_json({"imageLayoutVersion": "1.0.0"}))}
    release.write(f"toolbox-{release.version}-oci.tar", tar(tree))
