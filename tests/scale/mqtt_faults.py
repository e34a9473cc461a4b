"""Sends 100,000 messages from 10 publishers through mosquitto while gateway, broker and connection fail.

Usage: tests/scale/mqtt_faults.py path/to/penstock [--messages N] [--publishers N]

Needs mosquitto. In each part of the messages something fails. Each time the gateway is killed, what it has acknowledged
must be in its store. At the end every message must be stored once, and the invalid ones must be dead letters.
"""

import argparse
import collections
import json
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import Penstock, wait_for  # noqa: E402
from mosquitto import Broker, Proxy, Publisher, make_settings, read_connection, wait_until_connected  # noqa: E402

MAPPING = """type: object
path: "Readings:."
key: tag
fields:
  tag: { type: string, required: true, path: "<https://plant.example/tag>" }
  value: { type: number, path: "<https://plant.example/value>" }
"""
QUAD = re.compile(rb'^(<[^>]*>) <https://plant.example/(tag|value)> "([^"]*)"', re.MULTILINE)
# One of this many messages is invalid.
INVALID = 997


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--publishers", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(folder)
        try:
            proxy = Proxy(broker.port)
            settings = {**make_settings(proxy.port, "readings/#"), "service.log.level": "warn"}
            with Penstock(arguments.binary, settings) as server:
                Run(server, broker, proxy, arguments).run()
        finally:
            broker.kill()


def payload(number):
    if number % INVALID == 0:
        return b"not JSON %d" % number
    return json.dumps({"tag": f"T-{number}", "value": number / 8}).encode()


class Run:
    def __init__(self, server, broker, proxy, arguments):
        self.server, self.broker, self.proxy = server, broker, proxy
        self.messages = arguments.messages
        count = arguments.publishers
        self.publishers = [Publisher(broker.port, f"publisher-{number}") for number in range(count)]
        self.kills = 0

    def run(self):
        wait_until_connected(self.server)
        # The first messages wait until their Business Object is defined.
        faults = [
            ("the Business Object is not defined yet", self.define),
            ("the gateway is killed", self.kill_gateway),
            ("the connection is cut", self.cut),
            ("the broker is stopped", self.stop_broker),
            ("the Business Object is disabled", self.disable),
            ("the gateway is killed", self.kill_gateway),
            ("the broker is killed", self.kill_broker),
            ("the connection is cut", self.cut),
            ("gateway and broker are killed", self.kill_both),
            ("the gateway is killed", self.kill_gateway),
        ]
        size = -(-self.messages // len(faults))
        for index, (name, fail) in enumerate(faults):
            self.part = range(index * size, min(self.messages, (index + 1) * size))
            self.broker_lost_messages = False
            before = len(self.proxy.acknowledged)
            begun = time.monotonic()
            with ThreadPoolExecutor(len(self.publishers)) as pool:
                published = [pool.submit(self.publish, number) for number in range(len(self.publishers))]
                # Those two wait for messages themselves.
                wait_for(
                    "a quarter is stored",
                    lambda: fail in (self.define, self.disable) or len(self.proxy.acknowledged) - before > size // 4,
                )
                fail()
                for one in published:
                    one.result()
                if self.broker_lost_messages:
                    # As senders do that keep their data, because a killed broker may have lost it.
                    wait_until_connected(self.server)
                    list(pool.map(self.publish, range(len(self.publishers))))
            self.broker.save()
            print(f"{name}: {len(self.part)} messages in {time.monotonic() - begun:.1f} s", flush=True)
        wait_for("all is stored", self.is_drained)
        self.check_all()

    def publish(self, publisher):
        numbers = self.part[publisher :: len(self.publishers)]
        self.publishers[publisher].publish(f"readings/{publisher}", [payload(number) for number in numbers])

    def define(self):
        self.wait_for_error("not defined")
        self.server.define("Readings", MAPPING)

    def wait_for_error(self, text):
        wait_for(f"the source says {text}", lambda: text in (read_connection(self.server)["error"] or ""))

    def disable(self):
        self.server.define("Readings", MAPPING, enabled=False)
        self.wait_for_error("disabled")
        self.server.define("Readings", MAPPING)

    def cut(self):
        for _ in range(5):
            self.proxy.cut()
            wait_until_connected(self.server)

    def stop_broker(self):
        self.broker.stop()
        self.broker.start()

    def kill_broker(self):
        self.broker.kill()
        self.broker.start()
        self.broker_lost_messages = True

    def kill_both(self):
        self.server.process.kill()
        self.kill_broker()
        self.kill_gateway()

    def kill_gateway(self):
        self.server.process.kill()
        self.server.process.wait()
        self.proxy.wait_until_closed()
        self.kills += 1
        acknowledged = {one for one in self.proxy.acknowledged if is_valid(one)}
        stored = {b'{"tag": "%s"' % tag for tags in self.read_store().values() for tag in tags}
        lost = [one for one in acknowledged if one.split(b",")[0] not in stored]
        if lost:
            raise SystemExit(f"{len(lost)} acknowledged messages are not stored, such as {lost[0]}")
        self.server.start_again()

    def read_store(self):
        """Returns the tags of each subject."""
        tags = collections.defaultdict(list)
        for subject, name, value in QUAD.findall(self.server.run("dump", "-")):
            if name == b"tag":
                tags[subject].append(value)
        return tags

    def is_drained(self):
        found = read_connection(self.server)
        is_idle = found["waitingMessages"] == 0 and found["received"] == found["acknowledged"]
        count = self.server.query("SELECT (COUNT(*) AS ?n) { ?s <https://plant.example/tag> ?tag }").body
        return is_idle and int(json.loads(count)["results"]["bindings"][0]["n"]["value"]) >= self.count_valid()

    def count_valid(self):
        return sum(number % INVALID != 0 for number in range(self.messages))

    def check_all(self):
        found = collections.defaultdict(dict)
        quads = QUAD.findall(self.server.run("dump", "-"))
        for subject, name, value in quads:
            found[subject][name] = value
        if len(found) != self.count_valid() or len(quads) != 2 * self.count_valid():
            raise SystemExit(f"{len(found)} objects of {len(quads)} quads are stored, not {self.count_valid()}")
        stored = {one[b"tag"]: float(one[b"value"]) for one in found.values()}
        expected = {b"T-%d" % number: number / 8 for number in range(self.messages) if number % INVALID}
        if stored != expected:
            raise SystemExit("other objects are stored than were published")
        letters = self.server.request("GET", "/api/v1/sources/plant/rejected").body.splitlines()
        texts = {json.loads(letter)["text"].encode() for letter in letters}
        if texts != {payload(number) for number in range(0, self.messages, INVALID)}:
            raise SystemExit(f"the dead letters are {sorted(texts)[:20]}")
        print(f"{self.messages} messages: {len(expected)} stored once, {len(texts)} dead letters, {self.kills} kills")


def is_valid(one):
    return one.startswith(b"{")


main()
