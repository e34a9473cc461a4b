"""Runs the SPARQL 1.1 test suite of the W3C against a gateway, and prints counts and failures.

Usage: tests/sparql/python tests/sparql/w3c.py path/to/penstock SUITE [--only TEXT] [--manifest FILE]...

SUITE is the folder `sparql` of https://github.com/w3c/rdf-tests. Tests of federation, entailment and the protocol's
documents are left out.

The gateway stores no blank nodes, and its default graph in WHERE is the union of all graphs. So blank nodes are loaded
as IRIs, which count as blank nodes in answers, and a query with named graphs gets its dataset by the protocol's
parameters. What cannot be made equal is in `EXPECTED_FAILURES`, with its reason.
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

import pyoxigraph
from rdflib import RDF, RDFS, Graph as Manifest, Namespace
from rdflib.collection import Collection

from endpoints import Oxigraph
from terms import Graph, Table, describe_difference, read_csv, read_json, read_nquads, read_results, read_tsv, read_xml
from terms import iri, to_nquads

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import open_server  # noqa: E402

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
UT = Namespace("http://www.w3.org/2009/sparql/tests/test-update#")
RS = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")
BASE = "http://suite.example/"
DEFAULT_GRAPH = "http://suite.example/the-default-graph"
SKOLEM = "http://suite.example/.well-known/genid/"
LEFT_OUT = (
    "/service/",
    "/syntax-fed/",
    "/entailment/",
    "/protocol/",
    "/service-description/",
    "/graph-store-protocol/",
    "/http-rdf-update/",
)

# Tests that fail for a known reason: a part of the test's IRI, and the reason.
STORED_AS_IRI = "the store has no blank nodes"
EXPECTED_FAILURES = {
    "update-silent/load-silent": "the gateway refuses LOAD",
    "update-silent/load-into-silent": "the gateway refuses LOAD",
    "open-world/date-2": "spareval: dates with and without a time zone are compared as XSD 1.1 says",
    "expr-builtin/dawg-isBlank-1": STORED_AS_IRI,
    "expr-builtin/dawg-isURI-1": STORED_AS_IRI,
    "expr-builtin/dawg-isIRI-1": STORED_AS_IRI,
    "sort/dawg-sort-8": STORED_AS_IRI,
}


class Suite:
    def __init__(self, root, server):
        self.root, self.server = root, server

    def path(self, node):
        return self.root / str(node).removeprefix(BASE)

    def read_text(self, node):
        return self.path(node).read_text(encoding="utf-8")

    def read_quads(self, node, graph, number):
        """Reads a file of RDF as quads of a graph. Blank nodes become IRIs."""
        kind = {".ttl": "TURTLE", ".nt": "N_TRIPLES", ".rdf": "RDF_XML", ".trig": "TRIG", ".nq": "N_QUADS"}[
            self.path(node).suffix
        ]
        quads = pyoxigraph.parse(
            path=str(self.path(node)), format=getattr(pyoxigraph.RdfFormat, kind), base_iri=str(node)
        )
        return {
            (*(hide_blank_node(Oxigraph.term(t), number) for t in (q.subject, q.predicate, q.object)), graph)
            for q in quads
        }

    def tests(self, manifest):
        """Yields the manifest graph and the test of each entry, those of included manifests too."""
        graph = Manifest()
        graph.parse(self.path(manifest), publicID=str(manifest), format="turtle")
        for entries in graph.objects(None, MF.include):
            for other in Collection(graph, entries):
                if self.path(other).exists():
                    yield from self.tests(other)
        for entries in graph.objects(None, MF.entries):
            for test in Collection(graph, entries):
                yield manifest, graph, test

    def run(self, graph, test):
        """Runs a test. Returns None if it passes, otherwise what is wrong."""
        kind = next((str(k).removeprefix(MF) for k in graph.objects(test, RDF.type) if str(k).startswith(MF)), "none")
        action, result = graph.value(test, MF.action), graph.value(test, MF.result)
        if "SyntaxTest" in kind:
            return self.check_syntax(action, "Update" in kind, kind.startswith("Positive"))
        if kind == "UpdateEvaluationTest":
            return self.check_update(graph, action, result)
        if kind in ("QueryEvaluationTest", "CSVResultFormatTest"):
            return self.check_query(graph, test, action, result)
        return f"SKIP {kind}"

    def check_syntax(self, action, is_update, is_positive):
        self.server.load("")
        text = self.read_text(action)
        text = f"BASE <{action}>\n{text}"
        answer = (
            self.server.update(text, [("skolemize", SKOLEM)]) if is_update else self.server.query(text, accept="*/*")
        )
        is_error = answer.status == 400
        return None if is_error != is_positive else f"{'refused' if is_error else 'accepted'}: {answer}"

    def check_query(self, graph, test, action, result):
        query = graph.value(action, QT.query)
        text = self.read_text(query)
        named = [str(n) for n in graph.objects(action, QT.graphData)]
        defaults = [str(d) for d in graph.objects(action, QT.data)]
        parameters, quads = [], set()
        # The graphs of FROM are files beside the query.
        clauses = re.findall(r"\bFROM\s+(?:NAMED\s+)?<([^>]+)>", re.sub(r"#[^\n<>]*\n", "\n", text), re.I)
        for number, file in enumerate(clauses):
            node = str(query).rsplit("/", 1)[0] + "/" + file if "://" not in file else file
            if self.path(node).exists():
                quads |= self.read_quads(node, node, f"f{number}")
        target = DEFAULT_GRAPH if named and not clauses else None
        for number, node in enumerate(defaults):
            quads |= self.read_quads(node, target, f"d{number}")
        for number, node in enumerate(named):
            quads |= self.read_quads(node, node, f"n{number}")
        if target:
            parameters = [("default-graph-uri", DEFAULT_GRAPH)] + [("named-graph-uri", n) for n in named]
        self.server.load(to_nquads(quads))
        is_graph = re.search(r"^\s*(CONSTRUCT|DESCRIBE)\b", text, re.I | re.M) is not None
        accept = (
            "application/n-triples"
            if is_graph
            else {
                ".srj": "application/sparql-results+json",
                ".csv": "text/csv",
                ".tsv": "text/tab-separated-values",
            }.get(self.path(result).suffix if result else "", "application/sparql-results+xml")
        )
        answer = self.server.query(f"BASE <{query}>\n{text}", accept, parameters)
        if answer.status != 200:
            return f"{answer}"
        if not result:
            return None
        wanted, is_ordered = self.read_result(result, is_graph)
        held = show_blank_nodes(read_results(answer.body, answer.content_type))
        is_lax = graph.value(test, MF.resultCardinality) == MF.LaxCardinality
        difference = describe_difference(held, wanted, is_ordered, is_lax)
        return f"answer and result: {difference}" if difference else None

    def read_result(self, node, is_graph):
        """Returns an expected result, and whether its rows are ordered."""
        path = self.path(node)
        reader = {".srx": read_xml, ".srj": read_json}.get(path.suffix)
        if reader:
            return show_blank_nodes(reader(path.read_bytes())), False
        if path.suffix == ".tsv":
            return read_tsv(path.read_text(encoding="utf-8")), False
        if path.suffix == ".csv":
            return read_csv(re.sub(r"\r?\n", "\r\n", path.read_text(encoding="utf-8"))), False
        if is_graph:
            return show_blank_nodes(Graph({q[:3] for q in self.read_quads(node, None, "r")})), False
        return self.read_result_set(node)

    def read_result_set(self, node):
        """Reads a table that is written as RDF, in the vocabulary of the result sets."""
        quads = show_blank_nodes(Graph({q[:3] for q in self.read_quads(node, None, "r")})).triples
        get = lambda s, p: [o for a, b, o in quads if a == s and b == iri(str(RS[p]))]
        (top,) = [s for s, p, o in quads if p[1] == str(RDF.type) and o == iri(str(RS.ResultSet))]
        if get(top, "boolean"):
            return get(top, "boolean")[0][1] == "true", False
        variables = [v[1] for v in get(top, "resultVariable")]
        rows = []
        for solution in get(top, "solution"):
            row = {get(b, "variable")[0][1]: get(b, "value")[0] for b in get(solution, "binding")}
            index = [int(i[1]) for i in get(solution, "index")]
            rows.append((index, tuple(row.get(v) for v in variables)))
        is_ordered = bool(rows) and all(index for index, _ in rows)
        rows.sort(key=lambda row: row[0])
        return Table(variables, [row for _, row in rows]), is_ordered

    def check_update(self, graph, action, result):
        self.server.load(to_nquads(self.read_dataset(graph, action, "b")))
        request = graph.value(action, UT.request)
        answer = self.server.update(f"BASE <{request}>\n{self.read_text(request)}", [("skolemize", SKOLEM)])
        if answer.status not in (200, 204):
            return f"{answer}"
        held, wanted = (
            Table(list("spog"), [(*q[:3], q[3] and iri(q[3])) for q in quads])
            for quads in (read_nquads(self.server.dump()), self.read_dataset(graph, result, "a"))
        )
        difference = describe_difference(show_blank_nodes(held), show_blank_nodes(wanted))
        return f"store and result: {difference}" if difference else None

    def read_dataset(self, graph, node, prefix):
        quads = set()
        for number, file in enumerate(graph.objects(node, UT.data)):
            quads |= self.read_quads(file, None, f"{prefix}d{number}")
        for number, data in enumerate(graph.objects(node, UT.graphData)):
            name = str(graph.value(data, RDFS.label))
            quads |= self.read_quads(graph.value(data, UT.graph), name, f"{prefix}g{number}")
        return quads


def hide_blank_node(term, number):
    return iri(f"{SKOLEM}{number}-{term[1]}") if term[0] == "bnode" else term


def show_blank_nodes(answer):
    """Makes blank nodes of the IRIs that stand for them."""
    show = lambda t: ("bnode", t[1]) if t and t[0] == "iri" and t[1].startswith(SKOLEM) else t
    if isinstance(answer, Graph):
        return Graph({tuple(map(show, triple)) for triple in answer.triples})
    if isinstance(answer, Table) and answer.untyped:
        return Table(
            answer.variables, [tuple("_:b" if c.startswith(SKOLEM) else c for c in r) for r in answer.rows], True
        )
    if isinstance(answer, Table):
        return Table(answer.variables, [tuple(map(show, row)) for row in answer.rows])
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("suite", type=Path)
    parser.add_argument("--only", help="only tests whose IRIs contain this")
    parser.add_argument("--manifest", action="append", help="by default those of SPARQL 1.1 and 1.0")
    options = parser.parse_args()
    counts, failures = Counter(), []
    with open_server(options.binary) as server:
        server.has_union = False
        suite = Suite(options.suite.resolve(), server)
        for name in options.manifest or [
            "sparql11/manifest-all.ttl",
            "sparql10/manifest-syntax.ttl",
            "sparql10/manifest-evaluation.ttl",
        ]:
            for manifest, graph, test in suite.tests(BASE + name):
                folder = manifest.removeprefix(BASE).rsplit("/", 1)[0] + "/"
                identity = folder + str(test).rsplit("#", 1)[-1]
                if options.only and options.only not in identity:
                    continue
                if any(part in f"/{folder}" for part in LEFT_OUT):
                    counts[name, "left out"] += 1
                    continue
                try:
                    wrong = suite.run(graph, test)
                except (ValueError, KeyError, OSError) as error:
                    wrong = f"{type(error).__name__}: {error}"
                if wrong and wrong.startswith("SKIP"):
                    counts[name, "left out"] += 1
                    continue
                reason = next((why for part, why in EXPECTED_FAILURES.items() if part in identity), None)
                counts[name, "passed" if not wrong else "failed as expected" if reason else "failed"] += 1
                if wrong:
                    failures.append(identity)
                    print(f"{'expected' if reason else 'FAILED'}: {identity}: {reason or wrong[:900]}", flush=True)
                if server.process.poll() is not None:
                    raise SystemExit(f"the gateway ended in {identity}:\n{server.log_path.read_text()[-2000:]}")
    for (name, what), count in sorted(counts.items()):
        print(f"{count:5} {what:18} {name}")
    sys.exit(1 if any(what == "failed" for _, what in counts) else 0)


if __name__ == "__main__":
    main()
