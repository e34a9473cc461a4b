"""Parses the keys of exports, and recognizes those of heartbeats and backups. `docs/exports.md` describes the templates."""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

DEFAULT_TEMPLATE = "{prefix}{name}/{name}-{date}-{sequence}{suffix}.json"
ENDINGS = (".jsonl", ".meta.json", ".json")

MAX_FILE_NAME_BYTES = 255

# Files beside the folders of the tables.
RESERVED_FOLDERS = ("state.json", "report.json")

# The id of a gateway in a key. Only one of dots is percent-encoded.
GATEWAY = r"(?:(?:%2E)+|[A-Za-z0-9._-]+)"

# The folder follows the prefix of a target, which need not end in `/`.
HEARTBEAT_KEY = re.compile(rf"(?:.*/)?[^/]*_status/{GATEWAY}\.json", re.DOTALL)

# The continuous backup of a gateway: `docs/backup.md`. After a prefix that does not end in `/`, the folder could be that of
# a Business Object, so the rest has to be the key of an object of a backup.
BACKUP_OBJECT = (
    r"head\.json|probe-[0-9a-f]{16}|\d{6,}-[0-9a-f]{16}/(?:era\.json|\d{20}(?:-\d{20}\.segment|\.base)(?:\.age)?)"
)
BACKUP_KEY = re.compile(
    rf"(?:.*/)?(?:_backup/{GATEWAY}/.+|[^/]+_backup/{GATEWAY}/(?:{BACKUP_OBJECT}))", re.DOTALL | re.ASCII
)

PATTERNS = {
    # A prefix ends in `/` if that is possible, because the name has no `/`.
    "prefix": r"(?:.*/)?|.*?",
    "name": r"[A-Za-z0-9._%-]+?",
    "gateway": r"[A-Za-z0-9._%-]+?",
    "kind": r"full|incremental|deleted",
    "suffix": r"|\.incremental|\.deleted",
    "date": r"\d{8}T\d{6}Z",
    "sequence": r"\d{12,18}",
    "yyyy": r"\d{4}",
    "mm": r"\d\d",
    "dd": r"\d\d",
}


@dataclass(frozen=True)
class ExportKey:
    """What a key says about its export."""

    key: str
    gateway: str
    name: str
    sequence: int
    # None if the template has neither `{kind}` nor `{suffix}`.
    kind: str | None
    # The key without its ending, which `.jsonl` and `.meta.json` have in common.
    stem: str
    ending: str


def compile_template(template):
    """Returns the regular expression of a template's keys without their ending.

    Raises `ValueError` if it is not a template of `service.export.targets.<name>.key`."""
    parts = re.split(r"\{([a-z]+)\}", template.removesuffix(".json"))
    names = parts[1::2]
    unknown = sorted(set(names) - set(PATTERNS))
    if unknown or not template.endswith(".json") or names[:1] != ["prefix"] or not {"name", "sequence"} <= set(names):
        raise ValueError(
            f"the key template {template!r} is not one of a target: it begins with {{prefix}}, has {{name}} and "
            f"{{sequence}}, and ends in .json; use the value of service.export.targets.<name>.key"
        )
    pattern, seen = "", set()
    for position, part in enumerate(parts):
        if position % 2 == 0:
            pattern += re.escape(part)
        elif part in seen:
            pattern += f"(?P={part})"
        else:
            seen.add(part)
            pattern += f"(?P<{part}>{PATTERNS[part]})"
    return re.compile(pattern, re.DOTALL)


def parse_key(key, templates, source_name):
    """Returns the `ExportKey` of a key by the first template that it matches. The gateway is `{gateway}` of the template,
    otherwise the prefix, otherwise the name of the source. Returns None if no template matches, the key is not UTF-8, or
    the name is too long for a folder."""
    try:
        key.encode()
        found = match_key(key, templates, source_name)
    except UnicodeError:
        return None
    return found if found and len(table_folder(found.name)) <= MAX_FILE_NAME_BYTES else None


def match_key(key, templates, source_name):
    """Returns the `ExportKey` of a key by the first template that it matches, or None. Raises `UnicodeError` if its name
    or gateway is not UTF-8."""
    ending = next((ending for ending in ENDINGS if key.endswith(ending)), None)
    if ending is None:
        return None
    stem = key.removesuffix(ending)
    for template in templates:
        if not (found := template.fullmatch(stem)):
            continue
        parts = found.groupdict()
        kind = parts.get("kind")
        if kind is None and "suffix" in parts:
            kind = parts["suffix"].removeprefix(".") or "full"
        gateway = unquote(parts.get("gateway") or "", errors="strict") or parts["prefix"].strip("/") or source_name
        return ExportKey(key, gateway, unquote(parts["name"], errors="strict"), int(parts["sequence"]), kind, stem, ending)
    return None


def is_heartbeat_key(key, templates):
    """Returns whether this is the key of a heartbeat. A key that matches a template is of an export: the name of a Business
    Object can end in `_status`."""
    return HEARTBEAT_KEY.fullmatch(key) is not None and parse_key(key, templates, "") is None


def is_backup_key(key):
    """Returns whether this is the key of an object of a backup, if it matches no template: the name of a Business Object
    can end in `_backup`."""
    return BACKUP_KEY.fullmatch(key) is not None


def table_folder(name):
    """Returns the name of a table's folder: the name of the Business Object, percent-encoded as in keys."""
    if not name.strip(".") or name in RESERVED_FOLDERS:
        return "".join(f"%{byte:02X}" for byte in name.encode())
    return quote(name, safe="")
