"""Reads exports from folders and S3-compatible buckets."""

import datetime
import hashlib
import hmac
import http.client
import os
import ssl
import threading
import time
import xml.etree.ElementTree as xml
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, unquote_plus, urlsplit

ATTEMPTS = 3
TIMEOUT_SECONDS = 60


class SourceError(Exception):
    """A source, or an object in it, cannot be read."""


@dataclass(frozen=True)
class Folder:
    """A folder: that of a directory target, or a copy of a bucket."""

    name: str
    path: str

    @property
    def place(self):
        return self.path

    def list_keys(self):
        """Yields the keys of all files, without those that are being written."""
        if not Path(self.path).is_dir():
            raise SourceError(f"{self.path} is not a folder; correct the path or mount it")

        def fail(error):
            raise SourceError(f"{error.filename} cannot be listed: {error.strerror}; check its permissions")

        for folder, _, files in os.walk(self.path, onerror=fail):
            for file in files:
                if not (file.startswith(".") and file.endswith(".part")):
                    yield os.path.relpath(os.path.join(folder, file), self.path)

    def read(self, key):
        """Returns the bytes of a file and the kind in its metadata, which a folder does not have."""
        try:
            return Path(self.path, key).read_bytes(), None
        except OSError as error:
            raise SourceError(f"it cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class Bucket:
    """A bucket, or the keys of a bucket with a prefix. Requests are signed (AWS Signature Version 4) unless there are no
    credentials."""

    name: str
    url: str
    bucket: str
    prefix: str
    region: str
    access_key_id: str | None
    secret_access_key: str | None
    session_token: str | None

    @property
    def place(self):
        return f"{self.url}/{self.bucket}/{self.prefix}"

    def list_keys(self):
        """Yields the keys of all objects, 1,000 a request."""
        # Without the encoding, a key with a control character makes the list invalid XML.
        query = {"list-type": "2", "prefix": self.prefix, "encoding-type": "url"}
        while True:
            try:
                page = xml.fromstring(self.request("", query)[0])
            except xml.ParseError as error:
                raise SourceError(f"{self.place} answered a list that is not XML: {error}; check the URL") from error
            tag = lambda name: f"{page.tag.removesuffix('ListBucketResult')}{name}"
            is_encoded = page.findtext(tag("EncodingType")) == "url"
            for key in page.iterfind(f"{tag('Contents')}/{tag('Key')}"):
                yield unquote_plus(key.text, errors="surrogateescape") if is_encoded else key.text
            if page.findtext(tag("IsTruncated")) != "true":
                return
            query["continuation-token"] = page.findtext(tag("NextContinuationToken"))

    def read(self, key):
        """Returns the bytes of an object and the kind in its metadata."""
        body, headers = self.request(key, {})
        return body, headers.get("x-amz-meta-kind")

    def request(self, key, query):
        """Sends a GET request, and repeats it after a failure that may pass. Returns the body and the headers."""
        path = "/" + quote(f"{self.bucket}/{key}" if key else self.bucket, safe="/-_.~")
        text = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(query.items()))
        for attempt in range(1, ATTEMPTS + 1):
            try:
                connection = open_connection(self.url)
                connection.request("GET", f"{path}?{text}" if text else path, headers=self.sign(path, text))
                response = connection.getresponse()
                body = response.read()
                if response.status == 200:
                    return body, response.headers
                cause = f"{response.status} {body[:300].decode('utf-8', 'replace')}"
                if response.status < 500 and response.status != 429:
                    break
            except (OSError, http.client.HTTPException) as error:
                close_connection(self.url)
                cause = f"{type(error).__name__}: {error}"
            if attempt < ATTEMPTS:
                time.sleep(attempt)
        raise SourceError(
            f"GET {self.url}{path} failed: {cause}; check the URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
        )

    def sign(self, path, query, method="GET"):
        """Returns the headers of a request, with its signature."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        nothing = hashlib.sha256().hexdigest()
        headers = {"host": urlsplit(self.url).netloc, "x-amz-content-sha256": nothing, "x-amz-date": now}
        if self.access_key_id is None:
            return headers
        if self.session_token:
            headers["x-amz-security-token"] = self.session_token
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{nothing}"
        scope = f"{now[:8]}/{self.region}/s3/aws4_request"
        key = f"AWS4{self.secret_access_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.new(key, text.encode(), "sha256").hexdigest()
        credential = f"Credential={self.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
        return {**headers, "authorization": f"AWS4-HMAC-SHA256 {credential}"}


# The connections of each thread, by URL.
local = threading.local()


def open_connection(url):
    """Returns this thread's open connection to a server, or a new one."""
    connections = local.__dict__
    if url not in connections:
        parts = urlsplit(url)
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connections[url] = http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT_SECONDS, context=context)
        else:
            connections[url] = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_SECONDS)
    return connections[url]


def close_connection(url):
    """Closes the connection to a server after a failure."""
    if url in local.__dict__:
        local.__dict__.pop(url).close()


def parse_source(text):
    """Returns the source of an argument: `[NAME=]FOLDER` or `[NAME=]https://HOST/BUCKET[/PREFIX]`. Without a name it is
    the last part of the folder, or the bucket."""
    name, equals, location = text.partition("=")
    if not equals or "/" in name:
        name, location = "", text
    if not location.startswith(("http://", "https://")):
        path = os.path.abspath(location)
        return Folder(name or os.path.basename(path), path)
    parts = urlsplit(location)
    bucket, _, prefix = unquote(parts.path).lstrip("/").partition("/")
    if not bucket:
        raise ValueError(f"the source {text!r} names no bucket: use https://HOST/BUCKET/PREFIX")
    variable = os.environ.get
    key_id, secret = variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")
    if (key_id is None) != (secret is None):
        raise ValueError("set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither for a public bucket")
    region = variable("AWS_REGION") or "us-east-1"
    url = f"{parts.scheme}://{parts.netloc}"
    return Bucket(name or bucket, url, bucket, prefix, region, key_id, secret, variable("AWS_SESSION_TOKEN"))
