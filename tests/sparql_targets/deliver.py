"""Delivers exports to SPARQL stores through faults: `tests/sparql_targets/run` calls this."""

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import OxigraphServer, Penstock, Server, find_free_port, wait_for  # noqa: E402
from link import FAULTS, Link  # noqa: E402

BASE = "https://plant.example/"
VOCABULARY = "https://plant.example/vocabulary/"
MAPPING = f"""
prefixes:
  v: {VOCABULARY}
type: object
path: "Pumps:."
types: [v:Pump]
fields:
  uri: {{type: id}}
  name: {{type: string, path: v:name}}
  label: {{type: string, path: v:label, language: en}}
  flow: {{type: number, path: v:flow}}
  maker: {{type: resource, path: v:maker}}
  built: {{type: date, path: v:built}}
  seen: {{type: dateTime, path: v:seen}}
  active: {{type: boolean, path: v:active}}
  bearings:
    type: array
    path: v:bearing
    elements:
      type: object
      path: "Bearings:."
      fields:
        uri: {{type: id}}
        position: {{type: string, path: v:position}}
        temperatures: {{type: array, path: v:temperature, elements: {{type: number}}}}
"""
BEARINGS = f"""
prefixes:
  v: {VOCABULARY}
type: object
path: "Bearings:."
fields:
  uri: {{type: id}}
  position: {{type: string, path: v:position}}
  temperatures: {{type: array, path: v:temperature, elements: {{type: number}}}}
"""
NAMES = ["plain", 'quoted "x" <y> .', "back\\slash \\u0041 \\\\u", "line\nfeed\ttab", "grüße 泵 🙂", "", "' ? $x {y}"]


class Oxigraph(OxigraphServer):
    """Oxigraph's server with its data on disk."""

    arguments = ["--location", "data"]
    # So many objects need more than 1 MiB.
    many = 2500

    def __init__(self):
        super().__init__("oxigraph")


class Virtuoso(Server):
    """Virtuoso (Debian virtuoso-opensource)."""

    paths = {"query": "/sparql", "update": "/sparql", "graphs": "/sparql-graph-crud"}
    # It compiles each update for seconds, and takes 400 lines in one.
    many = 500

    def __init__(self):
        port, sql_port = self.create_place(), find_free_port()
        sections = {
            "Database": {"DatabaseFile": "v.db", "ErrorLogFile": "v.log", "LockFile": "v.lck", "TransactionFile": "v.trx", "xa_persistent_file": "v.pxa"},
            "TempDatabase": {"DatabaseFile": "t.db", "TransactionFile": "t.trx"},
            "Parameters": {"ServerPort": f"127.0.0.1:{sql_port}", "ServerThreads": 20, "NumberOfBuffers": 10000, "MaxDirtyBuffers": 6000, "DirsAllowed": "."},
            "HTTPServer": {"ServerPort": f"127.0.0.1:{port}", "ServerThreads": 12},
            "SPARQL": {"ResultSetMaxRows": 1000000},
        }
        lines = [f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items()) for name, keys in sections.items()]
        (self.work / "virtuoso.ini").write_text("".join(lines))
        self.start(["virtuoso-t", "-f"], "/sparql")
        grants = 'grant SPARQL_UPDATE to "SPARQL"; grant execute on DB.DBA.SPARUL_RUN to "SPARQL";'
        command = ["isql-vt", f"127.0.0.1:{sql_port}", "dba", "dba", f"exec={grants}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


STORES = {"oxigraph": Oxigraph, "virtuoso": Virtuoso}


class Gateway(Penstock):
    """A gateway."""

    def view(self, name):
        """Returns all objects of a Business Object."""
        objects, cursor = [], None
        while True:
            query = urlencode({"limit": 500, **({"cursor": cursor} if cursor else {})})
            page = self.call("GET", f"/business-objects/{name}/objects?{query}")
            objects += page["items"]
            cursor = page["next"]
            if not cursor:
                return objects


def lose_data(store, link, deck):
    """Drops everything that the gateway has written, as if the store had been set up again."""
    deck.is_busy = True
    wait_until("no request is under way", lambda: not link.pending)
    if graphs := list_graphs(store):
        drops = " ;\n".join(f"DROP SILENT GRAPH <{graph}>" for graph in graphs)
        answer = store.update(drops, method="form", timeout=300)
        assert answer.status < 300 and not list_graphs(store), answer
    deck.is_busy = False


def read_graph(store, graph):
    text = f"SELECT ?s ?p ?o WHERE {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}"
    answer = store.query(text, method="GET")
    if answer.status != 200:
        raise SystemExit(f"the store answered {answer}")
    rows = json.loads(answer.body)["results"]["bindings"]
    return {(row["s"]["value"], row["p"]["value"], comparable(row["o"])) for row in rows}


def comparable(term):
    if term["type"] == "uri":
        return ("iri", term["value"])
    datatype = term.get("datatype", "").rpartition("#")[2]
    if datatype in ("decimal", "integer", "double"):
        # Virtuoso normalizes numbers and truth values.
        return ("number", float(term["value"]))
    if datatype == "boolean":
        return ("boolean", term["value"] in ("true", "1"))
    if datatype == "dateTime":
        return comparable_time(term["value"])
    if datatype == "date":
        return ("date", term["value"])
    assert datatype in ("", "string", "langString"), term
    return ("text", term["value"], term.get("xml:lang", ""))


def comparable_time(text):
    # Oxigraph drops zeros at the end of a fraction.
    return ("dateTime", datetime.fromisoformat(text.replace("Z", "+00:00")).isoformat())


def list_staged(store, graph):
    """Returns the registered staging graphs with the sequences of their exports."""
    answer = store.query(f"SELECT ?g ?of {{ GRAPH <{graph}:state> {{ ?g <urn:penstock:export:staged-for> ?of }} }}", method="GET")
    return [(row["g"]["value"], row["of"]["value"]) for row in json.loads(answer.body)["results"]["bindings"]]


def list_graphs(store):
    answer = store.query("SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } }", method="GET")
    found = {row["g"]["value"] for row in json.loads(answer.body)["results"]["bindings"]}
    return {graph for graph in found if ":export:" in graph and "connection-test" not in graph}


def triples_of(objects):
    """Returns the triples that the view shows."""
    found = set()
    for pump in objects:
        uri = pump["uri"]
        found.add((uri, "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", ("iri", VOCABULARY + "Pump")))
        for field, language in [("name", ""), ("label", "en")]:
            if field in pump:
                found.add((uri, VOCABULARY + field, ("text", pump[field], language)))
        if "flow" in pump:
            found.add((uri, VOCABULARY + "flow", ("number", float(pump["flow"]))))
        if "maker" in pump:
            found.add((uri, VOCABULARY + "maker", ("iri", pump["maker"])))
        for field in ("built", "seen", "active"):
            if field in pump:
                kind = {"built": "date", "seen": "dateTime", "active": "boolean"}[field]
                value = comparable_time(pump[field]) if kind == "dateTime" else (kind, pump[field])
                found.add((uri, VOCABULARY + field, value))
        for bearing in pump["bearings"]:
            found.add((uri, VOCABULARY + "bearing", ("iri", bearing["uri"])))
            if "position" in bearing:
                found.add((bearing["uri"], VOCABULARY + "position", ("text", bearing["position"], "")))
            for temperature in bearing["temperatures"]:
                found.add((bearing["uri"], VOCABULARY + "temperature", ("number", float(temperature))))
    return found


def make_pump(rng, number):
    bearings = [make_bearing(rng, bearing) for bearing in rng.sample(range(8), rng.randrange(4))]
    pump = {"uri": f"{BASE}pumps/{number}", "name": rng.choice(NAMES) + str(rng.randrange(100)), "bearings": bearings}
    if rng.random() < 0.5:
        pump["label"] = f"label {rng.randrange(9)}"
    if rng.random() < 0.5:
        pump["flow"] = rng.randrange(1000) / 4
    if rng.random() < 0.1:
        pump["name"] += "long " * 1500
    if rng.random() < 0.4:
        pump["built"] = f"20{rng.randrange(10, 26)}-02-{rng.randrange(10, 29)}"
        pump["seen"] = f"2026-03-01T12:00:{rng.randrange(10, 60)}{rng.choice(['Z', '.250Z', '+02:00'])}"
        pump["active"] = rng.random() < 0.5
    if rng.random() < 0.3:
        pump["maker"] = f"https://makers.example/{rng.randrange(5)}"
    return pump


def make_bearing(rng, number):
    temperatures = [rng.randrange(60, 90) + 0.5 for _ in range(rng.randrange(3))]
    return {"uri": f"{BASE}bearings/{number}", "position": f"end {rng.randrange(50)}", "temperatures": sorted(set(temperatures))}


def change(gateway, rng, pumps):
    """Changes some objects, by one of the routes."""
    action = rng.random()
    if action < 0.5:
        batch = [make_pump(rng, number) for number in rng.sample(range(pumps), rng.randrange(1, 4))]
        seen = {}
        for pump in batch:
            # Within a request, a bearing has one state.
            pump["bearings"] = [seen.setdefault(bearing["uri"], bearing) for bearing in pump["bearings"]]
        gateway.call("POST", "/business-objects/Pumps?mode=MERGE", {"data": batch})
    elif action < 0.75:
        gateway.call("POST", "/business-objects/Bearings?mode=MERGE", {"data": [make_bearing(rng, rng.randrange(8))]})
    else:
        uri = f"{BASE}pumps/{rng.randrange(pumps)}"
        gateway.call("POST", "/business-objects/Pumps?mode=DELETE", {"data": [{"uri": uri}]}, (200, 404, 409, 422))


def change_many(gateway, rng, count):
    """Changes so many objects that an export needs several requests."""
    mark = rng.randrange(1000)
    pumps = [{"uri": f"{BASE}pumps/m{number}", "name": f"{mark} {number} " + "x" * 700, "bearings": []} for number in range(count)]
    for start in range(0, len(pumps), 500):
        gateway.call("POST", "/business-objects/Pumps?mode=MERGE", {"data": pumps[start : start + 500]})


class Operator:
    """Parks exports, and retries them under later ones."""

    def __init__(self, gateway, deck, rng):
        self.gateway, self.deck, self.rng = gateway, deck, rng
        self.parked, self.retried = [], 0

    def act(self):
        if self.parked and self.rng.random() < 0.5:
            self.retry(self.parked.pop(0))
        # While the store is busy, nothing leaves the queue.
        self.deck.is_busy = True
        change(self.gateway, self.rng, 12)
        wait_until("an export is parked", self.park_one)
        self.deck.is_busy = False

    def park_one(self):
        for export in self.gateway.call("GET", "/exports?limit=20")["items"]:
            if export["status"] in ("queued", "blocked"):
                # It may be delivered at this moment.
                self.gateway.call("POST", f"/exports/{export['id']}/park", None, (200, 202, 204, 409))
                if self.gateway.call("GET", f"/exports/{export['id']}")["status"] == "parked":
                    self.parked.append(export["id"])
                    return True
        # What was changed may have been changed back.
        change(self.gateway, self.rng, 12)
        return False

    def retry(self, export):
        self.gateway.call("POST", f"/exports/{export}/retry", None, (200, 202, 204, 409))
        self.retried += 1

    def retry_all(self):
        while self.parked:
            self.retry(self.parked.pop())


def retry_blocked(gateway):
    """Ends the wait before the next attempt."""
    for export in gateway.call("GET", "/exports?limit=100")["items"]:
        if export["status"] == "blocked":
            gateway.call("POST", f"/exports/{export['id']}/retry", None, (200, 202, 204, 404, 409))


class Deck:
    """Deals faults, so that each occurs before one occurs again."""

    def __init__(self, rng, faults, rate):
        self.rng, self.faults, self.rate = rng, faults, rate
        self.cards, self.dealt, self.is_open, self.is_busy = [], set(), False, False

    def deal(self):
        if self.is_busy:
            return "busy"
        if not self.is_open or self.rng.random() >= self.rate:
            return None
        if not self.cards:
            self.cards = self.rng.sample(self.faults, len(self.faults))
        card = self.cards.pop()
        self.dealt.add(card)
        return card

    @property
    def missing(self):
        return [fault for fault in self.faults if fault not in self.dealt]


def holds(condition):
    try:
        return condition()
    except TimeoutError:
        # A store that was just killed, or has the work of late requests, may answer late.
        return False


def wait_until(what, condition):
    wait_for(what, lambda: holds(condition), pause=0.3)


def run(binary, name, protocol, seed, rounds):
    print(f"{name} {protocol}: --seed {seed} --rounds {rounds}", flush=True)
    begun = time.monotonic()
    rng = random.Random(seed)
    # With the Graph Store Protocol, late duplicates are not detected.
    possible = [fault for fault in FAULTS if protocol == "update" or fault != "late twice"]
    # A PUT is the only request of an export.
    deck = Deck(random.Random(seed + 1), possible, 0.3 if protocol == "update" else 0.6)
    with STORES[name]() as store:
        link = Link(("127.0.0.1", urlsplit(store.url).port), deck.deal)
        path = store.paths["graphs" if protocol == "graph-store" else "update"]
        settings = {
            "service.gateway-id": "gw-1",
            "service.export.targets.central.type": "sparql",
            "service.export.targets.central.endpoint": link.url + path,
            "service.export.targets.central.protocol": protocol,
        }
        with Gateway(binary, settings) as gateway:
            for namespace in ("Pumps", "Bearings"):
                body = {"name": namespace, "uriBase": f"{BASE}{namespace.lower()}/", "generator": "uuid"}
                gateway.call("PUT", f"/namespaces/{namespace}", body)
            gateway.define("Bearings", BEARINGS)
            # Several changes become one export.
            members = {"exportOnChange": True, "debounce": "500ms", "pushTargets": [{"bucketName": "central"}]}
            gateway.define("Pumps", MAPPING, **members)
            tested = gateway.call("POST", "/targets/central/test")
            assert tested["ok"], tested
            operator = Operator(gateway, deck, rng)
            deck.is_open = True
            for number in range(rounds):
                act(gateway, store, link, operator, rng, number)
                if number % 10 == 9 and number < rounds - 1 and protocol == "update":
                    check_without_faults(gateway, store, link, operator, rng, f"in round {number}")
            wait_until("each fault occurs", lambda: act_until_dealt(gateway, deck, rng))
            check_without_faults(gateway, store, link, operator, rng, "after the faults")
            deck.is_open = False
            uris = [{"uri": pump["uri"]} for pump in gateway.view("Pumps")]
            for start in range(0, len(uris), 500):
                gateway.call("POST", "/business-objects/Pumps?mode=DELETE", {"data": uris[start : start + 500]})
            check(gateway, store, "after everything was deleted")
            exports = gateway.call("GET", "/exports?limit=500")["items"]
            check_coverage(gateway, store, link, operator, exports)
        seconds = time.monotonic() - begun
        print(f"{name} {protocol}: equal; faults {link.seen}, {len(link.sizes)} requests, {len(exports)} exports, {seconds:.0f} s", flush=True)
        link.close()


def act(gateway, store, link, operator, rng, number):
    """Does what one round has."""
    if number % 10 == 3:
        change_many(gateway, rng, store.many)
    for _ in range(rng.randrange(1, 5)):
        change(gateway, rng, 12)
        time.sleep(rng.random() * 0.15)
    if number % 5 == 2:
        operator.act()
    if number % 10 == 5:
        gateway.kill()
    if number % 20 == 7:
        store.kill()
    if number % 10 == 8:
        lose_data(store, link, operator.deck)
    time.sleep(rng.random() * 0.5)
    retry_blocked(gateway)


def act_until_dealt(gateway, deck, rng):
    """Changes something while a fault has not occurred. Returns whether each has."""
    if not deck.missing:
        return True
    change(gateway, rng, 12)
    retry_blocked(gateway)
    return False


def check_without_faults(gateway, store, link, operator, rng, when):
    """Compares after a change that was delivered without a fault. A store that lost data shows so only then."""
    deck = operator.deck
    deck.is_open = False
    operator.retry_all()
    # A late request is sent within two seconds.
    time.sleep(1.6)
    wait_until("no request is under way", lambda: not link.pending)
    for number in range(5):
        # An export drops what earlier ones have staged. One that is retried leaves its own staging graphs to the next.
        pump = make_pump(rng, 0) | {"bearings": [], "maker": f"https://makers.example/{when}/{number}".replace(" ", "-")}
        gateway.call("POST", "/business-objects/Pumps?mode=MERGE", {"data": [pump]})
        others = check(gateway, store, when)
        if number > 0 and not others:
            break
    else:
        raise SystemExit(f"{when}, staging graphs are left: {others}")
    deck.is_open = True


def check_coverage(gateway, store, link, operator, exports):
    """Checks that everything has happened that the test is about."""
    kinds = {export["kind"] for export in exports}
    assert kinds == {"full", "incremental", "deleted"}, kinds
    assert gateway.restarts and store.restarts and operator.retried, "a kill or a retry is missing"
    assert len(exports) >= 6, f"{len(exports)} exports only"
    longest = max(link.sizes)
    if "update" in gateway.command[-1]:
        assert longest <= 1 << 20, f"a request has {longest} bytes"
    assert longest > 20_000, f"the longest request has {longest} bytes only"


def check(gateway, store, when):
    """Waits until the graph equals the view. Returns the other graphs in the store."""
    graph = "urn:penstock:gw-1:export:Pumps"
    found = {}

    def is_equal():
        target = gateway.call("GET", "/targets")["items"][0]
        if target["depth"]:
            retry_blocked(gateway)
            return False
        found["view"], found["graph"] = triples_of(gateway.view("Pumps")), read_graph(store, graph)
        return found["view"] == found["graph"]

    try:
        wait_until(when, is_equal)
    except SystemExit:
        print(json.dumps(gateway.call("GET", "/targets"))[:2000])
        if found:
            print("staged", list_staged(store, graph))
            print("exports", [(export["id"], export["sequence"], export["kind"], export["attempts"]) for export in gateway.call("GET", "/exports?limit=20")["items"]])
            print("missing", sorted(found["view"] - found["graph"])[:5], "too many", sorted(found["graph"] - found["view"])[:5])
        raise
    return list_graphs(store) - {graph, f"{graph}:state"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--store", action="append", choices=sorted(STORES))
    parser.add_argument("--protocol", action="append", choices=["update", "graph-store"])
    options = parser.parse_args()
    if shutil.which("virtuoso-t") is None and "virtuoso" in (options.store or STORES):
        raise SystemExit("Virtuoso is missing: install Debian's virtuoso-opensource, or name --store oxigraph")
    for name in options.store or STORES:
        for protocol in options.protocol or ["update", "graph-store"]:
            run(options.binary, name, protocol, options.seed, options.rounds)


main()
