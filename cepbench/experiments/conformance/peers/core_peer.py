"""Cases on CORE (pycer), in a process of its own: JSON lines in, JSON lines out; nothing of cepbench is imported."""

import json
import re
import sys
import time

import pycer

#: An event of a match, of which id is the first attribute.
EVENT = re.compile(r"\(id: \d+ attributes: \[(\d+) ")


def found(case: dict) -> dict:
    """The ids of each complex event, in the order of the stream, and the seconds of CPU of so many ``times``."""
    kinds = {
        "id": "int",
        "ts": "int",
        **{n: {"number": "double"}.get(k, "string") for n, k in case["kinds"].items()},
    }
    names = [name for name in case["columns"] if name != "type"]
    attributes = ", ".join(f"{name}: {kinds[name]}" for name in names)
    events = ", ".join(f"EVENT {kind} {{ {attributes} }}" for kind in case["types"])
    value = {"int": pycer.PyIntValue, "double": pycer.PyDoubleValue, "string": pycer.PyStringValue}
    missing = {"double": float("nan"), "string": ""}
    seconds = []
    for _ in range(max(case.get("times", 0), 1)):
        server = pycer.PyOfflineServer()
        stream = server.declare_stream(f"CREATE STREAM S {{ {events} }}")
        numbers = {event.name: event.id for event in stream.events_info}
        server.add_query(case["text"])
        sent = []
        for row in (dict(zip(case["columns"], its, strict=True)) for its in case["events"]):
            filled = [missing[kinds[n]] if row[n] is None else row[n] for n in names]
            values = [value[kinds[n]](v) for n, v in zip(names, filled, strict=True)]
            sent.append(pycer.PyEvent(numbers[row["type"]], values, pycer.PyIntValue(row["ts"])))
        before = time.process_time()
        for event in sent:
            server.send_event(event)
        output = server.get_output()
        seconds.append(time.process_time() - before)
    lines = [line for line in output.splitlines() if line.strip()]
    matches = [[int(number) for number in EVENT.findall(line)] for line in lines]
    return {"found": matches, "seconds": seconds}


for line in sys.stdin:
    case = json.loads(line)
    try:
        answer = found(case)
    except Exception as error:  # whatever it is, it is what the engine says
        answer = {"error": f"{type(error).__name__}: {error}"}
    print("\n" + json.dumps({"number": case["number"], **answer}), flush=True)
