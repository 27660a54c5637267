"""install.sh, the formula for Homebrew, and the archive of manual and completions that both take."""
from .archive import gzipped, sha256, tar
from .release import ROOT, SUMMARY

HERE = ROOT / "scripts/packaging"


def _filled(name, **parts):
    text = (HERE / name).read_text(encoding="utf-8")
    for key, value in parts.items():
        text = text.replace(f"@{key}@", value)
    return text.encode()


def write(release, url, public_key):
    share = f"toolbox-{release.version}-share.tar.gz"
    archive = gzipped(tar(release.share))
    release.write(share, archive)
    release.write("install.sh", _filled("install.sh", VERSION=release.version, URL=url, KEY=public_key), 0o755)
    programs = []
    for arch, block in (("arm64", "on_arm"), ("amd64", "on_intel")):
        if arch in release.hosts:
            name = release.name(arch) + "-all"
            programs.append(f'  {block} do\n    url "{url}/{name}"\n    sha256 "{sha256(release.program(arch, whole=True).data)}"\n  end\n')
    release.write("toolbox.rb", _filled("toolbox.rb", VERSION=release.version, URL=url, SUMMARY=SUMMARY, PROGRAMS="".join(programs), SHARE=share,
                                        SHARE_SUM=sha256(archive)))
