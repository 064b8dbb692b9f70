"""Cases on chDB, in a process of its own: JSON lines in, JSON lines out; nothing of cepbench is imported."""

import json
import sys
import time

from chdb import session

SETTINGS = (
    "SETTINGS cast_keep_nullable = 1, allow_experimental_correlated_subqueries = 1, max_threads = 1"
)


def found(connection: session.Session, case: dict) -> dict:
    """The rows of a query over the events, and the seconds of CPU of each of so many ``times`` that it ran."""
    names = case["columns"]
    own = {"id": "Int64", "type": "LowCardinality(String)", "ts": "Int64"}
    typed = []
    for at, name in enumerate(names):
        kind = own.get(name) or {"number": "Float64"}.get(case["kinds"][name], "String")
        missing = name not in own and any(row[at] is None for row in case["events"])
        typed.append(f"{name} Nullable({kind})" if missing else f"{name} {kind}")
    connection.query("DROP TABLE IF EXISTS events")
    connection.query(f"CREATE TABLE events ({', '.join(typed)}) ENGINE = Memory")
    rows = "\n".join(map(json.dumps, case["events"]))
    if rows:
        connection.query(f"INSERT INTO events FORMAT JSONCompactEachRow {rows}")
    seconds = []
    for _ in range(case.get("times", 0)):
        before = time.process_time()
        connection.query(f"{case['text']} {SETTINGS}", "Native")
        seconds.append(time.process_time() - before)
    answer = str(connection.query(f"{case['text']} {SETTINGS}", "JSONCompact"))
    # An empty answer has no text at all.
    its = json.loads(answer)["data"] if answer.strip() else []
    numbers = [[None if value is None else int(value) for value in row] for row in its]
    return {"found": numbers, "seconds": seconds}


with session.Session() as connection:
    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer = found(connection, case)
        except Exception as error:  # whatever it is, it is what the engine says
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"number": case["number"], **answer}), flush=True)
