"""Random quads: links, chains, cycles, and literals of every kind. No blank nodes, because the store never has any."""

from terms import XSD, iri, literal

EX = "http://example.com/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
PREFIXES = {"ex": EX, "rdf": RDF, "rdfs": RDFS, "xsd": XSD}

NODES = [iri(f"{EX}n{n}") for n in range(10)] + [iri(f"{EX}knoten/ä?x=1&y=%20#ß")]
CLASSES = [iri(f"{EX}C{n}") for n in range(6)]
GRAPHS = [f"{EX}g{n}" for n in range(3)]

# The predicates, and the kind of their objects. An object of kind `any` can be everything.
PREDICATES = {
    "ex:knows": "iri",
    "ex:part": "iri",
    "ex:next": "iri",
    "rdf:type": "class",
    "rdfs:subClassOf": "class",
    "ex:int": "int",
    "ex:dec": "dec",
    "ex:dbl": "dbl",
    "ex:date": "date",
    "ex:day": "day",
    "ex:label": "str",
    "ex:name": "name",
    "ex:any": "any",
}

LONG = 'Lange Zeichenkette mit Ümläuten, "quotes", \\ and \n lines. 😀 '
VALUES = {
    "int": [literal(v, XSD + "integer") for v in "-7 0 1 2 3 42 1000000000000".split()],
    "dec": [literal(v, XSD + "decimal") for v in "1.5 -0.25 2 3.75 1000.001 0.1".split()],
    "dbl": [literal(v, XSD + "double") for v in "1 -0.0025 150 INF NaN 42".split()],
    "date": [
        literal("2024-02-29T12:00:00Z", XSD + "dateTime"),
        literal("2023-12-31T23:59:59.5Z", XSD + "dateTime"),
        literal("2024-03-01T01:30:00+05:30", XSD + "dateTime"),
        literal("1999-01-01T00:00:00-08:00", XSD + "dateTime"),
        literal("2024-06-15T08:00:00Z", XSD + "dateTime"),
    ],
    "day": [literal(v, XSD + "date") for v in "2024-02-29 2023-12-31 1999-01-01 2024-03-01".split()],
    "str": [
        literal("alpha"),
        literal("Beta gamma"),
        literal("pump", language="en"),
        literal("Pumpe", language="de"),
        literal("Pumpe", language="de-CH"),
        literal("größe 漢字 😀"),
        literal(""),
        literal('tab\tnew\nline "quoted" \\ back'),
        literal("a.b*c(d)"),
    ],
    "name": [literal(v) for v in "ada bob carl dora emil".split()],
}
# Forms that an engine may change into the canonical ones, and the gateway must not.
FORMS = {
    "int": [literal(v, XSD + "integer") for v in "+7 007 -0 42".split()],
    "dec": [literal(v, XSD + "decimal") for v in "01.50 1.5 2.0 +3.75 -.25".split()],
    "dbl": [literal(v, XSD + "double") for v in "1.0E0 1.5E2 -2.50e-3 1".split()],
    "date": [
        literal("2023-12-31T23:59:59.500Z", XSD + "dateTime"),
        literal("2024-02-29T12:00:00+00:00", XSD + "dateTime"),
        literal("2024-02-29T12:00:00Z", XSD + "dateTime"),
    ],
}
VALUES["any"] = [
    *(VALUES[kind][n] for kind in ("int", "dec", "dbl", "date", "str") for n in (0, 2)),
    literal("true", XSD + "boolean"),
    literal("false", XSD + "boolean"),
    literal("2024-02-29", XSD + "date"),
    literal("12:30:00", XSD + "time"),
    literal("P1Y2M", XSD + "yearMonthDuration"),
    literal("P1DT12H", XSD + "duration"),
    literal("1.5", XSD + "float"),
    literal("not a number", XSD + "integer"),
    literal("m3/h", EX + "unit"),
    *(literal(LONG * 80 + str(n)) for n in range(2)),
    *NODES[:3],
]


# pyoxigraph makes the first an xsd:integer.
FORMS["any"] = [*VALUES["any"], literal("7", XSD + "unsignedByte"), literal("PT36H", XSD + "duration")]


def get_values(kind, keeps_forms=False):
    """Returns the values of a kind; with `keeps_forms` those that are not canonical."""
    return FORMS.get(kind, VALUES[kind]) if keeps_forms else VALUES[kind]


def make_data(random, keeps_forms=False, subjects=9):
    """Returns random quads as a set. About 15 for each subject."""
    quads = set()
    graphs = [None, *GRAPHS]

    def add(subject, predicate, value):
        prefix, name = predicate.split(":")
        predicate = iri(PREFIXES[prefix] + name)
        quads.add((subject, predicate, value, random.choice(graphs)))
        if random.random() < 0.15:
            quads.add((subject, predicate, value, random.choice(graphs)))

    nodes = random.sample(NODES, min(subjects, len(NODES)))
    half = len(nodes) // 2
    for n, node in enumerate(nodes):
        for target in random.sample(nodes, random.choice((1, 1, 2, 3))):
            add(node, "ex:knows", target)
        if n:
            add(node, "ex:part", nodes[random.randrange(n)])
        # Two rings.
        add(node, "ex:next", nodes[(n + 1) % half] if n < half else nodes[half + (n + 1 - half) % (len(nodes) - half)])
        if random.random() < 0.9:
            add(node, "rdf:type", random.choice(CLASSES))
        for predicate, kind in PREDICATES.items():
            if kind in VALUES:
                for _ in range(random.choice((0, 1, 1, 1, 1, 2))):
                    add(node, predicate, random.choice(get_values(kind, keeps_forms)))
    for below, above in zip(CLASSES, CLASSES[1:]):
        add(below, "rdfs:subClassOf", above)
    if random.random() < 0.5:
        add(CLASSES[-1], "rdfs:subClassOf", CLASSES[-2])
    return quads
