"""Measures what the continuous backup costs: the rate of ingestion and computing without and with it, and the bytes sent.

Usage: tests/scale/backup_cost.py path/to/penstock [--quads N] [--rounds N] [--slow-seconds N]

Each round has a gateway without and one with a backup into a directory, at the shortest interval. Then a gateway gets a
small commit in each interval, and sends it to an S3 server of the script. The merge an hour later is not in its figures.
Goals: 97 % of the rate; 1.3 times the packed journal; for the small commits twice the frames and 2 KiB for each
interval. Fails if less than 90 % of the rate remains, or if more bytes are sent.
"""

import argparse
import http.client
import json
import os
import random
import re
import statistics
import struct
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from bucket import Bucket  # noqa: E402
from gateway import Penstock, make_backup_settings, wait_for  # noqa: E402

BASE = "https://plant.example/"
MAPPING = 'type: object\npath: "Machines:."\nfields:\n' + "".join(
    f"  r{n}: {{ type: resource, path: <{BASE}v/r{n}> }}\n  s{n}: {{ type: string, path: <{BASE}v/s{n}> }}\n"
    for n in range(1, 6)
)
QUADS_PER_OBJECT = 10
OBJECTS_PER_REQUEST = 100
WANTED_PERCENT = 90
MAX_SENT_RATIO = 1.3
SLOW_INTERVAL_SECONDS = 2
# For each interval with a commit, besides twice its frames.
EXTRA_BYTES = 2048


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--quads", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow-seconds", type=int, default=60)
    arguments = parser.parse_args()
    failures = measure_ingestion(arguments)
    failures += measure_small_commits(arguments)
    if failures:
        raise SystemExit("FAILED: " + "; ".join(failures))


def measure_ingestion(arguments):
    bodies = build_bodies(arguments.quads // QUADS_PER_OBJECT)
    rounds = []
    print("| round | quads/s without | with | us of computing for each quad without | with |")
    print("|---|---|---|---|---|")
    for number in range(1, arguments.rounds + 1):
        without = measure_round(arguments.binary, {}, bodies)
        with tempfile.TemporaryDirectory() as folder:
            target = {
                **make_backup_settings(arguments.binary, 1),
                "service.export.targets.backups.type": "directory",
                "service.export.targets.backups.path": folder,
            }
            backed_up = measure_round(arguments.binary, target, bodies)
        rounds.append((without, backed_up))
        figures = f"{without.rate:.0f} | {backed_up.rate:.0f} | {without.computing:.2f} | {backed_up.computing:.2f}"
        print(f"| {number} | {figures} |", flush=True)
    percent = 100 * statistics.median(backed_up.rate / without.rate for without, backed_up in rounds)
    computing = 100 * statistics.median(backed_up.computing / without.computing for without, backed_up in rounds)
    print(f"with the backup: {percent:.1f} % of the rate, {computing:.1f} % of the computing (medians)")
    failures = [] if percent >= WANTED_PERCENT else [f"less than {WANTED_PERCENT} % of the rate remains"]
    ratios = [backed_up.sent / backed_up.journal for _, backed_up in rounds if backed_up.journal]
    last = rounds[-1][1]
    if not ratios:
        print(f"{last.sent / 2**20:.1f} MiB of segments sent; the journal has no packed segment to compare with")
        return failures
    print(
        f"{last.sent / 2**20:.1f} MiB of segments sent, {last.journal / 2**20:.1f} MiB of packed journal: "
        f"{statistics.median(ratios):.2f} times (median); {last.sent_bases / 2**20:.1f} MiB of bases besides"
    )
    if max(ratios) > MAX_SENT_RATIO:
        failures.append(f"{max(ratios):.2f} times the packed journal was sent, more than {MAX_SENT_RATIO}")
    return failures


class Round:
    """What the ingestion took in one gateway."""

    def __init__(self, server, quads, seconds, computing):
        # Microseconds, for a quad.
        self.rate, self.computing = quads / seconds, computing * 1e6 / quads
        sent = read_sent_bytes(server)
        self.sent, self.sent_bases = sent["segment"], sent["base"]
        self.journal = Journal(server).estimate_packed()


def measure_round(binary, settings, bodies):
    with Penstock(binary, settings) as server:
        define_machines(server)
        wait_until_quiet(server)
        quads = server.count_quads()
        computed, begun = read_computing(server), time.monotonic()
        client = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=600)
        for body in bodies:
            ingest(client, server, body)
        seconds = time.monotonic() - begun
        # The rest of the work: packing, the last segment, and a base.
        wait_until_quiet(server)
        computing = read_computing(server) - computed
        stored = server.count_quads() - quads
        expected = sum(body.count(b'"uri"') for body in bodies) * QUADS_PER_OBJECT
        if stored != expected:
            raise SystemExit(f"{stored} quads are stored, not {expected}")
        return Round(server, stored, seconds, computing)


def measure_small_commits(arguments):
    bucket, puts, sent = Bucket(), Counter(), Counter()

    def count_upload(when, method, key):
        if (when, method) == ("after", "PUT"):
            kind = re.search("segment|base|head", key.rsplit("/", 1)[1])
            kind = kind[0] if kind else "other"
            puts[kind] += 1
            sent[kind] += len(bucket.objects[key].body)

    settings = {**make_backup_settings(arguments.binary, SLOW_INTERVAL_SECONDS), **bucket.settings("backups")}
    try:
        with Penstock(arguments.binary, settings) as server:
            define_machines(server)
            wait_until_quiet(server)
            before = Journal(server)
            bucket.hook = count_upload
            client = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=600)
            for body in build_bodies(arguments.slow_seconds // SLOW_INTERVAL_SECONDS, 1):
                ingest(client, server, body)
                time.sleep(SLOW_INTERVAL_SECONDS)
            wait_until_quiet(server)
            frames = Journal(server).plain - before.plain
    finally:
        bucket.stop()
    intervals, bytes_sent = puts["segment"], sent["segment"] + sent["head"]
    allowed = 2 * frames + EXTRA_BYTES * intervals
    print(
        f"small commits in {intervals} intervals: {sent['segment']} B of segments and {sent['head']} B of heads sent for "
        f"{frames} B of frames, {100 * bytes_sent / max(allowed, 1):.0f} % of the {allowed} B of the goal"
    )
    return [f"{bytes_sent} B were sent for small commits, more than {allowed}"] if bytes_sent > allowed else []


def define_machines(server):
    server.call("PUT", "/namespaces/Machines", {"name": "Machines", "uriBase": f"{BASE}m/", "generator": "manual"})
    server.define("Machines", MAPPING)


def build_bodies(objects, per_request=OBJECTS_PER_REQUEST):
    """Builds requests as those of benches/oxigraph: references that 20 objects share, and unique strings."""
    numbers, bodies = random.Random(7), []
    for first in range(0, objects, per_request):
        data = [
            {"uri": f"{BASE}m/{number:07}"}
            | {f"r{field}": f"{BASE}r/{field}/{number // 20}" for field in range(1, 6)}
            | {f"s{field}": f"value-{numbers.getrandbits(128):032x}" for field in range(1, 6)}
            for number in range(first, min(first + per_request, objects))
        ]
        bodies.append(json.dumps({"data": data}).encode())
    return bodies


def ingest(client, server, body):
    headers = {**server.headers, "Content-Type": "application/json"}
    client.request("POST", "/api/v1/business-objects/Machines?mode=ADD&objects=false", body, headers)
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{answer.status} {text[-600:]}")


def wait_until_quiet(server):
    """Waits until the journal is packed, and the bucket has every commit so far and a base, if there is one."""
    wait_for("the journal is packed", lambda: Journal(server).is_packed, 600, 0.5)
    sequence = server.call("GET", "/status")["store"]["sequence"]

    def is_sent():
        backup = server.call("GET", "/status")["backup"]
        return backup is None or (
            backup["restorable"] and not backup["basePending"] and backup["lastSequence"] >= sequence
        )

    wait_for("the bucket has every commit", is_sent, 600, 0.5)


def read_computing(server):
    """Returns the seconds of user and system time of the gateway's process."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_sent_bytes(server):
    """Returns the bytes of segments, merged ones included, and of bases that the target accepted."""
    text = server.request("GET", "/metrics").body.decode()
    return Counter({kind: int(n) for kind, n in re.findall(r'penstock_backup_sent_bytes_total\{kind="(\w+)"\} (\d+)', text)})


class Journal:
    """The bytes of the journal: of packed segments, of the frames in these, and of frames that are not packed."""

    def __init__(self, server):
        self.packed = self.unpacked = self.plain = 0
        self.is_packed = True
        paths = sorted((server.work / "data/store/journal").glob("*.journal"))
        for path in paths:
            segment = path.read_bytes()
            (version,) = struct.unpack_from("<I", segment, 8)
            # As store/FORMAT.md says: packs have the layout 1; the oldest format has versions of its own.
            if version == 2 or version >> 16 == 1:
                self.packed += len(segment)
                self.unpacked += sum_unpacked(segment)
            else:
                self.plain += len(segment) - HEADER_BYTES
                self.is_packed &= path == paths[-1]

    def estimate_packed(self):
        """Returns what all frames take packed, if those of the newest segment pack as the others; `None` without others."""
        return self.packed + self.plain * self.packed / self.unpacked if self.unpacked else None


HEADER_BYTES = 40
FRAME_HEADER_BYTES = 16
# Before the length of what is packed: the kind, the method and a checksum.
PART_HEADER_BYTES = 6


def sum_unpacked(segment):
    """Returns the bytes of the frames in a packed segment."""
    total, place = 0, HEADER_BYTES
    while place < len(segment):
        (length,) = struct.unpack_from("<I", segment, place)
        total += read_number(segment, place + FRAME_HEADER_BYTES + PART_HEADER_BYTES)
        place += FRAME_HEADER_BYTES + length
    return total


def read_number(data, place):
    """Reads a number: the leading one bits of its first byte count the bytes that follow."""
    more = 8 - (data[place] ^ 0xFF).bit_length()
    rest = int.from_bytes(data[place + 1 : place + 1 + more])
    return (data[place] & 0x7F >> more) << 8 * more | rest


main()
