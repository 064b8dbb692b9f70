"""The daemon from which Spark forks its Python workers, with Numba preloaded.

Importing Numba costs a worker about three CPU seconds and 150 MB. Spark starts new workers after a
cancelled job, a failed task or a minute without work; forked from here, they share the import.

Threads do not survive a fork, so modules that start threads, such as pandas and pyarrow, must not
be imported here. Modules of cepbench are not imported either, so that all workers import the
current version if they are edited during a session.
"""

from __future__ import annotations

import os
from typing import Any

from pyspark.daemon import manager


def load() -> None:
    """Import Numba and trigger its lazy initialization."""
    # OpenBLAS would start a thread per core; Spark itself sets 1 in most configurations.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import numba

    nothing: Any = numba.njit(lambda: 0)
    nothing()


if __name__ == "__main__":
    load()
    manager()
