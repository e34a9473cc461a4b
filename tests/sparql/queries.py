"""Random SPARQL 1.1 queries over the data of data.py, from a grammar.

`Grammar(random).make_query()` returns a `Query`. Whether a variable is bound, and to what kind of value, is tracked so
that most expressions have a value; some do not, on purpose.
"""

import re
from dataclasses import dataclass, field

from data import CLASSES, GRAPHS, NODES, PREDICATES, PREFIXES, get_values
from terms import to_ntriples

PROLOGUE = "".join(f"PREFIX {name}: <{value}>\n" for name, value in PREFIXES.items())
SORTABLE = {"iri", "class", "int", "name", "day"}
NUMBERS = ["int", "dec", "dbl"]
# Where an expression of the first kind is wanted, a variable of these kinds will do.
ACCEPTS = {
    "num": NUMBERS,
    "str": ["str", "name"],
    "date": ["date"],
    "day": ["day"],
    "iri": ["iri", "class"],
    "any": ["any", "str", "iri", "int", "dec", "date", "day", "name"],
}
# Expressions by kind. {kind} is replaced by an expression of that kind.
EXPRESSIONS = {
    "bool": """{num} = {num}|{num} < {num}|{num} > {num}|{num} <= {num}|{num} >= {num}|{num} != {num}
        {str} = {str}|{str} != {str}|{str} < {str}|{str} >= {str}|{iri} = {iri}|{iri} != {iri}|{any} = {any}|{any} != {any}
        {day} < {day}|{day} >= {day}|{day} = {day}|{day} != {day}|{date} < {date}|{date} >= {date}|{date} = {date}
        ({bool}) && ({bool})|({bool}) || ({bool})|! ({bool})
        BOUND({var})|isIRI({any})|isURI({any})|isBLANK({any})|isLITERAL({any})|isNUMERIC({any})|sameTerm({any}, {any})
        CONTAINS({str}, {str})|STRSTARTS({str}, {str})|STRENDS({str}, {str})|langMatches(LANG({str}), "*")
        langMatches(LANG({str}), "de")|LANG({any}) = "de"|DATATYPE({any}) = xsd:integer|{num} IN ({num}, {num}, 1)
        {any} NOT IN ({any}, {any})|{iri} IN ()|{iri} IN ({iri}, {iri})|REGEX({str}, "^[ab]")|REGEX({str}, "PUMP", "i")
        REGEX({str}, "a.b", "q")|REGEX(STR({any}), "n[0-3]$")|IF({bool}, {bool}, {bool})|COALESCE({bool}, false)
        xsd:boolean({any})|{bool} = {bool}|RAND() < 1|isIRI(UUID())|STRLEN(STRUUID()) = 36|isBLANK(BNODE())
        YEAR(NOW()) > 2000|DATATYPE(NOW()) = xsd:dateTime|{num}|{str}""",
    "num": """{num} + {num}|{num} - {num}|{num} * {num}|{num} / {num}|- {num}|+ {num}|({num} + {num}) * {num}|ABS({num})
        CEIL({num})|FLOOR({num})|ROUND({num})|STRLEN({str})|YEAR({date})|MONTH({date})|DAY({date})|HOURS({date})
        MINUTES({date})|SECONDS({date})|xsd:integer({num})|xsd:decimal({num})|xsd:double({num})|xsd:integer(STR({any}))
        IF({bool}, {num}, {num})|COALESCE({num} / 0, {num})|COALESCE({num}, 0)|xsd:integer({bool})|xsd:float({num})""",
    "str": """STR({any})|LCASE({str})|UCASE({str})|SUBSTR({str}, 2)|SUBSTR({str}, {num}, 3)|SUBSTR({str}, 1, 2)
        CONCAT({str}, {str})|CONCAT({str}, "-", STR({any}))|CONCAT()|REPLACE({str}, "[aeiou]", "_")
        REPLACE({str}, "(p)(u)", "$2$1", "i")|STRBEFORE({str}, "a")|STRAFTER({str}, "p")|STRBEFORE({str}, {str})
        ENCODE_FOR_URI({str})|LANG({any})|MD5(STR({any}))|SHA1(STR({any}))|SHA256(STR({any}))|SHA384(STR({any}))
        SHA512(STR({any}))|STRLANG(STR({any}), "en")|IF({bool}, {str}, {str})|COALESCE({str}, "none")|xsd:string({any})
        TZ({date})|STRDT(STR({str}), xsd:string)""",
    "date": """xsd:dateTime(STR({date}))|COALESCE({date}, "2024-01-01T00:00:00Z"^^xsd:dateTime)""",
    "day": """COALESCE({day}, "2024-01-01"^^xsd:date)|IF({bool}, {day}, {day})""",
    "iri": """IRI(STR({iri}))|URI(CONCAT("http://example.com/", ENCODE_FOR_URI({str})))|DATATYPE({any})
        COALESCE({iri}, ex:none)|IF({bool}, {iri}, {iri})""",
    "any": """{iri}|{num}|{str}|{date}|{bool}|STRDT(STR({any}), xsd:integer)|STRDT("x", ex:unit)|TIMEZONE({date})
        COALESCE({any}, {any}, "none")|IF({bool}, {any}, {any})""",
}
EXPRESSIONS = {
    kind: [e.strip() for line in text.split("\n") for e in re.split(r"(?<!\|)\|(?!\|)", line)]
    for kind, text in EXPRESSIONS.items()
}
AGGREGATES = [
    ("count", "COUNT(*)", None),
    ("count", "COUNT({d}{e})", "any"),
    ("sum", "SUM({d}{e})", "num"),
    ("avg", "AVG({d}{e})", "num"),
    ("min", "MIN({d}{e})", "num"),
    ("max", "MAX({d}{e})", "num"),
    ("lowest", "MIN({d}{e})", "plain"),
    ("highest", "MAX({d}{e})", "plain"),
    ("joined", 'GROUP_CONCAT({d}{e}; SEPARATOR="|")', "string"),
    ("sample", "SAMPLE({d}{e})", "key"),
]


@dataclass
class Query:
    # Without FROM: see `write`.
    text: str
    form: str = "SELECT"
    # The IRIs of FROM and FROM NAMED; None and None without a dataset clause.
    default_graphs: list = None
    named_graphs: list = None
    # Whether the dataset is in the text or in the parameters of the protocol.
    is_in_protocol: bool = False
    is_ordered: bool = False
    is_reduced: bool = False
    # Whether every answered term must be a stored term (or one of the query), in its exact form.
    is_exact: bool = False
    features: set = field(default_factory=set)

    def write(self):
        """Returns the text with its dataset clause, if that is not in the protocol."""
        if self.is_in_protocol:
            return self.text
        clauses = [f"FROM <{g}>" for g in self.default_graphs or ()]
        clauses += [f"FROM NAMED <{g}>" for g in self.named_graphs or ()]
        return self.text.replace("#DATASET", "\n".join(clauses) + "\n" if clauses else "#DATASET", 1)


class Scope:
    """The variables in scope: name to kind. Those of `maybe` can be unbound."""

    def __init__(self):
        self.kinds = {}
        self.maybe = set()

    def of(self, kinds):
        return sorted(v for v, kind in self.kinds.items() if kind in kinds)

    def include(self, other, maybe=False):
        for variable, kind in other.kinds.items():
            if maybe and variable not in self.kinds or variable in other.maybe and variable not in self.kinds:
                self.maybe.add(variable)
            elif not maybe and variable not in other.maybe:
                self.maybe.discard(variable)
            if self.kinds.setdefault(variable, kind) != kind:
                self.kinds[variable] = "any"


class Grammar:
    def __init__(self, random, keeps_forms=False):
        """With `keeps_forms` the data has numbers that are not in canonical form."""
        self.random = random
        self.keeps_forms = keeps_forms

    def make_query(self):
        self.features = set()
        self.fresh = 0
        self.is_exact = True
        form = self.pick({"SELECT": 8, "AGGREGATE": 4, "CONSTRUCT": 1.5, "ASK": 1, "DESCRIBE": 0.7})
        self.features.add(form)
        scope = Scope()
        query = Query("", form=form)
        if self.chance(0.15):
            self.choose_dataset(query)
        if form == "DESCRIBE" and self.chance(0.5):
            text = f"DESCRIBE {self.constant('iri')} {self.constant('iri')}\n#DATASET\n"
        else:
            where = self.group(scope, self.random.choice((1, 2, 2, 3)))
            text = getattr(self, "write_" + form.lower())(scope, where, query)
        query.text = PROLOGUE + ("#FORMS\n" if self.keeps_forms else "") + text
        query.is_exact = self.is_exact and form in ("SELECT", "DESCRIBE")
        query.features = self.features
        return query

    # Choices.

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, weights):
        return self.random.choices(list(weights), list(weights.values()))[0]

    def new_variable(self, prefix="v"):
        self.fresh += 1
        return f"?{prefix}{self.fresh}"

    def choose_dataset(self, query):
        some = lambda: self.random.sample(GRAPHS + ["http://example.com/absent"], self.random.choice((0, 1, 2)))
        query.default_graphs, query.named_graphs = some(), some()
        if not query.default_graphs and not query.named_graphs:
            query.default_graphs = [GRAPHS[0]]
        query.is_in_protocol = self.chance(0.5)
        self.features.add("protocol dataset" if query.is_in_protocol else "FROM")

    def constant(self, kind):
        if kind == "iri":
            return to_ntriples(self.random.choice(NODES))
        if kind == "class":
            return to_ntriples(self.random.choice(CLASSES))
        if kind == "num":
            numbers = ["0", "1", "2", "3", "1.5", "-0.25", '"150"^^xsd:double', "42"]
            return self.random.choice(numbers + ['"1.50"^^xsd:decimal', "1.5e2"] if self.keeps_forms else numbers)
        if kind == "bool":
            return self.random.choice(["true", "false"])
        return to_ntriples(self.random.choice([v for v in get_values(kind, self.keeps_forms) if len(v[1]) < 1000]))

    # Patterns. Each adds to the scope what it binds.

    def group(self, scope, size, allow=("OPTIONAL UNION MINUS FILTER EXISTS BIND VALUES SUBQUERY PATH GRAPH GROUP")):
        """A group graph pattern with braces."""
        parts = [self.basic(scope)]
        kinds = allow.split()
        weights = dict(
            zip(kinds, [4 if k in ("OPTIONAL", "FILTER", "BIND") else 3 if k == "PATH" else 2 for k in kinds])
        )
        for _ in range(self.random.randrange(size + 1)):
            kind = self.pick(weights)
            self.features.add(kind)
            parts.append(getattr(self, "part_" + kind.lower())(scope, size))
        # A filter applies to the whole group, wherever it is.
        if self.chance(0.3):
            filters = [p for p in parts if p.startswith("FILTER (")]
            others = [p for p in parts if not p.startswith("FILTER (")]
            parts = filters + others
        return "{ " + "\n  ".join(parts) + " }"

    def subject(self, scope):
        bound = [v for v in scope.of(["iri"])]
        if bound and self.chance(0.92):
            return self.random.choice(bound)
        if self.chance(0.12):
            return self.constant("iri")
        variable = self.new_variable()
        scope.kinds[variable] = "iri"
        return variable

    def object(self, scope, kind, subject):
        bound = [v for v in scope.of([kind]) if v != subject or self.chance(0.03)]
        if bound and self.chance(0.25 if kind == "iri" else 0.06):
            return self.random.choice(bound)
        if self.chance(0.07 if kind != "any" else 0.04):
            return self.constant(kind)
        variable = self.new_variable()
        scope.kinds[variable] = kind
        return variable

    def basic(self, scope, has_paths=True):
        """A basic graph pattern: a star, a chain, a cycle, or something connected."""
        count = self.pick({1: 3, 2: 4, 3: 3, 4: 1, 5: 1})
        shape = self.pick({"star": 3, "chain": 3, "cycle": 1, "any": 3})
        self.features.add("BGP " + shape)
        triples = []
        links = [p for p, kind in PREDICATES.items() if kind == "iri"]
        first = subject = self.subject(scope)
        for n in range(count):
            predicate = self.random.choice([p for p in PREDICATES if p != "rdfs:subClassOf"])
            if shape in ("chain", "cycle") and n + 1 < count:
                predicate = self.random.choice(links)
            kind = PREDICATES[predicate]
            if shape == "cycle" and n + 1 == count:
                predicate, value, kind = self.random.choice(links), first, "iri"
            elif self.chance(0.06):
                predicate, value, kind = self.new_variable("p"), self.new_variable(), "any"
                scope.kinds[predicate], scope.kinds[value] = "iri", "any"
            else:
                value = self.object(scope, kind, subject)
            triples.append(f"{subject} {predicate} {value} .")
            if kind == "class" and self.chance(0.5):
                above = self.object(scope, "class", value)
                triples.append(
                    f"{value} {self.random.choice(('rdfs:subClassOf', 'rdfs:subClassOf*')[: 1 + has_paths])} {above} ."
                )
            if shape in ("chain", "cycle") and value.startswith("?") and scope.kinds.get(value) == "iri":
                subject = value
            elif shape == "any":
                subject = self.subject(scope)
        return " ".join(triples)

    def part_optional(self, scope, size):
        inner = Scope()
        inner.kinds = dict(scope.kinds)
        inner.maybe = set(scope.maybe)
        text = self.group(inner, size - 1, "OPTIONAL FILTER UNION PATH BIND MINUS")
        scope.include(inner, maybe=True)
        return "OPTIONAL " + text

    def part_union(self, scope, size):
        sides, texts = [], []
        for _ in range(self.random.choice((2, 2, 3))):
            side = Scope()
            shared = scope.of(["iri"])
            if shared:
                variable = self.random.choice(shared)
                side.kinds[variable] = "iri"
            texts.append(self.group(side, size - 1, "FILTER OPTIONAL BIND PATH"))
            sides.append(side)
        common = set.intersection(*(set(s.kinds) - s.maybe for s in sides))
        for side in sides:
            side.maybe |= set(side.kinds) - common
            scope.include(side)
        return " UNION ".join(texts)

    def part_minus(self, scope, size):
        inner = Scope()
        if scope.kinds and self.chance(0.85):
            inner.kinds = dict(self.random.sample(sorted(scope.kinds.items()), 1))
        return "MINUS " + self.group(inner, size - 1, "FILTER OPTIONAL PATH")

    def part_exists(self, scope, size):
        inner = Scope()
        if scope.kinds:
            inner.kinds = dict(self.random.sample(sorted(scope.kinds.items()), min(2, len(scope.kinds))))
        negated = self.random.choice(("", "NOT "))
        return f"FILTER {negated}EXISTS " + self.group(inner, size - 1, "FILTER OPTIONAL PATH UNION")

    def part_filter(self, scope, size):
        return f"FILTER ({self.expression('bool', scope, 2)})"

    def part_bind(self, scope, size):
        kind = self.random.choice(("any", "num", "str", "iri", "bool"))
        text = self.expression(kind, scope, 2)
        variable = self.new_variable("e")
        scope.kinds[variable] = {"num": "dec", "bool": "any", "str": "str", "iri": "iri"}.get(kind, "any")
        scope.maybe.add(variable)
        self.is_exact = False
        return f"BIND ({text} AS {variable})"

    def part_values(self, scope, size):
        self.is_exact = False
        known = [v for v in scope.kinds if scope.kinds[v] not in ("any", "dbl") and v not in scope.maybe]
        variables = self.random.sample(known, min(len(known), self.random.choice((1, 1, 2))))
        if not variables or self.chance(0.2):
            variable = self.new_variable()
            scope.kinds[variable] = "iri"
            variables.append(variable)
        cell = lambda v: "UNDEF" if self.chance(0.12) else self.constant(scope.kinds[v])
        rows = [[cell(v) for v in variables] for _ in range(self.random.choice((1, 2, 3, 5)))]
        for n, variable in enumerate(variables):
            if any(row[n] == "UNDEF" for row in rows):
                self.features.add("UNDEF")
                if variable not in known:
                    scope.maybe.add(variable)
        if len(variables) == 1 and self.chance(0.5):
            return f"VALUES {variables[0]} {{ {' '.join(row[0] for row in rows)} }}"
        return f"VALUES ({' '.join(variables)}) {{ {' '.join('(' + ' '.join(row) + ')' for row in rows)} }}"

    def part_subquery(self, scope, size):
        inner = Scope()
        shared = scope.of(["iri"])
        if shared:
            inner.kinds[self.random.choice(shared)] = "iri"
        where = self.group(inner, size - 1, "FILTER OPTIONAL UNION PATH VALUES")
        visible = sorted(v for v in inner.kinds if re.search(re.escape(v) + r"\b", where))
        if not visible:
            return where
        kept = Scope()
        if self.chance(0.4):
            key = self.random.choice(visible)
            name = self.new_variable("count")
            kept.kinds = {key: inner.kinds[key], name: "int"}
            kept.maybe = inner.maybe & {key}
            text = f"SELECT {key} (COUNT(*) AS {name}) WHERE {where} GROUP BY {key}"
            self.is_exact = False
        else:
            chosen = self.random.sample(visible, min(len(visible), self.random.choice((1, 2, 3))))
            kept.kinds = {v: inner.kinds[v] for v in chosen}
            kept.maybe = inner.maybe & set(chosen)
            distinct = self.random.choice(("", "DISTINCT "))
            text = f"SELECT {distinct}{' '.join(chosen)} WHERE {where}"
            if all(inner.kinds[v] in SORTABLE for v in chosen) and self.chance(0.5):
                text += f" ORDER BY {' '.join(chosen)} LIMIT {self.random.choice((1, 3, 10))}"
        scope.include(kept)
        return "{ " + text + " }"

    def part_group(self, scope, size):
        inner = Scope()
        shared = scope.of(["iri"])
        if shared:
            inner.kinds[self.random.choice(shared)] = "iri"
        text = self.group(inner, size - 1, "FILTER OPTIONAL BIND")
        scope.include(inner)
        return text

    def part_graph(self, scope, size):
        inner = Scope()
        shared = scope.of(["iri"])
        if shared:
            inner.kinds[self.random.choice(shared)] = "iri"
        if self.chance(0.4):
            graph = f"<{self.random.choice(GRAPHS)}>"
        else:
            graph = self.new_variable("g")
        text = self.group(inner, size - 1, "FILTER OPTIONAL PATH UNION EXISTS MINUS")
        scope.include(inner)
        if graph.startswith("?"):
            scope.kinds[graph] = "iri"
        return f"GRAPH {graph} {text}"

    def path(self, depth=2):
        links = ["ex:knows", "ex:part", "ex:next", "ex:knows", "rdf:type"]
        if depth == 0:
            return self.random.choice(links)
        part = lambda: self.path(depth - 1)
        kind = self.random.choice(("one", "one", "/", "|", "^", "*", "+", "?", "!", "!("))
        self.features.add("path " + kind)
        if kind == "one":
            return self.random.choice(links)
        if kind == "/" and self.chance(0.3):
            return "rdf:type/rdfs:subClassOf" + self.random.choice(("", "*", "+", "?"))
        if kind in "/|":
            return f"({part()}{kind}{part()})"
        if kind == "^":
            return f"^{self.random.choice(links)}" if self.chance(0.6) else f"^({part()})"
        if kind in "*+?":
            return f"({part()}){kind}"
        if kind == "!" or self.chance(0.5):
            return f"!{self.random.choice(links)}"
        return f"!({self.random.choice(links)}|^{self.random.choice(links)}|{self.random.choice(links)})"

    def part_path(self, scope, size):
        subject = self.subject(scope)
        path = self.path()
        # Any path can end anywhere, so a class is as good as a node.
        value = self.object(scope, "iri", subject)
        if "!" in path and value.startswith("?"):
            scope.kinds[value] = "any"
        return f"{subject} {path} {value} ."

    # Expressions.

    def expression(self, kind, scope, depth):
        if kind == "var":
            return self.random.choice(sorted(scope.kinds)) if scope.kinds else "?none"
        if depth <= 0 or kind != "bool" and self.chance(0.5):
            variables = scope.of(ACCEPTS.get(kind, []))
            if variables and self.chance(0.8):
                return self.random.choice(variables)
            if self.chance(0.05):
                return "?unbound"
            if kind == "any":
                return self.constant(self.random.choice(("iri", "num", "str", "date")))
            return self.constant(kind)
        template = self.random.choice(EXPRESSIONS[kind])
        for name in re.findall(r"\b([A-Za-z_]{2,})\(", template):
            self.features.add(name.upper())
        for name in re.findall(r"(?<=\s)(?:IN|NOT IN|[-+*/=<>!&|]+)(?=\s)", " " + template):
            self.features.add(name)
        text = re.sub(r"\{(\w+)\}", lambda m: self.nest(self.expression(m[1], scope, depth - 1)), template)
        return text

    @staticmethod
    def nest(text):
        """Puts an expression into parentheses unless it is one term."""
        return text if re.fullmatch(r"[?\w:.]+|<[^<>\s]*>|-?\d[\d.e]*", text) else f"({text})"

    # Query forms.

    def write_select(self, scope, where, query):
        visible = sorted(scope.kinds)
        chosen = self.random.sample(visible, self.random.randint(1, len(visible))) if visible else []
        modifier = self.pick({"": 6, "DISTINCT ": 3, "REDUCED ": 0.7})
        query.is_reduced = modifier == "REDUCED "
        if modifier:
            self.features.add(modifier.strip())
        columns = list(chosen)
        if not chosen or self.chance(0.2):
            columns, chosen = ["*"], visible
            if not visible:
                columns = ["?none"]
        computed = []
        if columns != ["*"] and self.chance(0.5):
            self.features.add("SELECT expression")
            self.is_exact = False
            kinds = self.random.choices(("num", "str", "any", "bool"), k=self.random.choice((1, 2)))
            computed = [f"({self.expression(kind, scope, 2)} AS ?x{n})" for n, kind in enumerate(kinds)]
        text = f"SELECT {modifier}{' '.join(columns + computed)}\n#DATASET\nWHERE {where}\n"
        sortable = [v for v in chosen if scope.kinds[v] in SORTABLE]
        if columns == ["*"]:
            # Whether * has a variable of an EXISTS or MINUS is known to the engine only, so the order is not total.
            return text + ("ORDER BY " + " ".join(sortable) + "\n" if sortable and self.chance(0.2) else "")
        if sortable == chosen and not computed and chosen and self.chance(0.6):
            order = [self.random.choice(("{}", "ASC({})", "DESC({})")).format(v) for v in chosen]
            self.random.shuffle(order)
            text += f"ORDER BY {' '.join(order)}\n"
            query.is_ordered = True
            self.features.add("ORDER BY")
            if not query.is_reduced and self.chance(0.6):
                self.features.add("LIMIT")
                text += f"LIMIT {self.random.choice((0, 1, 2, 5, 20))}\n"
                if self.chance(0.5):
                    self.features.add("OFFSET")
                    text += f"OFFSET {self.random.choice((0, 1, 3))}\n"
        elif self.chance(0.15):
            self.features.add("ORDER BY expression")
            text += f"ORDER BY {self.random.choice(('', 'DESC'))}({self.expression('num', scope, 1)})\n"
        if self.chance(0.05) and chosen and scope.kinds[chosen[0]] == "iri":
            self.features.add("VALUES at the end")
            text += f"VALUES {chosen[0]} {{ {self.constant('iri')} {self.constant('iri')} UNDEF }}\n"
            self.is_exact = False
        return text

    def write_aggregate(self, scope, where, query):
        visible = sorted(scope.kinds)
        keys = self.random.sample(visible, min(len(visible), self.pick({0: 2, 1: 5, 2: 2})))
        keys = [k for k in keys if scope.kinds[k] != "dbl"]
        group, columns = list(keys), list(keys)
        if self.chance(0.2):
            self.features.add("GROUP BY expression")
            group.append(f"({self.expression('str', scope, 1)} AS ?key)")
            columns.append("?key")
        names, aggregates = [], []
        for _ in range(self.random.choice((1, 2, 3))):
            name, template, kind = self.random.choice(AGGREGATES)
            if kind == "key" and not keys:
                continue
            self.features.add(template.split("(")[0] + (" *" if kind is None else ""))
            inner = {
                None: lambda: "",
                "key": lambda: self.random.choice(keys),
                "plain": lambda: self.random.choice(scope.of(SORTABLE) or ["1"]),
                "string": lambda: self.random.choice(("STR({})", "{}")).format(self.expression("any", scope, 0)),
                "num": lambda: (
                    self.random.choice(scope.of(["int", "dec"]) or ["1", "STRLEN(STR(?v1))", "?none"])
                    if self.chance(0.7)
                    else self.expression("num", scope, 1)
                ),
                "any": lambda: self.expression("any", scope, self.random.choice((0, 0, 1))),
            }[kind]()
            distinct = "DISTINCT " if self.chance(0.35) else ""
            if distinct and "{d}" in template:
                self.features.add(template.split("(")[0] + " DISTINCT")
            text = template.replace("{d}", distinct).replace("{e}", inner)
            variable = f"?{name}{len(names)}"
            names.append(variable)
            aggregates.append(text)
            columns.append(
                f"({text} AS {variable})" if self.chance(0.85) or name == "joined" else f"(({text}) AS {variable})"
            )
        if not aggregates:
            columns.append("(COUNT(*) AS ?count9)")
            names.append("?count9")
        text = f"SELECT {' '.join(columns)}\n#DATASET\nWHERE {where}\n"
        if group:
            self.features.add("GROUP BY")
            text += f"GROUP BY {' '.join(group)}\n"
        if self.chance(0.25):
            self.features.add("HAVING")
            text += f"HAVING ({self.random.choice(('COUNT(*) > 1', 'COUNT(*) >= 3', 'COUNT(*) < 4 && true', *(f'{a} != 2' for a in aggregates if a.startswith('COUNT'))))})\n"
        if keys and set(group) == set(keys) and all(scope.kinds[k] in SORTABLE for k in keys) and self.chance(0.5):
            self.features.add("ORDER BY")
            query.is_ordered = True
            text += f"ORDER BY {' '.join(keys)}\n"
            if self.chance(0.5):
                self.features.add("LIMIT")
                text += f"LIMIT {self.random.choice((1, 3, 10))}\n"
        return text

    def write_construct(self, scope, where, query):
        if self.chance(0.2):
            inner = Scope()
            self.features.add("CONSTRUCT WHERE")
            return f"CONSTRUCT\n#DATASET\nWHERE {{ {self.basic(inner, has_paths=False)} }}\n"
        triples = []
        for _ in range(self.random.choice((1, 2, 3))):
            any_variable = sorted(scope.kinds) or ["?none"]
            subject = self.random.choice(scope.of(["iri"]) + [self.random.choice(any_variable), "_:b", "ex:fixed"])
            value = self.random.choice(any_variable + ["_:b", "7", "[]"])
            triples.append(f"{subject} {self.random.choice(['ex:made', 'ex:int', *scope.of(['iri'])[:1]])} {value} .")
        return f"CONSTRUCT {{ {' '.join(triples)} }}\n#DATASET\nWHERE {where}\n"

    def write_ask(self, scope, where, query):
        return f"ASK\n#DATASET\nWHERE {where}\n"

    def write_describe(self, scope, where, query):
        variables = scope.of(["iri"])[:2]
        return f"DESCRIBE {' '.join(variables + [self.constant('iri')])}\n#DATASET\nWHERE {where}\n"
