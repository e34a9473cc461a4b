"""The types of a table's columns, found in its objects.

A structure is one of `BOOLEAN`, `BIGINT`, `DOUBLE`, `VARCHAR`, None (only empty values so far), a list with the structure
of its elements, or a dict of fields. Values of different types become text."""

import math

OWN_COLUMNS = ("_gateway", "_sequence", "_object")
INT64 = range(-(2**63), 2**63)


def find_structure(value):
    """Returns the structure of a JSON value."""
    if isinstance(value, dict):
        return {name: find_structure(item) for name, item in value.items()} or None
    if isinstance(value, list):
        element = None
        for item in value:
            element = merge_structures(element, find_structure(item))
        return [element]
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "BIGINT" if value in INT64 else "VARCHAR"
    if isinstance(value, float):
        return "DOUBLE" if math.isfinite(value) else "VARCHAR"
    return None if value is None else "VARCHAR"


def merge_structures(one, other):
    """Returns the structure that holds the values of both."""
    if one == other or other is None:
        return one
    if one is None:
        return other
    if isinstance(one, dict) and isinstance(other, dict):
        merged = dict(one)
        for name, structure in other.items():
            merged[name] = merge_structures(merged.get(name), structure)
        return merged
    if isinstance(one, list) and isinstance(other, list):
        return [merge_structures(one[0], other[0])]
    if {one if isinstance(one, str) else "", other if isinstance(other, str) else ""} == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    return "VARCHAR"


def drop_ambiguous_fields(structure, taken=OWN_COLUMNS, path=""):
    """Removes fields whose names differ only in case from another field's, or from a column of the table: no engine can
    have both. Returns the structure and the paths of these fields."""
    if isinstance(structure, list):
        element, dropped = drop_ambiguous_fields(structure[0], (), f"{path}[]")
        return [element], dropped
    if not isinstance(structure, dict):
        return structure, []
    seen, kept, dropped = set(taken), {}, []
    for name, field in structure.items():
        place = f"{path}.{name}" if path else name
        if name.lower() in seen:
            dropped.append(place)
            continue
        seen.add(name.lower())
        kept[name], below = drop_ambiguous_fields(field, (), place)
        dropped += below
    return kept, dropped


def list_differences(old, new, path=""):
    """Yields the path, the old and the new type of each field that is new or changes its type. The old type of a new
    field is None."""
    if old == new:
        return
    if isinstance(old, list) and isinstance(new, list):
        yield from list_differences(old[0], new[0], f"{path}[]")
    elif isinstance(old, dict) and isinstance(new, dict):
        for name, field in new.items():
            yield from list_differences(old.get(name), field, f"{path}.{name}" if path else name)
    else:
        yield path, old and describe(old), describe(new)


def describe(structure):
    """Returns the name of a type for people."""
    if isinstance(structure, dict):
        return "object"
    if isinstance(structure, list):
        return "array"
    return (structure or "unknown").lower()
