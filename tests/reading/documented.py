"""Runs the examples of docs/reading.md against a gateway, pandas and DuckDB, and the requests of the dashboard of objects.

Usage: python documented.py BINARY"""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from gateway import Penstock  # noqa: E402

PAGE = (ROOT / "docs/reading.md").read_text()


def block(info):
    """Returns the block of code with this text after its fence."""
    found = re.search(rf"^```{re.escape(info)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if not found:
        raise SystemExit(f"docs/reading.md has no block {info!r}")
    return found[1]


def parse(text):
    # Numbers with all their digits.
    return json.loads(text, parse_float=Decimal)


def check_dashboard(gateway):
    """Sends each request of packaging/monitoring/objects.json, with the data of the page."""
    dashboard = json.loads((ROOT / "packaging/monitoring/objects.json").read_text())
    values = {
        "business_object": "Pumps", "time": "measured", "number": "flow", "by": "line", "unit": "hour",
        "__from:date:iso": "2026-03-01T00:00:00.000Z", "__to:date:iso": "2026-04-01T00:00:00.000Z",
    }
    for target in [target for panel in dashboard["panels"] for target in panel["targets"]]:
        path = re.sub(r"\$\{([^}]+)\}", lambda name: values[name[1]], target["url"])
        answer = gateway.request("GET", path)
        assert answer.status == 200 and parse(answer.body)[target["root_selector"]], (path, str(answer))


def main():
    with Penstock(sys.argv[1]) as gateway, tempfile.TemporaryDirectory() as folder:
        gateway.define("Pumps", block("yaml Pumps"))
        body = '{"data": ' + block("json Pumps") + "}"
        answer = gateway.request(
            "POST", "/api/v1/business-objects/Pumps?mode=MERGE", body, {"Content-Type": "application/json"}
        )
        assert answer.status == 200, answer
        environment = {
            **os.environ,
            "API": f"{gateway.url}/api/v1",
            "KEY": gateway.headers["Authorization"].removeprefix("Bearer "),
            "NO_PROXY": "127.0.0.1",
        }

        def run(*command):
            done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True)
            return done.stdout.decode()

        def shell(info):
            return run("bash", "-euo", "pipefail", "-c", block(info))

        for name in ("filter", "summary", "hours"):
            assert parse(shell(f"sh {name}")) == parse(block(f"json {name}")), name
        table = shell("sh csv")
        assert table.endswith("\r\n"), table
        rows = list(csv.reader(io.StringIO(table, newline="")))
        assert rows == list(csv.reader(io.StringIO(block("csv csv"), newline=""))), table
        sums = run(sys.executable, "-c", block("python pandas"))
        assert re.search(r"North\s+19\.5\b", sums), sums
        sums = run(sys.executable, "-c", block("python duckdb"))
        assert re.search(r"North\W+19\.5\b", sums), sums
        check_dashboard(gateway)
        shell("sh spreadsheet")
        lines = Path(folder, "pumps.csv").read_text().splitlines()
        assert lines[0].startswith("uri;tag;line;flow;") and ";12,50;" in lines[1], lines
    print("the examples of docs/reading.md do what the page says")


if __name__ == "__main__":
    main()
