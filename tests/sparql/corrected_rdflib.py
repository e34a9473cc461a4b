"""rdflib with the algebra of SPARQL 1.1 where its own shortcuts give other solutions.

- A join removes the duplicates of its right side.
- Joins and OPTIONAL evaluate the right side with the bindings of the left one, which then are visible in subqueries,
  filters and MINUS.
- GROUP BY of nothing has one group.
- `*` and `?` from a bound node give it twice if it is on a cycle.
"""

import logging

import rdflib
from rdflib import paths
from rdflib.plugins.sparql import evaluate

# "01.50"^^xsd:decimal stays as it is.
rdflib.NORMALIZE_LITERALS = False
# It logs every ill-typed literal.
logging.getLogger("rdflib").setLevel(logging.CRITICAL)

evaluate_aggregates = evaluate.evalAggregateJoin
evaluate_repetition = paths.MulPath.eval


def join(context, part):
    right = list(evaluate.evalPart(context, part.p2))
    for left in evaluate.evalPart(context, part.p1):
        yield from (left.merge(other) for other in right if left.compatible(other))


def left_join(context, part):
    right = list(evaluate.evalPart(context, part.p2))
    for left in evaluate.evalPart(context, part.p1):
        merged = [left.merge(other) for other in right if left.compatible(other)]
        kept = [solution for solution in merged if evaluate._ebv(part.expr, solution)]
        yield from kept or [left]


def aggregate(context, part):
    rows = list(evaluate.evalPart(context, part.p.p))
    if not rows and part.p.expr is not None:
        return iter(())
    return evaluate_aggregates(context, part)


def repeat(path, *where, **options):
    return iter(set(evaluate_repetition(path, *where, **options)))


evaluate.evalJoin = join
evaluate.evalLeftJoin = left_join
evaluate.evalAggregateJoin = aggregate
paths.MulPath.eval = repeat
