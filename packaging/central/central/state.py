"""The folder of the tables.

    FOLDER/current            a symbolic link to the newest version
    FOLDER/versions/NUMBER/   a version: state.json, report.json with the findings of the run that wrote it, and a folder
                              of Parquet files for each Business Object
    FOLDER/staging/NAME/      the lines of one run; NAME is new in each run, because processes of a killed one may still write
    FOLDER/lock               held by the run

A version is complete before the link leads to it, and never changes afterwards. A file that both versions have exists
once on the disk, under two names. What a killed run leaves is removed by the next one."""

import fcntl
import json
import os
import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

STATE_FORMAT = 1


class CentralError(Exception):
    """The folder of the tables cannot be used."""


class Central:
    """The folder of the tables, while its lock is held."""

    def __init__(self, folder):
        self.folder = Path(folder).absolute()
        self.versions = self.folder / "versions"
        self.staging_root = self.folder / "staging"
        self.staging = None

    def prepare_folders(self):
        """Removes what a killed run left, and creates the folder for the lines of this run."""
        self.versions.mkdir(exist_ok=True)
        for number, version in self.list_versions():
            if self.number() < number:
                shutil.rmtree(version)
        shutil.rmtree(self.staging_root, ignore_errors=True)
        self.staging = self.staging_root / uuid4().hex
        self.staging.mkdir(parents=True)

    def list_versions(self):
        """Returns the number and folder of each version. Other files are not of this script."""
        return [(int(path.name), path) for path in self.versions.iterdir() if re.fullmatch(r"\d{12}", path.name, re.ASCII)]

    def number(self):
        """Returns the number of the newest version, or 0."""
        link = self.folder / "current"
        return int(os.readlink(link).rpartition("/")[2]) if link.is_symlink() else 0

    def version_folder(self, number):
        return self.versions / f"{number:012}"

    def read_state(self, partitions):
        """Returns the state of the newest version, or the first state. `partitions` is used only for the first one."""
        if not (number := self.number()):
            return {"format": STATE_FORMAT, "partitions": partitions, "streams": {}, "tables": {}}
        path = self.version_folder(number) / "state.json"
        state = json.loads(path.read_text("utf-8"))
        if state["format"] != STATE_FORMAT:
            raise CentralError(f"{path} has format {state['format']}, not {STATE_FORMAT}; use the version that wrote it")
        return state

    def begin_version(self):
        """Creates the folder of the next version, with every table of the newest one. Returns both folders."""
        number = self.number()
        new, old = self.version_folder(number + 1), self.version_folder(number)
        new.mkdir()
        if number:
            for table in (entry for entry in old.iterdir() if entry.is_dir()):
                (new / table.name).mkdir()
                for file in table.iterdir():
                    os.link(file, new / table.name / file.name)
        return new, old

    def publish_version(self, folder, state, report, keep):
        """Makes a version the newest one, and removes all but the newest `keep` versions. Raises nothing once the link
        `current` leads to the version."""
        for name, content in [("state.json", state), ("report.json", report)]:
            (folder / name).write_text(json.dumps(content, indent=1) + "\n")
        for parent, _, files in os.walk(folder):
            for name in [*files, "."]:
                sync(os.path.join(parent, name))
        sync(self.versions)
        link = self.folder / "current.new"
        link.unlink(missing_ok=True)
        link.symlink_to(Path("versions", folder.name))
        os.replace(link, self.folder / "current")
        try:
            sync(self.folder)
            for number, version in self.list_versions():
                if number <= int(folder.name) - keep:
                    shutil.rmtree(version)
        except OSError as error:
            print(f"warning: old versions in {self.versions} stay until the next run: {error}", file=sys.stderr)


@contextmanager
def open_central(folder):
    """Opens the folder of the tables, or creates it, and holds its lock."""
    central = Central(folder)
    central.folder.mkdir(parents=True, exist_ok=True)
    if (names := os.listdir(central.folder)) and not {"lock", "current"} & set(names):
        raise CentralError(f"{central.folder} has other files than tables, such as {names[0]}; name an empty folder")
    with open(central.folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CentralError(f"another run uses {central.folder}; wait until it has ended") from error
        central.prepare_folders()
        try:
            yield central
        finally:
            shutil.rmtree(central.staging_root, ignore_errors=True)


def sync(path):
    """Writes a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
