"""Lists gateways by hand-made heartbeats.

Usage: tests/fleet/central/heartbeats.py"""

import contextlib
import io
import json
import shutil
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parent))
import bucket  # noqa: E402, F401
import heartbeats_duckdb  # noqa: E402

NOW = "2026-03-01T12:00:00Z"


class Case(unittest.TestCase):
    def setUp(self):
        self.bucket = Path(tempfile.mkdtemp(prefix="penstock-heartbeats."))
        self.addCleanup(shutil.rmtree, str(self.bucket))

    def beat(self, gateway, at, next_due, prefix="", **members):
        path = self.bucket / f"{prefix}_status" / f"{gateway}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({
            "heartbeat": {"at": f"2026-03-01T{at}Z", "nextDue": f"2026-03-01T{next_due}Z", "intervalSeconds": 300},
            "version": "1.0", "gatewayId": gateway, "epoch": 1, "uptimeSeconds": 5, "store": {"format": 2, "poisoned": None},
            "queue": {"depth": 3, "bytes": 1, "oldest": None, "oldestAgeSeconds": None, "blocked": []},
            "disk": {"inReserve": False}, "memory": {"level": "ample"}, "clock": {"synchronised": None}, "lastErrors": [],
        } | members))

    def run_script(self, *arguments):
        output, errors = io.StringIO(), io.StringIO()
        command = ["heartbeats_duckdb.py", str(self.bucket), "--now", NOW, *arguments]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = heartbeats_duckdb.main()
        return status, output.getvalue().splitlines(), errors.getvalue()

    def test_late_gateways_are_first(self):
        self.beat("edge-1", "11:59:00.000", "12:04:00.000", prefix="edge-1/")
        # One interval is tolerated.
        self.beat("edge-2", "11:51:00.000", "11:56:00.000", prefix="plants-")
        self.assertEqual(self.run_script()[0], 0)
        self.beat("edge-3", "11:49:00.000", "11:54:00.000")
        status, lines, _ = self.run_script()
        self.assertEqual(status, 1)
        self.assertEqual([line.split(",")[0] for line in lines], [
            "edge-3: LATE since 2026-03-01T11:49:00Z", "edge-1: ok at 2026-03-01T11:59:00Z",
            "edge-2: ok at 2026-03-01T11:51:00Z", "gateways 3"])
        rows = [json.loads(line) for line in self.run_script("--json")[1]]
        self.assertEqual([(row["gateway"], row["late"], row["waiting"]) for row in rows],
                         [("edge-3", True, 3), ("edge-1", False, 3), ("edge-2", False, 3)])

    def test_problems_are_named(self):
        self.beat("edge-1", "11:59:00", "12:04:00")
        self.beat("edge-2", "11:59:00", "12:04:00", queue={"depth": 9, "oldestAgeSeconds": 60, "blocked": ["operations"]},
                  disk={"inReserve": True}, clock={"synchronised": False}, lastErrors=[{"level": "error", "text": "x"}])
        status, lines, _ = self.run_script()
        self.assertEqual(status, 1)
        self.assertEqual(lines[0], "edge-2: ok at 2026-03-01T11:59:00Z, 1.0, 9 wait: blocked: operations; the disk is full up "
                         "to its reserve; the clock is not synchronised; errors in the log")
        self.assertIn("all is well", lines[1])

    def test_exports_and_sources_that_stand_still_are_problems(self):
        queue = {"depth": 3, "oldestAgeSeconds": 21600, "blocked": [], "waiting": [], "failing": []}

        def source(name, *connections):
            return {"name": name, "connections": [{"state": state, "error": error} for state, error in connections]}

        good = source("line", ("connected", None))
        self.beat("edge-1", "11:59:00", "12:04:00", queue=queue, sources=[good])
        self.assertEqual(self.run_script()[0], 0)
        for found, problem in [
            ({"queue": queue | {"oldestAgeSeconds": 21601}}, "an export waits for more than 6 hours"),
            ({"queue": queue | {"waiting": ["Pumps", "Tanks"]}}, "exports wait for space: Pumps Tanks"),
            ({"queue": queue | {"failing": ["Pumps"]}}, "exports fail: Pumps"),
            ({"sources": [good, source("plant", ("connected", None), ("disconnected", None))]}, "sources store nothing: plant"),
            ({"sources": [source("plant", ("connected", "not authorized")), good]}, "sources store nothing: plant"),
        ]:
            self.beat("edge-1", "11:59:00", "12:04:00", **({"queue": queue, "sources": [good]} | found))
            status, lines, _ = self.run_script()
            self.assertEqual((status, lines[0]), (1, f"edge-1: ok at 2026-03-01T11:59:00Z, 1.0, 3 wait: {problem}"))

    def test_a_backup_that_is_late_not_restorable_or_replaced_is_a_problem(self):
        good = {"state": "running", "intervalSeconds": 10, "lagSeconds": 100, "restorable": True}
        self.beat("edge-1", "11:59:00", "12:04:00", backup=good)
        self.beat("edge-2", "11:59:00", "12:04:00", backup=None)
        self.assertEqual(self.run_script()[0], 0)
        for backup, problem in [
            ({"lagSeconds": 101}, "its backup is late"),
            ({"restorable": False}, "its backup cannot be restored yet"),
            ({"state": "replaced"}, "another gateway replaced it"),
        ]:
            self.beat("edge-1", "11:59:00", "12:04:00", backup=good | backup)
            status, lines, _ = self.run_script()
            self.assertEqual((status, lines[0]), (1, f"edge-1: ok at 2026-03-01T11:59:00Z, 1.0, 3 wait: {problem}"))

    def test_definitions_that_differ_from_their_files_are_a_problem(self):
        drift = [{"kind": "Group", "name": "g", "file": "f.yaml", "state": "unmanaged"}]
        self.beat("edge-1", "11:59:00", "12:04:00", definitions={"errorCount": 0, "drift": drift})
        # Heartbeats of earlier versions have no definitions.
        self.beat("edge-2", "11:59:00", "12:04:00")
        self.assertEqual(self.run_script()[0], 0)
        for state in ["changed", "deleted"]:
            self.beat("edge-1", "11:59:00", "12:04:00", definitions={"errorCount": 2, "drift": [*drift, {"state": state}]})
            status, lines, _ = self.run_script()
            self.assertEqual(status, 1)
            self.assertTrue(lines[0].endswith("the definition files were not applied; definitions differ from their files"), lines)

    def test_the_newest_heartbeat_of_a_gateway_counts(self):
        self.beat("edge-1", "10:00:00", "10:05:00", prefix="a/")
        self.beat("edge-1", "11:59:00", "12:04:00", prefix="b/")
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual(len(self.run_script("--json")[1]), 1)

    def test_the_folder_of_all_heartbeats_in_a_bucket_is_listed_without_the_exports(self):
        for gateway in ["edge-1", "edge-2"]:
            self.beat(gateway, "11:59:00", "12:04:00")
            (self.bucket / gateway).mkdir()
            (self.bucket / gateway / "x.json").write_text("{}")
        folder, listed = self.bucket, []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                place = urlsplit(self.path)
                key = place.path.removeprefix("/plant-exports").removeprefix("/")
                if key:
                    body = (folder / key).read_bytes()
                else:
                    prefix = parse_qs(place.query)["prefix"][0]
                    keys = [str(path.relative_to(folder)) for path in folder.rglob("*.json")]
                    keys = [key for key in keys if key.startswith(prefix)]
                    listed.extend(keys)
                    contents = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
                    body = f"<ListBucketResult>{contents}</ListBucketResult>".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.bucket = f"http://127.0.0.1:{server.server_port}/plant-exports/_status/"
        status, lines, _ = self.run_script()
        self.assertEqual((status, lines[-1]), (0, "gateways 2, late 0, with problems 0, unreadable 0"))
        self.assertEqual(sorted(listed), ["_status/edge-1.json", "_status/edge-2.json"])

    def test_other_files_are_ignored_and_broken_heartbeats_are_reported(self):
        self.beat("edge-1", "11:59:00", "12:04:00")
        (self.bucket / "Pumps").mkdir()
        (self.bucket / "Pumps" / "edge-2.json").write_text("{}")
        self.assertEqual(self.run_script()[0], 0)
        for name, text in [("cut", '{"heart'), ("empty", "{}"), ("list", "[]")]:
            (self.bucket / "_status" / f"{name}.json").write_text(text)
        status, lines, errors = self.run_script()
        self.assertEqual((status, lines[-1]), (1, "gateways 1, late 0, with problems 0, unreadable 3"))
        self.assertEqual(errors.count("is no heartbeat"), 3)
        shutil.rmtree(self.bucket / "_status")
        self.assertEqual(self.run_script()[1], ["gateways 0, late 0, with problems 0, unreadable 0"])

    def test_no_document_hides_the_others(self):
        self.beat("edge-1", "11:59:00", "12:04:00")
        good = json.loads((self.bucket / "_status" / "edge-1.json").read_text())
        beat = good["heartbeat"]
        bad = {
            "at": good | {"heartbeat": beat | {"at": "yesterday"}},
            "local": good | {"heartbeat": beat | {"at": "2026-03-01T11:59:00"}},
            "due": good | {"heartbeat": beat | {"nextDue": 7}},
            "interval": good | {"heartbeat": beat | {"intervalSeconds": 1 << 70}},
            "part": good | {"heartbeat": beat | {"intervalSeconds": 0.5}},
            "gateway": good | {"gatewayId": None},
            "version": good | {"version": {"major": 1}},
            "queue": good | {"queue": [1]},
            "depth": good | {"queue": {"depth": True}},
            "blocked": good | {"queue": {"depth": 1, "blocked": [None]}},
            "disk": good | {"disk": {"inReserve": "no"}},
            "errors": good | {"lastErrors": {"level": "error"}},
            "nul": good | {"version": "1\0"},
            "surrogate": good | {"version": "\ud800"},
            "nan": good | {"queue": {"depth": float("nan")}},
        }
        for name, document in bad.items():
            (self.bucket / "_status" / f"{name}.json").write_text(json.dumps(document))
        (self.bucket / "_status" / "deep.json").write_text("[" * 100_000)
        (self.bucket / "_status" / "digits.json").write_text('{"heartbeat": ' + "9" * 10_000 + "}")
        (self.bucket / "_status" / "bytes.json").write_bytes(b'{"version": "\xff"}')
        (self.bucket / "_status" / "large.json").write_text(" " * (5 << 20) + "{}")
        status, lines, errors = self.run_script()
        self.assertEqual((status, lines[-1]), (1, f"gateways 1, late 0, with problems 0, unreadable {len(bad) + 4}"), errors)
        self.assertTrue(lines[0].startswith("edge-1: ok"))

    def test_members_of_other_versions_may_be_missing_or_new(self):
        self.beat("edge-1", "11:59:00", "12:04:00", future={"x": [1]})
        path = self.bucket / "_status" / "edge-1.json"
        document = json.loads(path.read_text())
        for name in ["store", "disk", "memory", "clock", "lastErrors"]:
            del document[name]
        path.write_text(json.dumps(document))
        self.assertEqual(self.run_script()[0], 0)

    def test_exports_of_a_business_object_with_that_name_are_no_heartbeats(self):
        self.beat("edge-1", "11:59:00", "12:04:00")
        (self.bucket / "_status" / "_status-20260301T120000Z-000000000001.json").write_text("{}")
        self.assertEqual(self.run_script()[0], 0)
        (self.bucket / "pump_status").mkdir()
        (self.bucket / "pump_status" / "000000000001.json").write_text("{}")
        self.assertEqual(self.run_script()[0], 1)
        self.assertEqual(self.run_script("--key", "{prefix}{name}/{sequence}.json")[0], 0)

    def test_a_folder_that_is_missing_is_an_error(self):
        command = ["heartbeats_duckdb.py", str(self.bucket / "none")]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(heartbeats_duckdb.main(), 2)
        self.assertIn("is not a folder", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
