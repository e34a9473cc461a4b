"""Sends 100,000 messages from 10 publishers through mosquitto, and measures how fast the gateway stores them.

Usage: tests/scale/mqtt.py path/to/penstock [--messages N] [--publishers N] [--bound MIB]

Needs mosquitto and mosquitto-clients. Every message must be stored once and acknowledged, and the resident memory of
the gateway must stay below the bound.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import Penstock, wait_for  # noqa: E402
from mosquitto import Broker, make_settings, read_connection, wait_until_connected  # noqa: E402

MAPPING = """type: object
path: "Readings:."
key: tag
fields:
  tag: { type: string, required: true, path: "<https://plant.example/tag>" }
  value: { type: number, path: "<https://plant.example/value>" }
  unit: { type: string, path: "<https://plant.example/unit>" }
"""
QUADS_PER_READING = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--publishers", type=int, default=10)
    parser.add_argument("--bound", type=int, default=128, help="MiB of resident memory")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(folder)
        try:
            with Penstock(arguments.binary, make_settings(broker.port, "readings/#")) as server:
                measure(server, broker.port, arguments)
        finally:
            broker.stop()


def measure(server, port, arguments):
    server.define("Readings", MAPPING)
    wait_until_connected(server)
    before = server.count_quads()

    begun = time.monotonic()
    publishers = [start_publisher(port, number, arguments) for number in range(arguments.publishers)]
    for publisher in publishers:
        if publisher.wait():
            raise SystemExit("a publisher failed")
    published = time.monotonic() - begun
    wait_for("all is stored", lambda: read_connection(server)["acknowledged"] >= arguments.messages, 600)
    stored = time.monotonic() - begun
    print(f"published: {arguments.messages / published:.0f} messages/s")
    print(f"stored and acknowledged: {arguments.messages / stored:.0f} messages/s")
    found = server.count_quads() - before
    if found != arguments.messages * QUADS_PER_READING:
        raise SystemExit(f"{found} quads are stored, not {arguments.messages * QUADS_PER_READING}")
    peak = server.memory("VmHWM")
    print(f"memory: {peak:.0f} MiB at most")
    if peak > arguments.bound:
        raise SystemExit(f"the gateway had {peak:.0f} MiB, more than {arguments.bound}")


def start_publisher(port, number, arguments):
    file = tempfile.TemporaryFile()
    for message in range(number, arguments.messages, arguments.publishers):
        file.write(json.dumps({"tag": f"T-{message}", "value": message / 8, "unit": "m3/h"}).encode() + b"\n")
    file.seek(0)
    topic = f"readings/{number}"
    command = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(port), "-q", "1", "-l", "-t", topic]
    return subprocess.Popen(command, stdin=file)


main()
