"""Programs that pass a terminal on into a container or a pod (test_bash_session_nested.py)."""
import pytest

from harness import containers, needs, relays, roots


@pytest.fixture(scope="module", params=["docker exec -i", "docker exec -it", "kubectl exec -i", "kubectl exec -it"])
def places(request, tmp_path_factory):
    """What the relay of that name leads to, and the name."""
    if request.param.startswith("kubectl"):
        with relays.cluster(request.param.endswith("t"), tmp_path_factory.mktemp("kube")) as config:
            yield {"name": request.param, "kube": config}
        return
    needs.program("docker")
    engine = request.getfixturevalue("docker")
    container = engine.start(roots.get("busybox"), containers.Options())
    host = engine.env.get("DOCKER_HOST", "")
    yield {"name": request.param, "container": container.name, "docker": f"DOCKER_HOST={host} docker"}
    container.destroy()


class TestRelays(relays.Behind):
    pass
