"""Named entries that users may add to: plan generators, cost models and evaluators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from cepbench.arguments import folded, shown
from cepbench.errors import CepbenchError, suggest


class Named(Protocol):
    """An entry of a registry."""

    @property
    def name(self) -> str:
        """Unique without regard to case, ``-`` and ``_``."""

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to cepbench and cannot be replaced."""


Entry = TypeVar("Entry", bound=Named)
_F = TypeVar("_F", bound=Callable[..., Any])


class Registry(Mapping[str, Entry]):
    """Name → entry, in the order of registration.

    Parameters
    ----------
    what : str
        The kind of entries, for messages, such as ``plan generator``.
    error : type
        The error to raise.
    entries : iterable of entries
    """

    def __init__(
        self, what: str, error: type[CepbenchError], entries: Iterable[Entry] = ()
    ) -> None:
        self._what = what
        self._error = error
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def check_name(self, name: Any, example: str) -> None:
        """Check the name of a new entry.

        Raises
        ------
        CepbenchError
            If it is not a printable text; the message has the example.
        """
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise self._error(f"each {self._what} needs a name, as in {example}, not {shown(name)}")

    def add(self, entry: Entry) -> None:
        """Register an entry; a user-defined one of the same name is replaced.

        Raises
        ------
        CepbenchError
            If the name is that of a built-in entry.
        """
        taken = self._by_folded_name().get(folded(entry.name))
        if taken is not None:
            if taken.is_builtin and not entry.is_builtin:
                raise self._error(
                    f"{taken.name} is the name of a built-in {self._what}; choose another name"
                )
            if taken.name != entry.name:
                self.remove(taken.name)
        self._entries[entry.name] = entry

    def decorator(self, name: str, noun: str, entry: Callable[[Any], Entry]) -> Callable[[_F], _F]:
        """Registers the entry made of the decorated function, which it returns unchanged.

        Parameters
        ----------
        name : str
        noun : str
            What the function is, for the error about anything else, such as ``a cost``.
        entry : callable
            Function → entry.
        """

        def register(function: _F) -> _F:
            if not callable(function):
                raise self._error(f"{name}: {noun} is a function, not {shown(function)}")
            self.add(entry(function))
            return function

        return register

    def remove(self, name: str) -> None:
        """Remove the entry of exactly this name, if there is one."""
        self._entries.pop(name, None)

    def find(self, name: Any) -> Entry:
        """The entry of a name, without regard to case, ``-`` and ``_``.

        Raises
        ------
        CepbenchError
            If there is none; the message suggests the nearest name.
        """
        by_name = self._by_folded_name()
        wanted = folded(name) if isinstance(name, str) else None
        if wanted in by_name:
            return by_name[wanted]
        near = suggest(wanted, by_name, cutoff=0.5)
        hint = "" if near is None else f"; did you mean {by_name[near].name!r}?"
        raise self._error(f"no {self._what} {shown(name)}; there are {', '.join(self)}{hint}")

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Undo all changes at the end of the block."""
        before = dict(self._entries)
        try:
            yield
        finally:
            self._entries = before

    def _by_folded_name(self) -> dict[str, Entry]:
        return {folded(name): entry for name, entry in self._entries.items()}
