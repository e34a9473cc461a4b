"""Late, repeated, missing, damaged and foreign exports, other keys and formats, changed fields, and kills.

Usage: tests/fleet/central/cases.py duckdb|spark"""

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock
from urllib.parse import quote, unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent))
from bucket import CENTRAL, read_exports, read_state, read_tables, replay, write_export  # noqa: E402
from central import exports  # noqa: E402
from central.exports import Task, stage_export  # noqa: E402
from central.keys import DEFAULT_TEMPLATE, compile_template, parse_key  # noqa: E402
from central.run import Part, escape_text, fold_exports, run_command  # noqa: E402
from central.sources import Folder  # noqa: E402
from central.state import CentralError, open_central  # noqa: E402

ENGINE = None


def tank(number, **fields):
    return {"uri": f"https://plant.example/tanks/{number}", **fields}


class Case(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="penstock-central."))
        self.addCleanup(shutil.rmtree, self.work)
        self.bucket, self.central = self.work / "bucket", self.work / "central"
        self.bucket.mkdir()

    def fold(self, *sources, key=(), partitions=4):
        """Runs the job. Returns the codes of its problems and notes."""
        arguments = argparse.Namespace(
            central=str(self.central), sources=[str(source) for source in sources or [self.bucket]], key=list(key),
            partitions=partitions, keep=2, workers=2)
        self.findings, self.figures = fold_exports(ENGINE, arguments)
        return [one["finding"] for one in self.findings.problems], [one["note"] for one in self.findings.notes]

    def write(self, sequence, kind, objects, prefix="edge-1/", name="Tanks", **options):
        return write_export(self.bucket, prefix, name, sequence, kind, objects, **options)

    def check(self, gateway="edge-1", name="Tanks", **expected):
        """Compares the objects of a gateway: number of the tank to its level."""
        rows = read_tables(self.central, name)[0].get(gateway, {})
        found = {uri.rpartition("/")[2]: json.loads(text).get("level") for uri, text in rows.items()}
        self.assertEqual(found, {number.removeprefix("t"): level for number, level in expected.items()})

    def sequence(self, gateway="edge-1", name="Tanks"):
        return read_state(self.central)["streams"][name][gateway]["sequence"]


class Order(Case):
    def test_exports_are_applied_in_the_order_of_their_sequences(self):
        self.write(1, "full", [tank(1, level=1), tank(2, level=1)], minute=9)
        self.write(2, "incremental", [tank(2, level=2), tank(3, level=2)], minute=5)
        self.write(3, "deleted", [tank(1)], minute=7)
        self.assertEqual(self.fold(), ([], ["new-field"]))
        self.check(t2=2, t3=2)
        self.write(4, "incremental", [tank(1, level=4)])
        self.write(5, "deleted", [tank(3)])
        self.assertEqual(self.fold(), ([], []))
        self.assertEqual(self.figures["read"], 2)
        self.check(t1=4, t2=2)
        self.write(6, "full", [])
        self.fold()
        self.check()
        self.assertEqual(self.sequence(), 6)

    def test_a_run_without_news_changes_nothing(self):
        self.write(1, "full", [tank(1, level=1)])
        self.fold()
        version = os.readlink(self.central / "current")
        self.assertEqual(self.fold(), ([], []))
        self.assertEqual((os.readlink(self.central / "current"), self.figures["read"]), (version, 0))

    def test_gateways_have_rows_of_their_own(self):
        for number in range(9):
            self.write(1, "full", [tank(1, level=number)], prefix=f"edge-{number}/")
            self.write(1, "full", [tank(7, level=number)], prefix=f"edge-{number}/", name="Räume & Co")
        self.fold()
        self.write(2, "full", [], prefix="edge-3/")
        self.fold()
        for number in range(9):
            self.check(gateway=f"edge-{number}", **({} if number == 3 else {"t1": number}))
            self.check(gateway=f"edge-{number}", name="Räume & Co", t7=number)

    def test_keys_without_a_prefix_have_the_gateway_of_their_source(self):
        for name in ["one", "two"]:
            write_export(self.work / name / "operations", "", "Tanks", 1, "full", [tank(1, level=len(name))])
        sources = [f"{name}={self.work / name / 'operations'}" for name in ["one", "two"]]
        self.assertEqual(self.fold(*sources)[0], [])
        self.check("one", t1=3)
        self.check("two", t1=3)
        problems, _ = self.fold(*(self.work / name / "operations" for name in ["one", "two"]))
        self.assertEqual(problems, ["twice"])


class Gaps(Case):
    def test_a_late_export_closes_a_gap(self):
        self.write(1, "full", [tank(1, level=1)])
        self.write(3, "incremental", [tank(1, level=3)])
        self.assertEqual(self.fold()[0], ["gap"])
        self.assertIn("sequence 2 did not arrive, and 1 later exports wait", self.findings.problems[0]["text"])
        self.check(t1=1)
        self.write(2, "incremental", [tank(1, level=2), tank(2, level=2)])
        self.assertEqual(self.fold()[0], [])
        self.check(t1=3, t2=2)

    def test_a_full_export_heals_a_gap(self):
        self.write(1, "full", [tank(1, level=1)])
        self.fold()
        self.write(3, "incremental", [tank(1, level=3)])
        self.write(1_000_003, "full", [tank(1, level=5), tank(2, level=5)])
        self.write(1_000_004, "incremental", [tank(2, level=6)])
        self.assertEqual(self.fold(), ([], ["healed"]))
        self.assertIn("sequences 2, 4 to 1000002 did not arrive", self.findings.notes[0]["text"])
        self.check(t1=5, t2=6)
        self.write(2, "incremental", [tank(9, level=2)])
        self.assertEqual(self.fold(), ([], ["late"]))
        self.check(t1=5, t2=6)
        self.assertEqual(self.fold(), ([], []))

    def test_the_beginning_may_be_missing(self):
        self.write(7, "incremental", [tank(1, level=7)])
        self.assertEqual(self.fold()[0], ["gap"])
        self.write(8, "full", [tank(2, level=8)])
        self.assertEqual(self.fold()[0], [])
        self.check(t2=8)

    def test_a_sequence_under_two_keys_is_reported(self):
        self.write(1, "full", [tank(1, level=1)])
        self.write(2, "incremental", [tank(1, level=2)], minute=1)
        self.write(2, "incremental", [tank(1, level=3)], minute=2)
        self.assertEqual(self.fold()[0], ["double"])
        self.check(t1=1)
        self.write(3, "full", [tank(1, level=4)])
        self.fold()
        self.check(t1=4)


    def test_sequences_that_go_back_need_a_full_export(self):
        # A gateway that was set up again from the same backup a second time.
        self.write(1, "full", [tank(1, level=1)])
        self.write(2, "incremental", [tank(2, level=2)])
        self.write(3, "incremental", [tank(3, level=3)])
        self.fold()
        self.write(2, "incremental", [tank(4, level=9)], minute=7)
        self.assertEqual(self.fold()[0], ["double", "back"])
        self.check(t1=1, t2=2, t3=3)
        self.write(3, "incremental", [tank(4, level=10)], minute=8)
        self.write(4, "incremental", [tank(1, level=10)], minute=9)
        self.assertEqual(self.fold()[0], ["double", "back"])
        self.assertIn("sequences 2 to 3 have several keys", self.findings.problems[0]["text"])
        # The incremental export builds on tank 4, which the tables do not have.
        self.check(t1=1, t2=2, t3=3)
        self.write(5, "full", [tank(1, level=10), tank(4, level=10)], minute=10)
        self.write(6, "incremental", [tank(5, level=11)], minute=11)
        self.assertEqual(self.fold()[0], ["double"])
        self.check(t1=10, t4=10, t5=11)
        self.write(7, "deleted", [tank(4)], minute=12)
        self.assertEqual(self.fold()[0], ["double"])
        self.check(t1=10, t5=11)

    def test_a_copy_of_an_export_under_another_key_stops_nothing(self):
        self.write(1, "full", [tank(1, level=1)])
        path = self.write(2, "incremental", [tank(1, level=2)])
        shutil.copy(path, path.with_name(path.name.replace("T1200", "T1201")))
        self.assertEqual(self.fold()[0], ["double"])
        self.check(t1=2)
        self.write(3, "incremental", [tank(1, level=3)])
        self.assertEqual(self.fold()[0], ["double"])
        self.check(t1=3)
        path.unlink()
        self.write(4, "incremental", [tank(1, level=4)])
        self.assertEqual(self.fold()[0], [])
        self.check(t1=4)

    def test_a_state_of_an_earlier_version_continues(self):
        self.write(1, "full", [tank(1, level=1)])
        self.write(2, "full", [tank(1, level=2)])
        self.write(2, "full", [tank(1, level=2)], minute=1)
        self.fold()
        path = self.central / "current" / "state.json"
        state = json.loads(path.read_text())
        del state["streams"]["Tanks"]["edge-1"]["doubles"]
        path.write_text(json.dumps(state))
        self.write(3, "incremental", [tank(1, level=3)])
        self.assertEqual(self.fold()[0], ["double"])
        self.check(t1=3)

    def test_a_deleted_object_comes_back(self):
        self.write(1, "full", [tank(1, level=1)])
        self.write(2, "deleted", [tank(1)])
        self.write(3, "incremental", [tank(1, level=3)])
        self.fold()
        self.check(t1=3)
        self.write(4, "deleted", [tank(1)])
        self.fold()
        self.check()
        self.write(5, "incremental", [tank(1, level=5)])
        self.fold()
        self.check(t1=5)

    def test_names_that_differ_only_in_case_have_tables_of_their_own(self):
        self.write(1, "full", [tank(1, level=1)])
        self.write(1, "full", [tank(2, level=2, depth=3)], name="TANKS")
        self.fold()
        self.write(2, "incremental", [tank(3, level=4)], name="TANKS")
        self.fold()
        self.check(t1=1)
        self.check(name="TANKS", t2=2, t3=4)
        self.assertNotIn("depth", read_tables(self.central, "Tanks")[1])


class Damage(Case):
    def test_a_wrong_checksum_is_reported_and_not_applied(self):
        self.write(1, "full", [tank(1, level=1)])
        path = self.write(2, "incremental", [tank(1, level=2)])
        self.write(3, "incremental", [tank(1, level=3)])
        good = path.read_bytes()
        for damaged in [good.replace(b'"level":2', b'"level":9'), good[:-1], good[: len(good) // 2], b"", b"[]",
                        good.replace(b'"object_count":1', b'"object_count":2'), good.replace(b'"Tanks"', b'"Pumps"'),
                        gzip.compress(good)[:-9]]:
            path.write_bytes(damaged)
            self.assertEqual(self.fold()[0], ["damaged"], damaged)
            self.assertIn("edge-1/Tanks/Tanks-20260301T120000Z-000000000002", self.findings.problems[0]["place"])
            self.check(t1=1)
        path.write_bytes(gzip.compress(good))
        self.assertEqual(self.fold()[0], [])
        self.check(t1=3)

    def test_a_damaged_full_export_leaves_the_one_before_it(self):
        self.write(1, "full", [tank(1, level=1)])
        self.write(2, "incremental", [tank(1, level=2)])
        self.write(3, "full", [tank(1, level=3)]).write_text("{")
        self.assertEqual(self.fold()[0], ["damaged"])
        self.check(t1=2)

    def test_exports_of_another_gateway_are_not_applied(self):
        self.write(1, "full", [tank(1, level=1)], extended="edge-1")
        self.fold()
        self.write(2, "full", [tank(1, level=2)], extended="edge-2")
        self.assertEqual(self.fold()[0], ["mixed"])
        self.check(t1=1)

    def test_other_files_are_reported_and_heartbeats_and_backups_are_not(self):
        self.write(1, "full", [tank(1, level=1)])
        for path in [
            "edge-1/_status/edge-1.json", "edge-1/_backup/edge-1/head.json", "edge-1/_backup/edge-1/000001-0a/era.json",
            "edge-_backup/edge-1/head.json", f"edge-_backup/edge-1/000001-0123456789abcdef/{7:020}.base.age",
            "edge-1/Tanks/.x.json.part", "edge-1/readme.txt", "Tank_backup/edge-1/readme.txt",
        ]:
            (self.bucket / path).parent.mkdir(parents=True, exist_ok=True)
            (self.bucket / path).write_text("{}")
        self.assertEqual(self.fold()[0], ["foreign"])
        self.assertRegex(self.findings.problems[0]["text"], "2 keys are not of exports, such as .*edge-1/readme.txt")

    def test_a_business_object_with_the_name_of_heartbeats_is_read(self):
        self.write(1, "full", [tank(1, level=1)], name="_status")
        self.write(1, "full", [tank(1, level=1)], name="Tank_status")
        beat = self.bucket / "edge-_status" / "edge-1.json"
        beat.parent.mkdir()
        beat.write_text("{}")
        self.assertEqual(self.fold()[0], [])
        self.check(name="_status", t1=1)
        self.check(name="Tank_status", t1=1)

    def test_keys_lead_out_of_no_folder(self):
        self.write(1, "full", [tank(1, level=1)])
        self.write(1, "full", [tank(1, level=2)], template="{prefix}%2E%2E/%2E%2E-{date}-{sequence}{suffix}.json", name="..")
        self.write(10**30, "full", [tank(1, level=3)])
        self.assertEqual(self.fold()[0], ["foreign"])
        self.check(t1=1)
        self.assertTrue((self.central / "current" / "%2E%2E").is_dir())

    def test_what_is_not_json_is_not_applied(self):
        for sequence, objects in enumerate([['{"uri":"u:1","level":NaN}'], ["[]"], ['{"uri":1}'], ["{}"], ['"uri"']], 1):
            self.write(sequence, "full", objects)
        self.assertEqual(self.fold()[0], ["damaged"] * 5)

    def test_a_source_that_is_away_stops_no_other(self):
        self.write(1, "full", [tank(1, level=1)])
        self.assertEqual(self.fold(self.work / "away", self.bucket, "http://127.0.0.1:1/bucket")[0], ["unreachable"] * 2)
        self.check(t1=1)


    def test_exports_that_are_not_valid_stop_no_other(self):
        self.write(1, "full", [tank(1, level=1)], prefix="edge-2/")
        path = self.write(1, "full", [tank(1, level=1)])
        good = path.read_text()
        checksum = hashlib.sha256(b'[{"uri":"a"}').hexdigest()
        open_list = f'{{"metadata":{{"object_count":1,"data_checksum":"{checksum}","export_date":"d"}},"data":[{{"uri":"a"}}}}'
        for text in [open_list, good.replace("20260301T", "\\ud800T", 1), good[:1] + f'"x":{"[" * 10**5},' + good[1:]]:
            path.write_text(text)
            self.assertEqual(self.fold()[0], ["damaged"])
        for number, objects in enumerate([[r'{"uri":"\ud800"}'], [r'{"uri":"a","\udfff":1}'], [r'{"uri":"a","b":["\ud800"]}'],
                                          ['{"uri":"a","b":' + "[" * 10**5 + "]" * 10**5 + "}"]]):
            self.write(1, "full", objects)
            self.assertEqual(self.fold()[0], ["damaged"], number)
        self.check("edge-2", t1=1)
        self.write(1, "full", [r'{"uri":"a/\ud83d\ude00","level":"\\ud800"}'])
        self.assertEqual(self.fold()[0], [])
        self.check(**{"\U0001f600": "\\ud800"})

    def test_an_export_that_is_too_large_without_its_compression_is_damaged(self):
        body = gzip.compress(b"0" * 1000)
        with mock.patch.object(exports, "MAX_EXPORT_BYTES", 1000):
            self.assertEqual(len(exports.decompress(body)), 1000)
        with mock.patch.object(exports, "MAX_EXPORT_BYTES", 999):
            self.assertRaisesRegex(ValueError, "more than 999 bytes", exports.decompress, body)

    def test_keys_that_give_no_folder_are_reported(self):
        self.write(1, "full", [tank(1, level=1)])
        self.write(1, "full", [tank(1, level=1)], name="state.json")
        names = ["%FF-20260301T120000Z-000000000001.json", os.fsdecode(b"\xff.json"), "line\n\x1b.json"]
        for name in names:
            Path(self.bucket, "edge-1/Tanks", name).write_text("{}")
        self.assertEqual(self.fold()[0], ["foreign"])
        self.assertIn("3 keys are not of exports", self.findings.problems[0]["text"])
        self.check(t1=1)
        self.assertTrue((self.central / "current" / "%73%74%61%74%65%2E%6A%73%6F%6E").is_dir())
        self.assertIsNotNone(self.parse("x" * 255 + "/" + "x" * 255 + "-20260301T120000Z-000000000001.json"))
        self.assertIsNone(self.parse("x" * 256 + "/" + "x" * 256 + "-20260301T120000Z-000000000001.json"))
        self.assertEqual(escape_text("Räume \udcff\n\x1b"), r"Räume \udcff\n\x1b")

    def parse(self, key):
        return parse_key(key, [compile_template(DEFAULT_TEMPLATE)], "bucket")


class Buckets(Case):
    """A server with the files of the folder as objects."""

    def setUp(self):
        super().setUp()
        self.extra_keys, self.list_answer = [], None
        case = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                place = urlsplit(self.path)
                key = unquote(place.path).removeprefix("/exports").removeprefix("/")
                body = case.list_answer or case.list_objects() if not key else (case.bucket / key).read_bytes()
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
        self.url = f"http://127.0.0.1:{server.server_port}/exports"

    def list_objects(self):
        keys = [quote(str(path.relative_to(self.bucket)), safe="/ ").replace(" ", "+")
                for path in self.bucket.rglob("*") if path.is_file()]
        contents = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in [*keys, *self.extra_keys])
        return f"<ListBucketResult><EncodingType>url</EncodingType>{contents}</ListBucketResult>".encode()

    def test_keys_have_any_characters(self):
        self.write(1, "full", [tank(1, level=1)], prefix="edge +1/")
        self.extra_keys = ["a%01b", "%FF.json"]
        self.assertEqual(self.fold(self.url)[0], ["foreign"])
        self.assertIn("2 keys", self.findings.problems[0]["text"])
        self.check("edge +1", t1=1)

    def test_a_list_that_is_not_xml_stops_no_other_source(self):
        self.write(1, "full", [tank(1, level=1)])
        self.list_answer = b"<ListBucketResult><Key>\x01</Key></ListBucketResult>"
        self.assertEqual(self.fold(self.url, self.bucket)[0], ["unreachable"])
        self.check(t1=1)


class Forms(Case):
    def test_lines_with_metadata_beside_them(self):
        self.write(1, "full", [tank(1, level=1)], lines=True)
        path = self.write(2, "deleted", [tank(1)], lines=True)
        path.unlink()
        self.assertEqual(self.fold()[0], [])
        self.check(t1=1)
        self.write(2, "deleted", [tank(1)], lines=True)
        self.write(3, "incremental", [], lines=True)
        self.assertEqual(self.fold()[0], [])
        self.check()

    def test_an_object_can_be_longer_than_the_lines_that_an_engine_expects(self):
        self.write(1, "full", [tank(1, level=1), tank(2, level=2, text='"\u00e4' * (5 << 20))])
        self.assertEqual(self.fold()[0], [])
        self.check(t1=1, t2=2)

    def test_keys_of_other_templates(self):
        template = "{prefix}{kind}/{gateway}/{name}/{yyyy}/{mm}/{dd}/{sequence}.json"
        self.write(1, "full", [tank(1, level=1)], prefix="plant/", template=template, extended="edge-7")
        self.write(2, "deleted", [tank(1)], prefix="plant/", template=template, extended="edge-7")
        self.write(3, "incremental", [tank(2, level=3)], prefix="plant/", template=template, extended="edge-7")
        self.assertEqual(self.fold(key=[template])[0], [])
        self.check("edge-7", t2=3)

    def test_keys_that_tell_no_kind_need_extended_metadata(self):
        template = "{prefix}{name}/{name}-{date}-{sequence}.json"
        self.write(1, "full", [tank(1, level=1)], template=template, extended="edge-1")
        self.write(2, "incremental", [tank(2, level=2)], template=template, extended="edge-1")
        self.assertEqual(self.fold()[0], [])
        self.check(t1=1, t2=2)
        template = "{prefix}{name}/{date}/{sequence}.json"
        self.write(3, "incremental", [tank(3, level=3)], template=template, extended="edge-1")
        self.assertEqual(self.fold(key=[template])[0], [])
        self.write(4, "incremental", [tank(3, level=4)], template=template)
        self.assertEqual(self.fold(key=[template])[0], ["damaged"])
        self.assertIn("its kind is unknown", self.findings.problems[0]["text"])
        template = "{prefix}{name}/{name}-{date}-{sequence}.json"
        self.write(1, "incremental", [tank(1, level=1)], template=template, prefix="edge-2/")
        problems, _ = self.fold(key=["{prefix}{name}/{date}/{sequence}.json", template])
        self.assertEqual(problems, ["damaged", "damaged"])
        self.check("edge-2")

    def test_a_template_that_is_none_is_refused(self):
        with self.assertRaisesRegex(ValueError, "is not one of a target"):
            self.fold(key=["{prefix}{name}.json"])


class Fields(Case):
    def columns(self, name="Tanks"):
        columns = read_tables(self.central, name)[1]
        return {column: kind for column, kind in columns.items() if not column.startswith("_")}

    def test_new_vanished_and_changed_fields(self):
        self.write(1, "full", [tank(1, level=1, parts=[]), tank(2, site="a", nested={"uri": "n:1", "x": True})])
        self.write(1, "full", [tank(1, level=1)], prefix="edge-2/")
        self.assertEqual(self.fold(), ([], ["new-field"] * 4))
        self.assertEqual(self.columns(), {
            "uri": "VARCHAR", "level": "BIGINT", "parts": "VARCHAR[]", "site": "VARCHAR",
            "nested": "STRUCT(uri VARCHAR, x BOOLEAN)"})
        self.write(2, "full", [tank(1, level="1.50", parts=[{"uri": "n:2", "y": 1}])])
        self.assertEqual(sorted(self.fold()[1]), ["changed-type", "new-field"] + ["vanished-field"] * 2)
        self.assertEqual(self.columns()["level"], "VARCHAR")
        self.assertEqual(self.columns()["parts"], "STRUCT(uri VARCHAR, y BIGINT)[]")
        self.check("edge-2", t1=1)
        self.assertEqual(self.fold(), ([], []))

    def test_numbers_keep_their_digits(self):
        text = '{"uri":"u:1","level":12345678901234567890.1234567890,"count":123456789012345678901234567890,"flow":1.50,"huge":1e999}'
        self.write(1, "full", [text])
        self.fold()
        rows, columns = read_tables(self.central, "Tanks")
        self.assertEqual(rows, {"edge-1": {"u:1": text}})
        self.assertEqual([columns[name] for name in ("level", "count", "huge")], ["DOUBLE", "VARCHAR", "VARCHAR"])

    def test_fields_that_differ_in_case_and_own_names(self):
        self.write(1, "full", [{"uri": "u:1", "Level": 1, "level": 2, "_object": 3, 'q"`.\'': "text"}])
        self.assertEqual(self.fold()[1].count("ambiguous"), 2)
        self.assertEqual(set(self.columns()), {"uri", "Level", 'q"`.\''})
        self.assertEqual(self.fold(), ([], []))

    def test_a_table_of_nothing_can_be_read(self):
        self.write(1, "full", [])
        self.fold()
        self.assertEqual(read_tables(self.central, "Tanks")[0], {})


class Failures(Case):
    def test_a_run_whose_engine_fails_has_the_status_2(self):
        self.write(1, "full", [tank(1, level=1)])

        class EngineError(Exception):
            pass

        class BrokenEngine:
            def map_tasks(self, function, tasks):
                raise EngineError("the engine is broken")

        @contextlib.contextmanager
        def open_engine(arguments):
            yield BrokenEngine()

        errors = io.StringIO()
        with mock.patch.object(sys, "argv", ["fold", str(self.central), str(self.bucket)]), contextlib.redirect_stderr(errors):
            self.assertEqual(run_command("", open_engine), 2)
        self.assertIn("the tables are unchanged: EngineError: the engine is broken", errors.getvalue())
        self.assertFalse((self.central / "current").exists())


    def test_a_folder_of_something_else_is_refused(self):
        self.write(1, "full", [tank(1, level=1)])
        for path in ["staging/a", "versions/000000000007/b"]:
            (self.central / path).mkdir(parents=True)
        with self.assertRaisesRegex(CentralError, "has other files than tables"):
            self.fold()
        self.assertEqual(len(list(self.central.rglob("*"))), 5)

    def test_other_files_beside_versions_stay(self):
        self.write(1, "full", [tank(1, level=1)])
        self.fold()
        (self.central / "versions" / "7").mkdir()
        (self.central / "versions" / ".snapshot").mkdir()
        for sequence in [2, 3, 4]:
            self.write(sequence, "full", [tank(1, level=sequence)])
            self.assertEqual(self.fold()[0], [])
        self.assertEqual(sorted(os.listdir(self.central / "versions")), [".snapshot", "000000000003", "000000000004", "7"])

    def test_old_versions_that_cannot_be_removed_fail_no_run(self):
        self.write(1, "full", [tank(1, level=1)])
        self.fold()
        self.write(2, "full", [tank(1, level=2)])
        self.fold()
        self.write(3, "full", [tank(1, level=3)])
        remove = shutil.rmtree

        def refuse_versions(path, **options):
            if "versions" in str(path):
                raise PermissionError(1, "Operation not permitted", str(path))
            remove(path, **options)

        errors = io.StringIO()
        with mock.patch.object(shutil, "rmtree", refuse_versions), contextlib.redirect_stderr(errors):
            self.assertEqual(self.fold()[0], [])
        self.assertIn("stay until the next run", errors.getvalue())
        self.check(t1=3)
        self.assertEqual(len(os.listdir(self.central / "versions")), 3)


class Kills(Case):
    def test_a_run_that_is_killed_at_any_step_changes_nothing_or_all(self):
        self.write(1, "full", [tank(number, level=1) for number in range(20)])
        self.write(1, "full", [tank(1, level=1)], prefix="edge-2/")
        self.fold()
        self.write(2, "incremental", [tank(1, level=2), tank(50, level=2, site="new")])
        self.write(3, "deleted", [tank(2)])
        self.write(1, "full", [tank(1, level=1)], prefix="edge-2/", name="Pumps")
        exports = read_exports(self.bucket)
        # A run of Spark takes long to start.
        for step in range(1, 1000, 12 if ENGINE_NAME == "spark" else 1):
            status = kill_at(step, self.central, self.bucket)
            sequence = self.sequence()
            rows = read_tables(self.central, "Tanks")[0]["edge-1"]
            self.assertEqual({uri: json.loads(text) for uri, text in rows.items()}, replay(exports["edge-1", "Tanks"], sequence))
            if status == 0:
                break
            self.assertEqual(status, 137)
        self.assertEqual(sequence, 3)
        self.assertGreater(step, 10)
        self.check("edge-2", "Pumps", t1=1)
        # A run that is killed after the switch reports nothing, but its version has its report.
        report = json.loads((self.central / "current" / "report.json").read_text())
        self.assertEqual([one["note"] for one in report["notes"]], ["new-field", "new-field"])
        self.assertLessEqual(len(os.listdir(self.central / "versions")), 2)
        self.assertFalse((self.central / "staging").exists())


    def test_runs_stage_in_folders_of_their_own(self):
        stagings = []
        for _ in range(2):
            with open_central(self.central) as central:
                stagings.append(central.staging)
        # A process of a killed run still writes.
        self.assertNotEqual(*stagings)
        self.assertRaises(OSError, stage_export, self.task(self.write(1, "full", [tank(1)]), stagings[0] / "1.jsonl"))

    def test_an_attempt_that_fails_leaves_the_staged_file_of_another_one(self):
        task = self.task(self.write(1, "full", [tank(1)]), self.work / "1.jsonl")
        self.assertIsNone(stage_export(task).error)
        staged = Path(task.path).read_text()
        self.write(1, "full", [tank(2), "[]"])
        self.assertIsNotNone(stage_export(task).error)
        self.assertEqual(Path(task.path).read_text(), staged)

    def test_incomplete_lines_are_not_written_to_a_table(self):
        path = self.work / "1.jsonl"
        path.write_text('{"gateway":"edge-1","sequence":1,"is_deleted":false,"uri":"u:1","object":"{}"}\n{"gateway":"edg')
        part = Part(0, 1, None, str(self.work / "part-00000.parquet"), [str(path)], [])
        self.assertRaises(Exception, ENGINE.write_parts, [part], {"uri": "VARCHAR"})

    def task(self, path, staged):
        key = parse_key(str(path.relative_to(self.bucket)), [compile_template(DEFAULT_TEMPLATE)], "bucket")
        return Task(Folder("bucket", str(self.bucket)), key, str(staged))


def kill_at(step, central, bucket):
    """Runs the job in a process that ends at a step that changes the folder. Returns its exit status: 137 if it was
    killed."""
    script = CENTRAL / f"fold_{ENGINE_NAME}.py"
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(step), str(script), str(central), str(bucket)]
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    ENGINE_NAME = sys.argv.pop(1)
    module = __import__(f"fold_{ENGINE_NAME}")
    with module.open_engine(argparse.Namespace(workers=2)) as ENGINE:
        unittest.main()
