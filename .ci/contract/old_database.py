"""Write the database that version 0.1.0 left behind: its tables, and the rows that it wrote in a test."""

import pathlib
import sqlite3
import sys

LATEST_OF_0_1_0 = "2026-11-24-120000"

conn = sqlite3.connect(sys.argv[1], isolation_level=None)
conn.execute("PRAGMA journal_mode = WAL")
conn.execute(
    "CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL,"
    " run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)"
)
for folder in sorted(pathlib.Path("migrations").iterdir()):
    version = folder.name.split("_")[0]
    if version <= LATEST_OF_0_1_0:
        conn.executescript((folder / "up.sql").read_text())
        conn.execute("INSERT INTO __diesel_schema_migrations (version) VALUES (?)", [version.replace("-", "")])
rows = pathlib.Path("tests/data/upgrades") / f"{LATEST_OF_0_1_0.replace('-', '')}.sql"
conn.executescript(rows.read_text())
