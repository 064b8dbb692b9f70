"""A stream detected while its processes are killed: the driver, Spark's Java, and Python workers.

``python -m tests.spark.live_failures 100`` kills a hundred of them at random moments and compares the
matches and late events in the file sink with those of one pass: each once. With ``--cluster`` Spark
is a standalone cluster of two workers on this machine; then executors and workers are killed too.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyspark

import cepbench as cep

PATTERN = (
    "PATTERN SEQ(A a, KL(B b), NOT(D n), C c) WHERE [lot] AND a.value < c.value WITHIN 12 units "
    "RETURN a, b, c, c.value"
)
SLACK = 6
#: The kinds of processes that are killed: the driver, its Java, and those that run Python's tasks.
KINDS = ("driver", "java", "python")
#: In a cluster also those that run tasks, and those that start them.
OF_CLUSTER = ("executor", "worker")

#: Events of a micro-batch, and the longest time between two kills in seconds.
_EVENTS, _LONGEST = 30, 3.0

_HOST = "127.0.0.1"


def write_stream(folder: Path, seed: int, files: int) -> None:
    """Files of events, one a micro-batch, disordered by a little more than the slack."""
    rng = np.random.default_rng(seed)
    number = files * _EVENTS
    times = np.sort(rng.integers(0, number, number))
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABCD"), number, p=[0.3, 0.33, 0.3, 0.07]),
            "time": times,
            "lot": rng.integers(0, 2, number),
            "value": rng.integers(0, 9, number),
            "no": np.arange(number),
        }
    )
    arrival = np.argsort(times + rng.uniform(0, 20, number), kind="stable")
    # An event after all others, which advances the watermark.
    end = frame.iloc[[-1]].assign(type="end", time=10 * number, no=number)
    folder.mkdir()
    for place in range(files):
        part = frame.iloc[arrival[place * _EVENTS : (place + 1) * _EVENTS]]
        _write(part, folder / f"{place:05}.parquet")
    _write(end, folder / f"{files:05}.parquet")


def _write(frame: pd.DataFrame, path: Path) -> None:
    frame.to_parquet(path, index=False)
    # Spark reads files in the order of their times.
    moment = 1_700_000_000 + int(path.stem)
    os.utime(path, (moment, moment))


def plan() -> Any:
    return cep.OrderPlan(["a", "b", "c"])


_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def detect(folder: Path, key: str | None, master: str) -> None:
    """The driver: detects from where the checkpoint is to the end of the stream."""
    from cepbench.spark.session import spark_session

    spark = spark_session(
        master,
        memory="1g",
        java_options=_JAVA,
        settings={
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.minBatchesToRetain": "5",
            "spark.driver.host": _HOST,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": _JAVA,
        },
    )
    found = stream_of(spark, folder, key)
    print("started", flush=True)
    write(found, folder)


def stream_of(spark: Any, folder: Path, key: str | None) -> Any:
    """The matches and late events in the files of a folder."""
    schema = spark.read.parquet(str(folder / "events" / "00000.parquet")).schema
    events = (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "events"))
    )
    return cep.spark.detect_stream(
        events, PATTERN, plan(), time="time", type="type", id="no", key=key, slack=SLACK
    )


def write(found: Any, folder: Path) -> None:
    """From where the checkpoint is to the end of the files that there are."""
    (
        found.writeStream.format("parquet")
        .option("path", str(folder / "found"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """The processes that a process started, directly or not, with their command lines."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    children: dict[int, list[tuple[int, str]]] = {}
    for line in listed.stdout.splitlines():
        its, parent, command = line.split(None, 2)
        children.setdefault(int(parent), []).append((int(its), command))
    waiting = [pid]
    while waiting:
        found = children.get(waiting.pop(), [])
        yield from found
        waiting += [its for its, _ in found]


class Cluster:
    """A standalone cluster of two workers with one core each; those that were killed come back."""

    def __init__(self, folder: Path) -> None:
        from cepbench.spark.java import find_java

        self._folder = folder
        self._environment = os.environ | {
            "JAVA_HOME": str(find_java().home),
            "JDK_JAVA_OPTIONS": _JAVA,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": _HOST,
        }
        with socket.create_server((_HOST, 0)) as free:
            port = free.getsockname()[1]
        self.master = f"spark://{_HOST}:{port}"
        self._its_master = self._started("master.Master", "--host", _HOST, "--port", str(port))
        self.workers = [self._worker() for _ in range(2)]

    def _started(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
        with (self._folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                [*command, f"org.apache.spark.deploy.{name}", "--webui-port", "0", *arguments],
                env=self._environment,
                stdout=log,
                stderr=log,
            )

    def _worker(self) -> subprocess.Popen[bytes]:
        folder = str(self._folder / "work")
        options = ["--cores", "1", "--memory", "600m", "--work-dir", folder]
        return self._started("worker.Worker", *options, self.master)

    def mend(self) -> None:
        self.workers = [its if its.poll() is None else self._worker() for its in self.workers]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for its in [*self.workers, self._its_master]:
            its.kill()
            its.wait()


def _targets(driver: int, kind: str, cluster: Cluster | None) -> list[int]:
    """The processes of a kind."""
    workers = [] if cluster is None else [its.pid for its in cluster.workers]
    if kind in ("driver", "worker"):
        return [driver] if kind == "driver" else workers
    name = "python" if kind == "python" else "java"
    parents = workers if kind == "executor" or (workers and kind == "python") else [driver]
    return [
        pid
        for parent in parents
        for pid, command in descendants(parent)
        if name in Path(command.split()[0]).name
    ]


def run(
    folder: Path,
    kinds: Sequence[str],
    key: str | None,
    seed: int,
    cluster: Cluster | None = None,
) -> Counter[str]:
    """Detect the stream in a folder, killing processes of these kinds one after the other.

    Returns
    -------
    Counter
        How many of each kind were killed before the stream ended.
    """
    rng = random.Random(seed)
    waiting = list(kinds)
    killed: Counter[str] = Counter()
    # In this machine a task has as many attempts as in a cluster.
    master = "local[2,4]" if cluster is None else cluster.master
    command = [sys.executable, "-m", "tests.spark.live_failures", "--detect"]
    command += [str(folder), key or "", master]
    while True:
        before = killed.total()
        started: set[int] = set()
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as driver,
        ):
            assert driver.stdout is not None
            driver.stdout.readline()
            while waiting and driver.poll() is None:
                time.sleep(rng.uniform(0, _LONGEST))
                started |= {pid for pid, _ in descendants(driver.pid)}
                targets = _targets(driver.pid, waiting[0], cluster)
                if targets and driver.poll() is None:
                    with suppress(ProcessLookupError):
                        os.kill(rng.choice(targets), signal.SIGKILL)
                        killed[waiting.pop(0)] += 1
                if cluster is not None:
                    cluster.mend()
        if driver.returncode == 0:
            return killed
        if killed.total() == before:
            raise AssertionError((folder / "log").read_text()[-3000:])
        # Java ends when its driver has, and must not write when the next one does.
        while any(Path(f"/proc/{pid}").exists() for pid in started):
            time.sleep(0.1)


def committed(sink: Path) -> set[str]:
    """The files of a sink by Spark's own list; a task that was killed may have left others."""
    parts = [path for path in (sink / "_spark_metadata").iterdir() if path.name[0] != "."]
    lines = (line for path in parts for line in path.read_text().splitlines()[1:])
    return {json.loads(line)["path"].removeprefix("file://") for line in lines}


def compare(folder: Path) -> tuple[int, int]:
    """Check that the sink has the matches of one pass and the late events, each once.

    Returns
    -------
    matches, late : int
    """
    rows = [row for path in committed(folder / "found") for row in pq.read_table(path).to_pylist()]
    late = Counter(row["late"]["no"] for row in rows if row["late"] is not None)
    matches = Counter(
        tuple(
            tuple(v) if isinstance(v, list) else v
            for k, v in row.items()
            if k not in ("late", "reason")
        )
        for row in rows
        if row["late"] is None
    )
    events = pd.read_parquet(folder / "events").sort_values(["time", "no"], ignore_index=True)
    on_time = events[~events["no"].isin(late)]
    stream = cep.EventStream.from_pandas(on_time, type="type", time="time")
    expected = cep.evaluate(PATTERN, stream, plan(), output="arrow").arrow.to_pylist()
    names = on_time["no"].to_list()
    once = Counter(
        (names[row["a"]], tuple(names[p] for p in row["b"]), names[row["c"]], row["c.value"])
        for row in expected
    )
    assert matches == once, f"{matches - once} too many, {once - matches} missing"
    assert set(late.values()) <= {1}
    return len(once), len(late)


def main(kills: int, *, in_cluster: bool) -> None:
    """Kill so many processes, over as many streams as it takes."""
    killed: Counter[str] = Counter()
    seed = 0
    while killed.total() < kills:
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_stream(folder / "events", seed, files=40)
            kinds = [*KINDS, *(OF_CLUSTER if in_cluster else ())]
            wanted = [rng.choice(kinds) for _ in range(min(20, kills - killed.total()))]
            with Cluster(folder) if in_cluster else nullcontext() as cluster:
                killed += run(folder, wanted, rng.choice(["lot", None]), seed, cluster)
            matches, late = compare(folder)
        print(f"stream {seed}: {matches} matches and {late} late events, each once; {dict(killed)}")
        seed += 1


if __name__ == "__main__":
    if sys.argv[1] == "--detect":
        detect(Path(sys.argv[2]), sys.argv[3] or None, sys.argv[4])
    else:
        main(int(sys.argv[1]), in_cluster="--cluster" in sys.argv)
