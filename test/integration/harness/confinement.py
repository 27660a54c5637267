"""Walls that the machine may not be able to hold."""
from harness import containers, needs
from harness.client import RpcError


def told(client, method, params):
    """What the method answers; skipped where what it is to hold can't be had."""
    try:
        return client.rpc(method, params)
    except RpcError as e:
        # in a plain chroot, whose "/" is no mount point, nobody can keep mounts from the others
        plain_chroot = "mounts cannot be made private" in e.message and not containers.root_is_mount_point()
        if "cannot confine" in e.message and (" here: " in e.message or plain_chroot):
            raise needs.Unavailable(e.message) from None
        raise
