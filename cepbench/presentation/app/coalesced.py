"""Coalescing of changes, so that dragging a slider does not queue work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Coalesced:
    """An action that runs once for all requests within a delay, in seconds; it handles its own errors.

    The delay starts with the first request and is not extended by later ones, so that pictures
    follow a slider while it is dragged. Without an event loop, as in tests, it runs immediately.
    """

    def __init__(self, action: Callable[[], None], delay: float) -> None:
        self._action = action
        self._delay = delay
        self._waiting: asyncio.TimerHandle | None = None

    def __call__(self, *_: object) -> None:
        """Request the action; ignores the arguments that widgets pass to observers."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._action()
            return
        if self._waiting is None:
            self._waiting = loop.call_later(self._delay, self.settle)

    def settle(self) -> None:
        """Run the action now if it is pending."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
            self._action()
