"""Chooses ports for servers that cannot choose one themselves. As a program it prints one."""

import random
import socket


def find_free_port():
    """Returns a port of 127.0.0.1 that no one listens on. It is below the ports that the system gives to connections
    and to listeners without a port of their own, so that none of them takes it before the server does."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


if __name__ == "__main__":
    print(find_free_port())
