"""Writes exports into a folder as a gateway does, and computes what a consumer must get from them."""

import hashlib
import json
import re
import sys
from pathlib import Path
from urllib.parse import quote

CENTRAL = Path(__file__).resolve().parents[3] / "packaging" / "central"
sys.path.insert(0, str(CENTRAL))

SUFFIX = {"full": "", "incremental": ".incremental", "deleted": ".deleted"}


def write_export(folder, prefix, name, sequence, kind, objects, *, template=None, lines=False, extended=None, minute=0):
    """Writes an export. Returns its path. `extended` is a gateway id, for extended metadata."""
    date = f"20260301T12{minute:02}00Z"
    parts = dict(prefix=prefix, name=quote(name, safe=""), kind=kind, suffix=SUFFIX[kind], date=date, sequence=f"{sequence:012}",
                 yyyy=date[:4], mm=date[4:6], dd=date[6:8], gateway=extended)
    key = (template or "{prefix}{name}/{name}-{date}-{sequence}{suffix}.json").format(**parts)
    texts = [one if isinstance(one, str) else json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in objects]
    data = "".join(f"{text}\n" for text in texts) if lines else f"[{','.join(texts)}]"
    metadata = {"export_date": date, "object_type": name, "object_count": len(texts),
                "data_checksum": hashlib.sha256(data.encode()).hexdigest(), "checksum_algorithm": "SHA-256"}
    if extended:
        metadata |= {"kind": kind, "sequence": sequence, "gateway_id": extended, "export_id": "e", "schema_version": 1, "commit": 1}
    metadata = json.dumps({"metadata": metadata}, separators=(",", ":"))
    path = Path(folder, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    if lines:
        path = path.with_suffix(".jsonl")
        path.with_name(path.name.removesuffix(".jsonl") + ".meta.json").write_text(metadata)
        path.write_text(data)
    else:
        path.write_text(f'{metadata[:-1]},"data":{data}}}')
    return path


def read_tables(central, name):
    """Returns the rows of a table as {gateway: {uri: JSON text}}, and its columns with their types."""
    import duckdb

    files = str((Path(central) / "current").resolve() / quote(name, safe="") / "*.parquet")
    rows = {}
    with duckdb.connect() as db:
        table = db.execute("SELECT * FROM read_parquet($1)", [files])
        columns = {column[0]: str(column[1]) for column in table.description}
        for row in table.fetchall():
            row = dict(zip(columns, row))
            uris = rows.setdefault(row["_gateway"], {})
            assert row["uri"] not in uris, f"{row['uri']} of {row['_gateway']} is in the table twice"
            uris[row["uri"]] = row["_object"]
    return rows, columns


def read_state(central):
    return json.loads((Path(central) / "current" / "state.json").read_text())


def read_exports(folder):
    """Returns the exports below a folder, read without the code under test: {(prefix, name): {sequence: (kind, objects)}}."""
    streams = {}
    for path in Path(folder).rglob("*"):
        found = re.fullmatch(r"(.+)-\d{8}T\d{6}Z-(\d{12,})(?:\.(incremental|deleted))?\.(json|jsonl)", path.name)
        if not found or path.name.endswith(".meta.json"):
            continue
        if found[4] == "jsonl":
            objects = [json.loads(line) for line in path.read_text().splitlines()]
        else:
            objects = json.loads(path.read_text())["data"]
        prefix = str(path.parent.parent.relative_to(folder))
        streams.setdefault((prefix, found[1]), {})[int(found[2])] = found[3] or "full", objects
    return streams


def replay(exports, last):
    """Returns the objects by URI after the exports up to a sequence, in their order."""
    state = {}
    for sequence in sorted(sequence for sequence in exports if sequence <= last):
        kind, objects = exports[sequence]
        if kind == "full":
            state = {}
        for one in objects:
            if kind == "deleted":
                state.pop(one["uri"], None)
            else:
                state[one["uri"]] = one
    return state
