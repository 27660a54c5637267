"""200 containers at once. Not collected by itself: name the file to run it (`make stress` does).

    /usr/bin/python3 -m pytest -p no:cacheprovider -v test/integration/stress_inject.py
"""
import concurrent.futures
import contextlib
import json
import os

from harness import roots
from harness.containers import Options
from harness.injection import TARGET, Injector

CONTAINERS = int(os.environ.get("TOOLBOX_STRESS_CONTAINERS", 200))


def test_many_containers(toolbox, docker):
    injector = Injector(toolbox, env={name: value for name, value in docker.env.items() if name.startswith("DOCKER_")})
    with contextlib.ExitStack() as stack:
        docker._image(roots.get("busybox"))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            started = list(pool.map(lambda _: docker.start(roots.get("busybox"), Options()), range(CONTAINERS)))
        for container in started:
            stack.callback(container.destroy)
        targets = [f"docker:{container.name}" for container in started]
        done = injector.run("inject", "-j", "8", "--json", *targets, "docker:no-such-container", timeout=900)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == TARGET and len(found) == CONTAINERS + 1
        assert sum(one["ok"] and one["state"] == "placed" and one["calls"] == 1 for one in found) == CONTAINERS
        done = injector.run("inject", "-j", "8", "--json", *targets, timeout=900)
        assert done.returncode == 0 and {json.loads(line)["state"] for line in done.stdout.splitlines()} == {"identical"}
        done = injector.run("eject", "-j", "8", "--json", *targets, timeout=900)
        assert done.returncode == 0 and {json.loads(line)["state"] for line in done.stdout.splitlines()} == {"removed"}
