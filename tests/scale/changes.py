"""Sends 10,000 changes of 100 objects, and measures what the gateway needs for them.

Usage: tests/scale/changes.py path/to/penstock [--changes N] [--objects N] [--bound MIB]

Half of the changes create objects, half change objects that are stored. The resident memory of the gateway must stay
below the bound while they are sent, listed, read and approved.
"""

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import Penstock  # noqa: E402

MAPPING = """type: object
path: "Tanks:."
fields:
  uri: { type: id }
  label: { type: string, path: "<http://www.w3.org/2000/01/rdf-schema#label>" }
  level: { type: number, path: "<https://tanks.example/level>" }
  place: { type: string, path: "<https://tanks.example/place>" }
"""
# An account may have a tenth of the open changes.
AUTHORS = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=100)
    parser.add_argument("--bound", type=int, default=128, help="MiB of resident memory")
    arguments = parser.parse_args()
    with Penstock(arguments.binary) as server:
        measure(server, arguments)


def measure(server, arguments):
    define(server)
    stored = ingest(server, arguments.objects)
    keys = [server.create_key(f"author-{number}", "Contributor") for number in range(AUTHORS)]
    report("before", server, arguments.bound)

    begun = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        times = list(pool.map(lambda number: submit(server, keys, stored, number), range(arguments.changes)))
    seconds = time.monotonic() - begun
    print(f"sent: {arguments.changes / seconds:.0f}/s, median {statistics.median(times) * 1e3:.0f} ms")
    report("sent", server, arguments.bound)
    status = server.call("GET", "/status")["changes"]
    if status["open"] != arguments.changes:
        raise SystemExit(f"{status['open']} changes are open, not {arguments.changes}")
    print(f"bytes of all changes: {status['bytes'] / 2**20:.1f} MiB of {status['limitBytes'] / 2**20:.0f} MiB")

    author = {"Authorization": f"Bearer {keys[0]}"}
    for name, path, headers in [
        ("first page", "/changes?limit=100", {}),
        ("page of an author", "/changes?limit=100&role=author", author),
        ("state that none has", "/changes?state=rejected", {}),
    ]:
        begun = time.monotonic()
        server.call("GET", path, headers=headers)
        print(f"list, {name}: {(time.monotonic() - begun) * 1e3:.0f} ms")
    # The newest change needs no computation: nothing was committed since.
    first = find_oldest(server)
    for name, call in [
        ("read", lambda: server.call("GET", f"/changes/{first}")),
        ("approve", lambda: server.call("POST", f"/changes/{first}/approve", headers={"If-Match": '"1"'})),
    ]:
        begun = time.monotonic()
        call()
        print(f"{name} one change: {(time.monotonic() - begun) * 1e3:.0f} ms")
    report("read", server, arguments.bound)


def define(server):
    namespace = {"name": "Tanks", "uriBase": "https://tanks.example/", "generator": "counter"}
    server.call("PUT", "/namespaces/Tanks", namespace, (201,))
    server.define("Tanks", MAPPING, enabled=True, conditions=[], review="optional")


def ingest(server, count):
    """Stores objects that half of the changes change. Returns their URIs."""
    answer = server.call("POST", "/business-objects/Tanks?mode=ADD", {"data": make_objects(0, count)}, (200,))
    return [one["uri"] for one in answer["objects"]]


def make_objects(number, count):
    return [{"label": f"Tank {number}-{n}", "level": number + n / 8, "place": f"Hall {n % 7}"} for n in range(count)]


def submit(server, keys, stored, number):
    objects = make_objects(number, len(stored))
    mode = "ADD"
    if number % 2:
        mode = "UPDATE"
        objects = [{"uri": uri, **one} for uri, one in zip(stored, objects)]
    headers = {"Authorization": f"Bearer {keys[number % AUTHORS]}"}
    begun = time.monotonic()
    server.call("POST", f"/business-objects/Tanks?mode={mode}&review=true", {"data": objects}, (202,), headers)
    return time.monotonic() - begun


def find_oldest(server):
    page = server.call("GET", "/changes?limit=1000")
    while page.get("next"):
        page = server.call("GET", f"/changes?limit=1000&cursor={page['next']}")
    return page["items"][-1]["id"]


def report(when, server, bound):
    peak, now = server.memory("VmHWM"), server.memory()
    print(f"memory, {when}: {now:.0f} MiB resident, {peak:.0f} MiB at most")
    if peak > bound:
        raise SystemExit(f"the gateway had {peak:.0f} MiB, more than {bound}")


main()
