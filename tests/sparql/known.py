"""The known differences of the engines: name, reason, and a pattern of the queries that show them.

They explain why the engines disagree with each other. The gateway must agree with one of them in any case.
"""

import re
from dataclasses import dataclass


@dataclass
class Difference:
    name: str
    reason: str
    pattern: str

    def explains(self, text):
        return re.search(self.pattern, text, re.DOTALL | re.IGNORECASE) is not None


DIFFERENCES = [
    Difference(
        "canonical forms",
        "pyoxigraph stores numbers, booleans and dates in canonical form, so STR, DISTINCT and GROUP BY see other terms",
        r"#FORMS",
    ),
    Difference(
        "duplicates of |",
        "the alternatives of a path are a union that keeps duplicates; spareval removes them, those of ! too",
        r'[^|"]\|[^|"]|!(\(|\w+:)',
    ),
    Difference(
        "errors in aggregates",
        "an error, in GROUP_CONCAT also a number or an IRI, makes an aggregate unbound in spareval; rdflib skips it",
        r"(SUM|AVG|MIN|MAX|GROUP_CONCAT|SAMPLE)\(",
    ),
    Difference(
        "DESCRIBE of constants",
        "rdflib describes the constants even if the pattern has no solution",
        r"DESCRIBE [^{]*<http://example.com/[^{]*WHERE",
    ),
    Difference(
        "variables of *",
        "rdflib's * includes variables of MINUS, of filters and of EXISTS",
        r"SELECT (DISTINCT |REDUCED )?\*.*(MINUS|EXISTS|FILTER|BIND)",
    ),
    Difference(
        "language-tagged strings as conditions",
        "rdflib gives a string with a language tag a truth value; spareval raises an error",
        r"FILTER|IF\(|&&|\|\||! \(|HAVING",
    ),
    Difference(
        "errors as arguments",
        "rdflib's isIRI and the like are false for an error, and CONCAT() is unbound",
        r"is(IRI|URI|BLANK|LITERAL|NUMERIC)\(|CONCAT\(\)",
    ),
    Difference(
        "casts of rdflib",
        "rdflib does not cast booleans to numbers, nor numbers with an exponent to integers and decimals",
        r"xsd:(integer|decimal|float|double|boolean|string)\(",
    ),
    Difference("time zones of rdflib", "rdflib's TIMEZONE leaves the minutes out", r"TIMEZONE\("),
    Difference(
        "divisions with 0 in spareval",
        "spareval raises an error for 0 / 1.5 and for decimals of more than 18 digits",
        r" / | \* |AVG\(",
    ),
]


def explain(query):
    """Returns the names of the differences that this query can show."""
    return [difference.name for difference in DIFFERENCES if difference.explains(query.text)]
