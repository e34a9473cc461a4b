"""RDF terms as tuples, the result formats of SPARQL 1.1, and when two results are equal.

A term is ("iri", IRI), ("bnode", label) or ("literal", lexical form, datatype, language tag). A result is a `Table`, a
`Graph` or a `bool`. No engine's code is used, so that a mistake of an engine's parser is noticed.
"""

import csv
import io
import json
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from xml.etree import ElementTree

XSD = "http://www.w3.org/2001/XMLSchema#"
STRING = XSD + "string"
LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
INTEGERS = {
    XSD + name
    for name in (
        "integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger "
        "unsignedLong unsignedInt unsignedShort unsignedByte"
    ).split()
}


@dataclass
class Table:
    """The answer of a SELECT query. A row has None where a variable is unbound."""

    variables: list
    rows: list
    # CSV has no types: the terms are strings.
    untyped: bool = False


@dataclass
class Graph:
    """The answer of CONSTRUCT and DESCRIBE."""

    triples: set


def iri(value):
    return ("iri", value)


def literal(lexical, datatype=STRING, language=None):
    if language:
        return ("literal", lexical, LANG_STRING, language.lower())
    return ("literal", lexical, datatype or STRING, None)


def escape_string(text):
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def to_ntriples(term):
    """Returns a term as N-Triples and SPARQL write it."""
    if term[0] == "iri":
        return f"<{term[1]}>"
    if term[0] == "bnode":
        return f"_:{term[1]}"
    _, lexical, datatype, language = term
    if language:
        return f"{escape_string(lexical)}@{language}"
    return escape_string(lexical) + ("" if datatype == STRING else f"^^<{datatype}>")


def to_nquads(quads):
    """Returns quads (subject, predicate, object, graph IRI or None) as N-Quads."""
    return "".join(" ".join([*map(to_ntriples, (s, p, o)), *([f"<{g}>"] if g else []), ".\n"]) for s, p, o, g in quads)


TERM = re.compile(
    r"""\s*(?:<(?P<iri>[^>]*)>|_:(?P<bnode>[^\s<>"]+)|(?P<quote>["'])(?P<lexical>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)"""
    r"""(?:@(?P<language>[A-Za-z0-9-]+)|\^\^<(?P<datatype>[^>]*)>)?|(?P<boolean>true|false)\b"""
    r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?P<exponent>[eE][+-]?\d+)?))""",
    re.DOTALL,
)
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


def unescape(text):
    def decode(match):
        code = match[1]
        return chr(int(code[1:], 16)) if code[0] in "uU" else ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", decode, text, flags=re.DOTALL)


def read_term(text, position=0):
    """Reads one term as N-Triples, N-Quads and the TSV results write it. Returns the term and the position after it."""
    match = TERM.match(text, position)
    if not match:
        raise ValueError(f"no term at {text[position:position + 60]!r}")
    if match["iri"] is not None:
        term = iri(unescape(match["iri"]))
    elif match["bnode"] is not None:
        # A full stop at the end is the end of the statement.
        label = match["bnode"].rstrip(".")
        return ("bnode", label), match.start("bnode") + len(label)
    elif match["lexical"] is not None:
        term = literal(unescape(match["lexical"]), match["datatype"] and unescape(match["datatype"]), match["language"])
    elif match["boolean"]:
        term = literal(match["boolean"], XSD + "boolean")
    else:
        number = match["number"]
        name = "double" if match["exponent"] else "decimal" if "." in number else "integer"
        term = literal(number, XSD + name)
    return term, match.end()


def read_nquads(text):
    """Reads N-Quads or N-Triples into a set of quads."""
    quads = set()
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        terms, position = [], 0
        while not re.compile(r"\s*\.\s*(#.*)?$").match(line, position):
            term, position = read_term(line, position)
            terms.append(term)
        if len(terms) not in (3, 4):
            raise ValueError(f"a line of {len(terms)} terms: {line[:200]!r}")
        quads.add((terms[0], terms[1], terms[2], terms[3][1] if len(terms) == 4 else None))
    return quads


def read_results(body, content_type):
    """Reads a result of SELECT or ASK from JSON, XML, TSV or CSV, or of CONSTRUCT from N-Triples."""
    kind = content_type.split(";")[0].strip()
    if kind == "application/sparql-results+json":
        return read_json(body)
    if kind == "application/sparql-results+xml":
        return read_xml(body)
    text = body.decode("utf-8")
    if kind == "text/tab-separated-values":
        return read_tsv(text)
    if kind == "text/csv":
        return read_csv(text)
    if kind == "application/n-triples":
        return Graph({quad[:3] for quad in read_nquads(text)})
    raise ValueError(f"the content type {content_type} was not asked for")


def read_json(body):
    document = json.loads(body)
    if "boolean" in document:
        return document["boolean"]

    def term(value):
        if value["type"] == "uri":
            return iri(value["value"])
        if value["type"] == "bnode":
            return ("bnode", value["value"])
        return literal(value["value"], value.get("datatype"), value.get("xml:lang"))

    variables = document["head"]["vars"]
    rows = []
    for binding in document["results"]["bindings"]:
        if set(binding) - set(variables):
            raise ValueError(f"a row binds variables that the head does not name: {binding}")
        rows.append(tuple(term(binding[v]) if v in binding else None for v in variables))
    return Table(variables, rows)


def read_xml(body):
    space = "{http://www.w3.org/2005/sparql-results#}"
    root = ElementTree.fromstring(body)
    boolean = root.find(space + "boolean")
    if boolean is not None:
        return boolean.text.strip() == "true"

    def term(node):
        text = node.text or ""
        if node.tag == space + "uri":
            return iri(text)
        if node.tag == space + "bnode":
            return ("bnode", text)
        return literal(text, node.get("datatype"), node.get("{http://www.w3.org/XML/1998/namespace}lang"))

    variables = [v.get("name") for v in root.find(space + "head").findall(space + "variable")]
    rows = []
    for result in root.find(space + "results"):
        row = {binding.get("name"): term(binding[0]) for binding in result}
        rows.append(tuple(row.get(v) for v in variables))
    return Table(variables, rows)


def read_tsv(text):
    lines = text.split("\n")
    if lines[-1] != "":
        raise ValueError("the last line has no end")
    variables = [name.removeprefix("?") for name in lines[0].split("\t")] if lines[0] else []

    def term(cell):
        if cell == "":
            return None
        value, end = read_term(cell)
        if end != len(cell):
            raise ValueError(f"more than a term: {cell[:200]!r}")
        return value

    rows = [tuple(map(term, line.split("\t"))) if variables else () for line in lines[1:-1]]
    return Table(variables, rows)


def read_csv(text):
    if not text.endswith("\r\n"):
        raise ValueError("a line of CSV ends with CR and LF")
    lines = list(csv.reader(io.StringIO(text, newline="")))
    # The line of one unbound variable is empty.
    return Table(lines[0], [tuple(line or [""]) for line in lines[1:]], untyped=True)


def normalize(term):
    """Returns what two terms of equal value have in common. Engines write numbers in different forms."""
    if term is None or term[0] != "literal":
        return term
    _, lexical, datatype, language = term
    try:
        if datatype in INTEGERS:
            return ("number", datatype, int(lexical))
        if datatype == XSD + "decimal" and re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", lexical):
            # The engines divide with 18 to 28 digits.
            return ("number", datatype, format(Decimal(lexical), ".9f").rstrip("0").removeprefix("-0.") or "0")
        if datatype in (XSD + "double", XSD + "float"):
            # The sum of doubles depends on their order.
            digits = 9 if datatype.endswith("double") else 5
            return ("number", datatype, f"{float(lexical.replace('INF', 'inf')) + 0.0:.{digits}g}")
    except (ValueError, InvalidOperation):
        return term
    if datatype == XSD + "boolean":
        return literal({"1": "true", "0": "false"}.get(lexical, lexical), datatype)
    if datatype in (XSD + "dateTime", XSD + "time"):
        return literal(
            re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", lexical).replace(".Z", "Z").replace("+00:00", "Z"), datatype
        )
    if datatype in (XSD + "dayTimeDuration", XSD + "duration"):
        return literal({"P0D": "PT0S"}.get(lexical, lexical), datatype)
    return term


def normalize_cell(variable, term):
    # GROUP_CONCAT has no order. The generator's separator is a bar, and its variables begin with "joined".
    if variable.startswith("joined") and term and term[0] == "literal":
        return ("literal", "|".join(sorted(term[1].split("|"))), *term[2:])
    return normalize(term)


def color_blank_nodes(rows):
    """Replaces blank nodes by what is known of their neighbourhood, so that renaming them changes nothing.

    Two results are then equal if they are isomorphic; the opposite fails only for some very symmetric graphs.
    """
    nodes = {term for row in rows for term in row if term and term[0] == "bnode"}
    colors = dict.fromkeys(nodes, 0)

    def paint(row, center=None):
        return tuple(("center",) if t == center else ("color", colors[t]) if t in colors else t for t in row)

    for _ in range(len(nodes)):
        seen = {
            node: hash((colors[node], tuple(sorted(repr(paint(row, node)) for row in rows if node in row))))
            for node in nodes
        }
        if len(set(seen.values())) == len(set(colors.values())):
            break
        colors = seen
    return [paint(row) for row in rows]


def describe_difference(left, right, ordered=False, as_set=False):
    """Returns None if two results are equal, otherwise what differs."""
    if type(left) is not type(right):
        return f"{type(left).__name__} and {type(right).__name__}: {left!r:.200} and {right!r:.200}"
    if isinstance(left, bool):
        return None if left == right else f"{left} and {right}"
    if isinstance(left, Graph):
        ours, theirs = ([tuple(map(normalize, t)) for t in side.triples] for side in (left, right))
        ours, theirs = (Counter(color_blank_nodes(sorted(rows, key=repr))) for rows in (ours, theirs))
    else:
        if set(left.variables) != set(right.variables):
            return f"variables {left.variables} and {right.variables}"
        order = sorted(left.variables)
        ours, theirs = (arrange(side, order, left.untyped or right.untyped) for side in (left, right))
        if ordered and ours != theirs and Counter(ours) == Counter(theirs):
            at = next(n for n, (a, b) in enumerate(zip(ours, theirs)) if a != b)
            return f"same rows, other order from row {at}: {ours[at]} and {theirs[at]}"
        ours, theirs = Counter(ours), Counter(theirs)
    if as_set:
        ours, theirs = Counter(set(ours)), Counter(set(theirs))
    if ours == theirs:
        return None
    examples = lambda counter: sorted(map(repr, counter.elements()))[:3]
    return (
        f"{sum(ours.values())} and {sum(theirs.values())} rows; only left: {examples(ours - theirs)}; "
        f"only right: {examples(theirs - ours)}"
    )


def arrange(table, order, untyped):
    """Returns the rows of a table with its columns in this order and normalized terms."""
    columns = [table.variables.index(v) for v in order]
    rows = [tuple(row[c] for c in columns) for row in table.rows]
    if not untyped:
        return color_blank_nodes([tuple(map(normalize_cell, order, row)) for row in rows])

    def write(variable, cell):
        if isinstance(cell, tuple):
            cell = ("_:" if cell[0] == "bnode" else "") + cell[1]
        cell = cell or ""
        # Numbers by value, as well as can be without types.
        try:
            cell = f"{float(cell.replace('INF', 'inf')):.9g}"
        except ValueError:
            cell = re.sub(r"(:\d\d\.\d*?)0+(?=\D|$)", r"\1", cell)
        cell = {"1": "true", "0": "false"}.get(cell, cell) if cell in ("0", "1", "true", "false") else cell
        cell = "|".join(sorted(cell.split("|"))) if variable.startswith("joined") else cell
        return "_:" if cell.startswith("_:") else cell

    return [tuple(map(write, order, row)) for row in rows]
