"""Decides which exports of a stream are applied. A stream is one Business Object of one gateway."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Findings:
    """What a run reports. Problems need somebody, notes do not."""

    problems: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def add_problem(self, code, place, text):
        self.problems.append({"finding": code, "place": place, "text": text})

    def add_note(self, code, place, text):
        self.notes.append({"note": code, "place": place, "text": text})


@dataclass
class Plan:
    """The exports to apply to a stream, in order, and its next state."""

    exports: list
    state: dict


def plan_stream(place, state, staged, listed, findings):
    """Returns the `Plan` of a stream.

    `state` is None or a dict of `sequence`, the last one that was applied, `gateway_id`, `date`, `gaps`: ranges that
    were skipped, and `doubles`: ranges of sequences with several keys that the tables account for. `staged` has the
    exports after that sequence, in any order. `listed` is the sequences of all keys.

    Exports are applied in the order of their sequences, without a gap. A full export needs nothing before it, so the
    newest one is the first that is applied. A second key for a sequence that was applied means that the sequences of the
    gateway went back: incremental exports after it may build on what the tables do not have, so a full export must
    follow."""
    state = dict(state or {"sequence": 0, "gateway_id": None, "date": None, "gaps": []})
    last = state["sequence"]
    doubles = find_repeated(listed)
    report_repeated(place, doubles, findings)
    applied_doubles = [sequence for sequence in doubles if sequence <= last]
    known = state.setdefault("doubles", list_ranges(applied_doubles))
    # One that is known may vanish, because old exports are removed.
    again = [sequence for sequence in applied_doubles if not any(first <= sequence <= end for first, end in known)]
    state["gaps"] = report_late(place, state["gaps"], listed, findings)
    valid = select_valid(place, state["gateway_id"], staged, findings)

    full = max((sequence for sequence, one in valid.items() if one.kind == "full"), default=None)
    sequence = last + 1 if full is None else full
    exports = []
    if again and full is None:
        findings.add_problem(
            "back",
            place,
            f"{describe(list_ranges(again))} arrived again after {last} was applied, so the gateway began again from an older "
            f"state; nothing is applied until a full export has a higher sequence: push the Business Object until then",
        )
        return Plan([], state)
    while sequence in valid:
        exports.append(valid[sequence])
        sequence += 1
    if exports:
        if full is not None:
            state["gaps"] = state["gaps"] + skip_missing(place, last, full, set(listed), findings)
        newest = exports[-1]
        state.update(
            sequence=sequence - 1,
            date=newest.date,
            gateway_id=newest.gateway_id or state["gateway_id"],
            doubles=list_ranges(one for one in doubles if one < sequence),
        )
    report_gaps(place, sequence, set(listed), valid, findings)
    return Plan(exports, state)


def find_repeated(listed):
    """Returns the sequences with several keys, sorted."""
    if len(set(listed)) == len(listed):
        return []
    return sorted(sequence for sequence, keys in Counter(listed).items() if keys > 1)


def report_repeated(place, doubles, findings):
    """Reports sequences with several keys."""
    if doubles:
        ranges = list_ranges(doubles)
        has = "has" if ranges == [[doubles[0], doubles[0]]] else "have"
        findings.add_problem(
            "double", place, f"{describe(ranges)} {has} several keys; give a gateway that was set up again a new prefix"
        )


def report_late(place, gaps, listed, findings):
    """Reports exports that arrived after a full export had replaced them. Returns the gaps that remain."""
    remaining = []
    for first, last in gaps:
        arrived = sorted({sequence for sequence in listed if first <= sequence <= last})
        for sequence in arrived:
            findings.add_note("late", place, f"export {sequence} arrived after a full export that includes its changes")
            if sequence > first:
                remaining.append([first, sequence - 1])
            first = sequence + 1
        if first <= last:
            remaining.append([first, last])
    return remaining


def select_valid(place, gateway_id, staged, findings):
    """Returns the valid export of each sequence, and reports the others."""
    by_sequence = {}
    for one in sorted(staged, key=lambda one: (one.key.sequence, one.key.key)):
        gateway_id = gateway_id or one.gateway_id
        if one.error:
            findings.add_problem(
                "damaged", one.key.key, f"{one.error}; replay export {one.key.sequence} at the gateway, or push"
            )
        elif one.gateway_id and one.gateway_id != gateway_id:
            findings.add_problem(
                "mixed", one.key.key, f"it is of gateway {one.gateway_id}, not {gateway_id}; give each gateway its own prefix"
            )
        else:
            by_sequence.setdefault(one.key.sequence, []).append(one)
    # Two keys with different content: no one knows which of them is right.
    return {
        sequence: same[0]
        for sequence, same in by_sequence.items()
        if len({(one.kind, one.checksum) for one in same}) == 1
    }


def skip_missing(place, last, full, listed, findings):
    """Returns the sequences that a full export makes superfluous and that never arrived, as ranges."""
    ranges = list_missing(last + 1, full - 1, listed)
    if ranges:
        findings.add_note("healed", place, f"{describe(ranges)} did not arrive; the full export {full} replaces them")
    return ranges


def report_gaps(place, sequence, listed, valid, findings):
    """Reports why exports after a sequence wait."""
    waiting = [one for one in valid if one > sequence]
    if not waiting and all(one < sequence for one in listed):
        return
    highest = max([*listed, *waiting])
    ranges = list_missing(sequence, highest, listed)
    if ranges:
        findings.add_problem(
            "gap",
            place,
            f"{describe(ranges)} did not arrive, and {len(waiting)} later exports wait; retry what is parked at the "
            f"gateway, or push the Business Object",
        )


def list_missing(first, last, listed):
    """Returns the ranges from `first` to `last` without the listed sequences."""
    ranges = []
    for sequence in sorted({one for one in listed if first <= one <= last} | {last + 1}):
        if sequence > first:
            ranges.append([first, sequence - 1])
        first = sequence + 1
    return ranges


def list_ranges(sequences):
    """Returns sorted sequences as ranges."""
    ranges = []
    for sequence in sequences:
        if ranges and ranges[-1][1] == sequence - 1:
            ranges[-1][1] = sequence
        else:
            ranges.append([sequence, sequence])
    return ranges


def describe(ranges):
    """Returns ranges of sequences for people, at most ten."""
    parts = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:10]]
    more = f" and {len(ranges) - 10} more ranges" if len(ranges) > 10 else ""
    return f"{'sequence' if parts == [str(ranges[0][0])] else 'sequences'} {', '.join(parts)}{more}"
