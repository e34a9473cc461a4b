"""Where pySHACL differs from the specification (https://www.w3.org/TR/shacl/)."""

import re
from decimal import Decimal

from rdflib import RDF, XSD, BNode, Literal, Namespace, URIRef

SH = Namespace("http://www.w3.org/ns/shacl#")
BOUNDS = ["minExclusive", "minInclusive", "maxExclusive", "maxInclusive"]
PAIRS = ["lessThan", "lessThanOrEquals"]
# Their results depend on those of other shapes.
SHAPE_BASED = {"Not", "And", "Or", "Xone", "Node", "QualifiedMinCount", "QualifiedMaxCount"}
INTEGERS = {
    XSD.integer: (None, None),
    XSD.int: (-(2**31), 2**31 - 1),
    XSD.byte: (-128, 127),
    XSD.nonNegativeInteger: (0, None),
}

INCOMPARABLE = "pySHACL compares values of different types, values that are not valid, and IRIs (4.3, 4.5.3)"
MIN_LENGTH_0 = "pySHACL accepts blank nodes for sh:minLength 0 (4.4.1)"
INVERSE_SEQUENCE = "pySHACL follows the inverse of a sequence in the wrong order (2.3.1.3)"


def find_type(term):
    """Returns what a value can be compared with: a type, or None."""
    if not isinstance(term, Literal) or term.language:
        return None
    text, datatype = str(term), term.datatype or XSD.string
    if datatype in INTEGERS:
        if not re.fullmatch(r"[+-]?\d+", text):
            return None
        low, high = INTEGERS[datatype]
        number = Decimal(text)
        return None if (low is not None and number < low) or (high is not None and number > high) else "number"
    if datatype == XSD.decimal:
        return "number" if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", text) else None
    if datatype in (XSD.double, XSD.float):
        return None if text.lower() == "nan" else "number"
    if datatype in (XSD.dateTime, XSD.date, XSD.time):
        # Whether there is a time zone matters only for values that are close, as those of the tests are.
        has_zone = bool(re.search(r"(Z|[+-]\d\d:\d\d)$", text))
        return (datatype, has_zone) if term.value is not None else None
    return datatype if datatype in (XSD.string, XSD.boolean) and term.value is not None else None


def is_comparable(one, other):
    return find_type(one) is not None and find_type(one) == find_type(other)


def find_values(shapes, data):
    """Returns the nodes that may be values: those of the data, and those that a shape has as targets."""
    return set(data.objects()) | set(data.subjects()) | set(shapes.objects(None, SH.targetNode))


def has_incomparable(shapes, data):
    """Returns whether a bound or a pair of properties meets values that cannot be compared with it."""
    values = find_values(shapes, data)
    for name in BOUNDS:
        for bound in shapes.objects(None, SH[name]):
            if any(not is_comparable(value, bound) for value in values):
                return True
    return any((None, SH[name], None) in shapes for name in PAIRS)


def has_inverse_sequence(shapes):
    def is_sequence(path):
        return (path, RDF.first, None) in shapes or any(
            is_sequence(inner)
            for name in ("inversePath", "zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath")
            for inner in shapes.objects(path, SH[name])
        )

    return any(is_sequence(path) for path in shapes.objects(None, SH.inversePath))


def explain_result(shapes, data, result, is_ours):
    """Returns the known difference that explains a result that only one of the two has, or None."""
    focus, path, component, value, _ = result
    name = component.removesuffix("ConstraintComponent")
    parameter = name[:1].lower() + name[1:]
    if has_inverse_sequence(shapes) and (path is None or "inversePath(" in path or name in SHAPE_BASED):
        return INVERSE_SEQUENCE
    if name == "MinLength" and is_ours and value == "_:blank" and (None, SH.minLength, Literal(0)) in shapes:
        return MIN_LENGTH_0
    if is_ours and parameter in BOUNDS:
        terms = [term for term in find_values(shapes, data) if write_like(term) == value]
        bounds = list(shapes.objects(None, SH[parameter]))
        if any(not is_comparable(term, bound) for term in terms for bound in bounds):
            return INCOMPARABLE
    if is_ours and parameter in PAIRS:
        subject = [s for s in set(data.subjects()) if write_like(s) == focus]
        terms = [term for term in set(data.objects()) | set(data.subjects()) if write_like(term) == value]
        others = [o for s in subject for p in shapes.objects(None, SH[parameter]) for o in data.objects(s, p)]
        if any(not is_comparable(term, other) for term in terms for other in others):
            return INCOMPARABLE
    if name in SHAPE_BASED:
        if has_incomparable(shapes, data):
            return INCOMPARABLE
        if (None, SH.minLength, Literal(0)) in shapes:
            return MIN_LENGTH_0
    return None


def write_like(term):
    """Writes a term as compare.py does."""
    if isinstance(term, BNode):
        return "_:blank"
    if isinstance(term, URIRef):
        return str(term)
    kind = f"@{term.language.lower()}" if term.language else f"^^{term.datatype}" if term.datatype else ""
    return f'"{term}"{kind.replace("^^http://www.w3.org/2001/XMLSchema#string", "")}'


def explain(shapes, data, only_ours, only_theirs):
    """Returns the names of the known differences that explain all of these results; none if one is not explained."""
    causes = [explain_result(shapes, data, result, True) for result in only_ours]
    causes += [explain_result(shapes, data, result, False) for result in only_theirs]
    return [] if None in causes else sorted(set(causes))
