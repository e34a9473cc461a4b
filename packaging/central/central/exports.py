"""Reads one export, checks it, and writes its objects as lines that every engine reads."""

import gzip
import hashlib
import io
import json
import os
import zlib
from dataclasses import dataclass
from uuid import uuid4

from .keys import ExportKey
from .sources import SourceError
from .structures import find_structure, merge_structures

# Where `data` begins. Within a string a quotation mark has a backslash before it, so this occurs nowhere else.
DATA = b'},"data":'

# The maximum size of an export without its compression.
MAX_EXPORT_BYTES = 1 << 30


@dataclass(frozen=True)
class Task:
    """An export to read, and the file to write its objects to."""

    source: object
    key: ExportKey
    path: str


@dataclass(frozen=True)
class Staged:
    """What was found in an export. With an `error`, nothing else."""

    key: ExportKey
    path: str
    error: str | None = None
    kind: str | None = None
    objects: int = 0
    checksum: str = ""
    date: str = ""
    gateway_id: str | None = None
    structure: object = None
    longest_line: int = 0


def stage_export(task):
    """Checks an export and writes a line for each of its objects: `gateway`, `sequence`, `is_deleted`, `uri`, and
    `object` with its JSON text as in the export.

    Raises `OSError` if the lines cannot be written. Everything else is an error of the export: it must not stop the run."""
    try:
        return read_export(task)
    except OSError:
        raise
    except Exception as error:
        cause = f"{type(error).__name__}: {error}" if not isinstance(error, (SourceError, ValueError)) else str(error)
        return Staged(task.key, task.path, error=cause)


def read_export(task):
    """Does what `stage_export` does. Raises `SourceError` if the export cannot be read, and any of several errors if it
    is not valid."""
    key = task.key
    body, kind_header = task.source.read(key.stem + key.ending)
    body = decompress(body)
    if key.ending == ".jsonl":
        metadata = json.loads(task.source.read(f"{key.stem}.meta.json")[0])["metadata"]
        data = body
    else:
        head, separator, rest = body.partition(DATA)
        if not separator or not rest.endswith(b"}"):
            raise ValueError("it is not a complete export file")
        metadata, data = json.loads(head + b"}}")["metadata"], rest[:-1]
    refuse_surrogates(metadata)
    checksum = hashlib.sha256(data).hexdigest()
    if checksum != metadata["data_checksum"]:
        raise ValueError(f"data_checksum is {metadata['data_checksum']}, but the SHA-256 of data is {checksum}")
    kind = find_kind(key, metadata, kind_header)
    for member, expected in [("object_type", key.name), ("sequence", key.sequence)]:
        if metadata.get(member, expected) != expected:
            raise ValueError(f"{member} in metadata is {metadata[member]!r}, but the key says {expected!r}")

    structure, count, longest_line = None, 0, 0
    gateway = json.dumps(key.gateway)
    # Another process may stage the same export: a second attempt of Spark.
    new = f"{task.path}.{uuid4().hex}"
    with open(new, "w", encoding="utf-8") as lines:
        for thing, text in split_objects(data.decode(), key.ending):
            uri = thing["uri"]
            if not isinstance(uri, str):
                raise ValueError(f"the uri {uri!r} is not a string")
            if "\\u" in text:
                refuse_surrogates(thing)
            count += 1
            if kind != "deleted":
                structure = merge_structures(structure, find_structure(thing))
            line = (
                f'{{"gateway":{gateway},"sequence":{key.sequence},"is_deleted":{"true" if kind == "deleted" else "false"},'
                f'"uri":{json.dumps(uri)},"object":{json.dumps(text)}}}\n'
            )
            # A line is ASCII.
            longest_line = max(longest_line, lines.write(line))
    if count != metadata["object_count"]:
        raise ValueError(f"object_count is {metadata['object_count']}, but data has {count} objects")
    os.replace(new, task.path)
    date, gateway_id = metadata["export_date"], metadata.get("gateway_id")
    return Staged(key, task.path, None, kind, count, checksum, date, gateway_id, structure, longest_line)


def decompress(body):
    """Returns the bytes without their compression, which a copy of a bucket still has."""
    if body.startswith(b"\x1f\x8b"):
        try:
            return check_size(gzip.GzipFile(fileobj=io.BytesIO(body)).read(MAX_EXPORT_BYTES + 1))
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"its gzip data is damaged: {error}") from error
    if body.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            import zstandard
        except ImportError as error:
            raise SourceError("it is compressed with zstd; pip install zstandard") from error
        try:
            return check_size(zstandard.ZstdDecompressor().stream_reader(body).read(MAX_EXPORT_BYTES + 1))
        except zstandard.ZstdError as error:
            raise ValueError(f"its zstd data is damaged: {error}") from error
    return body


def check_size(body):
    """Returns the bytes. Raises `ValueError` if they are too many."""
    if len(body) > MAX_EXPORT_BYTES:
        raise ValueError(f"it has more than {MAX_EXPORT_BYTES} bytes without its compression")
    return body


def find_kind(key, metadata, kind_header):
    """Returns the kind of an export, from its metadata, the metadata of its object, or its key."""
    kinds = {kind for kind in (metadata.get("kind"), kind_header, key.kind) if kind}
    # Earlier versions, and templates without `{suffix}`, write every kind under keys like those of full exports.
    if key.kind == "full" and len(kinds) == 2:
        kinds.discard("full")
    if len(kinds) != 1 or not kinds <= {"full", "incremental", "deleted"}:
        raise ValueError(
            f"its kind is {' and '.join(sorted(kinds)) or 'unknown'}; let the key template have {{kind}} or {{suffix}}, or "
            f"set service.export.metadata=extended, and push the Business Object"
        )
    return kinds.pop()


def split_objects(text, ending):
    """Yields each object with its text as it is in the export, so that numbers keep their digits."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    if ending == ".jsonl":
        if text and not text.endswith("\n"):
            raise ValueError("its last line does not end")
        for line in text.split("\n")[:-1]:
            yield decoder.decode(line), line
        return
    if text == "[]":
        return
    if not text.endswith("]"):
        raise ValueError("data does not end with ]")
    position = 0
    while position < len(text) - 1:
        thing, end = decoder.raw_decode(text, position + 1)
        yield thing, text[position + 1 : end]
        position = end
        if text[end] != ("]" if end == len(text) - 1 else ","):
            raise ValueError(f"data has {text[end]!r} after an object")


def refuse_surrogates(value):
    """Refuses an escaped half of a character: Python reads it, but other JSON parsers do not."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"a text has the escape \\u{ord(error.object[error.start]):04x}, which is no character") from error


def refuse_constant(name):
    """Refuses what Python reads, but JSON does not have."""
    raise ValueError(f"{name} is not JSON")
