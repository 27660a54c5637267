"""A cluster as kubectl sees it: an API server with as much of the API as `kubectl get pods` and `kubectl exec` use, whose
pods are containers of namespaces. It speaks what kubectl has spoken since 1.31: WebSocket, v5.channel.k8s.io."""
import base64
import contextlib
import hashlib
import http.server
import json
import re
import shutil
import socketserver
import struct
import subprocess
import threading
import urllib.parse

STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255


def kubectl():
    """The path of one that is new enough, or None."""
    path = shutil.which("kubectl")
    if not path:
        return None
    done = subprocess.run([path, "version", "--client"], capture_output=True, text=True)
    found = re.search(r"v1\.(\d+)", done.stdout)
    return path if found and int(found[1]) >= 31 else None


class Pod:
    """labels; containers: {name: words that run a command in it}, the first is the default."""

    def __init__(self, name, containers, labels=None, namespace="default"):
        self.name, self.containers, self.labels, self.namespace = name, containers, labels or {}, namespace

    def resource(self):
        return {"kind": "Pod", "apiVersion": "v1",
                "metadata": {"name": self.name, "namespace": self.namespace, "labels": self.labels},
                "spec": {"containers": [{"name": name, "image": "x"} for name in self.containers]}, "status": {"phase": "Running"}}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _json(self, value, code=200):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _not_found(self, name):
        self._json({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
                    "message": f'pods "{name}" not found'}, 404)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        pods = self.server.pods
        if url.path == "/api":
            return self._json({"kind": "APIVersions", "versions": ["v1"]})
        if url.path == "/apis":
            return self._json({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        if url.path == "/api/v1":
            return self._json({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]}]})
        found = re.fullmatch(r"/api/v1/namespaces/([^/]+)/pods(?:/([^/]+))?(/exec)?", url.path)
        if not found:
            return self._not_found(url.path)
        namespace, name, is_exec = found.groups()
        if not name:
            wanted = dict(part.split("=") for part in query.get("labelSelector", [""])[0].split(",") if part)
            fit = [pod for pod in pods if pod.namespace == namespace and wanted.items() <= pod.labels.items()]
            return self._json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod.resource() for pod in fit]})
        pod = next((pod for pod in pods if (pod.namespace, pod.name) == (namespace, name)), None)
        if not pod:
            return self._not_found(name)
        return self._exec(pod, query) if is_exec else self._json(pod.resource())

    # ---- exec ----

    def _exec(self, pod, query):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.send_header("Sec-WebSocket-Protocol", "v5.channel.k8s.io")
        self.end_headers()
        self.close_connection = True
        words = pod.containers[query.get("container", list(pod.containers)[:1])[0]] + query["command"]
        self.lock = threading.Lock()
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        readers = [threading.Thread(target=self._pass_on, args=(pipe, channel))
                   for pipe, channel in ((process.stdout, STDOUT), (process.stderr, STDERR))]
        feeder = threading.Thread(target=self._feed, args=(process,), daemon=True)
        for thread in (*readers, feeder):
            thread.start()
        status = process.wait()
        for thread in readers:
            thread.join()
        self._send(ERROR, json.dumps(_status(status)).encode())
        with contextlib.suppress(OSError):
            self.wfile.write(b"\x88\x02\x03\xe8")
        feeder.join(10)
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()

    def _send(self, channel, data):
        data = bytes([channel]) + data
        head = b"\x82" + (bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data)))
        with self.lock, contextlib.suppress(OSError):
            self.wfile.write(head + data)

    def _pass_on(self, pipe, channel):
        while data := pipe.read1(32768):
            self._send(channel, data)

    def _feed(self, process):
        with contextlib.suppress(OSError, ValueError):
            while (frame := self._frame()) is not None:
                if frame[:1] == bytes([STDIN]):
                    process.stdin.write(frame[1:])
                    process.stdin.flush()
                elif frame[:2] == bytes([CLOSE, STDIN]):
                    process.stdin.close()
        with contextlib.suppress(OSError):
            process.stdin.close()

    def _frame(self):
        """The payload of the next frame; None at the end."""
        head = self.rfile.read(2)
        if len(head) < 2:
            return None
        size = head[1] & 127
        if size > 125:
            size = int.from_bytes(self.rfile.read(2 if size == 126 else 8), "big")
        mask, data = self.rfile.read(4), self.rfile.read(size)
        if head[0] & 15 == 8:
            return None
        keys = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return (int.from_bytes(data, "big") ^ keys).to_bytes(size, "big")


def _status(code):
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": f"command terminated with exit code {code}",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]}}


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


@contextlib.contextmanager
def cluster(pods, folder):
    """Serves the pods; gives the path of a kubeconfig."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.pods = pods
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    config = folder / "kubeconfig"
    config.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}]}))
    try:
        yield config
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# What `kubectl exec` does, without a cluster: $PODS has "NAMESPACE/POD/CONTAINER WORDS..." lines, the first container of a
# pod is its default.
STAND_IN = r"""#!/usr/bin/python3
import os, shlex, sys
args, namespace, context, container = sys.argv[1:], "default", None, None
pods = [line.split(" ", 1) for line in open(os.environ["PODS"])]
command = args.index("--") if "--" in args else len(args)
head, words, plain = args[:command], args[command + 1:], []
while head:
    word = head.pop(0)
    if word in ("-n", "--context", "-c", "-l", "-o"):
        value = head.pop(0)
        namespace = value if word == "-n" else namespace
        container = value if word == "-c" else container
    elif word not in ("-i",) and not word.startswith("--field-selector="):
        plain.append(word)
if plain[0] == "get":
    print("\n".join(dict.fromkeys(key.split("/")[1] for key, _ in pods if key.startswith(namespace + "/"))))
    sys.exit()
for key, prefix in pods:
    if key.split("/")[:2] == [namespace, plain[1]] and container in (None, key.split("/")[2]):
        prefix = shlex.split(prefix)
        os.execvp(prefix[0], prefix + words)
sys.exit(f'Error from server (NotFound): pods "{plain[1]}" not found')
"""
