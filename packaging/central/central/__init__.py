"""Folds the exports of many gateways into tables of their current state. Needs only Python's standard library; an engine
writes the tables (`fold_duckdb.py`, `fold_spark.py`)."""
