"""A network of its own for test_forward_out.py: run in new network and mount namespaces, it gives the loopback public
and private addresses, names to find them by, and servers at them that write down what they get; then it becomes the
command in its words. outlet_world.py FOLDER COMMAND..."""
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading

PUBLIC, OTHER, PRIVATE = "93.184.216.34", "93.184.216.35", "10.0.0.5"
HOSTS = f"""127.0.0.1 localhost
{PUBLIC} good.example www.good.example
{OTHER} other.example
{PRIVATE} inside.example
127.0.0.1 rebound.example
169.254.169.254 metadata.example
"""
PORTS = {80: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", 443: b"\x16\x03\x03\x00\x02xx", 2222: b"SSH-2.0-hello\r\n"}


def serve(listening, folder, name, answer):
    while True:
        one, _ = listening.accept()
        with one:
            one.settimeout(5)
            got = b""
            if name.endswith("2222"):
                one.sendall(answer)
            try:
                while b"END" not in got and (more := one.recv(65536)):
                    got += more
                    with open(os.path.join(folder, name), "ab") as log:  # before it is answered: then the test looks
                        log.write(more)
                    if not name.endswith("2222") and len(got) == len(more):
                        one.sendall(answer)
            except OSError:
                pass


def main():
    folder, command = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (PUBLIC, OTHER, PRIVATE, "169.254.169.254"):
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    hosts = os.path.join(folder, "hosts")
    with open(hosts, "w") as f:
        f.write(HOSTS)
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    listening = []
    for port in PORTS:
        listening.append((socket.create_server(("0.0.0.0", port)), port))
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with who runs the command
        for one, port in listening:
            for _ in range(4):
                threading.Thread(target=serve, args=(one, folder, str(port), PORTS[port])).start()
        return
    os.execvp(command[0], command)


main()
