"""Collects the licence texts of all parts of a binary."""

import pathlib
import re
import tomllib

from crates import PROJECT, Crate

LICENCE_FILE = re.compile(r"(licen[sc]e|copying|copyright|notice|unlicense)([-_.].*)?", re.IGNORECASE)
# Code and pages can have such a name too.
OTHER_KINDS = {".rs", ".html", ".py", ".toml", ".json", ".h", ".c"}
# Texts for crates that were published without one. Their authors are named in place of the copyright line.
STANDARD_TEXTS = {"MIT": "packaging/sbom/texts/MIT", "Apache-2.0": "LICENSE-APACHE"}
UNUSED = tomllib.loads((PROJECT / "packaging/sbom/parts.toml").read_text())["unused"]


def clean(text: str) -> str:
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").replace("\f", "").split("\n"))
    return "\n".join(lines).strip("\n")


def read_text(path: pathlib.Path) -> str:
    raw = path.read_bytes()
    try:
        return clean(raw.decode())
    except UnicodeDecodeError:
        return clean(raw.decode("latin-1"))


def standard_text(crate: Crate) -> str:
    """Returns the standard text for a crate without one, if its licence is one of STANDARD_TEXTS."""
    for licence in re.split(r" OR ", crate.license):
        if licence in STANDARD_TEXTS:
            return read_text(PROJECT / STANDARD_TEXTS[licence])
    raise SystemExit(
        f"{crate.name} {crate.version} ({crate.license}) has no licence text. Add the text to packaging/sbom/texts and "
        "to STANDARD_TEXTS in packaging/sbom/notices.py"
    )


def texts_of(crate: Crate) -> list[str]:
    """Returns the licence texts of a part, those of the code that it contains included."""
    if crate.folder is None:
        return [read_text(PROJECT / text) for text in crate.texts]
    texts = []
    for path in sorted(crate.folder.rglob("*")):
        name = f"{crate.name}/{path.relative_to(crate.folder).as_posix()}"
        if path.suffix in OTHER_KINDS or not LICENCE_FILE.fullmatch(path.name) or not path.is_file() or name in UNUSED:
            continue
        text = read_text(path)
        if re.match(r"\s*GNU (LESSER |AFFERO )?GENERAL PUBLIC LICENSE", text):
            raise SystemExit(f"{name} is a copyleft licence. If it does not apply, packaging/sbom/parts.toml must say why")
        if text:
            texts.append(text)
    return texts or [standard_text(crate)]


def describe(crate: Crate, numbers: list[int]) -> str:
    """Returns the entry of a part: name, licence, where its source is, authors, numbers of its texts."""
    source = f"https://crates.io/crates/{crate.name}/{crate.version}" if crate.folder else crate.source
    lines = [f"{crate.name} {crate.version}", f"  Licence: {crate.license}", f"  Source: {source}"]
    if crate.authors:
        lines.append(f"  Authors: {', '.join(crate.authors)}")
    if crate.notice:
        lines.append(f"  {crate.notice}")
    lines.append(f"  Texts: {', '.join(map(str, numbers))}")
    return "\n".join(lines)


def write_notices(title: str, parts: list[Crate]) -> str:
    """Returns the notices: a list of the parts, then each distinct text once."""
    number_of: dict[str, int] = {}
    texts: list[str] = []
    entries = []
    for part in parts:
        numbers = []
        for text in texts_of(part):
            same = " ".join(text.lower().split())
            if same not in number_of:
                texts.append(text)
                number_of[same] = len(texts)
            numbers.append(number_of[same])
        entries.append(describe(part, sorted(set(numbers))))
    rule = "=" * 80
    head = f"Third-party notices of {title}\n\nThe program contains these parts of others. The texts of their licences follow, each once.\n"
    body = "".join(f"\n{rule}\nText {number}\n{rule}\n\n{text}\n" for number, text in enumerate(texts, 1))
    return head + "\n" + "\n\n".join(entries) + "\n" + body
