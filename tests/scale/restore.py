"""Restores a backup of many quads from a directory, and measures time and memory until the gateway is ready.

Usage: tests/scale/restore.py path/to/penstock [--quads N] [--bound-seconds N] [--bound MIB]

The time is from the start of `penstock restore` to the readiness of the gateway. Fails if a bound is exceeded, or if the
gateway does not have the same quads.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import Penstock, make_backup_settings, wait_for  # noqa: E402

QUADS_PER_PUMP = 10
PUMPS_PER_CHUNK = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--quads", type=int, default=10_000_000)
    parser.add_argument("--bound-seconds", type=float, default=300)
    parser.add_argument("--bound", type=int, default=128, help="MiB of resident memory")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            **make_backup_settings(arguments.binary),
            "service.export.targets.backups.type": "directory",
            "service.export.targets.backups.path": folder,
        }
        with Penstock(arguments.binary, settings) as server:
            measure(server, Path(folder, "backups"), arguments)


def measure(server, bucket, arguments):
    load(server, arguments.quads)
    sequence = server.call("GET", "/status")["store"]["sequence"]

    def is_shipped():
        backup = server.call("GET", "/status")["backup"]
        return backup["restorable"] and backup["lastSequence"] >= sequence

    wait_for("the bucket has every commit", is_shipped, 3600, 1)
    sizes = {kind: sum(path.stat().st_size for path in bucket.rglob(f"*.{kind}.age")) for kind in ("base", "segment")}
    print(f"{server.count_quads()} quads: {sizes['base'] / 2**20:.0f} MiB of bases, {sizes['segment'] / 2**20:.0f} MiB of segments")
    print(f"memory of the gateway that sent them: {server.memory('VmHWM'):.0f} MiB at most")
    expected = summarize_quads(server)
    server.process.kill()
    server.process.wait()
    shutil.rmtree(server.work / "data")

    begun = time.monotonic()
    peak = restore(server)
    restored = time.monotonic()
    server.start_again()
    seconds = time.monotonic() - begun
    print(f"restored in {restored - begun:.1f} s with {peak:.0f} MiB at most")
    ready_peak = server.memory("VmHWM")
    print(f"ready {seconds:.1f} s after the start of the restore; the gateway had {ready_peak:.0f} MiB at most")
    found = summarize_quads(server)
    failures = []
    if found != expected:
        failures.append(f"{found[0]} quads are stored, not the {expected[0]} of before")
    if seconds > arguments.bound_seconds:
        failures.append(f"it took {seconds:.0f} s, more than {arguments.bound_seconds:.0f}")
    if max(peak, ready_peak) > arguments.bound:
        failures.append(f"it took {max(peak, ready_peak):.0f} MiB, more than {arguments.bound}")
    if failures:
        raise SystemExit("FAILED: " + "; ".join(failures))


def summarize_quads(server):
    """Returns the number of quads, and a sum of their hashes, which does not depend on their order."""
    command = [server.binary, "dump", "-", f"--service.data-dir={server.work / 'data'}"]
    count = total = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as dumping:
        for line in dumping.stdout:
            count += 1
            total += int.from_bytes(hashlib.blake2b(line, digest_size=16).digest())
    if dumping.returncode:
        raise SystemExit("the quads could not be dumped")
    return count, total


def load(server, quads):
    """Loads pumps with shared and unique values through the running gateway."""
    command = [server.binary, "load", "-", "--format", "nq", f"--service.data-dir={server.work / 'data'}"]
    loading = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    begun = time.monotonic()
    for first in range(0, quads // QUADS_PER_PUMP, PUMPS_PER_CHUNK):
        last = min(first + PUMPS_PER_CHUNK, quads // QUADS_PER_PUMP)
        loading.stdin.write("".join(describe_pump(number) for number in range(first, last)).encode())
    loading.stdin.close()
    if loading.wait():
        raise SystemExit("the quads could not be loaded")
    print(f"loaded in {time.monotonic() - begun:.0f} s")


def describe_pump(number):
    base = "https://plant.example/"
    pump, graph = f"<{base}pumps/{number}>", f"<{base}pumps/>"
    values = [
        ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", f"<{base}Pump>"),
        (f"{base}name", f'"pump number {number:08}"'),
        (f"{base}maker", f"<{base}makers/{number % 97}>"),
        (f"{base}site", f"<{base}sites/{number % 31}>"),
        (f"{base}flow", f'"{number % 10_000 / 8}"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        (f"{base}installed", f'"2026-03-{1 + number % 28:02}"^^<http://www.w3.org/2001/XMLSchema#date>'),
        (f"{base}serial", f'"SN-{number * 7919 % 1_000_003:07}-{number}"'),
        (f"{base}state", f'"{("running", "stopped", "unknown")[number % 3]}"'),
        (f"{base}partOf", f"<{base}lines/{number // 50}>"),
        (f"{base}note", f'"checked by team {number % 13} in round {number // 1000}"@en'),
    ]
    return "".join(f"{pump} <{predicate}> {value} {graph} .\n" for predicate, value in values)


def restore(server):
    """Restores the backup. Returns the peak of the command's resident memory in MiB."""
    command = [server.binary, "restore", "--from", "backups", *server.command[2:]]
    restoring = subprocess.Popen(command, cwd=server.work, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(restoring.pid, 0)
    restoring.returncode = os.waitstatus_to_exitcode(status)
    if restoring.returncode:
        raise SystemExit(f"the restore ended with {restoring.returncode}")
    return usage.ru_maxrss / 1024


main()
