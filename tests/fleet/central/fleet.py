"""Runs gateways whose links are cut and whose processes are killed, folds their exports, and compares the tables with what
the gateways show.

Usage: tests/fleet/central/fleet.py path/to/penstock [--gateways N] [--rounds N] [--s3 URL,KEY,SECRET] [--clocks] [--spark]

Without --s3 the gateways deliver to a folder. After each round, and after runs of the job that are killed, each table
must have the state after the exports that it claims to have. At the end it must equal the union of the views."""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from bucket import CENTRAL, read_state, read_tables, replay  # noqa: E402
from gateway import Penstock, find_free_port, wait_for  # noqa: E402
from link import FolderLink, ProxyLink  # noqa: E402

BASE = "https://plant.example/"
TEMPLATE = "{prefix}{kind}/{name}/{yyyy}/{mm}/{dd}/{sequence}.json"
# Each gateway writes exports in one of these ways.
FORMS = [{}, {"format": "jsonl"}, {"key": TEMPLATE}]
CLOCKS = ["+0", "+400d", "-3y", "+7m"]
FAKETIME = Path("/usr/lib", f"{os.uname().machine}-linux-gnu", "faketime", "libfaketimeMT.so.1")

TANKS = """type: object
path: "Tanks:."
fields:
  uri: {type: id}
  label: {type: string, path: <https://plant.example/v/label>}
  level: {type: %s, path: <https://plant.example/v/level>}
  readings:
    type: array
    path: <https://plant.example/v/reading>
    elements:
      type: object
      path: "Readings:."
      fields: {uri: {type: id}, value: {type: number, path: <https://plant.example/v/value>}}
"""
SITES = """type: object
path: "Sites:."
fields: {uri: {type: id}, city: {type: string, path: <https://plant.example/v/city>}}
"""


class Gateway(Penstock):
    """A gateway with a link to the bucket."""

    def __init__(self, binary, number, link, target, clock):
        self.name, self.link, self.clock = f"edge-{number:02}", link, clock
        form = FORMS[number % len(FORMS)]
        target = {**target, "prefix": f"{self.name}/", **form}
        settings = {f"service.export.targets.operations.{name}": value for name, value in target.items()}
        settings["service.gateway-id"] = self.name
        settings["service.export.metadata"] = "extended" if number % 2 else "standard"
        super().__init__(binary, settings)
        for name, config, on_change in [("Tanks", TANKS % "integer", True), ("Sites", SITES, False)]:
            self.define(name, config, on_change)

    def start(self, command, ready_path, before_start=None):
        if self.clock != "+0":
            environment = {"LD_PRELOAD": FAKETIME, "FAKETIME": self.clock, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            command = ["env", *(f"{name}={value}" for name, value in environment.items()), *command]
        super().start(command, ready_path, before_start)

    def define(self, name, config, on_change):
        namespaces = [{"name": one, "uriBase": f"{BASE}{one.lower()}/"} for one in ("Tanks", "Readings", "Sites")]
        super().define(name, config, enabled=True, conditions=[], pushTargets=[{"bucketName": "operations"}],
                       exportOnChange=on_change, debounce="0s", namespaces=namespaces)

    def ingest(self, name, mode, objects):
        if objects:
            self.call("POST", f"/business-objects/{name}?mode={mode}", {"data": objects})

    def read_view(self, name):
        """Returns the objects of a Business Object by URI."""
        page = self.call("GET", f"/business-objects/{name}/objects?limit=1000")
        if page.get("next"):
            raise SystemExit(f"{name} has more objects than one page; make the case smaller")
        return {one["uri"]: one for one in page["items"]}


class Work:
    """What one gateway is given to do: the same in each run of a seed."""

    def __init__(self, gateway, seed, objects):
        self.gateway, self.random, self.objects = gateway, random.Random(seed), objects
        self.tanks, self.level_type = set(), int

    def do_round(self, number):
        one = self.random
        numbers = one.sample(range(4 * self.objects), self.objects)
        self.gateway.ingest("Tanks", "ADD", [self.make_tank(n) for n in numbers if n not in self.tanks])
        self.gateway.ingest("Tanks", "UPDATE", [self.make_tank(n) for n in numbers if n in self.tanks])
        self.tanks.update(numbers)
        if number % 3 == 2:
            self.gateway.link.cut()
        if number % 4 == 3:
            self.gateway.kill()
        gone = one.sample(sorted(self.tanks), len(self.tanks) // 5)
        self.gateway.ingest("Tanks", "DELETE", [{"uri": f"{BASE}tanks/{n}"} for n in gone])
        self.tanks.difference_update(gone)
        self.gateway.ingest("Sites", "ADD", [{"uri": f"{BASE}sites/{self.gateway.name}-{number}", "city": "Ulm"}])
        if number % 2:
            self.gateway.call("POST", "/business-objects/Sites/push")
        if number == 3:
            # A changed mapping: another type of `level`.
            self.gateway.define("Tanks", TANKS % "string", True)
            self.level_type = str
        if number % 3 == 0:
            self.gateway.link.restore()

    def make_tank(self, number):
        readings = [{"uri": f"{BASE}readings/{number}-{n}", "value": self.random.randrange(1000) / 8} for n in range(number % 3)]
        return {"uri": f"{BASE}tanks/{number}", "label": f"Tank {number}", "level": self.level_type(self.random.randrange(100)), "readings": readings}


def read_fleet_exports(folder):
    """Returns the exports of all gateways: {(gateway, name): {sequence: (kind, objects)}}. Reads each form with its own rule."""
    streams = {}
    for path in Path(folder).rglob("*"):
        place = str(path.relative_to(folder))
        if found := re.fullmatch(r"(edge-\d+)/(full|incremental|deleted)/(\w+)/\d+/\d+/\d+/(\d+)\.json", place):
            gateway, kind, name, sequence = found.groups()
        elif found := re.fullmatch(r"(edge-\d+)/(\w+)/\w+-\w+Z-(\d+)(?:\.(incremental|deleted))?\.jsonl?", place):
            gateway, name, sequence, kind = found.groups()
        else:
            continue
        text = path.read_text()
        lines = place.endswith(".jsonl")
        objects = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)["data"]
        streams.setdefault((gateway, name), {})[int(sequence)] = kind or "full", objects
    return streams


class Tables:
    """The folder of the tables, and the bucket that they are made from."""

    def __init__(self, work, source, copy):
        self.central, self.source, self.copy = work / "central", source, copy

    def fold(self, engine="duckdb", central=None, kill_at=None):
        """Runs the job, and prints its figures. Returns whether it ended by itself."""
        script = [str(CENTRAL / f"fold_{engine}.py"), str(central or self.central), self.source, "--key", TEMPLATE,
                  "--partitions", "4", "--json"]
        if kill_at:
            script = [str(Path(__file__).with_name("killed.py")), str(kill_at), *script]
        done = subprocess.run([sys.executable, "-B", *script], stdout=subprocess.PIPE, text=True)
        if done.returncode not in (0, 1, 137):
            raise SystemExit(f"the job failed with {done.returncode}")
        if done.returncode != 137:
            *findings, figures = map(json.loads, done.stdout.splitlines())
            print(engine, figures, sorted({one.get("finding") or one.get("note") for one in findings}), flush=True)
            return findings
        return None

    def check_consistency(self):
        """Compares each table with what the exports up to the sequence in its state give."""
        if not (self.central / "current").exists():
            return
        exports, streams = read_fleet_exports(self.copy()), read_state(self.central)["streams"]
        for name, gateways in streams.items():
            rows = self.read(name)
            for gateway, state in gateways.items():
                expected = replay(exports[gateway, name], state["sequence"])
                if rows.get(gateway, {}) != expected:
                    raise SystemExit(f"{name} of {gateway} is not as after export {state['sequence']}")

    def read(self, name):
        rows, _ = read_tables(self.central, name)
        return {gateway: {uri: json.loads(text) for uri, text in rows.items()} for gateway, rows in rows.items()}

    def find_difference(self, gateways):
        """Returns the first gateway whose view differs from the table, or None."""
        for name in ("Tanks", "Sites"):
            rows = self.read(name)
            for gateway in gateways:
                if rows.get(gateway.name, {}) != gateway.read_view(name):
                    return f"{name} of {gateway.name}"
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--gateways", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--objects", type=int, default=20, help="objects a gateway and round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--s3", metavar="URL,KEY,SECRET")
    parser.add_argument("--clocks", action="store_true", help="give gateways wrong clocks (Debian package faketime)")
    parser.add_argument("--spark", action="store_true")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="penstock-fleet."))
    gateways = []
    try:
        run(arguments, work, gateways)
    finally:
        for gateway in gateways:
            gateway.stop()
            gateway.link.close()
        shutil.rmtree(work, ignore_errors=True)


def run(arguments, work, gateways):
    make_link, target, source, copy = open_bucket(arguments.s3, work)
    tables = Tables(work, source, copy)
    for number in range(arguments.gateways):
        link = make_link(f"edge-{number:02}")
        clock = CLOCKS[number % len(CLOCKS)] if arguments.clocks else "+0"
        gateways.append(Gateway(arguments.binary, number, link, target | link.settings, clock))
    works = [Work(gateway, arguments.seed * 1000 + n, arguments.objects) for n, gateway in enumerate(gateways)]
    chance = random.Random(arguments.seed)
    for number in range(arguments.rounds):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda one: one.do_round(number), works))
        if number % 2:
            tables.fold(kill_at=chance.randrange(1, 40))
            tables.check_consistency()
        tables.fold()
        tables.check_consistency()

    for gateway in gateways:
        gateway.link.restore()
        gateway.call("POST", "/business-objects/Sites/push")

    def is_equal():
        findings = tables.fold()
        difference = tables.find_difference(gateways)
        if difference:
            print("differs from the view:", difference, flush=True)
        return difference is None and not any("finding" in one for one in findings)

    wait_for("the tables equal the views", is_equal, pause=1)
    tables.check_consistency()
    exported = read_fleet_exports(copy())
    print(len(exported), "streams with", sum(map(len, exported.values())), "exports")
    if arguments.spark:
        compare_engines(tables, work / "spark")
    print(f"the tables equal the views of {len(gateways)} gateways")


def open_bucket(s3, work):
    """Returns a function that creates a link, the settings of the target, the source for the job, and a function that
    returns a folder with a copy of the bucket."""
    if s3 is None:
        root = work / "bucket"
        (root / "operations").mkdir(parents=True)
        folder = root / "operations"
        return lambda name: FolderLink(work / f"link-{name}", root), {"type": "directory"}, str(folder), lambda: folder
    url, key, secret = s3.split(",")
    bucket = f"fleet-{os.getpid()}-{find_free_port()}"
    os.environ |= {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1"}
    from s3 import copy_bucket, create_bucket

    create_bucket(url, bucket)
    target = {"type": "s3", "bucket": bucket, "access-key-id": key, "secret-access-key": secret, "region": "us-east-1"}
    source = f"{url}/{bucket}"
    return lambda _: ProxyLink(url), target, source, lambda: copy_bucket(source, work / "copy")


def compare_engines(tables, central):
    """Compares the tables of Spark with those of DuckDB, with all columns."""
    import duckdb

    tables.fold("spark", central)
    with duckdb.connect() as db:
        for name in ("Tanks", "Sites"):
            one, other = (f"read_parquet('{(folder / 'current').resolve()}/{name}/*.parquet')" for folder in (tables.central, central))
            # A run that has seen fewer exports knows fewer types, so columns are compared as text.
            columns = [row[0] for row in db.execute(f"DESCRIBE SELECT * FROM {one}").fetchall()]
            if columns != (others := [row[0] for row in db.execute(f"DESCRIBE SELECT * FROM {other}").fetchall()]):
                raise SystemExit(f"{name} has the columns {columns} from DuckDB, but {others} from Spark")
            left, right = (db.execute(f"SELECT _gateway, _object FROM {table} ORDER BY ALL").fetchall() for table in (one, other))
            if left != right:
                raise SystemExit(f"{name} differs between DuckDB and Spark")


if __name__ == "__main__":
    main()
