"""A mosquitto, publishers, and a proxy that sees what is acknowledged. Needs only Python's standard library."""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import find_free_port, wait_for  # noqa: E402

PUBLISH, PUBACK = 3, 4


def make_settings(port, topic):
    """Returns the settings of a source that stores the messages of a topic as Readings."""
    return {
        "service.sources.plant.type": "mqtt",
        "service.sources.plant.url": f"mqtt://127.0.0.1:{port}",
        "service.sources.plant.subscriptions[0].topic": topic,
        "service.sources.plant.subscriptions[0].business-object": "Readings",
    }


def read_connection(server):
    """Returns what the gateway shows of its connection."""
    return server.call("GET", "/sources/plant")["connections"][0]


def wait_until_connected(server):
    wait_for("the source is connected", lambda: read_connection(server)["state"] == "connected")


class Broker:
    """A mosquitto with the settings of docs/ingest.md, in this folder."""

    def __init__(self, folder):
        self.port, self.folder = find_free_port(), Path(folder)
        user = "user root\n" if os.geteuid() == 0 else ""
        self.configuration = self.folder / "mosquitto.conf"
        self.configuration.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n{user}persistence true\n"
            f"persistence_location {self.folder}/\nmax_queued_messages 0\nmax_queued_bytes 0\n"
            "max_inflight_messages 1000\npersistent_client_expiration 14d\n"
        )
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["/usr/sbin/mosquitto", "-c", self.configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for("mosquitto listens", self.listens, 30)

    def listens(self):
        if self.process.poll() is not None:
            raise SystemExit("mosquitto did not start")
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True

    def save(self):
        """Makes it write its queues to its file."""
        file = self.folder / "mosquitto.db"
        before = file.stat().st_mtime_ns if file.exists() else 0
        self.process.send_signal(signal.SIGUSR1)
        wait_for("the queues are written", lambda: file.exists() and file.stat().st_mtime_ns != before)

    def stop(self):
        """Ends it in order: it writes its queues."""
        self.process.terminate()
        self.process.wait(60)

    def kill(self):
        """Ends it at once: it loses what came after the last time it wrote its queues."""
        self.process.kill()
        self.process.wait()


def encode_packet(first, body):
    length, rest = bytearray(), len(body)
    while True:
        rest, digit = rest >> 7, rest & 0x7F
        length.append(digit | (0x80 if rest else 0))
        if not rest:
            return bytes([first]) + bytes(length) + body


def encode_text(text):
    return struct.pack(">H", len(text)) + text.encode()


class Publisher:
    """Publishes with QoS 1 over MQTT 3.1.1, and again until the broker has acknowledged it."""

    WINDOW = 200

    def __init__(self, port, name):
        self.port, self.name, self.socket = port, name, None

    def publish(self, topic, payloads):
        """Returns once the broker has acknowledged all payloads."""
        for start in range(0, len(payloads), self.WINDOW):
            window = payloads[start : start + self.WINDOW]
            packets = b"".join(
                encode_packet(0x32, encode_text(topic) + struct.pack(">H", number) + payload)
                for number, payload in enumerate(window, 1)
            )
            while not self.send(packets, len(window)):
                time.sleep(0.1)

    def send(self, packets, count):
        try:
            if self.socket is None:
                self.connect()
            self.socket.sendall(packets)
            self.read(4 * count)
            return True
        except OSError:
            self.close()
            return False

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.socket.sendall(encode_packet(0x10, encode_text("MQTT") + b"\4\2\0\0" + encode_text(self.name)))
        if self.read(4)[3] != 0:
            raise SystemExit("the broker refused a publisher")

    def read(self, count):
        found = b""
        while len(found) < count:
            part = self.socket.recv(count - len(found))
            if not part:
                raise ConnectionResetError
            found += part
        return found

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = None


class Proxy:
    """Passes on connections to a broker, cuts them, and collects the payloads that were acknowledged."""

    def __init__(self, broker_port):
        self.broker_port = broker_port
        self.acknowledged = set()
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
            except OSError:
                client.close()
                continue
            self.connections.append(Connection(self, client, broker))

    def cut(self):
        """Cuts all connections."""
        for connection in self.connections:
            connection.close()

    def wait_until_closed(self):
        """Waits until everything that was sent on closed connections was seen."""
        for connection in self.connections:
            for thread in connection.threads:
                thread.join(60)
        self.connections = []


class Connection:
    def __init__(self, proxy, client, broker):
        self.proxy, self.client, self.broker = proxy, client, broker
        self.unacknowledged = {}
        pairs = [(broker, client, self.note_publish), (client, broker, self.note_acknowledgement)]
        self.threads = [threading.Thread(target=self.copy, args=pair, daemon=True) for pair in pairs]
        for thread in self.threads:
            thread.start()

    def close(self):
        for end in (self.client, self.broker):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def copy(self, source, target, note):
        buffer = bytearray()
        try:
            while part := source.recv(1 << 16):
                buffer += part
                # Before it is passed on, so that nothing can be stored or acknowledged that was not noted.
                del buffer[: split_packets(buffer, note)]
                try:
                    target.sendall(part)
                except OSError:
                    # What the other end has sent still counts.
                    pass
        except OSError:
            pass
        self.close()

    def note_publish(self, first, body):
        if first >> 4 != PUBLISH:
            return
        at = 2 + struct.unpack_from(">H", body)[0]
        (identifier,) = struct.unpack_from(">H", body, at)
        length, count = read_length(body, at + 2)
        self.unacknowledged[identifier] = bytes(body[at + 2 + count + length :])

    def note_acknowledgement(self, first, body):
        if first >> 4 == PUBACK:
            (identifier,) = struct.unpack_from(">H", body)
            self.proxy.acknowledged.add(self.unacknowledged.pop(identifier))


def read_length(buffer, at):
    """Returns a variable byte integer and its length; None if it is not complete."""
    value = 0
    for count in range(4):
        if at + count >= len(buffer):
            return None
        value |= (buffer[at + count] & 0x7F) << (7 * count)
        if not buffer[at + count] & 0x80:
            return value, count + 1
    raise ValueError("a length has more than four bytes")


def split_packets(buffer, note):
    """Passes whole packets to `note`. Returns their bytes."""
    start = 0
    while (found := read_length(buffer, start + 1)) is not None:
        length, count = found
        begin = start + 1 + count
        if len(buffer) < begin + length:
            break
        note(buffer[start], memoryview(buffer)[begin : begin + length].tobytes())
        start = begin + length
    return start
