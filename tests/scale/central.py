"""Measures packaging/central: exports of many gateways in a folder, with DuckDB and with Spark.

Usage: tests/scale/central.py [--gateways N] [--objects N] [--changes N] [--engine duckdb|spark]

The first run folds a full export of each gateway, the second one its incremental exports, the third finds nothing new."""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fleet" / "central"))
from bucket import CENTRAL, write_export  # noqa: E402

OBJECTS_PER_CHANGE = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--gateways", type=int, default=200)
    parser.add_argument("--objects", type=int, default=2000, help="objects of a gateway")
    parser.add_argument("--changes", type=int, default=20, help="incremental exports of a gateway")
    parser.add_argument("--engine", choices=["duckdb", "spark"], action="append")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="penstock-scale."))
    try:
        measure(work, arguments)
    finally:
        shutil.rmtree(work)


def measure(work, arguments):
    engines = arguments.engine or ["duckdb", "spark"]
    one = random.Random(1)
    for number in range(arguments.gateways):
        objects = [make_object(number, n, one) for n in range(arguments.objects)]
        write_export(work / "bucket", f"edge-{number:05}/", "Tanks", 1, "full", objects)
    size = sum(path.stat().st_size for path in (work / "bucket").rglob("*.json"))
    print(f"{arguments.gateways} gateways with {arguments.objects} objects, {size / 2**20:.0f} MiB; load {os.getloadavg()[0]:.1f}")
    for engine in engines:
        report(f"{engine}, full exports", fold(engine, work))
    for number in range(arguments.gateways):
        for sequence in range(2, 2 + arguments.changes):
            objects = [make_object(number, n, one) for n in sorted(one.sample(range(arguments.objects), OBJECTS_PER_CHANGE))]
            write_export(work / "bucket", f"edge-{number:05}/", "Tanks", sequence, "incremental", objects)
    for engine in engines:
        report(f"{engine}, incremental exports", fold(engine, work))
        report(f"{engine}, nothing new", fold(engine, work))


def make_object(gateway, number, one):
    """Returns an object of about 400 bytes."""
    uri = f"https://plant.example/edge-{gateway:05}/tanks/{number:06}"
    readings = [{"uri": f"{uri}/readings/{n}", "at": "2026-03-01T12:00:00Z", "value": one.randrange(10**6) / 1000} for n in range(2)]
    return {"uri": uri, "label": f"Tank {number}", "level": one.random(), "site": f"Hall {number % 7}", "readings": readings}


def fold(engine, work):
    command = [sys.executable, "-B", str(CENTRAL / f"fold_{engine}.py"), str(work / engine), str(work / "bucket"), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def report(what, figures):
    seconds = figures["seconds"]
    rates = f"{figures['read'] / seconds:.0f} files/s, {figures['objects'] / seconds:.0f} objects/s" if figures["read"] else ""
    print(f"{what}: {figures['read']} files, {figures['objects']} objects in {seconds} s {rates}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"  the largest process so far had {peak:.0f} MiB")


main()
