"""tests/image/target.py FOLDER: an HTTPS server that refuses all requests and writes their `Authorization`.

Uses FOLDER/server.crt and server.key, writes its port to FOLDER/port and the headers to FOLDER/requests.
"""

import http.server
import pathlib
import ssl
import sys

FOLDER = pathlib.Path(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    """Writes the header, and answers with an error that clients retry."""

    def answer(self) -> None:
        with open(FOLDER / "requests", "a") as requests:
            print(self.headers.get("Authorization", "none"), file=requests)
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = answer

    def log_message(self, *_: object) -> None:
        """Writes nothing."""


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(FOLDER / "server.crt", FOLDER / "server.key")
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
(FOLDER / "port").write_text(str(server.server_port))
server.serve_forever()
