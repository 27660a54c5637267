"""What the integration tests stand on: real processes, real containers, no mocks.

machine     where a command runs: this host, or a container
client      one client of the tool: `toolbox exec` and the shorthand of the test cases
processes   who runs: finds every process that a test has left behind
leftovers   which files a test has left behind
users       users with and without an entry in /etc/passwd
roots       root file systems, made once and kept in a cache
containers  containers in bare namespaces, which need no engine
docker      containers of a Docker engine: one that answers, or a private one
"""
