"""Advice for messages: the call that converts another object to a stream."""

from __future__ import annotations

from typing import Any

from cepbench.arguments import comes_from, shown


def how_to_make_one(given: Any) -> str:
    """The call that converts ``given`` to a stream."""
    if comes_from(given, "cepbench", "EventStream"):
        return "it is already a stream"
    if isinstance(given, str) or comes_from(given, "pathlib", "PurePath"):
        path = shown(str(given))
        if str(given).endswith(".csv"):
            return f"read it by pandas.read_csv({path}) and pass the DataFrame"
        return (
            f'make a stream by cep.EventStream.from_parquet({path}, type="…", time="…"), or by '
            f"cep.open_dataset({path}).stream()"
        )
    if comes_from(given, "cepbench", "Dataset"):
        return "make a stream by dataset.stream()"
    if comes_from(given, "pandas", "DataFrame"):
        call, columns = "from_pandas(frame", list(given.columns)
    elif comes_from(given, "pyarrow", "Table", "RecordBatch"):
        call, columns = "from_arrow(table", list(given.schema.names)
    elif comes_from(given, "polars", "DataFrame"):
        call, columns = "from_arrow(frame.to_arrow()", list(given.columns)
    else:
        return (
            "make a stream by cep.EventStream.from_pandas, from_arrow or from_parquet, and check "
            "the order of the arguments"
        )
    names = ", ".join(str(name)[:40] for name in columns[:8]) or "none"
    return (
        f'make a stream by cep.EventStream.{call}, type="…", time="…") with the names of the '
        f"columns of event type and time; it has {names}{' …' if len(columns) > 8 else ''}"
    )
