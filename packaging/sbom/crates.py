"""Reads which crates a binary contains, from `cargo tree` and the sources that Cargo downloaded."""

import dataclasses
import os
import pathlib
import re
import subprocess
import tomllib

PROJECT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Crate:
    """A crate of the binary, or another part of it."""

    name: str
    version: str
    license: str
    source: str
    folder: pathlib.Path | None = None
    """Where the crate's files are. The workspace's own crates and other parts have none."""
    checksum: str | None = None
    """SHA-256 of the published crate, from Cargo.lock."""
    purl: str | None = None
    authors: tuple[str, ...] = ()
    notice: str = ""
    texts: tuple[str, ...] = ()
    """The files with the licence, if they are in this project."""

    @property
    def key(self) -> str:
        return f"{self.name}@{self.version}"


def spdx(expression: str) -> str:
    """Returns a licence as SPDX writes it. Older crates write `MIT/Apache-2.0`."""
    return re.sub(r"\s*/\s*", " OR ", expression)


def registry_folder(name: str, version: str) -> pathlib.Path:
    """Returns the folder with the sources of a published crate."""
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    folders = sorted((home / "registry/src").glob(f"*/{name}-{version}"))
    if not folders:
        raise SystemExit(f"the sources of {name} {version} are not in {home}/registry/src; run `cargo fetch --locked`")
    return folders[0]


def read_checksums() -> dict[tuple[str, str], str]:
    lock = tomllib.loads((PROJECT / "Cargo.lock").read_text())
    return {(p["name"], p["version"]): p["checksum"] for p in lock["package"] if "checksum" in p}


def read_crate(name: str, version: str, own: bool, checksums: dict) -> Crate:
    """Reads one crate. `own` means that it belongs to this workspace."""
    if own:
        workspace = tomllib.loads((PROJECT / "Cargo.toml").read_text())["workspace"]["package"]
        return Crate(name, version, workspace["license"], "")
    folder = registry_folder(name, version)
    package = tomllib.loads((folder / "Cargo.toml").read_text())["package"]
    if "license" not in package:
        raise SystemExit(f"{name} {version} names no licence; packaging/sbom/crates.py must be told which it has")
    return Crate(
        name,
        version,
        spdx(package["license"]),
        package.get("repository", ""),
        folder,
        checksums[name, version],
        f"pkg:cargo/{name}@{version.replace('+', '%2B')}",
        tuple(package.get("authors", ())),
    )


def read_tree(target: str) -> tuple[str, dict[str, Crate], dict[str, set[str]]]:
    """Returns the root crate's key, the crates that are linked into the binary, and which crates each one uses.

    Build scripts, procedural macros, tests and other targets are left out, and features are resolved as for the build.
    """
    command = ["cargo", "tree", "--locked", "--quiet", "--package", "penstock", "--edges", "normal,no-proc-macro"]
    command += ["--target", target, "--prefix", "depth", "--format", "|{p}"]
    lines = subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    checksums = read_checksums()
    crates: dict[str, Crate] = {}
    uses: dict[str, set[str]] = {}
    path: list[str] = []
    for line in lines:
        depth, name, version, rest = re.fullmatch(r"(\d+)\|(\S+) v(\S+)(.*)", line).groups()
        own = re.match(r" \(/", rest) is not None
        key = f"{name}@{version}"
        if key not in crates:
            crates[key] = read_crate(name, version, own, checksums)
            uses[key] = set()
        del path[int(depth) :]
        if path:
            uses[path[-1]].add(key)
        path.append(key)
    return path[0], crates, uses


def read_folder_version(crate: str, folder: str) -> str:
    """Returns what stands for `*` in the name of a file or folder of a crate of Cargo.lock."""
    prefix, suffix = folder.split("*")
    versions = [version for name, version in read_checksums() if name == crate]
    paths = [path for version in versions for path in registry_folder(crate, version).glob(folder)]
    if len(paths) != 1:
        raise SystemExit(f"parts.toml: {crate} in Cargo.lock has {len(paths)} folders {folder}, and must have one")
    return paths[0].as_posix().removesuffix(suffix).rpartition(prefix)[2]


def read_version(version: str | dict, given: str | None) -> str:
    """Returns the version of a part of parts.toml."""
    if version == "rustc":
        return subprocess.run(["rustc", "-V"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1]
    if version == "argument":
        return given
    if isinstance(version, str):
        return version
    if "crate" in version:
        return read_folder_version(version["crate"], version["folder"])
    found = re.search(version["pattern"], (PROJECT / version["file"]).read_text())
    if not found:
        raise SystemExit(f"parts.toml: {version['file']} has no text of the pattern {version['pattern']}")
    return version.get("prefix", "") + found[1]


def read_parts(target: str, certificates: str | None) -> list[Crate]:
    """Returns what the binary, or the container image, has beside crates."""
    parts = []
    for part in tomllib.loads((PROJECT / "packaging/sbom/parts.toml").read_text())["part"]:
        only = part.get("only")
        if (only == "musl" and "musl" not in target) or (only == "image" and certificates is None):
            continue
        version = read_version(part["version"], certificates)
        parts.append(
            Crate(
                part["name"],
                version,
                part["license"],
                part["source"],
                purl=f"{part['purl']}@{version.replace('+', '%2B')}",
                notice=part["notice"],
                texts=tuple(part["texts"]),
            )
        )
    return parts
