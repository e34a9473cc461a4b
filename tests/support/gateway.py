"""Starts a gateway, and sends requests to it. Needs only Python's standard library."""

import http.client
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from ports import find_free_port


def wait_for(what, condition, seconds=300, pause=0.05):
    """Returns what the condition returns once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise SystemExit(f"gave up waiting until {what}")
        time.sleep(pause)
    return found


def make_backup_settings(binary, interval_seconds=10):
    """Returns the settings of a continuous backup of `edge-1` to the target `backups`, with a new key."""
    new_key = subprocess.run([binary, "offsite-backup", "new-key"], check=True, capture_output=True, text=True)
    return {
        "service.gateway-id": "edge-1",
        "service.backup.target": "backups",
        "service.backup.interval": f"{interval_seconds}s",
        "service.backup.key": re.search("AGE-SECRET-KEY-1[A-Z0-9]+", new_key.stdout)[0],
    }


class CutOff(Exception):
    """The server ended an answer after its first byte."""

    def __init__(self, status, body):
        super().__init__(f"{status}, then cut off after {len(body)} bytes")
        self.status, self.body = status, body


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def content_type(self):
        return self.headers.get("Content-Type", "")

    def __str__(self):
        return f"{self.status} {self.body[:600].decode('utf-8', 'replace')}"


class Server:
    """A server with a SPARQL endpoint, in a temporary folder."""

    paths = {"query": "/sparql", "update": "/sparql/update", "graphs": "/sparql/graphs"}
    headers = {}
    restarts = 0

    def create_place(self):
        """Creates the folder, and chooses the address. Returns the port."""
        self.work = Path(tempfile.mkdtemp(prefix="penstock-test."))
        port = find_free_port()
        self.url = f"http://127.0.0.1:{port}"
        return port

    def start(self, command, ready_path, before_start=None):
        self.command, self.ready_path, self.log_path = command, ready_path, self.work / "log"
        self.process = subprocess.Popen(
            command, cwd=self.work, stdout=open(self.log_path, "wb"), stderr=subprocess.STDOUT, preexec_fn=before_start
        )
        wait_for("the server is ready", self.is_ready)

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server did not start:\n{self.log_path.read_text()[-3000:]}")
        try:
            return self.request("GET", self.ready_path).status < 500
        except OSError:
            return False

    def start_again(self):
        """Starts the server that has ended with its data."""
        Server.start(self, self.command, self.ready_path)

    def kill(self):
        """Kills the process, and starts it again."""
        self.process.kill()
        self.process.wait()
        self.restarts += 1
        self.start_again()

    def memory(self, name="VmRSS"):
        """Returns MiB of the process: those that are resident, or another of the kernel's figures."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.work, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def request(self, method, path, body=None, headers=None, timeout=120):
        """Sends a request. An answer that breaks off is a `CutOff`."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=timeout)
        body_parts = []
        try:
            try:
                connection.request(method, path, body, {**self.headers, **(headers or {})})
            except (BrokenPipeError, ConnectionResetError):
                # The server may have answered before it had read everything.
                pass
            response = connection.getresponse()
            try:
                while part := response.read1(1 << 16):
                    body_parts.append(part)
            except (http.client.IncompleteRead, ConnectionResetError) as error:
                body_parts.append(getattr(error, "partial", b""))
                raise CutOff(response.status, b"".join(body_parts)) from error
            return Answer(response.status, response.headers, b"".join(body_parts))
        finally:
            connection.close()

    def query(self, text, accept="application/sparql-results+json", parameters=(), method="POST", timeout=120):
        """Sends a query in one of the ways of the protocol: GET, POST of a form, or `direct` POST of the query."""
        headers = {"Accept": accept}
        path = self.paths["query"]
        if method == "GET":
            return self.request("GET", f"{path}?{urlencode([('query', text), *parameters])}", None, headers, timeout)
        if method == "direct":
            headers["Content-Type"] = "application/sparql-query"
            path += "?" + urlencode(parameters) if parameters else ""
            return self.request("POST", path, text.encode(), headers, timeout)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return self.request("POST", path, urlencode([("query", text), *parameters]), headers, timeout)

    def update(self, text, parameters=(), method="direct", timeout=120):
        path = self.paths["update"]
        if method == "direct":
            path += "?" + urlencode(parameters) if parameters else ""
            return self.request("POST", path, text.encode(), {"Content-Type": "application/sparql-update"}, timeout)
        form = urlencode([("update", text), *parameters])
        return self.request("POST", path, form, {"Content-Type": "application/x-www-form-urlencoded"}, timeout)

    def graph(self, method, graph, body=None, content_type="application/n-triples"):
        """Sends a request of the Graph Store Protocol; `graph` is an IRI, or None for the default graph."""
        target = urlencode({"graph": graph}) if graph else "default"
        headers = {"Content-Type": content_type} if body is not None else {"Accept": content_type}
        return self.request(method, f"{self.paths['graphs']}?{target}", body, headers)


class Penstock(Server):
    def __init__(self, binary, settings=None, before_start=None):
        self.binary = str(Path(binary).resolve())
        port = self.create_place()
        settings = {
            "service.data-dir": self.work / "data",
            "server.port": port,
            "service.base-url": self.url,
            "service.sparql.update": "true",
            **(settings or {}),
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        try:
            self.start([self.binary, "serve", *arguments], "/health/ready", before_start)
            self.headers = {"Authorization": f"Bearer {self.create_key('tests', 'Admin')}"}
        except BaseException:
            self.stop()
            raise

    def run(self, *arguments, body=None):
        """Runs a command of the command-line interface. Returns its output."""
        command = [self.binary, *arguments, f"--service.data-dir={self.work / 'data'}"]
        done = subprocess.run(command, input=body, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work)
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)} failed: {done.stderr.decode()[-2000:]}")
        return done.stdout

    def create_key(self, name, role):
        return self.run("api-key", "create", "--name", name, "--role", role).decode().strip()

    def call(self, method, path, body=None, expected=(200, 201, 202, 204), headers=None):
        """Sends JSON to the REST API, and returns that of the answer."""
        headers = {**({} if body is None else {"Content-Type": "application/json"}), **(headers or {})}
        answer = self.request(method, f"/api/v1{path}", None if body is None else json.dumps(body), headers)
        if answer.status not in expected:
            raise SystemExit(f"{method} {path} failed: {answer}")
        return json.loads(answer.body or b"null")

    def define(self, name, config, **members):
        """Creates or changes a Business Object."""
        return self.call("PUT", "/business-objects", {"name": name, "description": name, "config": config, **members})

    def count_quads(self):
        return self.call("GET", "/status")["store"]["quads"]

    def load(self, nquads):
        """Replaces the whole content by these N-Quads."""
        answer = self.update("DROP ALL")
        if answer.status not in (200, 204):
            raise SystemExit(f"DROP ALL failed: {answer}")
        if nquads:
            self.run("load", "-", "--format", "nq", body=nquads.encode())

    def dump(self):
        return self.run("dump", "-").decode()


class OxigraphServer(Server):
    """Oxigraph's server (PyPI oxigraph)."""

    paths = {"query": "/query", "update": "/update", "graphs": "/store"}
    # Whether the default graph becomes the union of all graphs, as it is in the gateway.
    has_union = True
    arguments = []

    def __init__(self, binary, settings=None, before_start=None):
        port = self.create_place()
        self.start([binary, "serve", *self.arguments, "--bind", f"127.0.0.1:{port}"], "/", before_start)

    def load(self, nquads):
        """Replaces the whole content by these N-Quads."""
        self.update("DROP ALL")
        self.request("POST", "/store", nquads.encode(), {"Content-Type": "application/n-quads"})
        if self.has_union:
            self.update("INSERT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }")

    def dump(self):
        return self.request("GET", "/store", None, {"Accept": "application/n-quads"}).body.decode()


def open_server(binary, settings=None, before_start=None):
    """Starts the gateway, or Oxigraph's server if that is the binary's name."""
    is_oxigraph = Path(binary).name == "oxigraph"
    return (OxigraphServer if is_oxigraph else Penstock)(binary, settings, before_start)
