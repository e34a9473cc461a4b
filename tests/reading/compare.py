"""Compares summaries and downloads of random data with DuckDB over an export of the same moment.

Usage: python compare.py BINARY [--seed N] [--rounds N]"""

import argparse
import csv
import io
import json
import random
import sys
import tempfile
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from urllib.parse import urlencode

import duckdb

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import Penstock  # noqa: E402

CONFIG = """
type: object
path: Readings:.
key: tag
fields:
  tag: {type: string, required: true, path: <urn:p:tag>}
  line: {type: string, path: <urn:p:line>}
  flow: {type: number, path: <urn:p:flow>}
  count: {type: integer, path: <urn:p:count>}
  active: {type: boolean, path: <urn:p:active>}
  seen: {type: dateTime, path: <urn:p:seen>}
  day: {type: date, path: <urn:p:day>}
  tags: {type: array, path: <urn:p:tags>}
"""
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"]
UNITS = ["minute", "hour", "day", "week", "month", "year"]
LINES = ["North", "South", 'a "b"', "a,b", "L\u00e4nge"]
MEASURES = ["min(flow)", "max(flow)", "avg(flow)", "sum(flow)", "sum(count)", "max(seen)", "min(day)"]
MAX_ROWS = 1000
# The clocks of some zone are changed then.
CHANGES = [
    datetime(2024, 3, 10, 7), datetime(2024, 3, 31, 1), datetime(2024, 10, 27, 1), datetime(2024, 11, 3, 6),
    datetime(2024, 4, 6, 15), datetime(2011, 12, 30, 10), datetime(2023, 12, 31, 23), datetime(2024, 12, 29, 12),
]  # fmt: skip


def make_objects(choice, count):
    objects = []
    for number in range(count):
        made = {"tag": f"T-{number:05}"}
        if choice.random() < 0.8:
            made["line"] = choice.choice(LINES)
        if choice.random() < 0.9:
            digits = choice.randrange(-(10 ** choice.randrange(1, 18)), 10 ** choice.randrange(1, 18))
            made["flow"] = Decimal(digits).scaleb(-choice.randrange(0, 9))
        if choice.random() < 0.7:
            made["count"] = choice.randrange(-50, 50)
        if choice.random() < 0.8:
            made["active"] = choice.random() < 0.5
        if choice.random() < 0.9:
            moment = choice.choice(CHANGES) + timedelta(seconds=choice.randrange(-90_000, 90_000))
            offset = timezone(timedelta(minutes=choice.choice([0, 0, 60, -300, 330, 840])))
            moment = moment.replace(tzinfo=timezone.utc).astimezone(offset)
            made["seen"] = moment.isoformat().replace("+00:00", "Z")
        if choice.random() < 0.6:
            made["day"] = (date(2023, 12, 25) + timedelta(days=choice.randrange(0, 400))).isoformat()
        if choice.random() < 0.7:
            made["tags"] = sorted(choice.sample(["x", "y", "z", "w w"], choice.randrange(1, 4)))
        objects.append(made)
    return objects


def write_json(value):
    """Writes JSON in which decimals keep their digits."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{write_json(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write_json, value)) + "]"
    return json.dumps(value)


def read_json(text):
    return json.loads(text, parse_float=Decimal)


class Random:
    """Random summaries: as parameters of the gateway, and as SQL."""

    def __init__(self, choice):
        self.choice = choice

    def group(self):
        """Returns the name of a group, the expression of its values, and whether it needs the tags one by one."""
        kind = self.choice.choice(["line", "active", "count", "tags", "seen", "seen", "day"])
        if kind == "seen":
            unit = self.choice.choice(UNITS)
            return f"seen.{unit}", self.period("local", unit), False
        if kind == "day":
            unit = self.choice.choice(UNITS[2:])
            return f"day.{unit}", self.period("day", unit), False
        if kind == "tags":
            return "tags", "one_tag", True
        return kind, f'"{kind}"', False

    @staticmethod
    def period(expression, unit):
        patterns = {
            "minute": "%Y-%m-%dT%H:%M", "hour": "%Y-%m-%dT%H:00", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m",
            "year": "%Y",
        }  # fmt: skip
        name = f"strftime({expression}, '{patterns[unit]}')"
        return f"{name} || zone_offset" if unit in ("minute", "hour") else name

    def filter(self):
        """Returns a filter of GraphQL, and the same as a condition; both None for no filter."""
        kind = self.choice.choice([None, None, "line", "flow", "seen", "active", "tags", "none"])
        if kind == "line":
            line = self.choice.choice(LINES)
            return f"{{line: {{eq: {json.dumps(line)}}}}}", ("line = ?", [line])
        if kind == "flow":
            limit = self.choice.randrange(-1000, 1000)
            return f"{{flow: {{after: {limit}}}}}", ("flow > ?", [limit])
        if kind == "seen":
            limit = self.choice.choice(CHANGES).isoformat() + "Z"
            return f'{{seen: {{before: "{limit}"}}}}', ("seen < ?::TIMESTAMPTZ", [limit])
        if kind == "active":
            return "{active: {eq: true}}", ("active", [])
        if kind == "tags":
            return '{tags: {in: ["x", "w w"]}}', ("list_has_any(tags, ['x', 'w w'])", [])
        if kind == "none":
            return "{line: {exists: false}}", ("line IS NULL", [])
        return None, None


class Comparison:
    def __init__(self, gateway, folder, choice):
        self.gateway, self.choice, self.random = gateway, choice, Random(choice)
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'")
        self.folder = Path(folder)

    def load(self):
        """Loads all objects into DuckDB, as CSV has them."""
        table = self.gateway.request("GET", "/api/v1/business-objects/Readings/objects?format=csv")
        assert table.status == 200, table
        file = self.folder / "objects.csv"
        file.write_bytes(table.body)
        self.db.execute("DROP TABLE IF EXISTS objects")
        self.db.execute(
            """CREATE TABLE objects AS SELECT uri, tag, line, CAST(flow AS DECIMAL(38, 9)) AS flow,
            CAST(count AS BIGINT) AS count, CAST(active AS BOOLEAN) AS active, CAST(seen AS TIMESTAMPTZ) AS seen,
            CAST(day AS DATE) AS day, string_split(tags, '|') AS tags
            FROM read_csv(?, all_varchar = true, header = true)""",
            [str(file)],
        )
        return table.body

    def summarize(self, groups, measures, zone, where):
        """Returns the answer of the gateway in the form of the REST API."""
        if where is None:
            parameters = [("group", group) for group in groups] + [("measure", ",".join(["count", *measures])), ("timezone", zone)]
            answer = self.gateway.request("GET", f"/api/v1/business-objects/Readings/summary?{urlencode(parameters)}")
            assert answer.status == 200, answer
            summary = read_json(answer.body)
            rows = []
            for row in summary["rows"]:
                group = row.get("group")
                group = [] if not groups else group if len(groups) == 2 else [group]
                rows.append((tuple(group), row["count"], [row[name] for name in measures]))
            return rows, summary["complete"]
        arguments = f"where: {where}, group: {json.dumps(groups)}, measure: {json.dumps(measures)}, timezone: {json.dumps(zone)}"
        query = f"{{ readingsSummary({arguments}) {{ complete rows {{ group count measures }} }} }}"
        answer = self.gateway.request("POST", "/graphql", json.dumps({"query": query}), {"Content-Type": "application/json"})
        answer = read_json(answer.body)
        assert "errors" not in answer, answer
        summary = answer["data"]["readingsSummary"]
        return [(tuple(row["group"]), row["count"], row["measures"]) for row in summary["rows"]], summary["complete"]

    def compute(self, groups, measures, zone, condition):
        """Returns what DuckDB computes: by group the count and the measures; of an average the sum and the number."""
        expressions = [expression for _, expression, _ in groups]
        columns = []
        for measure in measures:
            function, field = measure.rstrip(")").split("(")
            if function == "avg":
                columns += [f'sum("{field}")', f'count("{field}")']
            else:
                column = f'{function}("{field}")'
                columns.append(f"epoch({column})" if field == "seen" else column)
        where, values = condition or ("true", [])
        one_by_one = any(is_tags for _, _, is_tags in groups)
        source = "SELECT *, " + ("unnest(coalesce(tags, [NULL]))" if one_by_one else "NULL") + " AS one_tag FROM objects WHERE " + where
        sql = f"""WITH selected AS ({source}),
            zoned AS (SELECT *, timezone('{zone}', seen) AS local, CAST(epoch(timezone('{zone}', seen)) - epoch(timezone('UTC', seen)) AS BIGINT)
                AS difference FROM selected),
            named AS (SELECT *, CASE WHEN difference < 0 THEN '-' ELSE '+' END || format('{{:02d}}:{{:02d}}', abs(difference) // 3600,
                abs(difference) // 60 % 60) AS zone_offset FROM zoned)
            SELECT {", ".join([*expressions, "count(*)", *columns])} FROM named"""
        if expressions:
            sql += " GROUP BY " + ", ".join(map(str, range(1, len(expressions) + 1)))
        found = {}
        for row in self.db.execute(sql, values).fetchall():
            found[tuple(row[: len(groups)])] = row[len(groups) :]
        return found

    def compare(self):
        groups = [self.random.group() for _ in range(self.choice.choice([0, 1, 1, 1, 2, 2]))]
        if len({name for name, _, _ in groups}) < len(groups):
            groups.pop()
        measures = self.choice.sample(MEASURES, self.choice.randrange(0, 4))
        zone = self.choice.choice(ZONES)
        where, condition = self.random.filter()
        names = [name for name, _, _ in groups]
        what = f"groups {names}, measures {measures}, zone {zone}, filter {where}"
        rows, complete = self.summarize(names, measures, zone, where)
        expected = self.compute(groups, measures, zone, condition)
        check(complete == (len(expected) <= MAX_ROWS), what, complete, len(expected))
        check(len(rows) == min(len(expected), MAX_ROWS), what, len(rows), len(expected))
        counts = sorted((row[0] for row in expected.values()), reverse=True)[:MAX_ROWS]
        check(sorted((count for _, count, _ in rows), reverse=True) == counts, what, "the largest groups", counts[:5])
        if not any("." in name for name in names):
            check([count for _, count, _ in rows] == counts, what, "the order", rows[:5])
        if len(names) == 1 and names[0].endswith((".day", ".week", ".month", ".year")):
            periods = [group[0] for group, _, _ in rows]
            in_order = sorted(periods, key=lambda period: (period is None, period or ""))
            check(periods == in_order, what, periods[:5], in_order[:5])
        for group, count, values in rows:
            check(group in expected, what, group, "no such group in DuckDB")
            other_count, *others = expected[group]
            check(count == other_count, what, (group, count), other_count)
            for measure, value in zip(measures, values):
                other = others.pop(0)
                if measure.startswith("avg"):
                    other = average(other, others.pop(0))
                check(is_equal(measure, value, other), what, (group, measure, value), other)


def average(total, count):
    """Returns the average with 18 digits after the point, rounded."""
    if not count:
        return None
    exact = Fraction(total) / count * 10**18
    rounded = int(abs(exact) + Fraction(1, 2))
    return Fraction(rounded if exact >= 0 else -rounded, 10**18)


def is_equal(measure, value, other):
    if value is None or other is None:
        return value is None and other is None
    if "(seen)" in measure:
        return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp() == other
    if "(day)" in measure:
        return value == other.isoformat()
    return Fraction(value) == Fraction(other)


def check(holds, what, found, expected):
    if not holds:
        raise SystemExit(f"{what}:\n  the gateway: {found}\n  DuckDB:      {expected}")


def send_back(gateway, table):
    """Ingests a download: it changes nothing."""
    quads = gateway.dump()
    answer = gateway.request(
        "POST", "/api/v1/business-objects/Readings?mode=MERGE&arrayDelimiter=%7C", table, {"Content-Type": "text/csv"}
    )
    lines = [json.loads(line) for line in answer.body.splitlines()]
    changed = sum(line["created"] + line["updated"] for line in lines)
    if answer.status != 200 or changed or gateway.dump() != quads:
        raise SystemExit(f"a download that is sent back changes {changed} objects: {answer}")


def compare_downloads(gateway, objects, table):
    """Compares both downloads with what was sent."""
    lines = gateway.request("GET", "/api/v1/business-objects/Readings/objects?format=ndjson").body.splitlines()
    found = {one["tag"]: one for one in map(read_json, lines)}
    rows = {row["tag"]: row for row in csv.DictReader(io.StringIO(table.decode(), newline=""))}
    for made in objects:
        shown, row = found[made["tag"]], rows[made["tag"]]
        for name in ("line", "flow", "count", "active", "seen", "day"):
            value = made.get(name)
            check(shown.get(name) == value, f"{made['tag']}.{name} in NDJSON", shown.get(name), value)
            text = "" if value is None else value if isinstance(value, str) else write_json(value)
            check(row[name] == text, f"{made['tag']}.{name} in CSV", row[name], text)
        check(shown["tags"] == made.get("tags", []), f"{made['tag']}.tags", shown["tags"], made.get("tags"))
    check(len(found) == len(rows) == len(objects), "the number of objects", (len(found), len(rows)), len(objects))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    choice = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.rounds):
            with Penstock(arguments.binary) as gateway:
                gateway.define("Readings", CONFIG)
                # The last round has more groups than rows.
                objects = make_objects(choice, 4000 if number == arguments.rounds - 1 else choice.randrange(1, 400))
                body = "".join(write_json(one) + "\n" for one in objects)
                sent = gateway.request(
                    "POST", "/api/v1/business-objects/Readings?mode=MERGE", body.encode(), {"Content-Type": "application/x-ndjson"}
                )
                assert sent.status == 200 and b'"status"' not in sent.body, sent
                comparison = Comparison(gateway, folder, choice)
                table = comparison.load()
                compare_downloads(gateway, objects, table)
                for _ in range(60):
                    comparison.compare()
                send_back(gateway, table)
    print(f"{arguments.rounds * 60} summaries equal those of DuckDB")


if __name__ == "__main__":
    main()
