"""Random shapes graphs and random data, for every constraint component, target and path of SHACL Core."""

PREFIXES = """@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix ex: <http://example.com/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
CLASSES = ["ex:A", "ex:B", "ex:C", "ex:D"]
PROPERTIES = ["ex:p", "ex:q", "ex:r", "ex:s"]
NODES = [f"ex:n{number}" for number in range(7)]
BLANK_NODES = ["_:b0", "_:b1"]
NUMBERS = [
    '"1"^^xsd:integer', '"01"^^xsd:integer', '"+2"^^xsd:integer', '"-3"^^xsd:integer', '"1.0"^^xsd:decimal',
    '"01.20"^^xsd:decimal', '".5"^^xsd:decimal', '"-0"^^xsd:decimal', '"1e0"^^xsd:double', '"15E-1"^^xsd:double',
    '"2.5"^^xsd:float', '"7"^^xsd:byte', '"300"^^xsd:int', '"NaN"^^xsd:double', '"INF"^^xsd:double',
    '"12345678901234567890.5"^^xsd:decimal', '"12345678901234567890"^^xsd:integer',
]
INVALID = [
    '"abc"^^xsd:integer', '"1.5"^^xsd:integer', '"2024-13-01"^^xsd:date', '"2023-02-30"^^xsd:date',
    '"maybe"^^xsd:boolean', '"1,5"^^xsd:decimal', '"300"^^xsd:byte', '"25:00:00"^^xsd:time', '""^^xsd:integer',
    '"-1"^^xsd:nonNegativeInteger', '"2024-01-01"^^xsd:dateTime',
]
TIMES = [
    '"2024-01-01"^^xsd:date', '"2024-06-30"^^xsd:date', '"2024-01-01Z"^^xsd:date',
    '"2024-01-01T00:00:00Z"^^xsd:dateTime', '"2024-01-01T01:00:00+01:00"^^xsd:dateTime',
    '"2024-01-01T12:00:00"^^xsd:dateTime', '"2023-12-31T23:59:59.5Z"^^xsd:dateTime', '"2024"^^xsd:gYear',
    '"12:00:00"^^xsd:time', '"P1D"^^xsd:duration',
]
TEXTS = [
    '"hello"', '"Hello"@en', '"hallo"@de', '"hi"@EN', '"colour"@en-GB', '"color"@en-US', '"Grüße"@de-CH', '""', '"a b"',
    '"line\\nbreak"', '"x"^^ex:custom', '"http://x/"^^xsd:anyURI', '"😀😀"', '"true"^^xsd:boolean', '"1"^^xsd:boolean',
    '"false"^^xsd:boolean',
]
LITERALS = NUMBERS + TIMES + TEXTS + INVALID
DATATYPES = [
    "xsd:integer", "xsd:decimal", "xsd:double", "xsd:float", "xsd:string", "xsd:boolean", "xsd:date", "xsd:dateTime",
    "xsd:time", "xsd:byte", "xsd:int", "xsd:nonNegativeInteger", "rdf:langString", "ex:custom", "xsd:anyURI", "xsd:gYear",
]
PATTERNS = [
    ("^h", None), ("H", "i"), ("^[a-z]+$", None), ("b", "s"), ("^b", "m"), ("a b", "x"), (".", None), ("^.{2}$", None),
    ("e.$", "im"), ("^\\\\d+$", None), ("n[0-3]$", None),
]
LANGUAGES = ["en", "de", "EN", "en-GB", "de-CH", "fr"]
KINDS = ["IRI", "Literal", "BlankNode", "BlankNodeOrIRI", "BlankNodeOrLiteral", "IRIOrLiteral"]
VALUE = [
    "class", "datatype", "nodeKind", "minExclusive", "minInclusive", "maxExclusive", "maxInclusive", "minLength",
    "maxLength", "pattern", "languageIn", "equals", "disjoint", "not", "and", "or", "xone", "node", "property", "hasValue",
    "in",
]
OF_PROPERTIES = ["minCount", "maxCount", "uniqueLang", "lessThan", "lessThanOrEquals", "qualified"]
OF_NODES = ["closed"]


class Generator:
    """Makes one case from a `random.Random`."""

    def __init__(self, choice):
        self.choice = choice
        self.components = set()

    def value(self):
        kind = self.choice.random()
        if kind < 0.3:
            return self.choice.choice(NODES)
        if kind < 0.36:
            return self.choice.choice(BLANK_NODES)
        return self.choice.choice(self.literals)

    def make_data(self):
        # Few different values, so that they meet.
        self.literals = self.choice.sample(LITERALS, 14)
        lines = ["ex:B rdfs:subClassOf ex:A . ex:C rdfs:subClassOf ex:B ."]
        for node in NODES + BLANK_NODES:
            if self.choice.random() < 0.7:
                lines.append(f"{node} ex:any 1 .")
            for _ in range(self.choice.choice([0, 1, 1, 2])):
                lines.append(f"{node} a {self.choice.choice(CLASSES)} .")
            for _ in range(self.choice.randrange(6)):
                lines.append(f"{node} {self.choice.choice(PROPERTIES)} {self.value()} .")
        return PREFIXES + "\n".join(lines) + "\n"

    def path(self, depth=0):
        kind = self.choice.random() * (1 if depth < 2 else 0.6)
        if kind < 0.6:
            return self.choice.choice(PROPERTIES)
        inner = lambda: self.path(depth + 1)
        if kind < 0.7:
            return f"[ sh:inversePath {inner()} ]"
        if kind < 0.78:
            return f"( {inner()} {inner()} )"
        if kind < 0.86:
            return f"[ sh:alternativePath ( {inner()} {inner()} ) ]"
        name = self.choice.choice(["zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath"])
        return f"[ sh:{name} {inner()} ]"

    def shape(self, depth):
        """Returns a node shape or a property shape in brackets."""
        if self.choice.random() < 0.5:
            return self.property_shape(depth)
        return f"[ {self.body(depth, VALUE + OF_NODES)} ]"

    def property_shape(self, depth):
        return f"[ sh:path {self.path()} ; {self.body(depth, VALUE + OF_PROPERTIES)} ]"

    def body(self, depth, names):
        """Returns constraints and the other properties of a shape."""
        parts = []
        for name in dict.fromkeys(self.choice.choices(names, k=self.choice.choice([1, 1, 2, 3]))):
            if depth >= 2 and name in ("not", "and", "or", "xone", "node", "property", "qualified"):
                continue
            self.components.add(name)
            parts.append(self.constraint(name, depth))
        if self.choice.random() < 0.15:
            parts.append(f"sh:severity sh:{self.choice.choice(['Warning', 'Info', 'Violation'])}")
        if self.choice.random() < 0.07:
            parts.append(f"sh:deactivated {self.choice.choice(['true', 'true', 'false'])}")
        if self.choice.random() < 0.15:
            parts.append('sh:message "wrong"@en, "falsch"@de')
        return " ; ".join(parts) or "sh:nodeKind sh:IRI"

    def shapes(self, depth):
        return "( " + " ".join(self.shape(depth + 1) for _ in range(self.choice.choice([1, 2, 2, 3]))) + " )"

    def constraint(self, name, depth):
        choice = self.choice
        if name == "class":
            return f"sh:class {choice.choice(CLASSES)}"
        if name == "datatype":
            return f"sh:datatype {choice.choice(DATATYPES)}"
        if name == "nodeKind":
            return f"sh:nodeKind sh:{choice.choice(KINDS)}"
        if name in ("minCount", "maxCount"):
            return f"sh:{name} {choice.randrange(4)}"
        if name in ("minExclusive", "minInclusive", "maxExclusive", "maxInclusive"):
            return f"sh:{name} {choice.choice(NUMBERS[:13] + TIMES[:7])}"
        if name in ("minLength", "maxLength"):
            return f"sh:{name} {choice.choice([0, 1, 2, 5, 10])}"
        if name == "pattern":
            pattern, flags = choice.choice(PATTERNS)
            return f'sh:pattern "{pattern}"' + (f' ; sh:flags "{flags}"' if flags else "")
        if name == "languageIn":
            return "sh:languageIn ( " + " ".join(f'"{tag}"' for tag in choice.sample(LANGUAGES, 2)) + " )"
        if name == "uniqueLang":
            return "sh:uniqueLang true"
        if name in ("equals", "disjoint", "lessThan", "lessThanOrEquals"):
            return f"sh:{name} {choice.choice(PROPERTIES)}"
        if name in ("and", "or", "xone"):
            return f"sh:{name} {self.shapes(depth)}"
        if name == "not":
            return f"sh:not {self.shape(depth + 1)}"
        if name == "node":
            return f"sh:node [ {self.body(depth + 1, VALUE + OF_NODES)} ]"
        if name == "property":
            return f"sh:property {self.property_shape(depth + 1)}"
        if name == "qualified":
            bounds = choice.choice(["Min", "Max", "MinMax"])
            text = f"sh:qualifiedValueShape {self.shape(depth + 1)}"
            if "Min" in bounds:
                text += f" ; sh:qualifiedMinCount {choice.choice([0, 1, 2])}"
            if "Max" in bounds:
                text += f" ; sh:qualifiedMaxCount {choice.choice([0, 1, 2])}"
            return text
        if name == "closed":
            allowed = choice.sample(PROPERTIES + ["rdf:type", "ex:any"], 4)
            text = f"sh:closed {choice.choice(['true', 'true', 'false'])}"
            return text + (f" ; sh:ignoredProperties ( {' '.join(allowed)} )" if choice.random() < 0.8 else "")
        if name == "hasValue":
            return f"sh:hasValue {choice.choice(self.literals + NODES)}"
        assert name == "in"
        return "sh:in ( " + " ".join(choice.sample(self.literals + NODES, 5)) + " )"

    def siblings(self):
        """Returns property shapes whose qualified shapes exclude each other."""
        self.components.add("qualifiedValueShapesDisjoint")
        path = self.choice.choice(PROPERTIES)
        parts = []
        for _ in range(2):
            bounds = self.choice.choice(["sh:qualifiedMinCount 1", "sh:qualifiedMaxCount 1", "sh:qualifiedMaxCount 0"])
            parts.append(
                f"sh:property [ sh:path {path} ; sh:qualifiedValueShape {self.shape(2)} ; {bounds} ; "
                "sh:qualifiedValueShapesDisjoint true ]"
            )
        return " ; ".join(parts)

    def target(self):
        kind = self.choice.choice(["Class", "Class", "Node", "SubjectsOf", "ObjectsOf"])
        # A target need not be in the data.
        nodes = NODES + ["ex:nowhere", self.choice.choice(self.literals)]
        values = {"Class": CLASSES, "Node": nodes, "SubjectsOf": PROPERTIES, "ObjectsOf": PROPERTIES}[kind]
        return f"sh:target{kind} {self.choice.choice(values)}"

    def make_shapes(self):
        parts = []
        for number in range(self.choice.choice([1, 1, 2, 3])):
            kind = self.choice.random()
            if kind < 0.15:
                parts.append(
                    f"ex:Shape{number} a sh:PropertyShape ; {self.target()} ; sh:path {self.path()} ; "
                    f"{self.body(0, VALUE + OF_PROPERTIES)} ."
                )
                continue
            body = self.siblings() if kind < 0.25 else self.body(0, VALUE + OF_NODES + ["property"] * 10)
            if kind > 0.92 and number == 0:
                parts.append(f"{self.choice.choice(CLASSES)} a sh:NodeShape, rdfs:Class ; {body} .")
            else:
                parts.append(f"ex:Shape{number} a sh:NodeShape ; {self.target()} ; {body} .")
        return PREFIXES + "\n".join(parts) + "\n"
