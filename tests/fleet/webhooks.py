"""Receives the events of a gateway, and verifies each with the library of Standard Webhooks.

Usage: tests/fleet/webhooks.py path/to/penstock"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from standardwebhooks.webhooks import Webhook

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import Penstock, wait_for  # noqa: E402

SECRET = "whsec_YzJ2aWV0bmFtZXNlLW9mLWEtd2ViaG9vay10aGF0LWlzLWxvbmc="
CONFIG = 'type: object\npath: "Pumps:."\nfields: {uri: {type: id}, name: {type: string, path: <https://plant.example/name>}}\n'
OBJECTS = 20


class Handler(BaseHTTPRequestHandler):
    """Verifies each request, and refuses the first two."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Webhook(SECRET).verify(body, dict(self.headers.items()))
        status = 503 if len(self.server.received) < 2 else 204
        self.server.received.append((status, self.headers["webhook-id"], json.loads(body)))
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


def main(binary):
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.received = []
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    settings = {
        "service.webhooks.central.url": f"http://127.0.0.1:{receiver.server_port}/events",
        "service.webhooks.central.secret": SECRET,
        "service.webhooks.central.events": "penstock.ingestion.committed",
    }
    with Penstock(binary, settings) as gateway:
        gateway.define("Pumps", CONFIG)
        ingested = [
            gateway.call("POST", "/business-objects/Pumps", {"data": [{"name": str(number)}]})["ingestionId"]
            for number in range(OBJECTS)
        ]
        wait_for("all events arrive", lambda: sum(status == 204 for status, *_ in receiver.received) == OBJECTS)
        page = Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
        names = set(re.findall(r"`(penstock_webhook_[a-z_]+)`", page.read_text()))
        metrics = gateway.request("GET", "/metrics").body.decode()
        missing = [name for name in names if f'{name}{{webhook="central"}}' not in metrics]
        assert len(names) == 6 and not missing, (names, missing)
    accepted = [event["subject"] for status, _, event in receiver.received if status == 204]
    assert accepted == ingested, (accepted, ingested)
    refused = {identifier for status, identifier, _ in receiver.received if status == 503}
    assert refused == {receiver.received[2][1]}, "the first event keeps its id until it is accepted"
    print(f"webhooks: {len(receiver.received)} requests were verified, and {OBJECTS} events arrived in order")


if __name__ == "__main__":
    main(sys.argv[1])
