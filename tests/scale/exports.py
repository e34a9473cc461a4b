"""Ingests objects while all objects of another Business Object are exported, again and again.

Usage: tests/scale/exports.py path/to/penstock [--objects N] [--rounds N] [--seconds N]

Prints the rate of ingestion and its latency without and with exports, in turn, because the speed of a shared machine
changes. The goal is 80 %. Fails if less than 75 % of the rate remains, or if an export does not have all objects.
"""

import argparse
import json
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import Penstock  # noqa: E402

FIELDS = 9
MAPPING = """type: object
path: "{name}:."
key: tag
fields:
  tag: {{ type: string, required: true, path: "<https://plant.example/tag>" }}
""" + "".join(f'  f{n}: {{{{ type: string, path: "<https://plant.example/f{n}>" }}}}\n' for n in range(FIELDS))
BATCH = 100
WANTED_PERCENT = 75


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of each half of a round")
    arguments = parser.parse_args()
    with Penstock(arguments.binary) as server:
        for name in ["Stored", "Live"]:
            server.define(name, MAPPING.format(name=name), pushTargets=[{"bucketName": "local"}])
        for first in range(0, arguments.objects, 1000):
            ingest(server, "Stored", first, 1000)
        state = State()
        writer = threading.Thread(target=keep_ingesting, args=(server, state), daemon=True)
        writer.start()
        exporter = threading.Thread(target=keep_exporting, args=(server, state, arguments.objects), daemon=True)
        exporter.start()
        time.sleep(3)
        alone, during = Ingested(), Ingested()
        for _ in range(arguments.rounds):
            measure(state, alone, arguments.seconds)
            state.may_export.set()
            measure(state, during, arguments.seconds)
            state.may_export.clear()
            with state.export_lock:
                pass
        state.is_over = True
        state.may_export.set()
        writer.join()
        exporter.join()
    if state.failure:
        raise SystemExit(state.failure)
    percent = 100 * during.rate() / alone.rate()
    print(f"without exports: {alone}\nwith exports: {during}")
    seconds = state.export_seconds / max(state.exports, 1)
    print(f"{state.exports} exports of {arguments.objects} objects, {seconds:.1f} s each")
    print(f"ingestion keeps {percent:.0f} % of its rate")
    if state.exports == 0 or percent < WANTED_PERCENT:
        raise SystemExit(f"FAILED: at least one export and {WANTED_PERCENT} % were expected")


class State:
    def __init__(self):
        self.is_over, self.may_export, self.export_lock = False, threading.Event(), threading.Lock()
        self.times, self.exports, self.export_seconds, self.failure = [], 0, 0.0, None


class Ingested:
    """What was ingested with or without exports."""

    def __init__(self):
        self.times, self.seconds = [], 0.0

    def rate(self):
        return len(self.times) * BATCH / self.seconds

    def __str__(self):
        times = sorted(self.times)
        p50, p99 = statistics.median(times) * 1000, times[len(times) * 99 // 100] * 1000
        return f"{self.rate():.0f} objects/s, {p50:.1f} ms at p50, {p99:.1f} ms at p99"


def ingest(server, name, first, count):
    objects = [
        {"tag": f"{name}-{n}"} | {f"f{field}": f"value {field} of {n:012}" for field in range(FIELDS)}
        for n in range(first, first + count)
    ]
    server.call("POST", f"/business-objects/{name}?mode=MERGE&objects=false", {"data": objects}, (200,))


def keep_ingesting(server, state):
    number = 0
    while not state.is_over:
        begun = time.monotonic()
        try:
            ingest(server, "Live", number, BATCH)
        except SystemExit as error:
            state.failure = str(error)
            return
        state.times.append(time.monotonic() - begun)
        number += BATCH


def keep_exporting(server, state, objects):
    while state.may_export.wait() and not state.is_over:
        with state.export_lock:
            begun = time.monotonic()
            answer = server.request("POST", "/api/v1/business-objects/Stored/push", timeout=300)
            state.export_seconds += time.monotonic() - begun
        exports = json.loads(answer.body)["exports"] if answer.status == 202 else []
        if [export["objectCount"] for export in exports] != [objects]:
            state.failure = f"an export failed: {answer}"
            return
        state.exports += 1


def measure(state, ingested, seconds):
    state.times.clear()
    begun = time.monotonic()
    time.sleep(seconds)
    ingested.times += state.times
    ingested.seconds += time.monotonic() - begun


if __name__ == "__main__":
    main()
