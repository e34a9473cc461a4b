"""An S3 bucket in memory, which calls a hook before and after each request. Needs only Python's standard library.

A hook ends a gateway at a chosen moment. It checks no signatures."""

import hashlib
import threading
import uuid
from email.utils import formatdate
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

NAME = "memory"


class Abort(Exception):
    """A hook raises it to break the connection."""


class Bucket:
    def __init__(self):
        self.objects, self.uploads, self.lock = {}, {}, threading.RLock()
        # Gets `before` or `after`, the method, and the key.
        self.hook = lambda when, method, key: None
        handler = type("Handler", (Handler,), {"bucket": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def settings(self, target):
        """Returns the settings of a target in this bucket."""
        values = {
            "type": "s3",
            "endpoint": f"http://127.0.0.1:{self.server.server_address[1]}",
            "bucket": NAME,
            "access-key-id": "key",
            "secret-access-key": "secret",
        }
        return {f"service.export.targets.{target}.{name}": value for name, value in values.items()}

    def keys(self):
        with self.lock:
            return sorted(self.objects)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Stored:
    def __init__(self, body, headers):
        self.body, self.tag, self.stored_at = body, f'"{hashlib.md5(body).hexdigest()}"', datetime.now(timezone.utc)
        kept = {name.lower(): value for name, value in headers.items()}
        self.headers = {n: v for n, v in kept.items() if n.startswith("x-amz-meta-") or n.startswith("content-type")}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_request(self):
        address = urlsplit(self.path)
        self.key = unquote(address.path).lstrip("/").partition("/")[2]
        self.asked = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bucket = self.bucket
        try:
            bucket.hook("before", self.command, self.key)
            with bucket.lock:
                status, headers, body = getattr(self, f"answer_{self.command.lower()}")()
            bucket.hook("after", self.command, self.key)
            self.send(status, headers, body)
        except (Abort, OSError):
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    def send(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code):
        return status, {}, f"<Error><Code>{code}</Code></Error>".encode()

    def answer_get(self):
        if not self.key:
            return self.list_uploads() if "uploads" in self.asked else self.list_objects()
        if "uploadId" in self.asked:
            return self.list_parts()
        stored = self.bucket.objects.get(self.key)
        if stored is None:
            return self.refuse(404, "NoSuchKey")
        modified = formatdate(stored.stored_at.timestamp(), usegmt=True)
        return 200, {**stored.headers, "ETag": stored.tag, "Last-Modified": modified}, stored.body

    answer_head = answer_get

    def list_objects(self):
        prefix = self.asked.get("prefix", "")
        found = [
            f"<Contents><Key>{escape(key)}</Key><LastModified>{stored.stored_at:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
            f"<ETag>{escape(stored.tag)}</ETag><Size>{len(stored.body)}</Size></Contents>"
            for key, stored in sorted(self.bucket.objects.items())
            if key.startswith(prefix)
        ]
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(found)}</ListBucketResult>"
        return 200, {}, text.encode()

    def list_uploads(self):
        found = [
            f"<Upload><Key>{escape(key)}</Key><UploadId>{upload}</UploadId></Upload>"
            for upload, (key, _, _) in self.bucket.uploads.items()
        ]
        text = f"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>{''.join(found)}</ListMultipartUploadsResult>"
        return 200, {}, text.encode()

    def list_parts(self):
        if self.asked["uploadId"] not in self.bucket.uploads:
            return self.refuse(404, "NoSuchUpload")
        _, _, parts = self.bucket.uploads[self.asked["uploadId"]]
        found = [
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(part.tag)}</ETag><Size>{len(part.body)}</Size></Part>"
            for number, part in sorted(parts.items())
        ]
        return 200, {}, f"<ListPartsResult><IsTruncated>false</IsTruncated>{''.join(found)}</ListPartsResult>".encode()

    def is_refused(self):
        stored = self.bucket.objects.get(self.key)
        wanted = self.headers.get("If-Match")
        return (wanted is not None and (stored is None or stored.tag != wanted)) or (
            self.headers.get("If-None-Match") is not None and stored is not None
        )

    def answer_put(self):
        if "uploadId" in self.asked:
            if self.asked["uploadId"] not in self.bucket.uploads:
                return self.refuse(404, "NoSuchUpload")
            part = Stored(self.body, {})
            self.bucket.uploads[self.asked["uploadId"]][2][int(self.asked["partNumber"])] = part
            return 200, {"ETag": part.tag}, b""
        if self.is_refused():
            return self.refuse(412, "PreconditionFailed")
        stored = self.bucket.objects[self.key] = Stored(self.body, self.headers)
        return 200, {"ETag": stored.tag}, b""

    def answer_post(self):
        if "uploads" in self.asked:
            upload = uuid.uuid4().hex
            self.bucket.uploads[upload] = (self.key, dict(self.headers), {})
            return 200, {}, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>".encode()
        if self.asked.get("uploadId") not in self.bucket.uploads:
            return self.refuse(404, "NoSuchUpload")
        if self.is_refused():
            return self.refuse(412, "PreconditionFailed")
        _, headers, parts = self.bucket.uploads.pop(self.asked["uploadId"])
        body = b"".join(part.body for _, part in sorted(parts.items()))
        stored = self.bucket.objects[self.key] = Stored(body, headers)
        text = f"<CompleteMultipartUploadResult><ETag>{escape(stored.tag)}</ETag></CompleteMultipartUploadResult>"
        return 200, {}, text.encode()

    def answer_delete(self):
        if "uploadId" in self.asked:
            self.bucket.uploads.pop(self.asked["uploadId"], None)
        else:
            self.bucket.objects.pop(self.key, None)
        return 204, {}, b""
