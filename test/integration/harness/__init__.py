"""What the integration tests stand on: real processes, real containers, no mocks.

needs       what not every machine has: whoever can't have it is skipped
inherited   what the suite makes good of a bad start
machine     where a command runs: this host, or a container
client      one client of the tool: `toolbox exec` and the shorthand of the test cases
processes   who runs: finds every process that a test has left behind
leftovers   which files and descriptors a test has left behind
users       users with and without an entry in /etc/passwd
roots       root file systems, made once and kept in a cache
containers  containers in bare namespaces, which need no engine
docker      containers of a Docker engine: one that answers, or a private one

A test takes what it needs from conftest.py. Most need a client, which has a server directory of its own:

    def test_directory_is_kept(client):
        client.new()                                      # bash_session_new_session
        client.bs("cd /dev\\n")                            # bash_session, as a person types
        assert client.run("pwd")["output"] == "/dev\\n"    # bash_session_run
        with pytest.raises(RpcError) as error:            # an error answer: code, message
            client.rpc("bash_session", {"session_name": "none"})
        assert error.value.code == PARAMERR

client.ed() edits, client.rpc() calls any method and puts long answers together, client.answer() and client.line() give
what was printed, client.cli() runs any command line, client.popen() one that is to be cut short. new_client(user=1234,
env={…}) makes more of them; `workdir` is a folder that every user may write to; `user` is a real user. In containers:

    def test_without_proc(namespaces, toolbox):           # or `start`, for every runtime that can be had
        container = namespaces.start(roots.get("busybox"), Options(proc=False, files={"/toolbox": toolbox}))

Tests never wait for a time to pass but for something to happen (processes.wait_until), and bounds only tell a hang.
To run some: `/usr/bin/python3 -m pytest test/integration -k NAME` (as root, or what needs root is skipped).
"""
