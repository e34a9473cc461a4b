"""Runs the test suites of SHACL Core and ShEx against `penstock validate`, and prints counts and failures.

Usage: tests/shapes/python tests/shapes/w3c.py path/to/penstock SUITE [--only TEXT]

SUITE is the folder `data-shapes-test-suite/tests/core` of https://github.com/w3c/data-shapes, or a copy of
https://github.com/shexSpec/shexTest with its folders `validation`, `schemas`, `negativeSyntax` and
`negativeStructure`.

With a schema, the gateway validates subjects. So tests of ShEx whose focus node is none are left out. A schema is validated with the shape of the test as its `start`. What the gateway refuses is counted with the
reason.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import rdflib

# Literals keep their lexical forms.
rdflib.NORMALIZE_LITERALS = False

from rdflib import RDF, BNode, Graph, Namespace, URIRef

from compare import SH, read_report

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
SHT = Namespace("http://www.w3.org/ns/shacl-test#")
SHEX_BASE = "https://raw.githubusercontent.com/shexSpec/shexTest/master/validation/"

# Tests that fail for a known reason.
NUMBERS = "rudof compares numbers in value sets by their value"
CYCLES = "rudof accepts this cycle; validating with it ends"
EXPECTED_FAILURES = {
    "1val1INTEGER_00": NUMBERS,
    "1val1DECIMAL_00": NUMBERS,
    "negativeStructure/1focusRefANDSelfdot": CYCLES,
    "negativeStructure/Cycle2Extra": CYCLES,
    "misc/severity-002": "a severity that SHACL does not define counts as sh:Violation",
}


def validate(binary, folder, shapes, data, output):
    """Returns the output, or None and what was refused."""
    command = [binary, "validate", "--shapes", shapes, data, "--format", output]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    return (done.stdout, None) if done.returncode in (0, 1) else (None, done.stderr.strip())


def remove_description(graph, node):
    """Removes what describes a test: the triples of a node, and of the blank nodes in them."""
    for triple in list(graph.triples((node, None, None))):
        graph.remove(triple)
        if isinstance(triple[2], BNode):
            remove_description(graph, triple[2])


def read_without_tests(path):
    """Returns a document without the tests and the expected reports in it."""
    graph = Graph().parse(path, format="turtle", publicID=path.as_uri())
    for node in [*graph.subjects(RDF.type, SHT.Validate), *graph.subjects(RDF.type, MF.Manifest)]:
        for expected in list(graph.objects(node, MF.result)):
            for result in list(graph.objects(expected, SH.result)):
                # The nodes that a report names belong to the data.
                for name in ("focusNode", "value", "sourceShape"):
                    graph.remove((result, SH[name], None))
        remove_description(graph, node)
    return graph


def run_shacl(binary, root, only):
    for path in sorted(root.rglob("*.ttl")):
        tests = Graph().parse(path, format="turtle", publicID=path.as_uri())
        for test in tests.subjects(RDF.type, SHT.Validate):
            name = f"{path.parent.name}/{path.stem}"
            if only and only not in name:
                continue
            action, expected = tests.value(test, MF.action), tests.value(test, MF.result)
            files = [tests.value(action, SHT[part]) for part in ("shapesGraph", "dataGraph")]
            shapes, data = (read_without_tests(Path(file.removeprefix("file://"))) for file in files)
            with tempfile.TemporaryDirectory() as folder:
                shapes.serialize(Path(folder) / "shapes.nt", format="nt", encoding="utf-8")
                data.serialize(Path(folder) / "data.nt", format="nt", encoding="utf-8")
                found, refused = validate(binary, folder, "shapes.nt", "data.nt", "turtle")
            if expected == SHT.Failure:
                yield name, "passed" if refused else "failed", "it must be refused"
                continue
            if refused:
                yield name, "refused", refused
                continue
            wanted = read_report(tests)
            found = read_report(Graph().parse(data=found, format="turtle"))
            yield name, "passed" if wanted == found else "failed", f"missing {wanted - found}, unexpected {found - wanted}"


def run_shex(binary, root, only):
    base = root / "validation"
    tests = json.loads((base / "manifest.jsonld").read_text())["@graph"][0]["entries"]
    for test in tests:
        name, action = test["name"], test["action"]
        if only and only not in name:
            continue
        focus, data = action.get("focus"), action.get("data")
        if "map" in action or not data or not isinstance(focus, str):
            yield name, "left out", "a shape map, or a literal"
            continue
        if focus.startswith("_:") or re.search("bnode-|nonliteral.*bnode", name):
            yield name, "left out", "a blank node, or the length of its label"
            continue
        focus = SHEX_BASE + focus if not re.match(r"^[a-z]+:", focus) else focus
        graph = Graph().parse(base / data, format="turtle", publicID=SHEX_BASE + data)
        if (URIRef(focus), None, None) not in graph:
            yield name, "left out", "the focus node is no subject"
            continue
        schema = (base / action["schema"]).resolve().read_text()
        shape = action.get("shape")
        if shape:
            shape = shape if shape.startswith("_:") or re.match(r"^[a-z]+:", shape) else SHEX_BASE + "../schemas/" + shape
            label = shape if shape.startswith("_:") else f"<{shape}>"
            schema = set_start(schema, label)
        schema = f"BASE <{SHEX_BASE}>\n{schema}"
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "schema.shex").write_text(schema)
            graph.serialize(Path(folder) / "data.nt", format="nt", encoding="utf-8")
            found, refused = validate(binary, folder, "schema.shex", "data.nt", "json")
        if refused:
            yield name, "refused", refused
            continue
        conforms = all(result["focusNode"] != focus for result in json.loads(found)["results"])
        wanted = test["@type"] == "sht:ValidationTest"
        yield name, "passed" if conforms == wanted else "failed", f"the node conforms: {conforms}, expected: {wanted}"
    for kind in ("negativeSyntax", "negativeStructure"):
        for path in sorted((root / kind).glob("*.shex")):
            if only and only not in path.stem:
                continue
            text = path.read_text()
            label = re.search(r"(?m)^\s*(<[^>]*>|[\w-]*:[\w-]+)\s*[^>=\s]", text)
            if label and not re.search(r"(?m)^\s*start\b", text):
                text = set_start(text, label.group(1))
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "data.nt").write_text("")
                (Path(folder) / "schema.shex").write_text(f"BASE <{SHEX_BASE}>\n{text}")
                _, refused = validate(binary, folder, "schema.shex", "data.nt", "json")
            yield f"{kind}/{path.stem}", "passed" if refused and "no start" not in refused else "failed", refused or "accepted"


def set_start(schema, label):
    """Makes this shape the start of a schema."""
    without = re.sub(r"(?m)^\s*start\s*=\s*@\s*(<[^>]*>|\S+)", "", schema)
    directives = list(re.finditer(r"(?mi)^\s*(PREFIX\s+\S*\s*<[^>]*>|BASE\s*<[^>]*>|IMPORT\s*<[^>]*>)", without))
    end = directives[-1].end() if directives else 0
    return f"{without[:end]}\nstart = @{label}\n{without[end:]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("suite", type=Path)
    parser.add_argument("--only")
    given = parser.parse_args()
    binary, suite = str(Path(given.binary).resolve()), given.suite.resolve()
    run = run_shex if (suite / "negativeSyntax").exists() else run_shacl
    counts, refusals = Counter(), Counter()
    for name, outcome, why in run(binary, suite, given.only):
        if outcome == "failed" and name in EXPECTED_FAILURES:
            outcome = "failed as expected"
        counts[outcome] += 1
        if outcome == "failed":
            print(f"{name}: {why}")
        if outcome == "refused":
            refusals[re.sub(r'["<][^">]*[">]|\d+|schema.shex: |_:\S+', "…", why)[:150]] += 1
            if given.only:
                print(f"{name}: refused: {why}")
    for reason, count in refusals.most_common():
        print(f"{count} refused: {reason}")
    print(", ".join(f"{outcome}: {count}" for outcome, count in sorted(counts.items())))
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
