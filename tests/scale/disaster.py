"""A gateway under load loses its machine, again and again, and a new one continues from the bucket.

Usage: tests/scale/disaster.py path/to/penstock [--moments N] [--interval SECONDS] [--seed N] [--bound SECONDS]

Needs mosquitto and faketime. Objects arrive over HTTP and MQTT, changes are submitted and approved, and exports run on
change. The machine is lost (SIGKILL, and its data directory removed) at random moments, and once at each step of an
upload, a merge, a new base and a takeover. Prints what each loss cost. Fails if commits are lost that were older than the
interval and the bound when the machine was lost, if an identifier is used twice, if an export is missing or double, or if
a consumer of the exports does not end with what the view shows.
"""

import argparse
import hashlib
import http.client
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from bucket import Abort, Bucket  # noqa: E402
from gateway import CutOff, Penstock, make_backup_settings, wait_for  # noqa: E402
from mosquitto import Broker, Proxy, Publisher, make_settings  # noqa: E402

READINGS = """type: object
path: "Readings:."
key: tag
fields:
  uri: { type: id }
  tag: { type: string, required: true, path: "<https://plant.example/tag>" }
  value: { type: integer, path: "<https://plant.example/value>" }
"""
TANKS = """type: object
path: "Tanks:."
fields:
  uri: { type: id }
  level: { type: integer, path: "<https://tanks.example/level>" }
"""
QUAD = re.compile(rb'^<([^>]*)> <https://plant.example/(tag|value)> "([^"]*)"', re.MULTILINE)
LEVEL = re.compile(rb'^<([^>]*)> <https://tanks.example/level> "([^"]*)"', re.MULTILINE)
SEGMENT = re.compile(r"/(\d{20})-(\d{20})\.segment\.age$")
EXPORT = re.compile(r"Readings-\d{8}T\d{6}Z-(\d{12,})(?:\.(incremental|deleted))?\.json")
FAILURES = (OSError, CutOff, http.client.HTTPException)
# A restore continues the sequences at least this much higher, less the exports that the lost machine made after the
# restored commit.
LEAST_JUMP = 900_000
# How much faster the clock runs until segments are merged, which happens once an hour.
# Timeouts of 10 s must stay longer than an answer takes.
MERGE_SPEED = 30


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--interval", type=int, default=2, help="service.backup.interval in seconds")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--bound", type=float, default=5, help="seconds that an upload may take")
    arguments = parser.parse_args()
    print(f"--seed {arguments.seed}", flush=True)
    bucket = Bucket()
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(folder)
        try:
            proxy = Proxy(broker.port)
            settings = make_all_settings(arguments, bucket, proxy, Path(folder, "exported"))
            with Gateway(arguments.binary, settings) as gateway:
                Run(gateway, bucket, broker, proxy, Path(folder, "exported"), arguments).run()
        finally:
            broker.kill()
            bucket.stop()


def make_all_settings(arguments, bucket, proxy, exported):
    return {
        **make_settings(proxy.port, "readings/#"),
        **make_backup_settings(arguments.binary, arguments.interval),
        **bucket.settings("backups"),
        "service.log.level": "warn",
        "service.export.targets.exports.type": "directory",
        "service.export.targets.exports.path": exported,
    }


class Gateway(Penstock):
    """A gateway whose machine can be lost."""

    def lose(self):
        """Kills the gateway, and removes its data."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.work / "data")

    def restore(self):
        """Restores the backup into the data directory. Returns whether that succeeded, and what the command said."""
        command = [self.binary, "restore", "--from", "backups", *self.command[self.command.index("serve") + 1 :]]
        self.restoring = subprocess.Popen(command, cwd=self.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = self.restoring.communicate()[1].decode()
        return self.restoring.returncode == 0, said

    def read_objects(self):
        """Returns tag and value of each reading by its URI."""
        found = {}
        for subject, name, value in QUAD.findall(self.run("dump", "-")):
            found.setdefault(subject.decode(), {})[name.decode()] = value.decode()
        return {uri: (one["tag"], int(one["value"])) for uri, one in found.items()}

    def read_tanks(self):
        """Returns the URI and the level of each tank."""
        return [(uri.decode(), int(level)) for uri, level in LEVEL.findall(self.run("dump", "-"))]

    def run_faster(self, speed, interval):
        """Lets the clock run faster from the next start on. Returns the command as it was."""
        library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
        if library is None:
            raise SystemExit("faketime is missing (apt-get install faketime)")
        before = self.command
        slower = f"--service.backup.interval={round(interval * speed)}s"
        command = [slower if one.startswith("--service.backup.interval=") else one for one in before]
        self.command = ["env", f"LD_PRELOAD={library}", f"FAKETIME=+0 x{speed}", *command]
        return before


class Load:
    """What arrives until the gateway is lost, and when it was acknowledged."""

    def __init__(self, run):
        self.run, self.is_over = run, False
        # The time, and the tag of each reading that was acknowledged over HTTP.
        self.over_http = []
        # The time, the id and the state of each change.
        self.changes = []
        senders = [self.send_readings, self.send_readings, self.publish_readings, self.send_changes]
        self.threads = [threading.Thread(target=sender, daemon=True) for sender in senders]
        for thread in self.threads:
            thread.start()

    def stop(self):
        """Ends it. The run checks what was acknowledged after its losses."""
        self.is_over = True
        for thread in self.threads:
            thread.join()
        self.run.http += self.over_http
        self.run.changes += self.changes

    def post(self, path, body, key=None, headers=None):
        """Returns the answer, or None after the gateway is lost."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        try:
            answer = self.run.gateway.request("POST", f"/api/v1{path}", json.dumps(body), headers)
        except FAILURES:
            return None
        if answer.status == 503:
            return None
        if answer.status not in (200, 202):
            self.run.failures.append(f"POST {path}: {answer}")
            return None
        return json.loads(answer.body)

    def send_readings(self):
        while not self.is_over:
            tags = [self.run.new_tag("H") for _ in range(5)]
            data = [{"tag": tag, "value": number} for number, tag in enumerate(tags)]
            answer = self.post("/business-objects/Readings?mode=ADD", {"data": data})
            if answer is None:
                return
            now = time.monotonic()
            for tag, made in zip(tags, answer["objects"]):
                self.over_http.append((now, tag))
                self.run.note_identifier(made["uri"], tag)
            time.sleep(0.02)

    def publish_readings(self):
        while not self.is_over:
            tags = [self.run.new_tag("M") for _ in range(20)]
            for tag in tags:
                self.run.published[tag] = time.monotonic()
            self.run.publisher.publish("readings/a", [json.dumps({"tag": tag, "value": 1}).encode() for tag in tags])
            time.sleep(0.05)

    def send_changes(self):
        number = 0
        while not self.is_over:
            number += 1
            level = self.run.new_number()
            body = {"data": [{"level": level}]}
            change = self.post("/business-objects/Tanks?mode=ADD&review=true", body, key=self.run.author)
            if change is None:
                return
            self.changes.append((time.monotonic(), change["id"], "submitted"))
            # Its identifier has been minted, and is shown, although the tank is not stored.
            uri = self.read_minted(change["id"])
            if uri is None:
                return
            self.run.note_identifier(uri, level)
            if number % 3 == 0:
                headers = {"If-Match": '"1"'}
                if self.post(f"/changes/{change['id']}/approve", {}, headers=headers) is None:
                    return
                self.changes.append((time.monotonic(), change["id"], "approved"))
            time.sleep(0.1)

    def read_minted(self, change):
        """Returns the URI that a change gives to its only object, or None after the gateway is lost."""
        try:
            answer = self.run.gateway.request("GET", f"/api/v1/changes/{change}")
        except FAILURES:
            return None
        if answer.status == 200:
            return json.loads(answer.body)["difference"]["items"][0]["uri"]
        if answer.status != 503:
            self.run.failures.append(f"GET /changes/{change}: {answer}")
        return None


class Run:
    def __init__(self, gateway, bucket, broker, proxy, exported, arguments):
        self.gateway, self.bucket, self.proxy, self.exported, self.arguments = gateway, bucket, proxy, exported, arguments
        self.random = random.Random(arguments.seed)
        self.publisher = Publisher(broker.port, "publisher")
        self.lock, self.numbers = threading.Lock(), 0
        # Each identifier that was shown, also by a machine that is lost, with the tag or the level of its object.
        self.identifiers = {}
        # What was acknowledged over HTTP, as a load has it.
        self.http, self.changes = [], []
        # When each message was published, and when the machine began.
        self.published, self.started_at = {}, 0
        # Acknowledged commits that no later machine has.
        self.lost = set()
        # What must not happen.
        self.failures = []

    def new_number(self):
        with self.lock:
            self.numbers += 1
            return self.numbers

    def new_tag(self, kind):
        return f"{kind}-{self.new_number()}"

    def note_identifier(self, uri, name):
        with self.lock:
            if self.identifiers.setdefault(uri, name) != name:
                self.failures.append(f"{uri} was used for {self.identifiers[uri]} and {name}")

    def run(self):
        self.define()
        self.wait_until_shipped()
        print("| the machine is lost | commits lost | seconds lost | restored and ready after |\n|---|---|---|---|")
        for number in range(self.arguments.moments):
            load = Load(self)
            time.sleep(self.random.uniform(1, 3 * self.arguments.interval + 3))
            self.lose(load, f"at random moment {number + 1}")
            if not load.over_http or not load.changes:
                self.failures.append(f"nothing was acknowledged before random moment {number + 1}")
        is_segment, is_head = SEGMENT.search, lambda key: key.endswith("/head.json")
        for what, fits in [("a segment", is_segment), ("the head", is_head)]:
            for when in ("before", "after"):
                load = Load(self)
                self.kill_at(when, "PUT", fits, lambda: self.gateway.process)
                self.lose(load, f"{when} the upload of {what}")
        for when in ("before", "after"):
            self.lose_at_base(when)
        for what, fits in [("era.json", lambda key: key.endswith("/era.json")), ("head.json", is_head)]:
            for when in ("before", "after"):
                for again in ("the same machine", "another one"):
                    self.lose_at_takeover(when, what, fits, again)
        for when in ("before", "after"):
            self.lose_at_merge(when)
        self.check_exports()
        self.report()

    def define(self):
        # A key excludes numbers: an identifier could be equal to a key. The tanks have numbers.
        for name, generator in [("Readings", "uuid"), ("Tanks", "counter")]:
            namespace = {"name": name, "uriBase": f"https://{name.lower()}.example/", "generator": generator}
            self.gateway.call("PUT", f"/namespaces/{name}", namespace, (201,))
        targets = {"pushTargets": [{"bucketName": "exports"}], "exportOnChange": True, "debounce": "1s"}
        self.gateway.define("Readings", READINGS, **targets)
        self.gateway.define("Tanks", TANKS, review="optional")
        self.author = self.gateway.create_key("author", "Contributor")

    def wait_until_shipped(self):
        sequence = self.gateway.call("GET", "/status")["store"]["sequence"]

        def is_shipped():
            backup = self.gateway.call("GET", "/status")["backup"]
            return backup["restorable"] and backup["state"] == "running" and backup["lastSequence"] >= sequence

        wait_for("the bucket has every commit", is_shipped)

    def kill_at(self, when, method, fits, process):
        """Kills a process at the next request of this kind, and waits until that has happened."""
        done = threading.Event()
        self.arm(when, method, fits, process, done)
        wait_for(f"the process is killed {when} a {method}", done.is_set)

    def arm(self, when, method, fits, process, done):
        def hook(moment, asked, key):
            if not done.is_set() and (moment, asked) == (when, method) and fits(key):
                process().kill()
                done.set()
            if done.is_set():
                raise Abort

        self.bucket.hook = hook

    def disarm(self):
        self.bucket.hook = lambda when, method, key: None

    def lose(self, load, what):
        """Loses the machine under this load, continues with another one, and checks what that has."""
        self.gateway.lose()
        lost_at = time.monotonic()
        load.stop()
        self.disarm()
        self.proxy.wait_until_closed()
        self.finish(what, lost_at)

    def finish(self, what, lost_at):
        # The next machine acknowledges what comes again.
        acknowledged = [json.loads(payload)["tag"] for payload in self.proxy.acknowledged]
        begun = time.monotonic()
        succeeded, said = self.gateway.restore()
        if not succeeded:
            raise SystemExit(f"the restore failed after the loss {what}: {said}")
        self.gateway.start_again()
        ready = time.monotonic() - begun
        self.check(what, lost_at, ready, acknowledged)
        self.started_at = begun
        # The next loss finds a backup of this machine.
        self.wait_until_shipped()

    def check(self, what, lost_at, ready, acknowledged):
        objects = self.gateway.read_objects()
        stored = {tag for tag, _ in objects.values()}
        if len(stored) != len(objects):
            raise SystemExit(f"after the loss {what} a tag has two identifiers")
        for uri, (tag, _) in objects.items():
            self.note_identifier(uri, tag)
        for uri, level in self.gateway.read_tanks():
            self.note_identifier(uri, level)
        lost = [(at, tag) for at, tag in self.http if tag not in stored]
        # A message from before the start of the machine was acknowledged later.
        lost += [(max(self.published[tag], self.started_at), tag) for tag in acknowledged if tag not in stored]
        lost += self.find_lost_changes()
        new = [(at, one) for at, one in lost if one not in self.lost]
        self.lost.update(one for _, one in new)
        seconds = max((lost_at - at for at, _ in new), default=0)
        print(f"| {what} | {len(new)} | {seconds:.1f} | {ready:.1f} s |", flush=True)
        if seconds > self.arguments.interval + self.arguments.bound:
            self.failures.append(f"{what}: {len(new)} commits of the last {seconds:.1f} s are lost")

    def find_lost_changes(self):
        """Returns the time and a name of each step of a change that the gateway does not know."""
        lost = []
        for at, change, state in self.changes:
            if (change, state) in self.lost:
                continue
            answer = self.gateway.request("GET", f"/api/v1/changes/{change}")
            found = json.loads(answer.body)["state"] if answer.status == 200 else None
            if found is None or (state == "approved" and found != "approved"):
                lost.append((at, (change, state)))
        # What the next rounds need not ask about again.
        self.changes = []
        return lost

    def lose_at_base(self, when):
        """Loses a machine while it uploads the first base of its era."""
        load = Load(self)
        time.sleep(self.arguments.interval)
        self.gateway.lose()
        lost_at = time.monotonic()
        load.stop()
        self.proxy.wait_until_closed()
        succeeded, said = self.gateway.restore()
        if not succeeded:
            raise SystemExit(f"the restore failed: {said}")
        done = threading.Event()
        self.arm(when, "PUT", lambda key: key.endswith(".base.age"), lambda: self.gateway.process, done)
        try:
            self.gateway.start_again()
        except SystemExit:
            # It was killed before it was ready.
            if not done.is_set():
                raise
        wait_for("the gateway is killed at its base", done.is_set)
        self.gateway.lose()
        self.disarm()
        self.proxy.wait_until_closed()
        self.finish(f"{when} the upload of a base", lost_at)

    def lose_at_takeover(self, when, what, fits, again):
        """Ends a restore at its takeover, and restores again."""
        self.gateway.lose()
        lost_at = time.monotonic()
        self.proxy.wait_until_closed()
        done = threading.Event()
        self.arm(when, "PUT", fits, lambda: self.gateway.restoring, done)
        succeeded, said = self.gateway.restore()
        self.disarm()
        if succeeded or not done.is_set():
            raise SystemExit(f"the restore was not killed {when} the upload of {what}: {said}")
        if again == "another one":
            shutil.rmtree(self.gateway.work / "data")
        self.finish(f"{when} the upload of {what} in a takeover, which {again} repeats", lost_at)

    def lose_at_merge(self, when):
        """Loses the machine while it merges segments. Its clock runs faster until then."""
        self.gateway.process.terminate()
        self.gateway.process.wait(60)
        # Segments of 64 KiB or more are not merged, so each has little.
        as_before = self.gateway.run_faster(MERGE_SPEED, 0.1)
        self.gateway.start_again()
        load = Load(self)
        self.kill_at(when, "PUT", self.is_merged, lambda: self.gateway.process)
        self.gateway.command = as_before
        self.lose(load, f"{when} the upload of a merged segment")

    def is_merged(self, key):
        """Returns whether this segment has the frames of others in the bucket."""
        merged = SEGMENT.search(key)
        if not merged:
            return False
        first, last = map(int, merged.groups())
        era = key[: merged.start()]
        others = [SEGMENT.search(other) for other in self.bucket.keys() if other.startswith(era) and other != key]
        ranges = [tuple(map(int, other.groups())) for other in others if other]
        return any(first <= begin and end <= last for begin, end in ranges)

    def check_exports(self):
        """Waits until a consumer of the exports has what the view shows, after a full export and after incremental ones."""
        for _ in range(2):
            load = Load(self)
            time.sleep(2)
            load.stop()
            wait_for("everything is exported", self.is_exported, 120, 1)
        if self.last_kind is None:
            raise SystemExit("no incremental export followed the last restore")

    def is_exported(self):
        if self.gateway.call("GET", "/status")["queue"]["depth"]:
            return False
        return self.consume() == self.gateway.read_objects()

    def consume(self):
        """Applies the exports in the order of their sequences, as docs/verify-export.md says."""
        files = {}
        for path in self.exported.rglob("Readings-*.json"):
            name = EXPORT.fullmatch(path.name)
            if not name:
                raise SystemExit(f"foreign: {path}")
            if int(name[1]) in files:
                raise SystemExit(f"double: {path} and {files[int(name[1])][1]}")
            files[int(name[1])] = (name[2], path)
        held, before, kind = {}, 0, None
        for sequence, (kind, path) in sorted(files.items()):
            is_jump = sequence - before > LEAST_JUMP
            if not is_jump and sequence != before + 1:
                raise SystemExit(f"missing: {before + 1} to {sequence - 1}, before {path}")
            if (is_jump or before == 0) and kind is not None:
                raise SystemExit(f"the first export of a machine is not full: {path}")
            before = sequence
            raw = path.read_bytes()
            document = json.loads(raw)
            data = raw[raw.index(b'},"data":') + 9 : -1]
            if hashlib.sha256(data).hexdigest() != document["metadata"]["data_checksum"]:
                raise SystemExit(f"damaged: {path}")
            uris = [one["uri"] for one in document["data"]]
            if len(set(uris)) != len(uris):
                raise SystemExit(f"an object is twice in {path}")
            if kind is None:
                held = {}
            for one in document["data"]:
                if kind == "deleted":
                    held.pop(one["uri"], None)
                else:
                    held[one["uri"]] = (one["tag"], one["value"])
        self.exports, self.last_kind = len(files), kind
        return held

    def report(self):
        print(f"{len(self.identifiers)} identifiers, {len(self.lost)} acknowledged commits lost, {self.exports} exports")
        if self.failures:
            raise SystemExit("FAILED:\n" + "\n".join(self.failures))


main()
