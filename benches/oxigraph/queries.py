"""Compares SPARQL queries over HTTP: `benches/oxigraph/run` calls this with the binaries of Penstock and Oxigraph.

Both servers load the same objects of 10 quads into one graph, and answer each query over one connection, one server after
the other. If `virtuoso-t` and `isql-vt` (Debian `virtuoso-opensource`) are installed, Virtuoso is measured too. A time is
the median of 7 answers after one that is not counted, from the request to the last byte.
"""

import http.client
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from gateway import OxigraphServer, Penstock, Server, find_free_port  # noqa: E402

BASE = "http://example.com/"
GRAPH = f"{BASE}graph/pumps"
XSD = "http://www.w3.org/2001/XMLSchema#"
ANSWERS = 7

QUERIES = {
    "count all": "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "star, 1,000 results": """SELECT ?s ?name ?serial ?power
        { ?s :maker :maker7 ; :name ?name ; :serial ?serial ; :power ?power }""",
    "chain of six joins": """SELECT ?s ?c { ?s :line ?l . ?l :hall ?h . ?h :site :site1 . ?s :feeds ?f .
        ?f :maker :maker7 . ?f :feeds ?c . ?c :maker :maker3 }""",
    "average by class": "SELECT ?class (AVG(?x) AS ?average) { ?s a ?class ; :weight ?x } GROUP BY ?class",
    "filter on text": 'SELECT ?s { ?s :name ?n FILTER(CONTAINS(?n, "9999")) }',
    "filter on a number": "SELECT ?s { ?s :power ?x FILTER(?x > 99900) }",
    "top 10": "SELECT ?s ?x { ?s :power ?x } ORDER BY DESC(?x) ?s LIMIT 10",
    "optional": "SELECT ?s ?m { ?s :line :line5 OPTIONAL { ?s :feeds ?f . ?f :maker ?m FILTER(?m = :maker3) } }",
    "union": "SELECT ?s ?n { { ?s :line :line5 } UNION { ?s :maker :maker9 } ?s :name ?n }",
    "property path": "SELECT ?x { :pump1 :feeds+ ?x }",
    "minus": "SELECT (COUNT(*) AS ?n) { ?s a :Class4 MINUS { ?s :line :line5 } }",
    "distinct": "SELECT DISTINCT ?l { ?s a :Class4 ; :line ?l }",
    "construct": "CONSTRUCT { ?s :on ?h } { ?s a :Class3 ; :line ?l . ?l :hall ?h }",
    "describe": "DESCRIBE :pump777",
    "ask": "ASK { :pump1 :feeds ?x . ?x :maker :maker3 }",
    "a literal by its value": 'SELECT ?s { ?s :serial "SN-none" }',
}


def write_quads(path, objects):
    """Writes objects of 10 quads, and the lines, halls and sites that they refer to."""
    seeded = random.Random(1)

    def quad(subject, predicate, value):
        out.write(f"<{BASE}{subject}> <{BASE}{predicate}> {value} <{GRAPH}> .\n")

    with open(path, "w") as out:
        for n in range(objects):
            pump = f"pump{n}"
            kind = f"<{BASE}Class{n % 20}>"
            out.write(f"<{BASE}{pump}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> {kind} <{GRAPH}> .\n")
            hall = seeded.choice(["north", "south", "east", "west"])
            quad(pump, "name", f'"Pump number {n} of the {hall} hall"')
            quad(pump, "serial", f'"SN-{seeded.randrange(10**9):09d}"')
            quad(pump, "power", f'"{seeded.randrange(100_000)}"^^<{XSD}integer>')
            quad(pump, "weight", f'"{seeded.randrange(100_000) / 100:.2f}"^^<{XSD}decimal>')
            day = f"20{seeded.randrange(10, 26)}-{seeded.randrange(1, 13):02d}-{seeded.randrange(1, 29):02d}"
            quad(pump, "installed", f'"{day}T00:00:00Z"^^<{XSD}dateTime>')
            quad(pump, "line", f"<{BASE}line{seeded.randrange(1000)}>")
            quad(pump, "maker", f"<{BASE}maker{seeded.randrange(100)}>")
            quad(pump, "feeds", f"<{BASE}pump{seeded.randrange(objects)}>")
            quad(pump, "note", f'"Checked by {seeded.choice(["Ann", "Bob", "Cleo"])}"@en')
        for line in range(1000):
            quad(f"line{line}", "hall", f"<{BASE}hall{line % 50}>")
        for hall in range(50):
            quad(f"hall{hall}", "site", f"<{BASE}site{hall % 5}>")


class LoadedPenstock(Penstock):
    def __init__(self, binary, file):
        # The queries are compared, not the limits: the largest result of these has 5,000 rows.
        super().__init__(binary, {"service.limits.sparql.time": "60s"})
        self.run("load", str(file))


class LoadedOxigraph(OxigraphServer):
    def __init__(self, binary, file, folder):
        folder.mkdir()
        self.work = folder
        subprocess.run([binary, "load", "--location", "oxigraph", "--file", str(file)], cwd=folder, check=True, stderr=subprocess.DEVNULL)
        subprocess.run([binary, "optimize", "--location", "oxigraph"], cwd=folder, check=True, stderr=subprocess.DEVNULL)
        port = find_free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.start([binary, "serve", "--location", "oxigraph", "--bind", f"127.0.0.1:{port}", "--union-default-graph"], "/")


class LoadedVirtuoso(Server):
    """Virtuoso's default graph is the union of all graphs already."""

    def __init__(self, file, folder):
        folder.mkdir()
        self.work = folder
        port, sql_port = find_free_port(), find_free_port()
        self.url = f"http://127.0.0.1:{port}"
        folder.joinpath("virtuoso.ini").write_text(f"""[Database]
DatabaseFile = virtuoso.db
TransactionFile = virtuoso.trx
ErrorLogFile = virtuoso.log
[TempDatabase]
DatabaseFile = virtuoso-temp.db
TransactionFile = virtuoso-temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql_port}
DirsAllowed = {file.parent}
NumberOfBuffers = 85000
MaxDirtyBuffers = 60000
[HTTPServer]
ServerPort = 127.0.0.1:{port}
[SPARQL]
ResultSetMaxRows = 1000000
MaxQueryCostEstimationTime = 0
MaxQueryExecutionTime = 60
""")
        self.start([shutil.which("virtuoso-t"), "-f", "+configfile", "virtuoso.ini"], "/sparql")
        commands = f"ld_dir('{file.parent}', '{file.name}', '{GRAPH}'); rdf_loader_run(); checkpoint;"
        subprocess.run(["isql-vt", f"127.0.0.1:{sql_port}", "dba", "dba", f"exec={commands}"], check=True, stdout=subprocess.DEVNULL)


def measure(server):
    """Returns the milliseconds and the size of the answer of each query, and the memory in MB."""
    figures = {}
    for name, text in QUERIES.items():
        is_graph = text.startswith(("CONSTRUCT", "DESCRIBE"))
        headers = {
            **server.headers,
            "Accept": "application/n-triples" if is_graph else "application/sparql-results+json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        body = urlencode({"query": f"PREFIX : <{BASE}> {text}"})
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=120)
        times = []
        for _ in range(ANSWERS + 1):
            begun = time.perf_counter()
            connection.request("POST", server.paths["query"], body, headers)
            response = connection.getresponse()
            answer = response.read()
            times.append((time.perf_counter() - begun) * 1000)
            if response.status != 200:
                raise SystemExit(f"{name}: {response.status} {answer[:500]!r}")
        connection.close()
        rows = answer.count(b"\n") if is_graph else len(json.loads(answer).get("results", {}).get("bindings", [0]))
        figures[name] = (statistics.median(times[1:]), rows)
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return figures, peak / 1024


def main():
    penstock, oxigraph, *rest = sys.argv[1:]
    objects = int(rest[0]) if rest else 100_000
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench."))
    try:
        file = folder / "pumps.nq"
        write_quads(file, objects)
        figures = {}
        with LoadedPenstock(penstock, file) as server:
            figures["Penstock"] = measure(server)
        with LoadedOxigraph(oxigraph, file, folder / "oxigraph") as server:
            figures["Oxigraph"] = measure(server)
        if shutil.which("virtuoso-t") and shutil.which("isql-vt"):
            with LoadedVirtuoso(file, folder / "virtuoso") as server:
                figures["Virtuoso"] = measure(server)
        else:
            print("Virtuoso is not installed (virtuoso-opensource): not measured.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report(objects, figures)


def report(objects, figures):
    ours, memory = figures.pop("Penstock")
    print(f"\n| SPARQL, {objects} objects, ms | rows | Penstock | {' | '.join(f'{name} | ratio' for name in figures)} |")
    print(f"|---|---|---|{'---|---|' * len(figures)}")
    ratios = {name: [] for name in figures}
    for query, (milliseconds, rows) in ours.items():
        cells = []
        for name, (theirs, _) in figures.items():
            other, other_rows = theirs[query]
            ratios[name].append(milliseconds / other)
            note = "" if other_rows == rows else f" ({other_rows} rows)"
            cells.append(f"{other:.2f}{note} | {milliseconds / other:.2f}")
        print(f"| {query} | {rows} | {milliseconds:.2f} | {' | '.join(cells)} |")
    means = [f"| {statistics.geometric_mean(values):.2f}" for values in ratios.values()]
    print(f"| geometric mean | | | {' | '.join(means)} |")
    peaks = [f"{peak:.0f} MB | {memory / peak:.2f}" for _, peak in figures.values()]
    print(f"| peak memory | | {memory:.0f} MB | {' | '.join(peaks)} |")


main()
