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
    quiet = None if "ipykernel" not in sys.modules else False  # None: where there is no terminal
    return tqdm(files, delay=_DELAY, disable=quiet if shown else True, **named)
