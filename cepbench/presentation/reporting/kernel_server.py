"""A process that imports what notebooks need, and forks a kernel for each line that it reads.

A line is an object of JSON: ``arguments`` of ipykernel, the ``folder`` to run in, and the whole
``environment``. The answer is the number of the new process. It ends when its input does; the kernels,
whose parent it is, then end by themselves.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

#: Imported once. A module that is missing here costs each kernel its import, and nothing else.
IMPORTED = (
    "ipykernel.kernelapp",
    "IPython.core.completer",
    "matplotlib.backends.backend_svg",
    "matplotlib_inline.config",
    "cepbench.experiments.studies.measured",
    "cepbench.experiments.sweeps.on_spark.job",
    "cepbench.presentation.figures.interactive",
    "cepbench.presentation.figures.static",
    "cepbench.presentation.reporting.opening",
    "cepbench.presentation.reporting.verdicts",
)


def serve() -> None:
    """Import, then fork until the input ends."""
    if Path(sys.path[0]) == Path.cwd():
        del sys.path[0]  # as ipykernel's launcher does: a kernel has its own folder there
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever an import prints is no answer
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the kernels
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the report ends them
    for line in sys.stdin:
        kernel = os.fork()
        if not kernel:
            answers.close()
            _be_kernel(json.loads(line))
            break
        print(kernel, file=answers, flush=True)


def _be_kernel(request: dict[str, Any]) -> None:
    """Be a kernel, in a group of processes of its own, as one that is started afresh."""
    from ipykernel.kernelapp import IPKernelApp

    from cepbench.presentation.figures.offline import without_pictures

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - as long as the process
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["ipykernel_launcher", *request["arguments"]]
    without_pictures()
    # After what the notebook has registered: to take the modules apart takes a second, since a fork writes into each.
    atexit.register(os._exit, 0)
    IPKernelApp.launch_instance(
        [*request["arguments"], f"--IPKernelApp.parent_handle={os.getppid()}"]
    )


if __name__ == "__main__":
    serve()
