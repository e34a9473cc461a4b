"""The links of gateways to their bucket, which a test cuts and restores."""

import os
import socket
import threading
from urllib.parse import urlsplit


class FolderLink:
    """A symbolic link to the folder of the bucket. A file is in its place while it is cut."""

    def __init__(self, path, root):
        self.path, self.root = path, root
        self.settings = {"path": path}
        self.restore()

    def cut(self):
        self.replace(lambda path: path.write_text("cut"))

    def restore(self):
        self.replace(lambda path: path.symlink_to(self.root))

    def replace(self, create):
        new = self.path.with_suffix(".new")
        create(new)
        os.replace(new, self.path)

    def close(self):
        pass


class ProxyLink:
    """A TCP proxy before a server. It closes every connection while it is cut."""

    def __init__(self, url):
        server = urlsplit(url)
        self.server = server.hostname, server.port
        self.connections, self.lock, self.is_cut = set(), threading.Lock(), False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.settings = {"endpoint": f"http://127.0.0.1:{self.listener.getsockname()[1]}"}
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                with self.lock:
                    if self.is_cut:
                        client.close()
                        continue
                    server = socket.create_connection(self.server)
                    self.connections.update((client, server))
            except OSError:
                return
            for one, other in [(client, server), (server, client)]:
                threading.Thread(target=self.forward, args=(one, other), daemon=True).start()

    def forward(self, one, other):
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
        except OSError:
            pass
        self.end([one, other])

    def end(self, connections):
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            with self.lock:
                self.connections.discard(connection)

    def cut(self):
        with self.lock:
            self.is_cut = True
            connections = list(self.connections)
        self.end(connections)

    def restore(self):
        with self.lock:
            self.is_cut = False

    def close(self):
        self.listener.close()
        self.cut()
