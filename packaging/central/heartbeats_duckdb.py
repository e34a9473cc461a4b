#!/usr/bin/env python3
"""Lists the gateways of a fleet by their heartbeats, with DuckDB (pip install duckdb). A gateway is late if its next
heartbeat was due longer ago than an interval."""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from central.keys import DEFAULT_TEMPLATE, compile_template, is_heartbeat_key
from central.run import escape_text
from central.sources import SourceError, parse_source

MAX_HEARTBEAT_BYTES = 4 << 20

COLUMNS = {
    "source": "VARCHAR",
    "key": "VARCHAR",
    "document": """STRUCT(
        heartbeat STRUCT("at" TIMESTAMPTZ, "nextDue" TIMESTAMPTZ, "intervalSeconds" BIGINT),
        "version" VARCHAR, "gatewayId" VARCHAR, "store" STRUCT(poisoned VARCHAR),
        queue STRUCT(depth BIGINT, "oldestAgeSeconds" BIGINT, blocked VARCHAR[],
          waiting VARCHAR[], failing VARCHAR[]),
        sources STRUCT("name" VARCHAR, connections STRUCT("state" VARCHAR, "error" VARCHAR)[])[],
        disk STRUCT("inReserve" BOOLEAN), memory STRUCT("level" VARCHAR), clock STRUCT(synchronised BOOLEAN),
        definitions STRUCT("errorCount" BIGINT, drift STRUCT("state" VARCHAR)[]),
        "backup" STRUCT("state" VARCHAR, "intervalSeconds" BIGINT, "lagSeconds" BIGINT, "restorable" BOOLEAN),
        "lastErrors" STRUCT("level" VARCHAR)[])""",
}



def check_text(value):
    """Returns a text that DuckDB can read from JSON."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("it is not a text")
    value.encode()
    return value


def check_time(value):
    """Returns a time in RFC 3339."""
    time = datetime.fromisoformat(check_text(value))
    if time.tzinfo is None:
        raise ValueError("the time has no offset")
    return value


def check_whole(value):
    """Returns a whole number of at most 2^31, the seconds of 68 years."""
    if type(value) is not int or not 0 <= value <= 1 << 31:
        raise ValueError("it is not a whole number")
    return value


def check_flag(value):
    """Returns a flag."""
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")
    return value


def optional(check):
    """Returns a check that also accepts null and a missing member."""
    return lambda value: None if value is None else check(value)


# The members of a heartbeat that the overview uses, with the check of each.
MEMBERS = {
    "heartbeat": {"at": check_time, "nextDue": check_time, "intervalSeconds": check_whole},
    "version": check_text,
    "gatewayId": check_text,
    "store": {"poisoned": optional(check_text)},
    "queue": {
        "depth": optional(check_whole),
        "oldestAgeSeconds": optional(check_whole),
        "blocked": [check_text],
        "waiting": [check_text],
        "failing": [check_text],
    },
    "sources": [{
        "name": optional(check_text),
        "connections": [{"state": optional(check_text), "error": optional(check_text)}],
    }],
    "disk": {"inReserve": optional(check_flag)},
    "memory": {"level": optional(check_text)},
    "clock": {"synchronised": optional(check_flag)},
    "definitions": {"errorCount": optional(check_whole), "drift": [{"state": optional(check_text)}]},
    "backup": {
        "state": optional(check_text),
        "intervalSeconds": optional(check_whole),
        "lagSeconds": optional(check_whole),
        "restorable": optional(check_flag),
    },
    "lastErrors": [{"level": optional(check_text)}],
}

OVERVIEW = """
WITH newest AS (
  SELECT document.*, source, key,
    list_transform(list_filter(document.sources, lambda one: len(list_filter(one.connections,
      lambda connection: connection."state" <> 'connected' OR connection."error" IS NOT NULL)) > 0),
      lambda one: one."name") AS stuck
  FROM read_json({files}, format = 'newline_delimited', columns = {columns},
    maximum_object_size = 16777216)
  -- A gateway with several targets has a heartbeat in each.
  QUALIFY row_number() OVER (PARTITION BY document."gatewayId" ORDER BY document.heartbeat."at" DESC, key) = 1
)
SELECT "gatewayId" AS gateway, "version",
  strftime(heartbeat."at" AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ') AS "at",
  heartbeat."nextDue" + to_seconds(heartbeat."intervalSeconds") < {now}::TIMESTAMPTZ AS late,
  queue.depth AS waiting, coalesce(queue."oldestAgeSeconds", 0) AS oldest_age_seconds,
  [text for text in [
    CASE WHEN len(queue.blocked) > 0 THEN 'blocked: ' || array_to_string(queue.blocked, ' ') END,
    CASE WHEN len(queue.failing) > 0 THEN 'exports fail: ' || array_to_string(queue.failing, ' ') END,
    CASE WHEN len(queue.waiting) > 0 THEN 'exports wait for space: ' || array_to_string(queue.waiting, ' ') END,
    CASE WHEN queue."oldestAgeSeconds" > 6 * 3600 THEN 'an export waits for more than 6 hours' END,
    CASE WHEN len(stuck) > 0 THEN 'sources store nothing: ' || array_to_string(stuck, ' ') END,
    CASE WHEN "store".poisoned IS NOT NULL THEN 'the store takes no commits' END,
    CASE WHEN disk."inReserve" THEN 'the disk is full up to its reserve' END,
    CASE WHEN memory."level" = 'short' THEN 'memory is short' END,
    CASE WHEN clock.synchronised = false THEN 'the clock is not synchronised' END,
    CASE WHEN definitions."errorCount" > 0 THEN 'the definition files were not applied' END,
    CASE WHEN len([one for one in definitions.drift if one."state" <> 'unmanaged']) > 0
      THEN 'definitions differ from their files' END,
    CASE WHEN "backup"."state" = 'replaced' THEN 'another gateway replaced it'
      WHEN NOT "backup".restorable THEN 'its backup cannot be restored yet'
      WHEN "backup"."lagSeconds" > 10 * "backup"."intervalSeconds" THEN 'its backup is late' END,
    CASE WHEN len([one for one in "lastErrors" if one."level" = 'error']) > 0 THEN 'errors in the log' END
  ] if text IS NOT NULL] AS problems
FROM newest ORDER BY late DESC, len(problems) > 0 DESC, gateway
"""


def main():
    arguments = parse_arguments()
    try:
        templates = [compile_template(text) for text in [*arguments.key, DEFAULT_TEMPLATE]]
        rows, unreadable = list_gateways(arguments.sources, templates, arguments.now, arguments.workers)
    except (SourceError, ValueError) as error:
        print(f"the heartbeats cannot be read: {error}", file=sys.stderr)
        return 2
    for row in rows:
        if arguments.json:
            print(json.dumps(row))
            continue
        state = f"LATE since {row['at']}" if row["late"] else f"ok at {row['at']}"
        problems = "; ".join(row["problems"]) or "all is well"
        print(escape_text(f"{row['gateway']}: {state}, {row['version']}, {row['waiting']} wait: {problems}"))
    for text in unreadable:
        print(escape_text(text), file=sys.stderr)
    late = sum(row["late"] for row in rows)
    troubled = sum(bool(row["problems"]) for row in rows)
    if not arguments.json:
        print(f"gateways {len(rows)}, late {late}, with problems {troubled}, unreadable {len(unreadable)}")
    return 1 if late or troubled or unreadable else 0


def parse_arguments():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Exit status: 0, 1 with gateways that are late or have problems, 2 if the heartbeats cannot be read. Buckets "
        "use AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and SSL_CERT_FILE.",
    )
    parser.add_argument("sources", metavar="SOURCE", nargs="+", help="FOLDER or https://HOST/BUCKET[/PREFIX]")
    parser.add_argument("--key", metavar="TEMPLATE", action="append", default=[], help="another template of exports; repeatable")
    parser.add_argument("--now", metavar="TIME", help="the time to compare with, in RFC 3339 (now)")
    parser.add_argument("--workers", type=int, default=8, help="heartbeats that are read at a time (8)")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")
    arguments = parser.parse_args()
    if arguments.workers < 1:
        parser.error("--workers is at least 1")
    return arguments


def list_gateways(places, templates, now, workers):
    """Returns a row for each gateway, those that are late first, and the errors of heartbeats that cannot be read."""
    import duckdb

    sources = [parse_source(place) for place in places]
    keys = [(source, key) for source in sources for key in source.list_keys() if is_heartbeat_key(key, templates)]
    with tempfile.TemporaryDirectory(prefix="penstock-heartbeats.") as work, duckdb.connect() as db:
        path = Path(work, "heartbeats.ndjson")
        unreadable = []
        with open(path, "w", encoding="utf-8") as lines, ThreadPoolExecutor(workers) as pool:
            for line, error in pool.map(read_heartbeat, keys):
                if error:
                    unreadable.append(error)
                else:
                    lines.write(line)
        if len(unreadable) == len(keys):
            return [], unreadable
        columns = "{" + ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items()) + "}"
        moment = "now()" if now is None else "'" + now.replace("'", "''") + "'"
        text = "'" + str(path).replace("'", "''") + "'"
        query = OVERVIEW.format(files=text, columns=columns, now=moment)
        try:
            found = db.execute(query)
        except duckdb.Error as error:
            raise ValueError(f"a heartbeat is not as expected: {error}") from error
        names = [column[0] for column in found.description]
        return [dict(zip(names, row)) for row in found.fetchall()], unreadable


def read_heartbeat(place):
    """Returns a heartbeat as a line of JSON, with where it is, or why it cannot be read."""
    source, key = place
    try:
        body = source.read(key)[0]
        if len(body) > MAX_HEARTBEAT_BYTES:
            raise ValueError(f"it has more than {MAX_HEARTBEAT_BYTES} bytes")
        document = select_members(json.loads(body, parse_constant=refuse_constant), MEMBERS, "it")
    except SourceError as error:
        return None, f"{key}: {error}"
    except (ValueError, RecursionError) as error:
        return None, f"{key} is no heartbeat: {error}"
    return json.dumps({"source": source.place, "key": key, "document": document}) + "\n", None


def refuse_constant(text):
    """Refuses what JSON does not have, and Python's parser accepts."""
    raise ValueError(f"{text} is no JSON")


def select_members(value, members, place):
    """Returns the members that `members` names, with their values. Raises `ValueError` if one has another type, so that no
    heartbeat makes the query of all fail. A missing object or list is an empty one."""
    if isinstance(members, dict):
        value = {} if value is None else value
        if not isinstance(value, dict):
            raise ValueError(f"{place} is not an object")
        return {name: select_members(value.get(name), inner, name) for name, inner in members.items()}
    if isinstance(members, list):
        value = [] if value is None else value
        if not isinstance(value, list):
            raise ValueError(f"{place} is not a list")
        return [select_members(one, members[0], place) for one in value]
    try:
        return members(value)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
