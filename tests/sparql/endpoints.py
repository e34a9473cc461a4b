"""One interface for the gateway and the engines it is compared with.

An endpoint has `load(quads)`, which replaces everything, and `query(query)`. Engines get the dataset of each query as a
store of its own, whose default graph is what the query's default graph must be: pyoxigraph has a triple of two graphs
twice in the union of all graphs, and rdflib fetches the graphs of FROM from the web.
"""

import signal
from contextlib import contextmanager

import pyoxigraph
from corrected_rdflib import rdflib
from terms import Graph, Table, iri, literal, to_nquads


class EngineError(Exception):
    """An engine has no answer."""


def select_dataset(quads, query):
    """Returns the triples of the query's default graph, and the quads of its named graphs."""
    if query.default_graphs is None and query.named_graphs is None:
        return {q[:3] for q in quads}, {q for q in quads if q[3]}
    default, named = set(query.default_graphs or ()), set(query.named_graphs or ())
    return {q[:3] for q in quads if q[3] in default}, {q for q in quads if q[3] in named}


class Oxigraph:
    """pyoxigraph. It writes numbers, dates and booleans in canonical form."""

    name = "pyoxigraph"

    def load(self, quads):
        self.quads = quads
        self.stores = {}

    def open_dataset(self, query):
        key = repr((query.default_graphs, query.named_graphs))
        if key not in self.stores:
            default, named = select_dataset(self.quads, query)
            store = pyoxigraph.Store()
            text = to_nquads([(*t, None) for t in default]) + to_nquads(named)
            store.load(text.encode(), format=pyoxigraph.RdfFormat.N_QUADS)
            self.stores[key] = store
        return self.stores[key]

    def query(self, query):
        try:
            answer = self.open_dataset(query).query(query.text)
            if isinstance(answer, pyoxigraph.QueryBoolean):
                return bool(answer)
            if isinstance(answer, pyoxigraph.QueryTriples):
                return Graph({tuple(map(self.term, triple)) for triple in answer})
            variables = [v.value for v in answer.variables]
            return Table(variables, [tuple(self.term(row[v]) for v in variables) for row in answer])
        except (SyntaxError, RuntimeError, OSError, ValueError) as error:
            raise EngineError(f"{type(error).__name__}: {error}") from error

    @staticmethod
    def term(term):
        if term is None:
            return None
        if isinstance(term, pyoxigraph.NamedNode):
            return iri(term.value)
        if isinstance(term, pyoxigraph.BlankNode):
            return ("bnode", term.value)
        return literal(term.value, term.datatype.value, term.language)


class Rdflib:
    """rdflib: an independent implementation in Python, slow and less exact."""

    name = "rdflib"
    # Of CPU time, because it has no answer on a loaded machine otherwise.
    seconds = 1

    def load(self, quads):
        self.quads = quads
        self.stores = {}

    def open_dataset(self, query):
        key = repr((query.default_graphs, query.named_graphs))
        if key not in self.stores:
            default, named = select_dataset(self.quads, query)
            dataset = rdflib.Dataset(default_union=False)
            dataset.parse(data=to_nquads([(*t, None) for t in default]) + to_nquads(named), format="nquads")
            self.stores[key] = dataset
        return self.stores[key]

    def query(self, query):
        dataset = self.open_dataset(query)
        try:
            with time_limit(self.seconds):
                answer = dataset.query(query.text)
                if answer.type == "ASK":
                    return bool(answer.askAnswer)
                if answer.type in ("CONSTRUCT", "DESCRIBE"):
                    triples = {tuple(map(self.term, triple)) for triple in answer.graph}
                    # rdflib also constructs triples whose subject is a literal or whose predicate is not an IRI.
                    return Graph({t for t in triples if t[0][0] != "literal" and t[1][0] == "iri"})
                variables = [str(v) for v in answer.vars or ()]
                rows = [tuple(self.term(b.get(rdflib.Variable(v))) for v in variables) for b in answer.bindings]
                return Table(variables, [tuple(map(self.repair_extreme, variables, row)) for row in rows])
        except TimeUp:
            raise EngineError("TimeUp") from None
        except RecursionError:
            raise EngineError("RecursionError") from None
        except Exception as error:  # rdflib has no common class of errors.
            raise EngineError(f"{type(error).__name__}: {error}") from error

    @staticmethod
    def repair_extreme(variable, term):
        """Makes MIN and MAX of IRIs an IRI again. rdflib makes them a string."""
        if variable.startswith(("lowest", "highest")) and term and term[0] == "literal" and term[1].startswith("http:"):
            return iri(term[1])
        return term

    @staticmethod
    def term(term):
        if term is None:
            return None
        if isinstance(term, rdflib.URIRef):
            return iri(str(term))
        if isinstance(term, rdflib.BNode):
            return ("bnode", str(term))
        return literal(str(term), str(term.datatype) if term.datatype else None, term.language)


class TimeUp(BaseException):
    pass


@contextmanager
def time_limit(seconds):
    def stop(*_):
        raise TimeUp

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
