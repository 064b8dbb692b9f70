"""Many changes, one answer: a slider that is dragged does not queue up work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Coalesced:
    """An action that runs soon after it is asked for, once for all that asked meanwhile.

    It waits for a fixed time from the first request and not for the requests to stop: while a
    slider is dragged, pictures follow it. Where no event loop runs, as in a test, it runs at once.

    Parameters
    ----------
    action : callable
        Without arguments; sees to its own errors.
    delay : float
        Seconds.
    """

    def __init__(self, action: Callable[[], None], delay: float) -> None:
        self._action = action
        self._delay = delay
        self._waiting: asyncio.TimerHandle | None = None

    def __call__(self, *_: object) -> None:
        """Ask for the action; takes and ignores what widgets hand to their observers."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._action()
            return
        if self._waiting is None:
            self._waiting = loop.call_later(self._delay, self.settle)

    def settle(self) -> None:
        """Run the action now if it was asked for and did not run yet."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
            self._action()
