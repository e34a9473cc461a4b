#!/usr/bin/env python3
"""Folds the exports of many gateways into tables of their current state, with DuckDB (pip install duckdb)."""

import json
import multiprocessing
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from central.run import run_command

# Fewer exports are read by one process.
MIN_PARALLEL_TASKS = 32

# Each thread of DuckDB reserves twice the maximum length of a line. This is DuckDB's default.
MIN_LINE_BYTES = 16 << 20

LINE_COLUMNS = "gateway VARCHAR, sequence BIGINT, is_deleted BOOLEAN, uri VARCHAR, object VARCHAR"
OWN_COLUMNS = "_gateway VARCHAR, _sequence BIGINT, _object VARCHAR"

WRITE_PART = """
COPY (
  WITH staged AS (SELECT * FROM {staged}),
  newest AS (SELECT * FROM staged QUALIFY row_number() OVER (PARTITION BY gateway, uri ORDER BY sequence DESC) = 1),
  rows AS (
    SELECT _gateway, _sequence, _object, uri FROM {old} AS old
    WHERE _gateway NOT IN (SELECT unnest({replaced}::VARCHAR[]))
      AND NOT EXISTS (FROM newest WHERE newest.gateway = _gateway AND newest.uri = old.uri)
    UNION ALL
    SELECT gateway, sequence, object, uri FROM newest WHERE NOT is_deleted
  )
  SELECT _gateway, _sequence, _object, unnest(from_json(_object, {structure})) FROM rows ORDER BY rows._gateway, rows.uri
) TO {new} (FORMAT parquet, COMPRESSION zstd)
"""


class DuckDbEngine:
    """Writes tables with DuckDB."""

    def __init__(self, db, workers):
        self.db = db
        self.workers = workers

    def map_tasks(self, function, tasks):
        """Yields the result of each task."""
        if len(tasks) < MIN_PARALLEL_TASKS:
            yield from map(function, tasks)
            return
        # A fork would copy the threads of DuckDB.
        with ProcessPoolExecutor(self.workers, multiprocessing.get_context("spawn")) as pool:
            yield from pool.map(function, tasks, chunksize=16)

    def write_parts(self, parts, structure):
        """Writes Parquet files."""
        self.db.execute(f"CREATE OR REPLACE TABLE no_lines ({LINE_COLUMNS})")
        self.db.execute(f"CREATE OR REPLACE TABLE no_rows ({OWN_COLUMNS}, uri VARCHAR)")
        columns = "{" + re.sub(r"(\w+) (\w+)", r"\1: '\2'", LINE_COLUMNS) + "}"
        for part in parts:
            files = ", ".join(map(quote_text, part.staged))
            size = max(part.longest_line, MIN_LINE_BYTES)
            lines = f"[{files}], format = 'newline_delimited', columns = {columns}, maximum_object_size = {size}"
            self.db.execute(
                WRITE_PART.format(
                    staged=f"read_json({lines})" if part.staged else "no_lines",
                    old=f"read_parquet({quote_text(part.old)})" if part.old else "no_rows",
                    replaced=f"[{', '.join(map(quote_text, part.replaced))}]",
                    structure=quote_text(json.dumps(to_duckdb(structure))),
                    new=quote_text(part.new),
                )
            )

    def count_values(self, files, fields):
        """Returns the number of values of each field."""
        columns = ", ".join(f"count({quote_name(field)})" for field in fields)
        row = self.db.execute(f"SELECT {columns} FROM read_parquet([{', '.join(map(quote_text, files))}])").fetchone()
        return dict(zip(fields, row))


def to_duckdb(structure):
    """Returns a structure as DuckDB's from_json takes it."""
    if isinstance(structure, dict):
        return {name: to_duckdb(field) for name, field in structure.items()}
    if isinstance(structure, list):
        return [to_duckdb(structure[0])]
    return structure or "VARCHAR"


def quote_text(text):
    return "'" + text.replace("'", "''") + "'"


def quote_name(name):
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_engine(arguments):
    """Opens a database in memory."""
    import duckdb

    with duckdb.connect() as db:
        yield DuckDbEngine(db, arguments.workers)


if __name__ == "__main__":
    sys.exit(run_command(__doc__, open_engine))
