"""A relay to a server that fails requests in chosen ways."""

import socket
import struct
import threading
import time

FAULTS = ["reset", "cut up", "cut down", "answer dropped", "busy", "late twice", "slow"]


class Link:
    """Relays each request to a server. `choose` returns the fault of a request, or None."""

    def __init__(self, upstream, choose):
        self.upstream, self.choose = upstream, choose
        self.seen = {}
        self.sizes = []
        # The number of requests that are under way, late ones included. One counts before its fault is chosen, so that
        # a choice made now holds for every request that does not count yet.
        self.pending = 0
        self.lock = threading.Lock()
        # Held by a late request. Only one that the server is working on already runs at the same time: in a store without
        # conflict detection, a late request that lasts as long as several others leaves a staging graph that is not
        # registered any more.
        self.late = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            with client:
                client.settimeout(60)
                while self._relay(client):
                    pass
        except OSError:
            pass

    def _relay(self, client):
        """Relays one request. Returns whether the connection can have another one."""
        head, body = _read_message(client, b"")
        if not head:
            return False
        self.sizes.append(len(body))
        self._count(1)
        try:
            return self._forward(client, _close_connection(head) + body)
        finally:
            self._count(-1)

    def _forward(self, client, request):
        fault = self.choose()
        self.seen[fault] = self.seen.get(fault, 0) + 1
        if fault == "reset":
            return _reset(client)
        if fault == "busy":
            client.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return False
        if fault == "cut up":
            with socket.create_connection(self.upstream, 60) as server:
                server.sendall(request[: len(request) // 2])
            return _reset(client)
        if fault == "slow":
            time.sleep(0.3)
        with self.late:
            pass
        answer = self._send(request)
        if fault == "late twice":
            # The same request arrives again, while the gateway continues.
            for delay in (0.4, 1.5):
                self._count(1)
                threading.Timer(delay, self._ask_late, args=(request,)).start()
        if fault == "answer dropped":
            return _reset(client)
        if fault == "cut down":
            client.sendall(answer[: max(1, len(answer) // 2)])
            return _reset(client)
        client.sendall(answer)
        return False

    def _count(self, change):
        with self.lock:
            self.pending += change

    def _send(self, request):
        with socket.create_connection(self.upstream, 60) as server:
            server.settimeout(120)
            server.sendall(request)
            answer = b""
            while part := server.recv(1 << 16):
                answer += part
            head, end, body = answer.partition(b"\r\n\r\n")
            # A client may otherwise send its next request while the link closes the connection.
            return _close_connection(head + end) + body

    def _ask_late(self, request):
        try:
            with self.late:
                self._send(request)
        except OSError:
            pass
        finally:
            self._count(-1)


def _read_message(connection, data):
    while b"\r\n\r\n" not in data:
        part = connection.recv(1 << 16)
        if not part:
            return b"", b""
        data += part
    head, body = data.split(b"\r\n\r\n", 1)
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        part = connection.recv(1 << 16)
        if not part:
            return b"", b""
        body += part
    return head + b"\r\n\r\n", body


def _close_connection(head):
    lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])


def _reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False
