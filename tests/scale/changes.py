"""Sends 10,000 changes of 100 objects, and measures what the gateway needs for them.

Usage: tests/scale/changes.py path/to/penstock [--changes N] [--objects N] [--bound MIB]

Half of the changes create objects, half change objects that are stored. The resident memory of the gateway must stay
below the bound while they are sent, listed, read and approved.
"""

import argparse
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sparql"))
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
    status = get(server, "/api/v1/status")["changes"]
    if status["open"] != arguments.changes:
        raise SystemExit(f"{status['open']} changes are open, not {arguments.changes}")
    print(f"bytes of all changes: {status['bytes'] / 2**20:.1f} MiB of {status['limitBytes'] / 2**20:.0f} MiB")

    author = {"Authorization": f"Bearer {keys[0]}"}
    for name, path, headers in [
        ("first page", "/api/v1/changes?limit=100", {}),
        ("page of an author", "/api/v1/changes?limit=100&role=author", author),
        ("state that none has", "/api/v1/changes?state=rejected", {}),
    ]:
        begun = time.monotonic()
        get(server, path, headers)
        print(f"list, {name}: {(time.monotonic() - begun) * 1e3:.0f} ms")
    # The newest change needs no computation: nothing was committed since.
    first = find_oldest(server)
    for name, call in [
        ("read", lambda: get(server, f"/api/v1/changes/{first}")),
        ("approve", lambda: post(server, f"/api/v1/changes/{first}/approve", {"If-Match": '"1"'})),
    ]:
        begun = time.monotonic()
        call()
        print(f"{name} one change: {(time.monotonic() - begun) * 1e3:.0f} ms")
    report("read", server, arguments.bound)


def define(server):
    for method, path, body in [
        ("PUT", "/api/v1/namespaces/Tanks", {"name": "Tanks", "uriBase": "https://tanks.example/", "generator": "counter"}),
        ("PUT", "/api/v1/business-objects",
         {"name": "Tanks", "description": "Tanks", "enabled": True, "config": MAPPING, "conditions": [], "review": "optional"}),
    ]:
        check(server.request(method, path, json.dumps(body), {"Content-Type": "application/json"}), 201)


def ingest(server, count):
    """Stores objects that half of the changes change. Returns their URIs."""
    answer = send(server, "/api/v1/business-objects/Tanks?mode=ADD", make_objects(0, count), {}, 200)
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
    send(server, f"/api/v1/business-objects/Tanks?mode={mode}&review=true", objects, headers, 202)
    return time.monotonic() - begun


def send(server, path, objects, headers, status):
    headers = {"Content-Type": "application/json", **headers}
    return check(server.request("POST", path, json.dumps({"data": objects}), headers), status)


def find_oldest(server):
    page = get(server, "/api/v1/changes?limit=1000")
    while page.get("next"):
        page = get(server, f"/api/v1/changes?limit=1000&cursor={page['next']}")
    return page["items"][-1]["id"]


def get(server, path, headers=None):
    return check(server.request("GET", path, None, headers), 200)


def post(server, path, headers):
    return check(server.request("POST", path, "", headers), 200)


def check(answer, status):
    if answer.status != status:
        raise SystemExit(f"expected {status}: {answer}")
    return json.loads(answer.body)


def report(when, server, bound):
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    peak, now = (int(line.split()[1]) / 1024 for line in lines if line.startswith(("VmHWM", "VmRSS")))
    print(f"memory, {when}: {now:.0f} MiB resident, {peak:.0f} MiB at most")
    if peak > bound:
        raise SystemExit(f"the gateway had {peak:.0f} MiB, more than {bound}")


main()
