"""Compares a SPARQL endpoint with pyoxigraph and rdflib on random data and random queries and updates.

Usage: python compare.py [BINARY] [--seed N] [--queries N] [--updates N] [--only N] [--verbose]

Without a binary the two engines are compared with each other. The binary is `penstock`, or `oxigraph` (PyPI), to try
the tests. Exit status 1 if an answer equals that of neither engine.
"""

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pyoxigraph

import updates
from data import make_data
from endpoints import EngineError, Oxigraph, Rdflib
from known import DIFFERENCES, explain
from queries import Grammar
from terms import Graph, Table, describe_difference, read_results, to_nquads

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import open_server  # noqa: E402

QUERIES_PER_DATASET = 50
# rdflib is not asked for larger answers: it takes too long.
MAX_ROWS_OF_RDFLIB = 2000
# The gateway breaks off longer answers: service.limits.sparql.rows.
MAX_ROWS_OF_GATEWAY = 100_000
TABLE_FORMATS = [
    "application/sparql-results+json",
    "application/sparql-results+json",
    "application/sparql-results+xml",
    "text/tab-separated-values",
    "text/csv",
]


class Endpoint:
    """The endpoint under test, as an engine."""

    def __init__(self, server):
        self.server = server

    def load(self, quads):
        self.server.load(to_nquads(sorted(quads, key=repr)))

    def query(self, query, choice):
        """Sends a query, with the method and the format that `choice` (a `random.Random`) picks."""
        if query.form in ("CONSTRUCT", "DESCRIBE"):
            accept = choice.choice(["application/n-triples", "application/n-triples", "text/turtle"])
        else:
            accept = choice.choice(TABLE_FORMATS[: 3 if query.form == "ASK" else None])
        parameters = []
        if query.is_in_protocol:
            parameters = [("default-graph-uri", g) for g in query.default_graphs or ()]
            parameters += [("named-graph-uri", g) for g in query.named_graphs or ()]
        method = choice.choice(("GET", "POST", "direct"))
        answer = self.server.query(query.write(), accept, parameters, method)
        if answer.status != 200:
            raise EngineError(f"{answer}")
        if not answer.content_type.startswith(accept):
            raise EngineError(f"200 of type {answer.content_type} instead of {accept}")
        if accept == "text/turtle":
            triples = pyoxigraph.parse(answer.body, format=pyoxigraph.RdfFormat.TURTLE)
            return Graph({tuple(map(Oxigraph.term, (t.subject, t.predicate, t.object))) for t in triples})
        return read_results(answer.body, answer.content_type)


class Tally:
    """What was found."""

    def __init__(self, verbose):
        self.verbose = verbose
        self.counts = Counter()
        self.differences = Counter()
        # Which engine the endpoint agrees with where they differ.
        self.decisions = Counter()
        self.features = Counter()
        self.failures = 0

    def fail(self, number, query, reasons):
        self.failures += 1
        self.counts["failed"] += 1
        print(f"\nFAILED: query {number} (repeat with --only {number})\n{query.write().strip()}")
        for reason in reasons:
            print(f"  {reason}")


def ask(engine, *arguments):
    try:
        return engine.query(*arguments)
    except EngineError as error:
        return error


def find_difference(left, right, query):
    """Returns None if two answers are equal, otherwise what differs."""
    errors = [answer for answer in (left, right) if isinstance(answer, EngineError)]
    if len(errors) == 2:
        return None
    if errors:
        return f"one has no answer: {errors[0]}"
    return describe_difference(left, right, query.is_ordered, query.is_reduced)


def find_changed_terms(answer, quads):
    """Returns a reason if an answer that can only have stored terms has another one."""
    if isinstance(answer, Table) and not answer.untyped:
        terms = {term for row in answer.rows for term in row if term}
    elif isinstance(answer, Graph):
        terms = {term for triple in answer.triples for term in triple}
    else:
        return None
    stored = {term for quad in quads for term in quad[:3]} | {("iri", quad[3]) for quad in quads}
    changed = sorted(map(repr, terms - stored))
    return f"these terms are not stored: {changed[:5]}" if changed else None


def compare_query(number, query, answers, tally, quads, choice, endpoint=None):
    tally.features.update(query.features)
    engines_differ = find_difference(*answers, query)
    names = explain(query)
    no_answer = [a for a in answers if isinstance(a, EngineError)]
    if no_answer:
        tally.counts["one engine has no answer" if len(no_answer) == 1 else "no engine has an answer"] += 1
        if tally.verbose:
            print(f"\nquery {number}: no answer: {'; '.join(map(str, no_answer))[:300]}")
    elif engines_differ:
        tally.counts["the engines differ"] += 1
        tally.differences[names[0] if names else "UNKNOWN"] += 1
        if not names or tally.verbose:
            known = ", ".join(names) or "no known difference"
            print(f"\nquery {number}: the engines differ ({known})\n{query.write().strip()}\n  {engines_differ}")
    else:
        tally.counts["the engines agree"] += 1
    if not endpoint:
        return
    answer = ask(endpoint, query, choice)
    reasons, is_changed = [], False
    if isinstance(answer, EngineError):
        if not (str(answer).startswith("400") and "SyntaxError" in str(answers[0])):
            reasons.append(f"the endpoint answers {answer}")
    else:
        with_engines = [find_difference(answer, theirs, query) for theirs in answers]
        if not no_answer or len(no_answer) == 1:
            if all(with_engines):
                reasons = [f"endpoint and {n}: {r}" for n, r in zip(("pyoxigraph", "rdflib"), with_engines)]
            elif engines_differ and not no_answer:
                cause = names[0] if names else "unknown"
                tally.decisions[f"{cause}: equal to {'pyoxigraph' if with_engines[1] else 'rdflib'}"] += 1
        if query.is_exact:
            changed = find_changed_terms(answer, quads)
            is_changed = changed is not None
            reasons += [changed] if changed else []
    # Two known differences in one query can make the right answer one that neither engine has. And pyoxigraph alone
    # cannot judge other than canonical forms.
    is_undecided = "canonical forms" in names and (
        isinstance(answers[1], EngineError) or engines_differ and len(names) > 1
    )
    if reasons and is_undecided and not isinstance(answer, EngineError) and not is_changed:
        tally.counts["undecided because of canonical forms"] += 1
        return
    if reasons:
        tally.fail(number, query, reasons)


def compare_queries(options, tally, endpoint):
    engines = [Oxigraph(), Rdflib()]
    loaded = None
    for number in [options.only] if options.only is not None else range(options.queries):
        dataset = number // QUERIES_PER_DATASET
        keeps_forms = dataset % 3 == 2
        if loaded != dataset:
            loaded = dataset
            quads = make_data(random.Random(f"data {options.seed}.{dataset}"), keeps_forms)
            for engine in [*engines, *([endpoint] if endpoint else [])]:
                engine.load(quads)
        choice = random.Random(f"query {options.seed}.{number}")
        query = Grammar(choice, keeps_forms).make_query()
        answers = [ask(engines[0], query)]
        rows = len(answers[0].rows) if isinstance(answers[0], Table) else 0
        is_large = rows > MAX_ROWS_OF_RDFLIB
        answers.append(EngineError("the answer is large") if is_large else ask(engines[1], query))
        if options.only is not None:
            print(query.write())
            for engine, answer in zip(engines, answers):
                print(f"{engine.name}: {answer}")
            if endpoint and rows <= MAX_ROWS_OF_GATEWAY:
                print(f"endpoint: {ask(endpoint, query, choice)}")
        if rows > MAX_ROWS_OF_GATEWAY:
            tally.counts["the answer exceeds the limit of rows"] += 1
            continue
        compare_query(number, query, answers, tally, quads, choice, endpoint)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--updates", type=int, default=150)
    parser.add_argument("--only", type=int)
    parser.add_argument("--verbose", action="store_true", help="print the known differences of the engines too")
    options = parser.parse_args()
    print(f"seed {options.seed}: {options.queries} queries, {options.updates} updates", flush=True)
    tally = Tally(options.verbose)
    started = time.monotonic()
    # A loaded machine may need longer than the default limit.
    settings = {"service.limits.sparql.time": "2m"}
    server = open_server(options.binary, settings) if options.binary else None
    try:
        compare_queries(options, tally, Endpoint(server) if server else None)
        if server and options.only is None:
            tally.failures += updates.compare_updates(server, options.seed, options.updates)
    finally:
        if server:
            server.stop()
    print("\n".join(f"{count:6} {name}" for name, count in tally.counts.most_common()))
    if tally.differences:
        print("where the engines differ from each other:")
        reasons = {difference.name: difference.reason for difference in DIFFERENCES}
        for name, count in tally.differences.most_common():
            print(f"{count:6} {name}: {reasons.get(name, 'not in known.py')}")
    if tally.decisions:
        print("and the endpoint there:")
        print("\n".join(f"{count:6} {name}" for name, count in tally.decisions.most_common()))
    if tally.verbose:
        print("features: " + ", ".join(f"{name} {count}" for name, count in tally.features.most_common()))
    print(f"{tally.failures} failed in {time.monotonic() - started:.0f} s")
    sys.exit(1 if tally.failures else 0)


if __name__ == "__main__":
    main()
