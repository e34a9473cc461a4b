"""Compares `penstock validate` with PyShEx on random schemas and data.

Usage: python compare_shex.py BINARY [--seed N] [--cases N] [--only N]

Exit status 1 if the nodes that conform differ in a way that this file does not explain.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import rdflib

# Literals keep their lexical forms.
rdflib.NORMALIZE_LITERALS = False
warnings.simplefilter("ignore")
from pyshex import ShExEvaluator

PREFIXES = """PREFIX ex: <http://example.com/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
PROPERTIES = ["ex:p", "ex:q", "ex:r"]
NODES = [f"ex:n{number}" for number in range(6)]
LITERALS = [
    "1", "2", "'1'", "'ab'", "'abc'@en", "'x'@de", "1.5", "'01'^^xsd:integer", "'x'^^xsd:integer", "true", "''",
    "'2024-01-01'^^xsd:date", "1.0E0", "'hello'", "-3",
]
VALUES = ["1", "'ab'", "'abc'@en", "ex:n1", "ex:n2", "@en", "ex:n~", "1.5", "true"]


class Generator:
    """Makes one case from a `random.Random`."""

    def __init__(self, choice):
        self.choice = choice
        self.shapes = choice.choice([1, 2, 3])

    def make_data(self):
        lines = [f"{node} ex:any 1 ." for node in NODES]
        for node in NODES:
            for _ in range(self.choice.randrange(5)):
                value = self.choice.choice(NODES if self.choice.random() < 0.4 else LITERALS)
                lines.append(f"{node} {self.choice.choice(PROPERTIES)} {value} .")
        return PREFIXES + "\n".join(lines) + "\n"

    def node_constraint(self):
        kind = self.choice.randrange(9)
        if kind == 0:
            return self.choice.choice(["IRI", "LITERAL", "NONLITERAL", "BNODE"])
        if kind <= 3:
            return self.choice.choice(["xsd:integer", "xsd:string", "xsd:decimal", "xsd:boolean", "xsd:date", "xsd:double"])
        if kind <= 5:
            return "[ " + " ".join(self.choice.sample(VALUES, self.choice.choice([1, 2, 4]))) + " ]"
        if kind == 6:
            return "LITERAL " + self.choice.choice(["MINLENGTH 2", "MAXLENGTH 2", "LENGTH 2", "/^a/", "/B/i", "/^[0-9]+$/"])
        if kind == 7:
            return "xsd:integer " + self.choice.choice(["MININCLUSIVE 1", "MAXEXCLUSIVE 2", "MINEXCLUSIVE 0 MAXINCLUSIVE 1"])
        return "."

    def value(self, number):
        if number + 1 < self.shapes and self.choice.random() < 0.35:
            return f"@ex:S{self.choice.randrange(number + 1, self.shapes)}"
        return self.node_constraint()

    def constraint(self, number, name):
        inverse = "^ " if self.choice.random() < 0.1 else ""
        value = self.value(number)
        if inverse and not value.startswith("@"):
            value = self.choice.choice([".", "IRI"])
        count = self.choice.choice(["", "", "?", "*", "+", "{2}", "{1,2}", "{0,1}", "{2,}"])
        return f"{inverse}{name} {value} {count}"

    def triple_expression(self, number):
        names = self.choice.sample(PROPERTIES, self.choice.choice([1, 2, 2, 3]))
        if self.choice.random() < 0.15:
            names.append(names[0])
        parts = [self.constraint(number, name) for name in names]
        # PyShEx takes (A | B) ; C for conforming without C (ShEx semantics, 5.5.2), so an alternative is alone.
        if len(parts) > 1 and self.choice.random() < 0.25:
            return " | ".join(parts)
        return " ; ".join(parts)

    def shape(self, number):
        closed = "CLOSED " if self.choice.random() < 0.15 else ""
        extra = f"EXTRA {self.choice.choice(PROPERTIES)} " if self.choice.random() < 0.2 else ""
        expression = self.triple_expression(number)
        if closed and "|" not in expression and self.choice.random() < 0.8:
            expression += " ; ex:any ."
        return f"{closed}{extra}{{ {expression} }}"

    def shape_expression(self, number):
        kind = self.choice.random()
        if kind < 0.65:
            return self.shape(number)
        if kind < 0.75:
            return f"{self.shape(number)} OR {self.shape(number)}"
        if kind < 0.85:
            return f"{self.shape(number)} AND {self.shape(number)}"
        if kind < 0.93:
            return f"NOT {self.shape(number)}"
        return f"IRI {self.shape(number)}"

    def make_schema(self):
        shapes = [f"ex:S{number} {self.shape_expression(number)}" for number in range(self.shapes)]
        return PREFIXES + "start = @ex:S0\n" + "\n".join(shapes) + "\n"


def run_penstock(binary, folder, schema, data):
    """Returns the nodes that do not conform, or an error."""
    (folder / "schema.shex").write_text(schema)
    (folder / "data.ttl").write_text(data)
    command = [binary, "validate", "--shapes", "schema.shex", "data.ttl", "--format", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        return None, done.stderr
    return {result["focusNode"] for result in json.loads(done.stdout)["results"]}, None


def run_pyshex(schema, data):
    nodes = [node.replace("ex:", "http://example.com/") for node in NODES]
    results = ShExEvaluator(rdf=data, schema=schema, focus=nodes).evaluate()
    return {str(result.focus) for result in results if not result.result}


def explain(schema, data, ours, theirs):
    """Returns why PyShEx differs from the specification (https://shex.io/shex-semantics/); None if it is not known."""
    if "'x'^^xsd:integer" in data and theirs < ours:
        return "PyShEx accepts values whose lexical form is not valid for their datatype (5.4.3)"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=120)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    counts, failures, start = Counter(), 0, time.time()
    numbers = range(given.cases) if given.only is None else [given.only]
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            generator = Generator(random.Random(f"{given.seed}/{number}"))
            data, schema = generator.make_data(), generator.make_schema()
            ours, error = run_penstock(given.binary, Path(folder), schema, data)
            try:
                theirs = run_pyshex(schema, data)
            except Exception as failed:
                counts[f"PyShEx has no result ({type(failed).__name__})"] += 1
                continue
            if ours == theirs:
                counts["the same"] += 1
                counts["nodes that do not conform"] += len(ours)
                continue
            cause = None if error else explain(schema, data, ours, theirs)
            if cause:
                counts[f"explained: {cause}"] += 1
                continue
            failures += 1
            print(f"\nFAILED: case {number} (repeat with --only {number}) {error or ''}\n{schema}{data}")
            if not error:
                print(f"  only penstock refuses {sorted(ours - theirs)}, only PyShEx {sorted(theirs - ours)}")
    print(f"{len(numbers)} schemas in {time.time() - start:.0f} s; {failures} failed")
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
