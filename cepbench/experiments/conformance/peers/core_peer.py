"""Cases on CORE (pycer), in a process of its own: JSON lines in, JSON lines out; nothing of cepbench is imported."""

import json
import re
import sys

import pycer

#: An event of a match, of which id is the first attribute.
EVENT = re.compile(r"\(id: \d+ attributes: \[(\d+) ")


def found(case: dict) -> list[list[int]]:
    """The ids of each complex event, in the order of the stream."""
    kinds = {
        "id": "int",
        "ts": "int",
        **{n: {"number": "double"}.get(k, "string") for n, k in case["kinds"].items()},
    }
    names = [name for name in case["columns"] if name != "type"]
    attributes = ", ".join(f"{name}: {kinds[name]}" for name in names)
    server = pycer.PyOfflineServer()
    events = ", ".join(f"EVENT {kind} {{ {attributes} }}" for kind in case["types"])
    stream = server.declare_stream(f"CREATE STREAM S {{ {events} }}")
    numbers = {event.name: event.id for event in stream.events_info}
    server.add_query(case["text"])
    value = {"int": pycer.PyIntValue, "double": pycer.PyDoubleValue, "string": pycer.PyStringValue}
    missing = {"double": float("nan"), "string": ""}
    rows = [dict(zip(case["columns"], row, strict=True)) for row in case["events"]]
    for row in rows:
        filled = [missing[kinds[n]] if row[n] is None else row[n] for n in names]
        values = [value[kinds[n]](v) for n, v in zip(names, filled, strict=True)]
        server.send_event(pycer.PyEvent(numbers[row["type"]], values, pycer.PyIntValue(row["ts"])))
    lines = server.get_output().splitlines()
    return [[int(number) for number in EVENT.findall(line)] for line in lines if line.strip()]


for line in sys.stdin:
    case = json.loads(line)
    try:
        answer: dict = {"found": found(case)}
    except Exception as error:  # whatever it is, it is what the engine says
        answer = {"error": f"{type(error).__name__}: {error}"}
    print("\n" + json.dumps({"number": case["number"], **answer}), flush=True)
