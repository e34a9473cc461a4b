"""Random updates and Graph Store requests, compared with a model: a set of quads.

The model evaluates WHERE with pyoxigraph and rdflib, which must agree, and does the rest itself, because no engine has
the gateway's default graphs: in WHERE it is the union of all graphs, everywhere else the unnamed graph. After each
request the content of every graph is compared.
"""

import random

from data import EX, GRAPHS, NODES, make_data
from endpoints import EngineError, Oxigraph, Rdflib
from queries import PROLOGUE, Grammar, Query, Scope
from terms import Table, describe_difference, iri, literal, read_nquads, to_nquads, to_ntriples

MAX_SOLUTIONS = 200
MAX_QUADS = 500
PREDICATES = [iri(EX + name) for name in ("knows", "int", "label", "made")]


class Model:
    """What the store must hold."""

    def __init__(self, quads):
        self.quads = set(quads)

    def of(self, graph):
        return {quad[:3] for quad in self.quads if quad[3] == graph}

    def clear(self, graphs):
        self.quads = {quad for quad in self.quads if quad[3] not in graphs}

    def replace(self, graph, triples):
        self.clear({graph})
        self.quads |= {(*triple, graph) for triple in triples}

    def solve(self, where, default_graphs=None, named_graphs=None):
        """Returns the solutions of a group graph pattern as dicts, or None if the engines do not agree."""
        query = Query(f"{PROLOGUE}SELECT * WHERE {where}", "SELECT", default_graphs, named_graphs)
        answers = []
        for engine in (Oxigraph(), Rdflib()):
            engine.load(self.quads)
            try:
                answers.append(engine.query(query))
            except EngineError:
                return None
        if any(not isinstance(a, Table) or len(a.rows) > MAX_SOLUTIONS for a in answers):
            return None
        if describe_difference(*answers):
            return None
        # rdflib's terms, because those of pyoxigraph are in canonical form.
        return [dict(zip(answers[1].variables, row)) for row in answers[1].rows]

    def apply(self, template, solution, graph):
        """Returns the quads of a template: the triples and quads that a solution makes complete and legal."""
        made = set()
        for subject, predicate, value, where in template:
            terms = [solution.get(t[1:]) if isinstance(t, str) else t for t in (subject, predicate, value)]
            where = solution.get(where[1:]) if isinstance(where, str) and where.startswith("?") else where
            where = where[1] if isinstance(where, tuple) else where
            if all(terms) and terms[0][0] == "iri" and terms[1][0] == "iri":
                made.add((*terms, where or graph))
        return made


class Writer:
    """Makes random operations: their text, and what they do to the model."""

    def __init__(self, choice, model):
        self.random = choice
        self.model = model

    def graph(self, with_default=True):
        return self.random.choice([*GRAPHS, *([None] if with_default else [])])

    def some_quads(self):
        quads = sorted(self.model.quads, key=repr)
        chosen = self.random.sample(quads, min(len(quads), self.random.choice((0, 1, 3))))
        for _ in range(self.random.choice((1, 2, 3))):
            value = self.random.choice(
                [*NODES, literal("neu 😀"), literal("01.50", "http://www.w3.org/2001/XMLSchema#decimal")]
            )
            chosen.append((self.random.choice(NODES), self.random.choice(PREDICATES), value, self.graph()))
        return set(chosen)

    @staticmethod
    def write(quads):
        """Returns quads or a template as SPARQL writes them."""
        term = lambda t: t if isinstance(t, str) else to_ntriples(t)
        parts = []
        for s, p, o, g in quads:
            triple = " ".join(map(term, (s, p, o)))
            name = g if g and g.startswith("?") else f"<{g}>"
            parts.append(f"GRAPH {name} {{ {triple} }}" if g else f"{triple} .")
        return "{ " + " ".join(parts) + " }"

    def template(self, scope):
        """A template: quads whose terms may be variables."""
        subjects = [*scope.of(["iri"]), self.random.choice(NODES)]
        values = [*sorted(scope.kinds), self.random.choice(NODES)]
        graphs = [None, None, self.graph()]
        graph_variables = [v for v in scope.kinds if v.startswith("?g")]
        return [
            (
                self.random.choice(subjects),
                self.random.choice(PREDICATES),
                self.random.choice(values),
                self.random.choice(graphs + graph_variables),
            )
            for _ in range(self.random.choice((1, 1, 2)))
        ]

    def operation(self):
        """Returns the text of an operation after it has been applied to the model."""
        kinds = ["insert_data", "delete_data", "delete_where", "modify", "modify", "modify", "clear", "transfer"]
        return getattr(self, self.random.choice(kinds))()

    def insert_data(self):
        quads = self.some_quads()
        self.model.quads |= quads
        return f"INSERT DATA {self.write(quads)}"

    def delete_data(self):
        quads = self.some_quads()
        self.model.quads -= quads
        return f"DELETE DATA {self.write(quads)}"

    def delete_where(self):
        predicate, graph = self.random.choice(PREDICATES), self.random.choice([None, self.graph(), "?g"])
        pattern = [("?s", predicate, "?o", graph)]
        if self.random.random() < 0.4:
            pattern.append(("?o", self.random.choice(PREDICATES), "?x", self.random.choice([None, graph])))
        solutions = self.model.solve(self.write(pattern))
        if solutions is None:
            return self.insert_data()
        for solution in solutions:
            self.model.quads -= self.model.apply(pattern, solution, None)
        return f"DELETE WHERE {self.write(pattern)}"

    def modify(self, parameters=None):
        """Deletes and inserts where a pattern matches. A list of `parameters` receives USING for the protocol."""
        scope = Scope()
        grammar = Grammar(self.random)
        grammar.features, grammar.fresh, grammar.is_exact = set(), 0, True
        where = grammar.group(scope, 1, "OPTIONAL FILTER UNION GRAPH PATH VALUES MINUS EXISTS")
        target, clauses, default_graphs, named_graphs = None, "", None, None
        if self.random.random() < 0.3 and parameters is None:
            target = self.graph(with_default=False)
            default_graphs, named_graphs = [target], GRAPHS
        if self.random.random() < 0.3 or parameters is not None:
            default_graphs = self.random.sample(GRAPHS, self.random.choice((0, 1, 2)))
            named_graphs = self.random.sample(GRAPHS, self.random.choice((0, 1, 2)) if default_graphs else 1)
            clauses = "".join(f"USING <{g}> " for g in default_graphs)
            clauses += "".join(f"USING NAMED <{g}> " for g in named_graphs)
        if parameters is not None:
            clauses = ""
            parameters += [("using-graph-uri", g) for g in default_graphs]
            parameters += [("using-named-graph-uri", g) for g in named_graphs]
        solutions = self.model.solve(where, default_graphs, named_graphs)
        if solutions is None:
            return self.insert_data()
        deleted = self.template(scope) if self.random.random() < 0.6 else []
        inserted = self.template(scope) if not deleted or self.random.random() < 0.6 else []
        removed = set().union(*(self.model.apply(deleted, s, target) for s in solutions))
        added = set().union(*(self.model.apply(inserted, s, target) for s in solutions))
        self.model.quads = self.model.quads - removed | added
        text = f"WITH <{target}> " if target else ""
        text += f"DELETE {self.write(deleted)} " if deleted else ""
        text += f"INSERT {self.write(inserted)} " if inserted else ""
        return f"{text}{clauses}WHERE {where}"

    def clear(self):
        what = self.random.choice(["DEFAULT", "NAMED", "ALL", "GRAPH", "GRAPH", "GRAPH", "CREATE"])
        if what == "CREATE":
            return f"CREATE SILENT GRAPH <{self.graph(with_default=False)}>"
        graphs = {"DEFAULT": {None}, "NAMED": set(GRAPHS), "ALL": {None, *GRAPHS}}.get(what)
        if what == "GRAPH":
            graph = self.graph(with_default=False)
            graphs, what = {graph}, f"GRAPH <{graph}>"
        self.model.clear(graphs)
        return f"{self.random.choice(('CLEAR', 'DROP'))} SILENT {what}"

    def transfer(self):
        verb = self.random.choice(("COPY", "MOVE", "ADD"))
        source, target = self.graph(), self.graph()
        triples = self.model.of(source)
        if source != target:
            self.model.replace(target, triples if verb != "ADD" else triples | self.model.of(target))
            if verb == "MOVE":
                self.model.clear({source})
        name = lambda g: f"<{g}>" if g else "DEFAULT"
        return f"{verb} SILENT {name(source)} TO {name(target)}"


def send_graph_request(writer, server):
    """Sends a request of the Graph Store Protocol. Returns what it was, and its answer or None if that is as expected."""
    model, graph = writer.model, writer.graph()
    method = writer.random.choice(("PUT", "POST", "DELETE", "HEAD"))
    before = model.of(graph)
    triples = {quad[:3] for quad in writer.some_quads()}
    body = None
    if method in ("PUT", "POST"):
        body = to_nquads([(*t, None) for t in triples]).encode()
        model.replace(graph, triples if method == "PUT" else before | triples)
        wanted = (200, 201, 204)
    elif method == "DELETE":
        model.clear({graph})
        wanted = (200, 204) if before or graph is None else (404,)
    else:
        wanted = (200,) if before or graph is None else (404,)
    answer = server.graph(method, graph, body)
    return f"{method} {graph or 'the default graph'} {body or b''}", None if answer.status in wanted else answer


def read_content(server, choice):
    """Returns all quads: from a dump, or graph by graph."""
    if choice.random() < 0.3:
        return read_nquads(server.dump())
    quads = set()
    for graph in (None, *GRAPHS):
        answer = server.graph("GET", graph)
        if answer.status == 200:
            quads |= {(*quad[:3], graph) for quad in read_nquads(answer.body.decode())}
        elif answer.status != 404:
            raise SystemExit(f"GET of {graph or 'the default graph'}: {answer}")
    return quads


def show_difference(held, wanted):
    lines = [f"  missing: {q}" for q in sorted(map(repr, wanted - held))[:5]]
    return "\n".join(lines + [f"  too much: {q}" for q in sorted(map(repr, held - wanted))[:5]])


def compare_updates(server, seed, count):
    """Sends random updates, and compares the content with the model after each. Returns the number of failures."""
    failures = 0
    model = Model(())
    for number in range(count):
        choice = random.Random(f"update {seed}.{number}")
        if number % 40 == 0 or len(model.quads) > MAX_QUADS:
            model = Model(make_data(choice, subjects=5))
            server.load(to_nquads(sorted(model.quads, key=repr)))
        writer = Writer(choice, model)
        if choice.random() < 0.25:
            text, wrong = send_graph_request(writer, server)
        else:
            parameters = []
            if choice.random() < 0.15:
                operations = [writer.modify(parameters)]
            else:
                operations = [writer.operation() for _ in range(choice.choice((1, 1, 1, 2, 3)))]
            text = PROLOGUE + " ;\n".join(operations)
            # INSERT DATA, which replaces a pattern that the engines do not agree on, has no dataset.
            parameters = [] if "INSERT DATA" in text and "WHERE" not in text else parameters
            answer = server.update(text, parameters, choice.choice(("direct", "form")))
            wrong = None if answer.status in (200, 204) else answer
        held = read_content(server, choice)
        if wrong or held != model.quads:
            failures += 1
            print(f"\nFAILED: update {number}\n{text}\n" + (f"  answer: {wrong}\n" if wrong else ""), end="")
            print(show_difference(held, model.quads))
            # The next updates start from what the store has.
            model.quads = set(held)
    print(f"{count} updates, {failures} failed")
    return failures + check_refusals(server)


REFUSED = [
    # What must not be stored or fetched, the status, and a word of the answer.
    ("INSERT DATA { _:a <urn:p> 1 }", 422, "skolemize"),
    ("INSERT { ?s <urn:p> [] } WHERE { ?s ?p ?o }", 422, "skolemize"),
    ("INSERT { ?s <urn:p> ?b } WHERE { ?s ?p ?o BIND (BNODE() AS ?b) }", 422, "skolemize"),
    ("LOAD <http://127.0.0.1:9/>", None, ""),
    ("LOAD SILENT <http://127.0.0.1:9/>", None, ""),
    ("INSERT { ?s <urn:p> ?o } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", None, ""),
    ("INSERT DATA { <urn:a> <urn:b> ", 400, "line"),
    # A request is one commit: nothing of it is stored if its last operation fails.
    ("INSERT DATA { <urn:a> <urn:b> 1 } ; LOAD <http://127.0.0.1:9/>", None, ""),
    ("DELETE WHERE { ?s ?p ?o } ; INSERT DATA { _:a <urn:p> 1 }", 422, "skolemize"),
]


def check_refusals(server):
    """Sends updates that must be refused and change nothing. Returns the number of failures."""
    failures = 0
    model = make_data(random.Random(1), subjects=3)
    server.load(to_nquads(sorted(model, key=repr)))
    for text, status, word in REFUSED:
        answer = server.update(text)
        is_right = answer.status == status if status else 400 <= answer.status < 500
        if not is_right or word not in str(answer):
            failures += 1
            print(f"\nFAILED: {text}\n  answer: {answer}, wanted {status or '4xx'} with {word!r}")
        held = read_nquads(server.dump())
        if held != model:
            failures += 1
            print(f"\nFAILED: {text} changed the content\n{show_difference(held, model)}")
            server.load(to_nquads(sorted(model, key=repr)))
    answer = server.update(
        "INSERT DATA { _:a <urn:p> _:b }", [("skolemize", "https://plant.example/.well-known/genid/")]
    )
    made = read_nquads(server.dump()) - model
    if answer.status not in (200, 204) or len(made) != 1 or any(t[0] != "iri" for t in next(iter(made))[:3]):
        failures += 1
        print(f"\nFAILED: INSERT DATA of blank nodes with skolemize\n  answer: {answer}, stored {made}")
    print(f"{len(REFUSED) + 1} updates to refuse or skolemize, {failures} failed")
    return failures
