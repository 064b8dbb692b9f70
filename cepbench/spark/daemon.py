"""The process that Spark forks its Python workers from, with Numba loaded before the first fork.

Loading Numba takes a worker some three seconds of a core and 150 MB. Spark starts workers anew
whenever a job was interrupted, a task failed or a minute went by without work; forked from here
they find it loaded, in memory that they share.

Threads do not survive a fork, so only what starts none may be loaded: pandas and pyarrow must not.
Modules of cepbench are left to the workers too, so that all of them are of one age when somebody
edits them under a running session.
"""

from __future__ import annotations

import os
from typing import Any

from pyspark.daemon import manager


def load() -> None:
    """Import Numba and let it set itself up, which it does on first use."""
    # OpenBLAS would start a thread a core; Spark itself asks for one in most settings.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import numba

    nothing: Any = numba.njit(lambda: 0)
    nothing()


if __name__ == "__main__":
    load()
    manager()
