"""Queries that take more time or memory than there is, for the data that `make_quads` returns."""

from dataclasses import dataclass

V = "https://plant.example/v/"
P = "https://plant.example/p/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = f"PREFIX v: <{V}> PREFIX p: <{P}> PREFIX xsd: <{XSD}> "
WORDS = "pump valve sensor boiler motor tank filter belt gauge heater".split()


def make_quads(count):
    """Yields lines of N-Quads: objects of 10 quads. `v:next` is a chain through all, `v:knows` a random graph."""
    objects = count // 10
    for n in range(objects):
        subject = f"<{P}{n}>"
        values = [
            f"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{V}Class{n % 20}>",
            f'<{V}name> "{WORDS[n % 10]} {n:07}"',
            f'<{V}number> "{n * 7919 % objects}"^^<{XSD}integer>',
            f'<{V}weight> "{n % 1000}.{n % 97:02}"^^<{XSD}decimal>',
            f'<{V}built> "20{n % 25:02}-{n % 12 + 1:02}-{n % 28 + 1:02}T08:00:00Z"^^<{XSD}dateTime>',
            f"<{V}next> <{P}{(n + 1) % objects}>",
            f"<{V}knows> <{P}{n * 104729 % objects}>",
            f"<{V}part> <{P}{n // 2}>",
            f'<{V}text> "{" ".join(WORDS[(n >> i) % 10] for i in range(12))}"@en',
            f'<{V}state> "{"on" if n % 3 else "off"}"',
        ]
        for value in values:
            yield f"{subject} {value} <{P}> .\n"


@dataclass
class Hostile:
    name: str
    text: str
    # The statuses besides 200 and the limit's 422.
    also: tuple = ()
    accept: str = "application/sparql-results+json"
    is_update: bool = False


def nest(opening, inner, closing, levels):
    return opening * levels + inner + closing * levels


def chain_doubling(function, steps=40):
    """A chain of BINDs, each twice as large as the one before."""
    binds = [f"BIND ({function.format(v=f'?x{n}')} AS ?x{n + 1})" for n in range(steps)]
    return f'SELECT (STRLEN(STR(?x{steps})) AS ?n) {{ BIND ("abcdefgh" AS ?x0) {" ".join(binds)} }}'


def make_queries():
    """Returns the hostile queries."""
    turtle = "application/n-triples"
    too_deep = (400, 413)
    values = " ".join(f"({n} {n + 1})" for n in range(1000))
    one = " ".join(str(n) for n in range(1000))
    queries = [
        # Cross products.
        Hostile("cross product of everything", "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"),
        Hostile(
            "cross product, first rows far", "SELECT * { ?a ?b ?c . ?d ?e ?f FILTER (?a = ?f && ?b = ?c) } LIMIT 10"
        ),
        Hostile(
            "VALUES that read nothing",
            f"SELECT (COUNT(*) AS ?n) {{ VALUES ?a {{ {one} }} VALUES ?b {{ {one} }} VALUES ?c {{ {one} }} VALUES ?d {{ {one} }} }}",
        ),
        Hostile(
            "VALUES in a filter that never holds",
            f"SELECT ?a {{ VALUES ?a {{ {one} }} VALUES ?b {{ {one} }} VALUES ?c {{ {one} }} FILTER (?a + ?b + ?c < 0) }}",
        ),
        Hostile(
            "COUNT DISTINCT of a cross product", "SELECT (COUNT(DISTINCT *) AS ?n) { ?a v:name ?x . ?b v:name ?y }"
        ),
        Hostile(
            "aggregates over a cross product",
            "SELECT ?s (SUM(?x * ?y) AS ?m) (AVG(?x) AS ?a) { ?a v:number ?x ; v:state ?s . ?b v:number ?y } GROUP BY ?s",
        ),
        Hostile(
            "GROUP BY over a cross product",
            "SELECT ?x ?y (COUNT(*) AS ?n) { ?a v:name ?x . ?b v:name ?y } GROUP BY ?x ?y",
        ),
        Hostile(
            "subqueries in a cross product",
            "SELECT (COUNT(*) AS ?n) { { SELECT ?a { ?a v:name ?x } } { SELECT ?b { ?b v:name ?y } } { SELECT ?c { ?c v:name ?z } } }",
        ),
        # Joins.
        Hostile(
            "hash join of one key", "SELECT (COUNT(*) AS ?n) { { ?a v:state ?s } { ?b v:state ?s } { ?c v:state ?s } }"
        ),
        Hostile(
            "join of subqueries", "SELECT * { { SELECT ?s ?a { ?a v:state ?s } } { SELECT ?s ?b { ?b v:state ?s } } }"
        ),
        Hostile(
            "join of expressions", "SELECT (COUNT(*) AS ?n) { ?a v:text ?x . ?b v:text ?y FILTER (CONTAINS(?x, ?y)) }"
        ),
        Hostile(
            "OPTIONAL in OPTIONAL",
            "SELECT * { ?a v:state ?s OPTIONAL { ?b v:state ?s OPTIONAL { ?c v:state ?s OPTIONAL { ?d v:state ?s } } } }",
        ),
        Hostile(
            "OPTIONAL that never matches",
            "SELECT (COUNT(*) AS ?n) { ?a v:name ?x OPTIONAL { ?b v:name ?y FILTER (?x < ?y && ?y < ?x) } }",
        ),
        Hostile(
            "MINUS without shared variables",
            "SELECT (COUNT(*) AS ?n) { ?a v:name ?x MINUS { ?b v:name ?y . ?c v:name ?z } }",
        ),
        Hostile(
            "MINUS with optional variables",
            "SELECT (COUNT(*) AS ?n) { ?a v:name ?x OPTIONAL { ?a v:none ?k } MINUS { ?b v:name ?y OPTIONAL { ?b v:none ?k } } }",
        ),
        Hostile(
            "EXISTS in EXISTS",
            "SELECT (COUNT(*) AS ?n) { ?a v:name ?x FILTER EXISTS { ?b v:name ?y FILTER NOT EXISTS { ?c v:name ?z "
            "FILTER (?z > ?y && ?y > ?x && ?x > ?z) } } }",
        ),
        # Paths.
        Hostile("path between all", "SELECT (COUNT(*) AS ?n) { ?a (v:next|!v:next)* ?b }"),
        Hostile("path of a long chain", "SELECT (COUNT(*) AS ?n) { ?a v:next+ ?b }"),
        Hostile("star of stars", "SELECT (COUNT(*) AS ?n) { ?a ((v:next*)*)* ?b }"),
        Hostile("sequence of stars", "SELECT (COUNT(*) AS ?n) { ?a v:next*/v:knows*/v:part*/^v:part* ?b }"),
        Hostile("negated set", "SELECT (COUNT(*) AS ?n) { ?a (!(v:name|^v:name))+ ?b . ?b (!v:text)+ ?c }"),
        Hostile("sequence of 12", "SELECT (COUNT(*) AS ?n) { ?a " + "/".join(["(v:part|^v:part)"] * 12) + " ?b }"),
        # Sorting and grouping.
        Hostile("ORDER BY over everything", "SELECT * { ?a ?b ?c } ORDER BY DESC(?c) ?b ?a"),
        Hostile(
            "ORDER BY of an expression", "SELECT ?a { ?a ?b ?c } ORDER BY SHA512(CONCAT(STR(?c), STR(?a))) LIMIT 5"
        ),
        Hostile("ORDER BY of a cross product", "SELECT ?x ?y { ?a v:name ?x . ?b v:name ?y } ORDER BY ?y ?x LIMIT 1"),
        Hostile("GROUP_CONCAT over everything", "SELECT (GROUP_CONCAT(STR(?c)) AS ?all) { ?a ?b ?c }"),
        Hostile(
            "GROUP_CONCAT of a cross product", "SELECT (STRLEN(GROUP_CONCAT(?x)) AS ?n) { ?a v:text ?x . ?b v:name ?y }"
        ),
        Hostile(
            "GROUP BY subject",
            "SELECT ?a (GROUP_CONCAT(DISTINCT STR(?c)) AS ?g) (MAX(?c) AS ?m) { ?a ?b ?c } GROUP BY ?a",
        ),
        Hostile("DISTINCT over everything", "SELECT DISTINCT * { ?a ?b ?c }"),
        Hostile(
            "DISTINCT of computed values", "SELECT (COUNT(DISTINCT ?h) AS ?n) { ?a ?b ?c BIND (SHA512(STR(?c)) AS ?h) }"
        ),
        # Values that grow.
        Hostile("CONCAT that doubles", chain_doubling("CONCAT({v}, {v})")),
        Hostile("REPLACE that doubles", chain_doubling('REPLACE({v}, "([a-z])", "$1$1")')),
        Hostile("ENCODE_FOR_URI that triples", chain_doubling('ENCODE_FOR_URI(CONCAT({v}, "%", {v}))', 30)),
        Hostile("STRDT that doubles", chain_doubling("STRDT(CONCAT(STR({v}), STR({v})), v:unit)")),
        Hostile("IRI that doubles", chain_doubling('IRI(CONCAT("urn:", STR({v}), STR({v})))')),
        Hostile("UCASE of all in one", 'SELECT (UCASE(GROUP_CONCAT(?c; SEPARATOR="ß")) AS ?u) { ?a v:text ?c }'),
        Hostile("numbers that grow", chain_doubling("(xsd:decimal(1.1) + STRLEN({v})) * (STRLEN({v}) + 1)")),
        # Regular expressions.
        Hostile(
            "regex of repetitions",
            'SELECT (COUNT(*) AS ?n) { ?a v:text ?c FILTER (REGEX(?c, "^(([a-z])+.)+[A-Z]([a-z])+$")) }',
        ),
        Hostile(
            "regex of large counts",
            'SELECT (COUNT(*) AS ?n) { ?a v:text ?c FILTER (REGEX(?c, "((a{0,100}){0,100}){0,100}")) }',
        ),
        Hostile("regex of each row", "SELECT (COUNT(*) AS ?n) { ?a v:text ?c . ?b v:name ?d FILTER (REGEX(?c, ?d)) }"),
        Hostile(
            "regex of a long pattern",
            f'SELECT (COUNT(*) AS ?n) {{ ?a v:text ?c FILTER (REGEX(?c, "{"(a|b)?" * 20000}")) }}',
            too_deep,
        ),
        # Large queries.
        Hostile(
            "IN list of 100,000",
            "SELECT (COUNT(*) AS ?n) { ?a v:number ?c FILTER (?c IN ("
            + ", ".join(map(str, range(10**6, 11 * 10**5)))
            + ")) }",
        ),
        Hostile(
            "VALUES of 100,000",
            "SELECT (COUNT(*) AS ?n) { ?a v:number ?c VALUES ?c { " + " ".join(map(str, range(100_000))) + " } }",
        ),
        Hostile(
            "VALUES that join themselves",
            f"SELECT (COUNT(*) AS ?n) {{ VALUES (?a ?b) {{ {values} }} VALUES (?c ?d) {{ {values} }} FILTER (?a + ?d > ?b * ?c) }}",
        ),
        Hostile(
            "UNION of 5,000", "SELECT (COUNT(*) AS ?n) { " + " UNION ".join(["{ ?a ?b ?c }"] * 5000) + " }", too_deep
        ),
        Hostile(
            "pattern of 300 triples",
            "SELECT * { " + " ".join(f"?a{n} v:state ?s . ?a{n} v:knows ?a{n + 1} ." for n in range(150)) + " }",
            too_deep,
        ),
        Hostile(
            "300 OPTIONALs",
            "SELECT * { ?a v:state ?s " + " ".join(f"OPTIONAL {{ ?b{n} v:state ?s }}" for n in range(300)) + " }",
            too_deep,
        ),
        Hostile(
            "1,000 aggregates",
            "SELECT " + " ".join(f"(GROUP_CONCAT(?c) AS ?g{n})" for n in range(1000)) + " { ?a v:text ?c }",
            too_deep,
        ),
        Hostile(
            "&& of 50,000",
            "SELECT (COUNT(*) AS ?n) { ?a ?b ?c FILTER (" + " && ".join(["?a != ?b"] * 50_000) + ") }",
            too_deep,
        ),
        Hostile("sum of 50,000", "SELECT (" + " + ".join(["1"] * 50_000) + " AS ?n) { }", too_deep),
        Hostile("path of 50,000 steps", "SELECT * { ?a " + "/".join(["v:next"] * 50_000) + " ?b }", too_deep),
        Hostile("a string of 4 MB", f'SELECT (STRLEN("{"x" * 4_000_000}") AS ?n) {{ }}', too_deep),
        Hostile("a list of 20,000", "SELECT * { ?a v:list (" + "1 " * 20_000 + ") }", too_deep),
        # Deep nesting, for the parser.
        Hostile("parentheses", "SELECT (" + nest("(", "1", ")", 100_000) + " AS ?x) { }", too_deep),
        Hostile("groups", "SELECT * " + nest("{ ", "?a ?b ?c", " }", 100_000), too_deep),
        Hostile("negations", "SELECT * { FILTER (" + "!" * 100_000 + "true) }", too_deep),
        Hostile("minus signs", "SELECT (" + nest("-(", "1", ")", 50_000) + " AS ?x) { }", too_deep),
        Hostile("IF in IF", "SELECT (" + nest("IF(true, ", "1", ", 2)", 20_000) + " AS ?x) { }", too_deep),
        Hostile("OPTIONALs, deep", "SELECT * " + nest("{ ?a ?b ?c OPTIONAL ", "{ }", " }", 20_000), too_deep),
        Hostile("EXISTS, deep", "ASK " + nest("{ ?a ?b ?c FILTER EXISTS ", "{ }", " }", 20_000), too_deep),
        Hostile("subqueries, deep", nest("SELECT * { { ", "SELECT * { ?a ?b ?c }", " } }", 20_000), too_deep),
        Hostile("blank nodes, deep", "SELECT * { ?s v:p " + nest("[ v:p ", "1", " ]", 50_000) + " }", too_deep),
        Hostile("lists, deep", "SELECT * { ?s v:p " + nest("( ", "1", " )", 50_000) + " }", too_deep),
        Hostile("path parentheses", "SELECT * { ?a " + nest("(", "v:next", ")*", 50_000) + " ?b }", too_deep),
        Hostile("path inverses", "SELECT * { ?a " + nest("^(", "v:next", ")", 50_000) + " ?b }", too_deep),
        # Other forms.
        Hostile(
            "CONSTRUCT of everything",
            "CONSTRUCT { ?a ?b ?c . ?c v:of ?a . _:x v:node ?a } WHERE { ?a ?b ?c }",
            accept=turtle,
        ),
        Hostile(
            "CONSTRUCT of a cross product",
            "CONSTRUCT { ?a v:with ?b } WHERE { ?a v:name ?x . ?b v:name ?y }",
            accept=turtle,
        ),
        Hostile("CONSTRUCT of one triple", "CONSTRUCT { v:a v:b v:c } WHERE { ?a ?b ?c . ?d ?e ?f }", accept=turtle),
        Hostile("DESCRIBE of everything", "DESCRIBE * WHERE { ?a ?b ?c }", accept=turtle),
        Hostile("ASK that never holds", "ASK { ?a v:number ?x . ?b v:number ?y FILTER (?x + ?y < 0) }"),
        Hostile("OFFSET far away", "SELECT * { ?a v:name ?x . ?b v:name ?y } OFFSET 1000000000 LIMIT 1"),
        Hostile("GRAPH ?g of everything", "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?a ?b ?c } GRAPH ?h { ?d ?e ?f } }"),
        # Updates. None of them may change anything.
        Hostile(
            "INSERT of a cross product",
            "INSERT { ?a v:with ?b } WHERE { ?a v:name ?x . ?b v:name ?y }",
            (413,),
            is_update=True,
        ),
        Hostile(
            "INSERT that grows",
            "INSERT { ?a v:long ?y } WHERE { ?a v:text ?x BIND (CONCAT(" + ", ".join(["?x"] * 2000) + ") AS ?y) }",
            (413,),
            is_update=True,
        ),
        Hostile(
            "DELETE and INSERT of nothing",
            "DELETE { ?a v:none ?d } INSERT { ?a v:none ?d } WHERE { ?a ?b ?c . ?d ?e ?f FILTER (?a = ?e) }",
            (413,),
            is_update=True,
        ),
    ]
    return queries
