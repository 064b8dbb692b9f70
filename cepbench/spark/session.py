"""The Spark session: fast to start, silent in notebooks, and cleaned up at exit."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from filelock import BaseFileLock, FileLock, Timeout
from py4j.clientserver import ClientServer
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from cepbench.errors import SparkSetupError
from cepbench.spark.java import Java, class_archive, find_java

#: Environment variable with the Spark master, such as ``spark://host:7077``.
MASTER_VARIABLE = "CEPBENCH_SPARK_MASTER"

#: The setting of the state store of streams, and the one that ``transformWithState`` needs.
STATE_STORE = (
    "spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
)

_LOCALHOST = "127.0.0.1"

_LOG4J2 = """\
status = off
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""

#: How the names of scratch folders begin, and the file in one that its process keeps locked.
_SCRATCH, _OWNER = "cepbench-spark-", "owner.lock"

#: How many characters of Spark's log an error message quotes.
_LOG_TAIL = 2000


def spark_session(
    master: str | None = None,
    *,
    memory: str = "4g",
    java_options: str = "",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The running Spark session, or a new one.

    Parameters
    ----------
    master : str, optional
        Where Spark runs; by default the environment variable ``CEPBENCH_SPARK_MASTER``, or
        ``local[*]``: this machine, one thread per core.
    memory : str
        Heap of the driver, which under ``local`` is all of Spark; Python's memory is additional.
    java_options : str
        Further options of the driver's Java.
    settings : mapping of str to str, optional
        Further Spark settings, which override those made here.

    Returns
    -------
    SparkSession
        In UTC, with Arrow between Java and Python. A running session is returned unchanged.

    Raises
    ------
    SparkSetupError
        If there is no usable Java, Spark does not start, or a session is running under another
        ``master``.

    Notes
    -----
    Spark's output goes to a log file in a temporary folder, which is removed with Spark's scratch
    folders when this Python process ends, or if it is killed, when the next one starts Spark.
    """
    running = SparkSession.getActiveSession()
    if running is not None and running.sparkContext._jsc is not None:
        have = running.sparkContext.master
        if master is not None and master != have:
            raise SparkSetupError(
                f"a Spark session is running under master {have!r}, not {master!r}; call "
                "spark.stop() first, or omit master= to use it"
            )
        return running
    master = master or os.environ.get(MASTER_VARIABLE) or "local[*]"
    is_local = master.startswith("local")
    java = find_java()
    scratch = scratch_folder()
    conf = SparkConf(loadDefaults=False)
    options = [*archive_option(java), java_options]
    made = _settings(scratch, memory, options, is_local=is_local)
    conf.setAll([("spark.master", master), *made.items(), *(settings or {}).items()])
    try:
        with _environment(java, is_local=is_local):
            _launch(conf, scratch / "spark.log")
            session = SparkSession.builder.config(conf=conf).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise SparkSetupError(
            f"Spark does not start under master {master!r}: {_reason(error)}. Check the master "
            f"(the variable {MASTER_VARIABLE} or master=) and the settings.{_tail(scratch)}"
        ) from error
    return session


@contextmanager
def session_for_a_while() -> Iterator[SparkSession]:
    """The running Spark session, or a new one that is stopped at the end of the block."""
    running = SparkSession.getActiveSession()
    spark = spark_session()
    try:
        yield spark
    finally:
        if spark is not running:
            spark.stop()


def archive_option(java: Java) -> list[str]:
    """The option with which Java maps its archive of Spark's classes, if it has been written."""
    archive = class_archive(java)
    return [shlex.quote(f"-XX:SharedArchiveFile={archive}")] if archive.exists() else []


def _settings(
    scratch: Path, memory: str, java_options: Sequence[str], *, is_local: bool
) -> dict[str, str]:
    log4j2 = scratch / "log4j2.properties"
    log4j2.write_text(_LOG4J2)
    options = [
        f"-Dlog4j2.configurationFile={log4j2.as_uri()}",
        f"-Dderby.system.home={scratch / 'derby'}",
        f"-Djava.io.tmpdir={scratch}",
        *java_options,
    ]
    made = {
        "spark.app.name": "cepbench",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join(filter(None, options)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.structuredLogging.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        "spark.python.daemon.module": "cepbench.spark.daemon",
        STATE_STORE[0]: STATE_STORE[1],
    }
    if is_local:
        # Few large partitions: a Python task has an overhead of about 40 ms.
        made |= {
            "spark.driver.host": _LOCALHOST,
            "spark.driver.bindAddress": _LOCALHOST,
            "spark.local.dir": str(scratch),
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        }
    return made


@contextmanager
def _environment(java: Java, *, is_local: bool) -> Iterator[None]:
    """Set the environment variables for starting Spark; restored afterwards."""
    wanted = {"JAVA_HOME": str(java.home)}
    if is_local:
        # Local workers must use this Python and this Spark.
        wanted |= {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": _LOCALHOST,
        }
    elif "PYSPARK_PYTHON" not in os.environ:
        wanted["PYSPARK_PYTHON"] = sys.executable
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _launch(conf: SparkConf, log: Path) -> None:
    """Start the Java process with its output in a file; at most once per Python process."""
    if SparkContext._gateway is None:
        with log.open("ab") as file:
            gateway = launch_gateway(conf, {"stdout": file, "stderr": file})
        # A stopped session keeps its Java process, which the next one reuses.
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
        atexit.register(end_java, gateway)


def end_java(gateway: JavaGateway, timeout: float = 10) -> None:
    """Stop Java and wait for it, so that it writes nothing more to the scratch folder."""
    process: subprocess.Popen[bytes] = gateway.proc
    # Once a second a thread of py4j tells Java which objects Python has dropped, and logs an
    # error where Java is ending: from here on nothing is put into the queue that it reads.
    if isinstance(gateway, ClientServer):
        client = gateway._gateway_client
        unsent, client.finalizer_deque = client.finalizer_deque, deque()
        unsent.clear()
    try:
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
        if process.stdin is not None:
            process.stdin.close()
        process.wait(timeout)
    except (OSError, Py4JError, subprocess.TimeoutExpired):
        pass  # it ends with this process


def scratch_folder() -> Path:
    """A scratch folder for Spark, removed when Python ends; killed processes' ones are removed now."""
    for old in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        with suppress(OSError):
            owner = old / _OWNER
            if _is_mine(old) and owner.exists():
                _remove_scratch(old, FileLock(owner).acquire(blocking=False).lock)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_SCRATCH))
        with suppress(Timeout):  # another process took it for one that was left
            lock = FileLock(folder / _OWNER, thread_local=False).acquire(blocking=False).lock
            # Registered before the exit handler of Java, hence run after it.
            atexit.register(_remove_scratch, folder, lock)
            return folder


def _is_mine(folder: Path) -> bool:
    return os.name == "nt" or folder.lstat().st_uid == os.getuid()


def _remove_scratch(folder: Path, owner: BaseFileLock) -> None:
    """Remove a scratch folder whose lock this process holds, and release the lock."""
    shutil.rmtree(folder, ignore_errors=True)
    owner.release()
    shutil.rmtree(folder, ignore_errors=True)  # some systems do not remove a file that is open
    with suppress(OSError):
        # If the Java of a killed process has not ended yet, the next one removes the folder.
        if folder.exists():
            (folder / _OWNER).touch()


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    causes = [line for line in lines if "Exception" in line and not line.startswith("\tat ")]
    return (causes or lines or [type(error).__name__])[-1].strip()


def _tail(scratch: Path) -> str:
    log = scratch / "spark.log"
    text = log.read_text(errors="replace").strip() if log.exists() else ""
    return f" Spark's log ends with:\n{text[-_LOG_TAIL:]}" if text else ""
