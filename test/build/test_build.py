"""The build itself: what it must refuse, what it must make again, and that it says why.

Each test works on a small tree of its own with the project's Makefile and scripts. The unpacked dependencies
are this tree's own, so nothing is fetched but where a test is about fetching.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOST = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
FOREIGN = {"amd64": "arm64", "arm64": "amd64"}[HOST]

HANG = 3600  # seconds: a whole build beside a load of 30 takes a quarter of an hour

SOURCES = {
    "core/banned.h": "",
    "core/version.c": 'extern const char build[];\nconst char build[] = TOOLBOX_VERSION " " TOOLBOX_BUILD_ID;\n',
    "core/low.h": "int low(void);\n",
    "core/low.c": '#include "low.h"\nint low(void) { return 1; }\n',
    # what mbedtls wants of its user, wherever all of it is linked
    "core/random.c": "int mbedtls_psa_external_get_random(void);\nint mbedtls_psa_external_get_random(void) { return -1; }\n",
    "rpc/middle.h": "int middle(void);\n",
    "rpc/middle.c": '#include "middle.h"\n#include "low.h"\n#include <cJSON.h>\nint middle(void) { return low(); }\n',
    "applets/main.c": '#include <stdio.h>\n#include "middle.h"\nextern const char build[];\n'
    "int main(void) { puts(build); return middle() - 1; }\n",
}


class Tree:
    def __init__(self, folder):
        self.folder = folder

    def lay_out(self):
        shutil.copy(ROOT / "Makefile", self.folder)
        for name in ("third_party", "scripts"):
            shutil.copytree(ROOT / name, self.folder / name)
        (self.folder / "build").mkdir()
        for name, text in SOURCES.items():
            self.write(name, text)
        return self

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *command, **variables):
        ours = ("MAKEFLAGS", "MAKELEVEL", "ARCH", "BUILD", "DEPS_DIR", "DEB_MIRROR", "TOOLBOX_CACHE")
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        environment.update(LC_ALL="C", **variables)
        return subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG)

    def make(self, *arguments, **variables):
        return self.run("make", *arguments, **variables)

    def made(self, *arguments):
        """The steps that make took, as it names them: {"CC core/low.o", "LD toolbox.full"}."""
        done = self.make(*arguments)
        assert done.returncode == 0, done.stdout
        steps = (line.split() for line in done.stdout.splitlines() if line.startswith("  "))
        return {f"{step[0]} {step[1].split('/', 2)[2]}" for step in steps if len(step) == 2}

    def version(self):
        return subprocess.run([self.folder / "toolbox"], text=True, capture_output=True, check=True).stdout.split()


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A tree in which everything has been made, by the dependencies of this one."""
    subprocess.run(["make", "deps"], cwd=ROOT, check=True)
    tree = Tree(tmp_path_factory.mktemp("built")).lay_out()
    (tree.folder / "build/deps").symlink_to(ROOT / "build/deps")
    tree.steps = tree.made()
    return tree


@pytest.fixture
def tree(tmp_path, built):
    """A copy of it to work on."""
    folder = tmp_path / "tree"
    shutil.copytree(built.folder, folder, symlinks=True)
    return Tree(folder)


# ---- the binary --------------------------------------------------------------------------------------------


def check_static(tree, arch, file):
    return tree.run("scripts/check-static", "readelf", arch, str(file))


def test_makes_a_binary_that_runs(built):
    assert built.steps >= {"CC core/low.o", "CC vendor/cJSON.o", "LD toolbox.full"}
    version, build = built.version()
    assert version.count(".") == 2
    assert len(build) == 16 and int(build, 16) >= 0


def test_result_is_checked(tree):
    binary = tree.folder / "build" / HOST / "toolbox"
    assert check_static(tree, HOST, binary).returncode == 0
    assert "not built for" in check_static(tree, FOREIGN, binary).stdout

    tree.write("x.c", "int main(void) { return 0; }\n")
    for flags, complaint in (
        (["-fPIE", "-pie"], "PT_INTERP"),
        (["-static", "-no-pie"], "not position-independent"),
        (["-fPIE", "-static-pie", "-Wl,-z,execstack"], "executable stack"),
        (["-fPIC", "-shared", "-nostdlib", "-Wl,--no-as-needed", "-lc"], "DT_NEEDED"),
        (["-fPIE", "-static-pie", "-Wl,-z,norelro"], "RELRO"),
    ):
        assert tree.run("gcc", "-o", "x", "x.c", *flags).returncode == 0
        done = check_static(tree, HOST, "x")
        assert done.returncode != 0 and complaint in done.stdout, (flags, done.stdout)


@pytest.mark.parametrize("flag, instead, complaint", [
    ("-static-pie", "-static -no-pie", "not position-independent"),
    ("-Wl,--no-dynamic-linker,", "-pie -Wl,", "PT_INTERP"),
])
def test_a_bad_link_fails_the_build_and_leaves_no_binary(tree, flag, instead, complaint):
    makefile = tree.folder / "Makefile"
    makefile.write_text(makefile.read_text().replace(flag, instead))
    for binary in ("toolbox", f"build/{HOST}/toolbox"):
        (tree.folder / binary).unlink()
    done = tree.make()
    assert done.returncode != 0 and complaint in done.stdout
    assert not (tree.folder / "toolbox").exists()
    assert not (tree.folder / "build" / HOST / "toolbox").exists()


def test_cross_build_leaves_this_machines_binary_alone(tree):
    """Slow: a build for another processor."""
    before = (tree.folder / "toolbox").read_bytes()
    assert tree.make(f"ARCH={FOREIGN}").returncode == 0
    assert check_static(tree, FOREIGN, f"build/{FOREIGN}/toolbox").returncode == 0
    assert (tree.folder / "toolbox").read_bytes() == before


def test_what_is_built_elsewhere_stays_there(tree):
    """Another folder's build, of another version, is no reason to replace this folder's. Slow: all is compiled again."""
    before = (tree.folder / "toolbox").read_bytes()
    (tree.folder / "elsewhere").mkdir()
    (tree.folder / "elsewhere/deps").symlink_to((tree.folder / "build/deps").resolve())
    done = tree.make("BUILD=elsewhere", "VERSION=9.9.9")
    assert done.returncode == 0, done.stdout
    assert (tree.folder / "toolbox").read_bytes() == before
    other = tree.run(f"./elsewhere/{HOST}/toolbox")
    assert other.stdout.split()[0] == "9.9.9" and tree.version()[0] != "9.9.9"
    assert tree.make("BUILD=elsewhere", "VERSION=9.9.9", "toolbox").returncode == 0
    assert tree.make("BUILD=elsewhere", "clean").returncode == 0
    assert (tree.folder / "toolbox").read_bytes() == before and tree.made() == set()


def test_unknown_architecture_is_named(tree):
    done = tree.make("ARCH=vax")
    assert done.returncode != 0 and "ARCH must be one of amd64 arm64" in done.stdout and "not 'vax'" in done.stdout


# ---- layering ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, include", [
    ("core/bad.c", "middle.h"),
    ("core/bad.c", "tools/tool/tool.h"),
    ("core/bad.c", "cJSON.h"),
    ("core/bad.c", "mbedtls/sha256.h"),
    ("rpc/bad.c", "tools/tool/tool.h"),
    ("rpc/bad.c", "mbedtls/sha256.h"),
    ("applets/tools/tool/bad.c", "cJSON.h"),
    ("applets/tools/tool/bad.c", "mbedtls/sha256.h"),
    ("applets/bad.c", "sys/queue.h"),  # glibc's; musl has none: nothing of the host's is seen
])
def test_a_room_sees_no_more_than_it_may(tree, name, include):
    tree.write("applets/tools/tool/tool.h", "")
    tree.write(name, f'#include "{include}"\n')
    done = tree.make(f"build/{HOST}/{name[:-1]}o")
    assert done.returncode != 0 and f"{include}: No such file" in done.stdout


@pytest.mark.parametrize("name, include", [
    ("core/sha256.c", "mbedtls/sha256.h"),
    ("rpc/good.c", "low.h"),
    ("applets/tools/tool/good.c", "middle.h"),
    ("applets/tools/tool/good.c", "tools/tool/tool.h"),
    ("applets/tools/tool/tool_methods.c", "cJSON.h"),
    ("core/good.c", "linux/capability.h"),
])
def test_a_room_sees_what_it_may(tree, name, include):
    tree.write("applets/tools/tool/tool.h", "")
    tree.write(name, f'#include "{include}"\nextern int unused;\n')
    done = tree.make(f"build/{HOST}/{name[:-1]}o")
    assert done.returncode == 0, done.stdout


# ---- what is made again ------------------------------------------------------------------------------------


def test_a_circle_of_calls_is_told(tree):
    assert tree.make("check-circles").returncode == 0
    tree.write("core/other.h", "int other(void);\n")
    tree.write("core/other.c", '#include "other.h"\n#include "low.h"\nint other(void) { return low(); }\n')
    assert tree.make("check-circles").returncode == 0  # one calls the other
    tree.write("core/low.c", '#include "low.h"\n#include "other.h"\nint low(void) { return other(); }\n')
    done = tree.make("check-circles")
    assert done.returncode != 0 and "a circle of calls between 2 files\n" in done.stdout
    assert "core/low.c -> core/other.c: other\n" in done.stdout and "core/other.c -> core/low.c: low\n" in done.stdout


def test_a_circle_of_calls_between_folders_is_told(tree):
    """Where no two files call each other."""
    names = ("one/top", "one/low", "two/top", "two/low")
    calls = {"one/top": "two_low", "two/top": "one_low"}
    for name in names:
        own, below = name.replace("/", "_"), calls.get(name)
        tree.write(f"applets/tools/{name}.c", f"int {own}(void);\n" + (f"int {below}(void);\n" if below else "")
                   + f"int {own}(void) {{ return {below + '()' if below else 1}; }}\n")
    done = tree.make("check-circles")
    assert done.returncode != 0 and "a circle of calls between 2 folders\n" in done.stdout
    assert "files" not in done.stdout
    assert "applets/tools/one/top.c -> applets/tools/two/low.c: two_low" in done.stdout


def test_nothing_is_made_twice(tree):
    assert tree.made() == set()


def test_a_header_makes_what_includes_it(tree):
    tree.write("core/low.h", "int low(void); /* more */\n")
    steps = tree.made()
    assert {"CC core/low.o", "CC rpc/middle.o", "CC core/version.o", "LD toolbox.full"} == steps


def test_a_header_of_a_folder_in_a_folder_makes_what_includes_it(tree):
    tree.write("applets/tools/one/deep.h", "int deep(void);\n")
    tree.write("applets/tools/one/deep.c", '#include "tools/one/deep.h"\nint deep(void) { return 1; }\n')
    tree.made()
    tree.write("applets/tools/one/deep.h", "int deep(void); /* more */\n")
    assert {"CC applets/tools/one/deep.o", "CC core/version.o", "LD toolbox.full"} == tree.made()


def test_a_flag_makes_everything(tree, built):
    """Slow: all of the vendored code is compiled again."""
    assert tree.made("DEBUG_FLAGS=-O0") == set()
    assert tree.made("WARN=-Wall") == built.steps


def test_a_removed_source_is_gone_from_the_binary(tree):
    tree.write("core/extra.c", "int extra(void);\nint extra(void) { return 1; }\n")
    tree.made()
    (tree.folder / "core/extra.c").unlink()
    assert tree.made() == {"CC core/version.o", "LD toolbox.full"}


# ---- the build id ------------------------------------------------------------------------------------------


def test_build_id_follows_every_input(tree):
    """Slow: a build for each kind of input."""
    seen = set()

    def is_new():
        assert tree.make().returncode == 0
        build = tree.version()[1]
        assert build not in seen
        seen.add(build)

    is_new()
    for name in ("core/low.c", "core/low.h", "rpc/middle.c", "applets/main.c", "Makefile", "third_party/pins"):
        if name == "third_party/pins":
            shutil.copytree((tree.folder / "build/deps").resolve(), tree.folder / "copy", symlinks=True)
            (tree.folder / "build/deps").unlink()
            (tree.folder / "copy").rename(tree.folder / "build/deps")
        with open(tree.folder / name, "a", encoding="ascii") as file:
            file.write("\n")
        if name == "third_party/pins":
            (tree.folder / "build/deps/manifest").touch()
        is_new()
    (tree.folder / "core/low.c").rename(tree.folder / "core/lov.c")  # same place in the order
    is_new()
    for arch in (HOST, FOREIGN):
        assert tree.make(f"ARCH={arch}").returncode == 0
    one, other = ((tree.folder / "build" / arch / "build_id").read_text() for arch in (HOST, FOREIGN))
    assert one != other


def test_builds_are_the_same_byte_for_byte():
    """Slow: two whole builds. `make repro` makes them for both processors."""
    done = subprocess.run(["scripts/repro", HOST], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=HANG)
    assert done.returncode == 0, done.stdout
    for name in (f"linux-{HOST}", "SHA256SUMS"):
        assert f"{name}: the same twice" in done.stdout, done.stdout


# ---- dependencies ------------------------------------------------------------------------------------------

NOWHERE = "http://127.0.0.1:9/debian"
ALL_PINNED = [line.split()[1].rsplit("/", 1)[1] for line in (ROOT / "third_party/pins").read_text().splitlines()
              if not line.startswith("#")]
FURTHER = [name for name in ALL_PINNED if name.startswith("musl-dev_") and not name.endswith(("_amd64.deb", "_arm64.deb"))]
PINNED = [name for name in ALL_PINNED if name not in FURTHER]


@pytest.fixture(scope="session")
def pinned_files(tmp_path_factory):
    """A folder with the pinned files: from the cache, or fetched into it."""
    cache = Path(os.environ.get("TOOLBOX_CACHE") or ROOT / "build/cache")
    subprocess.run([ROOT / "third_party/fetch", tmp_path_factory.mktemp("build")], check=True,
                   env=dict(os.environ, TOOLBOX_CACHE=str(cache)))
    for name in PINNED:
        if not (cache / name).exists():
            pytest.skip(f"{name} is no longer on the mirrors: the pin has to be moved")
    return cache


@pytest.fixture
def bare(tmp_path, pinned_files):
    """A tree whose dependencies haven't been fetched."""
    (tmp_path / "tree").mkdir()
    tree = Tree(tmp_path / "tree").lay_out()
    tree.folder_of_files = tmp_path / "files"
    tree.folder_of_files.mkdir()
    for name in PINNED:
        shutil.copy(pinned_files / name, tree.folder_of_files)
    return tree


def explains(done):
    return done.returncode != 0 and "DEB_MIRROR=" in done.stdout and "DEPS_DIR=" in done.stdout and all(
        name in done.stdout for name in PINNED)


def test_without_a_mirror_it_says_what_to_do(bare):
    done = bare.make("deps", DEB_MIRROR=NOWHERE)
    assert explains(done), done.stdout
    assert not (bare.folder / "build/deps").exists()


def test_a_folder_of_files_will_do_and_afterwards_nothing_is_needed(bare):
    """Slow: a whole build."""
    done = bare.make("deps", f"DEPS_DIR={bare.folder_of_files}", DEB_MIRROR=NOWHERE)
    assert done.returncode == 0, done.stdout
    assert sorted(p.name for p in (bare.folder / "build/deps/licenses").iterdir()) == ["cjson", "libzstd", "mbedtls", "musl"]
    shutil.rmtree(bare.folder_of_files)
    for again in ([], ["clean"], []):
        done = bare.make(*again, DEB_MIRROR=NOWHERE)
        assert done.returncode == 0 and "fetching" not in done.stdout, done.stdout


def test_a_further_architecture_is_fetched_when_it_is_built_for(bare):
    """Slow: everything is unpacked."""
    assert bare.make("deps", f"DEPS_DIR={bare.folder_of_files}").returncode == 0
    assert sorted(p.name for p in (bare.folder / "build/deps").glob("musl-*")) == ["musl-amd64", "musl-arm64"]
    name = next(name for name in FURTHER if name.endswith("_riscv64.deb"))
    library = bare.folder / "build/deps/musl-riscv64/lib/libc.a"
    fetch = (str(ROOT / "third_party/fetch"), "build", "riscv64")
    nowhere = bare.run(*fetch, DEB_MIRROR=NOWHERE, TOOLBOX_CACHE=str(bare.folder / "empty"))
    assert nowhere.returncode != 0 and name in nowhere.stdout and "DEPS_DIR=" in nowhere.stdout
    (bare.folder_of_files / name).write_bytes(b"no package")
    here = {"DEPS_DIR": str(bare.folder_of_files), "DEB_MIRROR": NOWHERE}
    assert bare.run(*fetch, **here).returncode != 0 and not library.exists()
    subprocess.run([*fetch[:1], bare.folder / "build", "riscv64"], check=True, env=dict(os.environ))
    done = bare.run(*fetch, **here)  # what is there is not fetched again
    assert done.returncode == 0 and library.exists(), done.stdout
    assert (bare.folder / "build/deps/musl-amd64/lib/libc.a").exists()


def test_debians_patches_are_applied(bare):
    assert bare.make("deps", f"DEPS_DIR={bare.folder_of_files}").returncode == 0
    original = subprocess.run(["tar", "-xOf", next(bare.folder_of_files.glob("cjson_*.orig.tar.*")), "--wildcards",
                               "*/cJSON.c"], stdout=subprocess.PIPE, check=True).stdout
    assert (bare.folder / "build/deps/cjson/cJSON.c").read_bytes() != original


@pytest.mark.parametrize("name", PINNED)
def test_a_changed_file_is_refused(bare, name):
    with open(bare.folder_of_files / name, "ab") as file:
        file.write(b"\0")
    done = bare.make("deps", f"DEPS_DIR={bare.folder_of_files}", DEB_MIRROR=NOWHERE)
    assert explains(done) and f"{name} isn't the pinned file" in done.stdout
    assert not (bare.folder / "build/deps").exists()


def test_a_missing_file_is_named(bare):
    (bare.folder_of_files / PINNED[2]).unlink()
    done = bare.make("deps", f"DEPS_DIR={bare.folder_of_files}", DEB_MIRROR=NOWHERE)
    assert explains(done) and f"has no {PINNED[2]}" in done.stdout


def test_a_spoilt_cache_is_not_trusted(bare):
    (bare.folder_of_files / PINNED[0]).write_bytes(b"")
    done = bare.make("deps", TOOLBOX_CACHE=str(bare.folder_of_files), DEB_MIRROR=NOWHERE)
    assert explains(done) and f"fetching {PINNED[0]}" in done.stdout


# ---- test programs -----------------------------------------------------------------------------------------

CMOCKA = "#include <setjmp.h>\n#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <cmocka.h>\n" \
         "static void one(void **state) {{ (void)state; {body} }}\n" \
         "int main(void) {{ const struct CMUnitTest tests[] = {{cmocka_unit_test(one)}};\n" \
         "return cmocka_run_group_tests(tests, NULL, NULL); }}\n"


def test_unit_tests_are_run_and_counted(tree):
    """Slow: all of the code is compiled for unit tests."""
    bodies = {"pass": "assert_int_equal(1, 1);", "fail": "assert_int_equal(1, 2);", "exit": "_Exit(3);"}
    for name, body in bodies.items():
        tree.write(f"test/unit/test_{name}.c", "#include <stdlib.h>\n" + CMOCKA.format(body=body))
    shutil.copy(ROOT / "test/unit/leftovers.c", tree.folder / "test/unit")
    done = tree.make("-j2", "unit")
    assert done.returncode != 0
    verdicts = [line for line in done.stdout.splitlines() if line.startswith(("ok", "not ok"))]
    assert sorted(verdicts) == ["not ok - build/unit/test_exit ended with status 3",
                                "not ok - build/unit/test_fail ended with status 1", "not ok 1 - one", "ok 1 - one"]

    for name in ("fail", "exit"):
        (tree.folder / f"test/unit/test_{name}.c").unlink()
    done = tree.make("unit")
    assert done.returncode == 0, done.stdout
    assert "ok 1 - one" in done.stdout


def test_corpora_are_replayed(tree):
    """Slow: all of the code is compiled with sanitizers, twice."""
    bodies = {
        "good": "(void)data; (void)size; return 0;",
        "beyond": "return size == 3 ? ((volatile const uint8_t *)data)[size] * 0 : 0;",
        "abort": "(void)data; if (size == 3) abort(); return 0;",
    }
    tree.write("test/fuzz/replay.c", (ROOT / "test/fuzz/replay.c").read_text())
    for name, body in bodies.items():
        tree.write(f"test/fuzz/fuzz_{name}.c", "#include <stdint.h>\n#include <stdlib.h>\n"
                   "int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)\n{ " + body + " }\n")
        tree.write(f"test/fuzz/corpus/{name}/two", "ab")
        tree.write(f"test/fuzz/corpus/{name}/three", "abc")
    tree.write("test/fuzz/fuzz_empty.c", (tree.folder / "test/fuzz/fuzz_good.c").read_text())
    (tree.folder / "test/fuzz/corpus/empty").mkdir()

    done = tree.make("-j2", "replay")
    assert done.returncode != 0
    verdicts = [line for line in done.stdout.splitlines() if line.startswith(("ok", "not ok"))]
    assert verdicts == ["not ok - fuzz_abort", "not ok - fuzz_beyond", "not ok - fuzz_empty", "ok - fuzz_good"]
    assert done.stdout.count("input: three") == 2

    for name in ("abort", "beyond", "empty"):
        (tree.folder / f"test/fuzz/fuzz_{name}.c").unlink()
    assert tree.make("replay").returncode == 0


def test_what_the_sanitizers_find_in_a_daemon_is_a_failure(tree):
    tree.write("daemon.c", "#include <unistd.h>\nint main(int argc, char **argv) { volatile char s[1]; (void)argv;\n"
               "if (fork() == 0) { s[argc - 1] = 1; _exit(0); } sleep(1); return 0; }\n")
    assert tree.run("gcc", "-fsanitize=address", "-o", "daemon", "daemon.c").returncode == 0
    for argument, found in (("", False), ("more", True)):
        done = tree.run("scripts/run-sanitized", str(tree.folder / "daemon"), "sh", "-c",
                        f"\"$TOOLBOX_BIN\" {argument} 2>/dev/null")
        assert (done.returncode != 0) == found
        assert ("AddressSanitizer: stack-buffer-overflow" in done.stdout) == found


def test_help_names_every_target(tree):
    text = (ROOT / "Makefile").read_text()
    declared = {word for line in text.splitlines() if line.startswith(".PHONY:") for word in line.split()[1:]}
    shown = {line.split()[1] for line in tree.make("help").stdout.splitlines()}
    assert declared - shown == {"FORCE"} | {word for word in declared if word.startswith("check-")}


def test_binaries_are_within_their_budgets():
    """The project's own, both; and one that isn't is a failure. Slow: the smaller one is built for it."""
    size = subprocess.run(["make", "-s", "-j2", "size"], cwd=ROOT, capture_output=True, text=True)
    assert size.returncode == 0, size.stdout + size.stderr
    assert "build/guest/" in size.stdout and "applets/tools/bash_session" in size.stdout
    program = ROOT / "build" / HOST / "toolbox"
    over = subprocess.run([ROOT / "scripts/size", program, str(program.stat().st_size - 1)], capture_output=True)
    assert over.returncode == 1
