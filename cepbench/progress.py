"""Progress bars of what takes seconds, in terminals and notebooks."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

#: Seconds before a bar appears.
_DELAY = 2.0


def progress_bar(files: Iterable[Any] | None = None, *, shown: bool = True, **named: Any) -> tqdm:
    """A progress bar, unless standard error is a file or a pipe of no notebook."""
    # Loaded alone it means nothing: PySpark imports ipykernel wherever a column is named.
    kernel = sys.modules.get("ipykernel.kernelapp")
    is_notebook = kernel is not None and kernel.IPKernelApp.initialized()
    quiet = False if is_notebook else None  # None: where there is no terminal
    return tqdm(files, delay=_DELAY, disable=quiet if shown else True, **named)
