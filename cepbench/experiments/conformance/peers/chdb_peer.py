"""Cases on chDB, in a process of its own: JSON lines in, JSON lines out; nothing of cepbench is imported."""

import json
import sys

from chdb import session

SETTINGS = "SETTINGS cast_keep_nullable = 1, allow_experimental_correlated_subqueries = 1"


def found(connection: session.Session, case: dict) -> list[list[int | None]]:
    """The rows of a query over the events."""
    names = case["columns"]
    own = {"id": "Int64", "type": "String", "ts": "Int64"}
    kinds = {
        name: "Float64" if kind == "number" else "String" for name, kind in case["kinds"].items()
    }
    typed = [f"{name} {own.get(name) or f'Nullable({kinds[name]})'}" for name in names]
    connection.query("DROP TABLE IF EXISTS events")
    connection.query(f"CREATE TABLE events ({', '.join(typed)}) ENGINE = Memory")
    for row in case["events"]:
        values = ", ".join("NULL" if v is None else repr(v) for v in row)
        connection.query(f"INSERT INTO events VALUES ({values})")
    answer = str(connection.query(f"{case['text']} {SETTINGS}", "JSONCompact"))
    # An empty answer has no text at all.
    rows = json.loads(answer)["data"] if answer.strip() else []
    return [[None if value is None else int(value) for value in row] for row in rows]


with session.Session() as connection:
    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer: dict = {"found": found(connection, case)}
        except Exception as error:  # whatever it is, it is what the engine says
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"number": case["number"], **answer}), flush=True)
