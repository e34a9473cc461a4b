"""Creates and copies buckets for tests."""

import http.client
import os
from pathlib import Path
from urllib.parse import urlsplit

from central.sources import Bucket, parse_source


def create_bucket(url, bucket):
    key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    signer = Bucket("", url, bucket, "", "us-east-1", key, secret, None)
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("PUT", f"/{bucket}", headers=signer.sign(f"/{bucket}", "", method="PUT"))
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(f"creating the bucket {bucket} failed: {answer.status} {answer.read()[:300]}")


def copy_bucket(source, folder):
    """Copies what a folder lacks of a bucket, whose objects never change. Returns the folder."""
    source = parse_source(source)
    for key in source.list_keys():
        path = Path(folder, key)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read(key)[0])
    return folder
