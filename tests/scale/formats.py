"""Ingests the same readings as JSON, NDJSON, CSV and MQTT, and measures rate, computing and peak memory of the gateway.

Usage: tests/scale/formats.py path/to/penstock [--objects N] [--bound MIB] [FORM...]

Needs mosquitto. Each form has a gateway of its own. The messages wait at the broker before the gateway starts, so that
publishers take no time of the run. The resident memory of each gateway must stay below the bound.
"""

import argparse
import http.client
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sparql"))
from gateway import Penstock  # noqa: E402
from mosquitto import Broker, Publisher  # noqa: E402

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
            source = "service.sources.plant"
            settings = {} if broker is None else {
                f"{source}.type": "mqtt",
                f"{source}.url": f"mqtt://127.0.0.1:{broker.port}",
                f"{source}.subscriptions[0].topic": "readings",
                f"{source}.subscriptions[0].business-object": "Readings",
            }
            with Penstock(arguments.binary, settings) as server:
                body = json.dumps({"name": "Readings", "config": MAPPING})
                check(server.request("PUT", "/api/v1/business-objects", body, {"Content-Type": "application/json"}), 201)
                time.sleep(1)
                if broker is not None:
                    restart_with_messages(server, broker, count)
                idle, begun, before = memory(server), time.monotonic(), computing(server)
                send(form, server, count)
                rate = count / (time.monotonic() - begun)
                spent = (computing(server) - before) * 1e6 / count
                print(f"| {form} | {rate:.0f} | {spent:.1f} | {idle:.0f} | {memory(server, 'VmHWM'):.0f} |", flush=True)
                found = json.loads(check(server.request("GET", "/api/v1/status"), 200).body)["store"]["quads"]
                if found != count * QUADS_PER_READING:
                    raise SystemExit(f"{found} quads are stored, not {count * QUADS_PER_READING}")
                if memory(server, "VmHWM") > arguments.bound:
                    raise SystemExit(f"the gateway had more than {arguments.bound} MiB")
        finally:
            if broker is not None:
                broker.kill()


def restart_with_messages(server, broker, count):
    """Publishes all messages while the gateway is down, and starts it again."""
    wait(lambda: connection(server)["state"] == "connected")
    server.process.terminate()
    server.process.wait(60)
    publisher = Publisher(broker.port, "publisher")
    for start in range(0, count, 10_000):
        publisher.publish("readings", [reading(number).encode() for number in range(start, min(count, start + 10_000))])
    server.start(server.command, "/health/ready")


def send(form, server, count):
    if form == "MQTT":
        wait(lambda: connection(server)["acknowledged"] >= count)
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


def connection(server):
    return json.loads(check(server.request("GET", "/api/v1/sources/plant"), 200).body)["connections"][0]


def memory(server, name="VmRSS"):
    """Returns MiB of the gateway's process."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def computing(server):
    """Returns the seconds of user and system time of the gateway's process."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait(is_done):
    deadline = time.monotonic() + 1200
    while not is_done():
        if time.monotonic() > deadline:
            raise SystemExit("it took more than 20 min")
        time.sleep(0.05)


def check(answer, status):
    if answer.status != status:
        raise SystemExit(f"expected {status}: {answer}")
    return answer


main()
