"""Tests packaging/sbom with the library of CycloneDX and with a binary. tests/sbom/run calls it."""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

HERE = pathlib.Path(__file__).resolve().parent
SBOM = HERE.parents[1] / "packaging/sbom"
sys.path.insert(0, str(SBOM))

from crates import Crate  # noqa: E402
from notices import texts_of  # noqa: E402

HOST = "x86_64-unknown-linux-gnu"
TARGETS = [HOST, "aarch64-unknown-linux-gnu", "armv7-unknown-linux-gnueabihf", "x86_64-unknown-linux-musl"]
# The targets whose SBOM is validated. A validation takes several seconds, and the targets differ in few crates.
VALIDATED = {HOST, "x86_64-unknown-linux-musl"}
# The smallest number of crates that the binary names; with fewer the pattern does not fit the binary.
MIN_NAMED_CRATES = 50


def write(target: str, folder: pathlib.Path) -> tuple[bytes, bytes]:
    subprocess.run([SBOM / "write", target, folder], check=True, stdout=subprocess.DEVNULL)
    return (folder / "sbom.cdx.json").read_bytes(), (folder / "third-party-notices.gz").read_bytes()


def crates_named_by(binary: pathlib.Path) -> set[str]:
    """Returns the crates whose source files the binary names in its panic messages."""
    names = re.findall(rb"registry/src/[^/\0]+/([A-Za-z0-9_.+-]+)/", binary.read_bytes())
    return {name.decode() for name in names}


def check_target(target: str, work: pathlib.Path) -> tuple[dict, str]:
    """Writes both files for a target, and checks what holds for each of them."""
    sbom, packed = write(target, work / target)
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom.decode()) if target in VALIDATED else None
    assert error is None, f"{target}: the SBOM is no CycloneDX 1.6: {error}"
    found = json.loads(sbom)
    references = {part["bom-ref"] for part in found["components"]} | {found["metadata"]["component"]["bom-ref"]}
    assert references == {part["ref"] for part in found["dependencies"]}, f"{target}: parts and dependencies differ"
    named = {key for part in found["dependencies"] for key in part["dependsOn"]}
    assert named == references - {found["metadata"]["component"]["bom-ref"]}, f"{target}: a part has no user"
    notices = gzip.decompress(packed).decode()
    for part in found["components"]:
        own = "hashes" not in part and "purl" not in part
        entry = f"\n{part['name']} {part['version']}\n  Licence: {part['licenses'][0]['expression']}\n"
        assert own == (entry not in notices), f"{target}: the notices of {part['bom-ref']}"
    assert "timestamp" not in sbom.decode() and str(HERE.parents[1]) not in sbom.decode() + notices
    return found, notices


def main() -> None:
    binary = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        found = {target: check_target(target, work)[0] for target in TARGETS}
        assert write(HOST, work / "again") == write(HOST, work / HOST), "two runs give different files"
    listed = {f"{part['name']}-{part['version']}" for part in found[HOST]["components"]}
    named = crates_named_by(binary)
    assert len(named) >= MIN_NAMED_CRATES, f"{binary} names only {len(named)} crates"
    assert named <= listed, f"crates of the binary that the SBOM lacks: {sorted(named - listed)}"
    parts = {target: {part["name"] for part in sbom["components"]} for target, sbom in found.items()}
    assert "musl" in parts["x86_64-unknown-linux-musl"] and "musl" not in parts[HOST]
    assert not parts[HOST] & {"criterion", "serde_derive", "cc", "windows-sys"}, "the SBOM has more than the binary"
    nameless = Crate("nameless", "1.0.0", "BSD-3-Clause", "", work / "no-files")
    try:
        texts_of(nameless)
    except SystemExit as error:
        assert "nameless 1.0.0 (BSD-3-Clause) has no licence text" in str(error), error
    else:
        raise AssertionError("a crate without a licence text was accepted")
    print(f"{len(listed)} parts; the binary names {len(named)} of them; licences complete on {len(TARGETS)} targets")


main()
