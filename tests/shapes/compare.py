"""Compares `penstock validate` with pySHACL on random shapes graphs and data.

Usage: python compare.py BINARY [--seed N] [--cases N] [--only N] [--verbose]

Exit status 1 if a result differs in a way that known.py does not explain.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyoxigraph
import rdflib

# Literals keep their lexical forms.
rdflib.NORMALIZE_LITERALS = False
import logging

from pyshacl import validate
from rdflib import RDF, Graph, Literal, Namespace, URIRef
from rdflib.collection import Collection

from cases import PREFIXES, Generator
from known import explain, write_like

SH = Namespace("http://www.w3.org/ns/shacl#")


def write_path(graph, path):
    """Returns a path as text, whatever its blank nodes."""
    if path is None:
        return None
    if isinstance(path, URIRef) and path != RDF.nil:
        return str(path)
    if (path, RDF.first, None) in graph:
        return "(" + "/".join(write_path(graph, part) for part in Collection(graph, path)) + ")"
    for name in ("inversePath", "zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath"):
        inner = graph.value(path, SH[name])
        if inner is not None:
            return f"{name}({write_path(graph, inner)})"
    inner = graph.value(path, SH.alternativePath)
    return "(" + "|".join(write_path(graph, part) for part in Collection(graph, inner)) + ")"


def write_term(term):
    return None if term is None else write_like(term)


def read_report(graph):
    """Returns the results: (focus node, path, component, value, severity)."""
    found = set()
    for result in graph.subjects(RDF.type, SH.ValidationResult):
        if (None, SH.result, result) not in graph:
            # A detail of another result.
            continue
        found.add((
            write_term(graph.value(result, SH.focusNode)),
            write_path(graph, graph.value(result, SH.resultPath)),
            str(graph.value(result, SH.sourceConstraintComponent)).removeprefix(str(SH)),
            write_term(graph.value(result, SH.value)),
            str(graph.value(result, SH.resultSeverity)).removeprefix(str(SH)),
        ))
    return found


def run_penstock(binary, folder, shapes, data):
    (folder / "shapes.ttl").write_text(shapes)
    (folder / "data.ttl").write_text(data)
    command = [binary, "validate", "--shapes", "shapes.ttl", "data.ttl", "--format", "turtle"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def read_turtle(text):
    """Reads Turtle. rdflib itself changes numbers without quotes, such as `.5`."""
    triples = pyoxigraph.parse(text.encode(), format=pyoxigraph.RdfFormat.TURTLE)
    return Graph().parse(data=pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES), format="nt")


def read_penstock(done):
    """Returns the report graph, and the error if there is none."""
    if done.returncode not in (0, 1):
        return None, done.stderr
    graph = read_turtle(done.stdout)
    is_violated = (None, SH.resultSeverity, SH.Violation) in graph
    if done.returncode != int(is_violated):
        return None, f"the exit status is {done.returncode}"
    if (None, SH.conforms, Literal((None, SH.result, None) not in graph)) not in graph:
        return None, "sh:conforms is wrong"
    return graph, None


def run_pyshacl(shapes, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, graph, _ = validate(data, shacl_graph=shapes, inference="none", advanced=False)
    return graph


def make_case(seed, number):
    generator = Generator(random.Random(f"{seed}/{number}"))
    data = generator.make_data()
    return data, generator.make_shapes(), generator.components


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--only", type=int)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    counts, explained, components, failures = Counter(), Counter(), Counter(), 0
    start = time.time()
    numbers = range(given.cases) if given.only is None else [given.only]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as ahead:

        def start_case(number):
            data, shapes, used = make_case(given.seed, number)
            own = Path(folder) / str(number)
            own.mkdir()
            return data, shapes, used, run_penstock(given.binary, own, shapes, data)

        for number, running in [(n, ahead.submit(start_case, n)) for n in numbers]:
            data, shapes, used, done = running.result()
            components.update(used)
            # pySHACL changes it, and leaves it changed after an error.
            rdflib.NORMALIZE_LITERALS = False
            ours, error = read_penstock(done)
            graph = Graph().parse(data=data, format="turtle")
            shapes_graph = Graph().parse(data=shapes, format="turtle")
            try:
                theirs = run_pyshacl(shapes_graph, graph)
            except Exception as failed:
                counts["pySHACL has no result"] += 1
                if given.verbose:
                    print(f"case {number}: pySHACL: {type(failed).__name__} {str(failed)[:300]}")
                if error:
                    print(f"case {number}: penstock too: {error}")
                continue
            if error:
                failures += 1
                print(f"\nFAILED: case {number} (--only {number}): penstock: {error}\n{shapes.removeprefix(PREFIXES)}")
                continue
            ours, theirs = read_report(ours), read_report(theirs)
            counts["results"] += len(ours)
            if ours == theirs:
                counts["cases with the same results"] += 1
                continue
            causes = explain(shapes_graph, graph, ours - theirs, theirs - ours)
            if causes:
                counts["cases with explained differences"] += 1
                explained.update(causes)
                if not given.verbose:
                    continue
            else:
                failures += 1
            print(f"\n{'explained' if causes else 'FAILED'}: case {number} (repeat with --only {number}) {causes}")
            print(shapes.removeprefix(PREFIXES))
            for name, more in (("penstock", ours - theirs), ("pySHACL", theirs - ours)):
                for result in sorted(more, key=str):
                    print(f"  only {name}: {result}")
    print(f"{len(numbers)} cases in {time.time() - start:.0f} s; {failures} failed")
    for title, counter in (("", counts), ("explained: ", explained)):
        for name, count in sorted(counter.items()):
            print(f"  {title}{name}: {count}")
    print("  constraints: " + ", ".join(f"{name} {count}" for name, count in sorted(components.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
