"""Writes an archive of the classes that Spark loads, with which its Java starts in half the time.

``make env`` runs this module. The archive is one of class-data sharing (JEP 350); a Java other than
the one that wrote it ignores it.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import Any

from pyspark import SparkContext

from cepbench.files import whole_file
from cepbench.spark.java import class_archive, find_java
from cepbench.spark.jobs import run_job
from cepbench.spark.session import end_java, spark_session

#: Writing takes ten seconds.
_TIMEOUT = 300.0


def write_class_archive() -> None:
    """Run small jobs on a new session, and end its Java, which then writes the archive.

    A Java that cannot do so writes none. Archives of other versions are removed.
    """
    archive = class_archive(find_java())
    for old in archive.parent.glob("spark-classes-*.jsa"):
        old.unlink()  # no session can both use an archive and write one
    with suppress(FileNotFoundError), whole_file(archive) as unfinished:
        option = shlex.quote(f"-XX:ArchiveClassesAtExit={unfinished}")
        spark = spark_session("local[2]", memory="1g", java_options=option)
        run_job(spark, str, [1, 2], name="classes", progress=False)
        rows = spark.range(8, numPartitions=2).selectExpr("id", "id % 2 AS remainder")
        counts = rows.groupBy("remainder").count()
        counts.join(rows, "remainder").orderBy("id").toPandas()
        gateway: Any = SparkContext._gateway
        end_java(gateway, _TIMEOUT)
        unfinished.chmod(0o644)  # Java makes it read-only, so that it could not be synced


if __name__ == "__main__":
    write_class_archive()
