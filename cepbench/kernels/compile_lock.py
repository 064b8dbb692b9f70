"""One process compiles, the others wait for what it has made.

The lock is a file that only one process can create. Its age says whether its owner is still at
work: what is compiled renews it, and one that was left behind by a killed process does not last.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: Without a sign of life for so long, an owner is taken for dead. The longest compilation of one
#: kernel takes half a minute.
LEFT_BEHIND_SECONDS = 300.0

_PAUSE = 0.1


class CompileLock:
    """A lock between processes that share a folder.

    It saves work and guards the folder's index, and nothing else depends on it: where it cannot be
    had, its user goes on without.

    Parameters
    ----------
    path : Path
        Of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_held = False

    def acquire(self, told: Callable[[], object] = lambda: None) -> None:
        """Wait until no other process has it; ``told`` is called if that is not at once."""
        sign, since = -1.0, time.monotonic()
        while not self._created():
            try:
                seen, owner = self.path.stat().st_mtime, self.path.read_text(encoding="utf-8")
            except FileNotFoundError:  # it has just been given up
                continue
            except OSError:
                return
            if seen != sign:
                sign, since = seen, time.monotonic()
            # Clocks of machines that share a folder differ, so the own one has a say too.
            silent = max(time.time() - seen, time.monotonic() - since)
            if silent > LEFT_BEHIND_SECONDS or _is_dead(owner):
                # Of two that find it so, one may remove the other's new one: then both compile.
                try:
                    self.path.unlink(missing_ok=True)
                except OSError:
                    return
                continue
            told()
            time.sleep(_PAUSE)

    def renew(self) -> None:
        """Give a sign of life."""
        if self.is_held:
            with suppress(OSError):
                os.utime(self.path)

    def release(self) -> None:
        """Give it up, if it is held and nobody took it away."""
        if self.is_held:
            self.is_held = False
            with suppress(OSError):
                if self.path.read_text(encoding="utf-8") == _ourselves():
                    self.path.unlink()

    def _created(self) -> bool:
        """Whether there is nothing to wait for (any more)."""
        try:
            file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        except OSError:  # the folder was removed: no lock, and no harm
            return True
        with os.fdopen(file, "w", encoding="utf-8") as text:
            text.write(_ourselves())
        self.is_held = True
        return True


def _ourselves() -> str:
    return f"{os.getpid()} {socket.gethostname()}"


def _is_dead(owner: str) -> bool:
    """Whether a process of this machine is no more; false if that cannot be told."""
    number, _, host = owner.partition(" ")
    # Signal 0 only asks, but not on Windows.
    if os.name != "posix" or host != socket.gethostname() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
