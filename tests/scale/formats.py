"""Ingests the same readings as JSON, NDJSON, CSV and MQTT, and measures rate, computing and peak memory of the gateway.

Usage: tests/scale/formats.py path/to/penstock [--objects N] [--bound MIB] [FORM...]

Needs mosquitto. Each form has a gateway of its own. The messages wait at the broker before the gateway starts, so that
publishers take no time of the run. The resident memory of each gateway must stay below the bound.
"""

import argparse
import http.client
import os
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import Penstock, wait_for  # noqa: E402
from mosquitto import Broker, Publisher, make_settings, read_connection, wait_until_connected  # noqa: E402

MAPPING = """type: object
path: "Readings:."
key: tag
fields:
  tag: { type: string, required: true, path: "<https://plant.example/tag>" }
  flow: { type: number, path: "<https://plant.example/flow>" }
  measured: { type: dateTime, path: "<https://plant.example/measured>" }
  valid: { type: boolean, path: "<https://plant.example/valid>" }
"""
QUADS_PER_READING = 4
PATH = "/api/v1/business-objects/Readings?mode=MERGE"
# Objects of a request of JSON; streams have chunks of as many.
BATCH = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("forms", nargs="*", default=["JSON", "NDJSON", "CSV", "MQTT"])
    parser.add_argument("--objects", type=int, default=200_000)
    parser.add_argument("--bound", type=int, default=128, help="MiB of resident memory")
    arguments = parser.parse_args()
    print("| form | objects/s | us of computing for each object | idle MiB | peak MiB |")
    print("|---|---|---|---|---|")
    for form in arguments.forms:
        measure(form, arguments)


def reading(number):
    return f'{{"tag":"T-{number}","flow":{number}.50,"measured":"2026-03-01T12:00:00Z","valid":true}}'


def measure(form, arguments):
    count = arguments.objects
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(folder) if form == "MQTT" else None
        try:
            settings = make_settings(broker.port, "readings") if broker else {}
            with Penstock(arguments.binary, settings) as server:
                server.define("Readings", MAPPING)
                time.sleep(1)
                if broker is not None:
                    restart_with_messages(server, broker, count)
                idle, begun, before = server.memory(), time.monotonic(), computing(server)
                send(form, server, count)
                rate = count / (time.monotonic() - begun)
                spent = (computing(server) - before) * 1e6 / count
                print(f"| {form} | {rate:.0f} | {spent:.1f} | {idle:.0f} | {server.memory('VmHWM'):.0f} |", flush=True)
                found = server.count_quads()
                if found != count * QUADS_PER_READING:
                    raise SystemExit(f"{found} quads are stored, not {count * QUADS_PER_READING}")
                if server.memory("VmHWM") > arguments.bound:
                    raise SystemExit(f"the gateway had more than {arguments.bound} MiB")
        finally:
            if broker is not None:
                broker.kill()


def restart_with_messages(server, broker, count):
    """Publishes all messages while the gateway is down, and starts it again."""
    wait_until_connected(server)
    server.process.terminate()
    server.process.wait(60)
    publisher = Publisher(broker.port, "publisher")
    for start in range(0, count, 10_000):
        publisher.publish("readings", [reading(number).encode() for number in range(start, min(count, start + 10_000))])
    server.start_again()


def send(form, server, count):
    if form == "MQTT":
        wait_for("all is stored", lambda: read_connection(server)["acknowledged"] >= count, 1200)
    elif form == "JSON":
        client = connect(server)
        for start in range(0, count, BATCH):
            objects = ",".join(reading(number) for number in range(start, min(count, start + BATCH)))
            post(client, server, "application/json", f'{{"data":[{objects}]}}'.encode())
    elif form == "NDJSON":
        post(connect(server), server, "application/x-ndjson", lines(count, lambda number: reading(number) + "\n"))
    elif form == "CSV":
        record = "T-{0},{0}.50,2026-03-01T12:00:00Z,true\n".format
        post(connect(server), server, "text/csv", lines(count, record, "tag,flow,measured,valid\n"))
    else:
        raise SystemExit(f"unknown form: {form}")


def lines(count, line, header=""):
    """Yields the lines in pieces of a stream."""
    yield header.encode()
    for start in range(0, count, BATCH):
        yield "".join(line(number) for number in range(start, min(count, start + BATCH))).encode()


def connect(server):
    return http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=600)


def post(client, server, media_type, body):
    client.request("POST", PATH, body, {**server.headers, "Content-Type": media_type})
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 200 or b'"problem' in text or b'"status":4' in text:
        raise SystemExit(f"{answer.status} {text[-600:]}")


def computing(server):
    """Returns the seconds of user and system time of the gateway's process."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


main()
