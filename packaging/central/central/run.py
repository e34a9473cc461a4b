"""One run: lists the sources, reads what is new, and writes the next version of the tables."""

import argparse
import copy
import json
import sys
import time
import zlib
from array import array
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .exports import Task, stage_export
from .keys import DEFAULT_TEMPLATE, compile_template, is_backup_key, is_heartbeat_key, parse_key, table_folder
from .plan import Findings, plan_stream
from .sources import SourceError, parse_source
from .state import CentralError, open_central
from .structures import drop_ambiguous_fields, list_differences, merge_structures


@dataclass(frozen=True)
class Part:
    """A Parquet file to write: the rows of `old` without those that `staged` replaces, and what `staged` adds.

    It has the gateways whose name has this CRC-32 modulo the number of partitions. A row of a gateway in `replaced` is in
    `staged`, or no longer exists."""

    number: int
    partitions: int
    old: str | None
    new: str
    staged: list
    replaced: list
    # The bytes of the longest line in `staged`.
    longest_line: int = 0


@dataclass
class Stream:
    """The exports of one Business Object of one gateway in a source."""

    # The source and the key of each export after the last one that was applied.
    pending: list = field(default_factory=list)
    # The sequences of all keys. A bucket can have many millions of keys.
    listed: array = field(default_factory=lambda: array("Q"))


@dataclass
class Listing:
    """The streams of a source by name and gateway, and the number of keys that are not of exports, with an example."""

    streams: dict = field(default_factory=dict)
    foreign: int = 0
    example: str | None = None
    error: str | None = None


def parse_arguments(description):
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog="Exit status: 0, 1 with problems in the exports (the tables have what could be applied), 2 if the run "
        "failed (the tables are unchanged). Buckets use AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, "
        "AWS_REGION and SSL_CERT_FILE.",
    )
    parser.add_argument("central", metavar="FOLDER", help="the folder of the tables; it is created")
    parser.add_argument(
        "sources",
        metavar="SOURCE",
        nargs="+",
        help="[NAME=]FOLDER or [NAME=]https://HOST/BUCKET[/PREFIX]; NAME is the gateway of keys without a prefix",
    )
    parser.add_argument("--key", metavar="TEMPLATE", action="append", default=[], help="another template of keys; repeatable")
    parser.add_argument("--partitions", type=int, default=16, help="Parquet files of a table, set by the first run (16)")
    parser.add_argument("--keep", type=int, default=2, help="versions of the tables to keep (2)")
    parser.add_argument("--workers", type=int, default=8, help="exports that are read, and sources that are listed, at a time (8)")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")
    arguments = parser.parse_args()
    if min(arguments.partitions, arguments.keep, arguments.workers) < 1:
        parser.error("--partitions, --keep and --workers are at least 1")
    return arguments


def run_command(description, open_engine):
    """Runs a script with an engine. Returns its exit status."""
    arguments = parse_arguments(description)
    try:
        with open_engine(arguments) as engine:
            findings, figures = fold_exports(engine, arguments)
    except Exception as error:
        # The engines have errors of their own.
        cause = str(error) if isinstance(error, (SourceError, CentralError, ValueError)) else f"{type(error).__name__}: {error}"
        print(f"the run failed, and the tables are unchanged: {cause}", file=sys.stderr)
        return 2
    for finding in [*findings.notes, *findings.problems]:
        kind, place, text = finding.values()
        print(json.dumps(finding) if arguments.json else escape_text(f"{kind}: {place}: {text}"))
    print(json.dumps(figures) if arguments.json else ", ".join(f"{name} {value}" for name, value in figures.items()))
    return 1 if findings.problems else 0


def escape_text(text):
    """Returns a text with an escape for each character that cannot be printed."""
    encoding = sys.stdout.encoding or "ascii"
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def fold_exports(engine, arguments):
    """Folds what is new into the next version of the tables. Returns the findings and figures.

    An engine has `map_tasks(function, tasks)`, which yields the results in any order, `write_parts(parts, structure)`, and
    `count_values(files, fields)`, which returns the number of values of each field."""
    begun = time.monotonic()
    sources = [parse_source(text) for text in arguments.sources]
    templates = [compile_template(text) for text in [*arguments.key, DEFAULT_TEMPLATE]]
    findings = Findings()
    with open_central(arguments.central) as central:
        state = central.read_state(arguments.partitions)
        streams = list_streams(sources, templates, state, arguments.workers, findings)
        tasks = list_tasks(streams, central.staging)
        staged = defaultdict(list)
        for one in engine.map_tasks(stage_export, tasks):
            staged[one.key.name, one.key.gateway].append(one)

        next_state, exports = copy.deepcopy(state), defaultdict(list)
        for (name, gateway), stream in sorted(streams.items(), key=lambda item: item[0]):
            known = next_state["streams"].setdefault(name, {})
            place = f"{gateway}: {name}"
            plan = plan_stream(place, known.get(gateway), staged[name, gateway], stream.listed, findings)
            known[gateway] = plan.state
            if plan.exports:
                exports[name].append(plan.exports)
        if next_state != state:
            new, old = central.begin_version()
            for name, applied in sorted(exports.items()):
                write_table(engine, next_state, name, applied, new, old, findings)
            report = {"problems": findings.problems, "notes": findings.notes}
            central.publish_version(new, next_state, report, arguments.keep)
        version = central.number()
    applied = [one for streams in exports.values() for stream in streams for one in stream]
    return findings, {
        "version": version,
        "streams": len(streams),
        "read": len(tasks),
        "applied": len(applied),
        "objects": sum(one.objects for one in applied),
        "seconds": round(time.monotonic() - begun, 2),
    }


def list_streams(sources, templates, state, workers, findings):
    """Returns the streams of all sources by name and gateway. Reports sources that cannot be listed, keys that are not of
    exports, and streams of several sources."""
    streams, owners = {}, {}
    with ThreadPoolExecutor(workers) as pool:
        listings = list(pool.map(lambda source: list_source(source, templates, state), sources))
    for source, listing in zip(sources, listings):
        if listing.error:
            findings.add_problem("unreachable", source.place, listing.error)
        if listing.foreign:
            findings.add_problem(
                "foreign",
                source.place,
                f"{listing.foreign} keys are not of exports, such as {listing.example}; add --key TEMPLATE, or remove them",
            )
        for stream, content in listing.streams.items():
            if owners.setdefault(stream, source) is source:
                streams[stream] = content
                continue
            name, gateway = stream
            findings.add_problem(
                "twice",
                source.place,
                f"{gateway}: {name} is also in {owners[stream].place}, and only that is read; name one of the sources "
                f"(NAME=SOURCE), or leave it out",
            )
    return streams


def list_source(source, templates, state):
    """Returns the `Listing` of a source: with an error, nothing else."""
    listing = Listing()
    try:
        for text in source.list_keys():
            key = parse_key(text, templates, source.name)
            if key is None:
                if is_heartbeat_key(text, templates) or is_backup_key(text):
                    continue
                listing.foreign += 1
                listing.example = listing.example or text
            elif key.ending != ".meta.json":
                stream = listing.streams.setdefault((key.name, key.gateway), Stream())
                stream.listed.append(key.sequence)
                if key.sequence > last_sequence(state, key.name, key.gateway):
                    stream.pending.append((source, key))
    except SourceError as error:
        return Listing(error=str(error))
    return listing


def last_sequence(state, name, gateway):
    """Returns the sequence of the last export that was applied to a stream, or 0."""
    return state["streams"].get(name, {}).get(gateway, {"sequence": 0})["sequence"]


def list_tasks(streams, staging):
    """Returns the exports to read, with the files to write their objects to."""
    pending = [one for stream in streams.values() for one in stream.pending]
    return [Task(source, key, str(staging / f"{number:09}.jsonl")) for number, (source, key) in enumerate(pending)]


def write_table(engine, state, name, applied, new, old, findings):
    """Writes the files of a table that change. `applied` has a list of exports for each gateway."""
    table = state["tables"].setdefault(name, {"structure": {"uri": "VARCHAR"}, "vanished": []})
    structure = table["structure"]
    for one in (one for stream in applied for one in stream):
        structure = merge_structures(structure, one.structure)
    structure, ambiguous = drop_ambiguous_fields(structure)
    for path in ambiguous:
        findings.add_note("ambiguous", name, f"the field {path} differs from another one only in case; it is only in _object")
    for path, before, after in list_differences(table["structure"], structure):
        if before is None:
            findings.add_note("new-field", name, f"{path}: {after}")
        else:
            findings.add_note("changed-type", name, f"{path}: {before} became {after}")

    by_partition = defaultdict(list)
    for stream in applied:
        by_partition[zlib.crc32(stream[0].key.gateway.encode()) % state["partitions"]].append(stream)
    folder = new / table_folder(name)
    folder.mkdir(exist_ok=True)
    if structure != table["structure"]:
        # Every file of a table has the same columns.
        for file in folder.iterdir():
            by_partition.setdefault(int(file.stem.removeprefix("part-")), [])
    parts = []
    for partition, streams in sorted(by_partition.items()):
        file = folder / f"part-{partition:05}.parquet"
        before = old / folder.name / file.name
        # The name leads to the old version's file, which must not change.
        file.unlink(missing_ok=True)
        staged = [one.path for stream in streams for one in stream]
        replaced = [stream[0].key.gateway for stream in streams if stream[0].kind == "full"]
        previous = str(before) if before.exists() else None
        longest_line = max((one.longest_line for stream in streams for one in stream), default=0)
        parts.append(Part(partition, state["partitions"], previous, str(file), staged, replaced, longest_line))
    engine.write_parts(parts, structure)

    table["structure"] = structure
    counts = engine.count_values([str(file) for file in sorted(folder.iterdir())], list(structure))
    vanished = [column for column in structure if not counts[column] and column != "uri"]
    for column in vanished:
        if column not in table["vanished"]:
            findings.add_note("vanished-field", name, f"{column}: no object has it any more; the column stays, and is empty")
    table["vanished"] = vanished
