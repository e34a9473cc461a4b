#!/usr/bin/env python3
"""Folds the exports of many gateways into tables of their current state, with Spark (pip install pyspark, and Java 17).
On a cluster, run it with spark-submit: the executors need Python 3.11, and the same paths to the folders."""

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from central.run import run_command

LINE_SCHEMA = "gateway STRING, sequence BIGINT, is_deleted BOOLEAN, uri STRING, object STRING"
ROW_SCHEMA = "_gateway STRING, _sequence BIGINT, _object STRING, uri STRING"


class SparkEngine:
    """Writes tables with Spark."""

    def __init__(self, spark):
        self.spark = spark

    def map_tasks(self, function, tasks):
        """Yields the result of each task."""
        if tasks:
            slices = min(len(tasks), 4 * self.spark.sparkContext.defaultParallelism)
            yield from self.spark.sparkContext.parallelize(tasks, slices).map(function).collect()

    def write_parts(self, parts, structure):
        """Writes Parquet files, all in one job, and each of them by one task."""
        from pyspark.sql import Window, functions as f

        staged = [to_url(path) for part in parts for path in part.staged]
        reader = self.spark.read.schema(LINE_SCHEMA).option("mode", "FAILFAST")
        lines = reader.json(staged) if staged else self.spark.createDataFrame([], LINE_SCHEMA)
        newest = Window.partitionBy("gateway", "uri").orderBy(f.desc("sequence"))
        lines = lines.withColumn("age", f.row_number().over(newest)).where("age = 1")
        rows = lines.where("NOT is_deleted").select("gateway", "sequence", "object", "uri").toDF(*names_of(ROW_SCHEMA))
        if any(part.old for part in parts):
            old = self.spark.read.parquet(*(to_url(part.old) for part in parts if part.old)).select(*names_of(ROW_SCHEMA))
            replaced = [(gateway,) for part in parts for gateway in part.replaced]
            replaced = self.spark.createDataFrame(replaced, "_gateway STRING")
            changed = lines.select(f.col("gateway").alias("_gateway"), "uri")
            old = old.join(f.broadcast(replaced), "_gateway", "left_anti").join(changed, ["_gateway", "uri"], "left_anti")
            rows = rows.unionByName(old.select(*names_of(ROW_SCHEMA)))
        fields = f.from_json("_object", to_schema(structure))
        number = f.crc32(f.col("_gateway").cast("binary")) % parts[0].partitions
        rows = rows.withColumn("fields", fields).withColumn("_part", number)
        columns = [f.col("fields").getField(name).alias(name) for name in structure]
        rows = rows.select("_gateway", "_sequence", "_object", *columns, "_part")
        self.write_files(rows, parts)

    def write_files(self, rows, parts):
        """Writes the rows of each part to its file."""
        folder = Path(f"{parts[0].new}.new")
        sorted_rows = rows.repartition(len(parts), "_part").sortWithinPartitions("_part", "_gateway", "uri")
        writer = sorted_rows.write.option("compression", "zstd").option("maxRecordsPerFile", 0)
        writer.partitionBy("_part").parquet(to_url(folder))
        for part in parts:
            found = list(folder.glob(f"_part={part.number}/part-*.parquet"))
            if not found:
                # No row is left, but the file has the columns of the table.
                empty = f"{folder}/empty-{part.number}"
                rows.drop("_part").limit(0).coalesce(1).write.parquet(to_url(empty))
                found = list(Path(empty).glob("part-*.parquet"))
            (file,) = found
            os.replace(file, part.new)
        shutil.rmtree(folder)

    def count_values(self, files, fields):
        """Returns the number of values of each field."""
        from pyspark.sql import functions as f

        counts = [f.count(f.col(quote_name(field))).alias(str(number)) for number, field in enumerate(fields)]
        return dict(zip(fields, self.spark.read.parquet(*map(to_url, files)).agg(*counts).first()))


def names_of(schema):
    return [column.split(" ")[0] for column in schema.split(", ")]


def to_schema(structure):
    """Returns a structure as a type of Spark."""
    from pyspark.sql import types

    if isinstance(structure, dict):
        return types.StructType([types.StructField(name, to_schema(field)) for name, field in structure.items()])
    if isinstance(structure, list):
        return types.ArrayType(to_schema(structure[0]))
    return {"BOOLEAN": types.BooleanType, "BIGINT": types.LongType, "DOUBLE": types.DoubleType}.get(
        structure, types.StringType
    )()


def to_url(path):
    return f"file://{path}"


def quote_name(name):
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def open_engine(arguments):
    """Starts Spark, or uses the session of spark-submit."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("penstock-central").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # The driver lists the lines of a run faster than a job with a task for each file.
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", "1000000")
    spark.conf.set("spark.sql.shuffle.partitions", str(4 * spark.sparkContext.defaultParallelism))
    try:
        with tempfile.TemporaryDirectory() as folder:
            # The executors import what reads the exports.
            root = Path(__file__).resolve().parent
            archive = shutil.make_archive(f"{folder}/central", "zip", root, "central")
            spark.sparkContext.addPyFile(archive)
            yield SparkEngine(spark)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(run_command(__doc__, open_engine))
