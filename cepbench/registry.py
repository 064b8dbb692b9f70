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
    """Name → entry of a kind, in the order of registration.

    Messages say ``what`` it is, such as ``plan generator``. For user-defined entries ``example`` is the
    decorator of one, and ``wanted`` what it decorates, with ``{}`` in the place of what it does not: an
    object that does not ``fit``.
    """

    def __init__(
        self,
        kind: type[Entry],
        what: str,
        error: type[CepbenchError],
        entries: Iterable[Entry] = (),
        *,
        example: str = "",
        wanted: str = "",
        fits: Callable[[Any], bool] = callable,
    ) -> None:
        self._kind = kind
        self._what = what
        self._error = error
        self._example, self._wanted, self._fits = example, wanted, fits
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Register an entry; one of the same name is replaced, which is an error if it is built in."""
        taken = self._by_folded_name().get(folded(entry.name))
        if taken is not None:
            if taken.is_builtin and not entry.is_builtin:
                raise self._error(
                    f"{taken.name} is the name of a built-in {self._what}; choose another name"
                )
            if taken.name != entry.name:
                self.remove(taken.name)
        self._entries[entry.name] = entry

    def check_name(self, name: Any) -> None:
        """Check that the name of a user-defined entry is a printable text."""
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise self._error(
                f"each {self._what} needs a name, as in {self._example}, not {shown(name)}"
            )

    def decorator(self, name: str, entry: Callable[[Any], Entry]) -> Callable[[_F], _F]:
        """Registers the entry made of the decorated function or class, which it returns unchanged.

        A name that is none is an error, and so is a decorated object that does not fit.
        """
        self.check_name(name)

        def register(made: _F) -> _F:
            if not self._fits(made):
                raise self._error(f"{name}: {self._wanted.format(shown(made))}")
            self.add(entry(made))
            return made

        return register

    def remove(self, name: str) -> None:
        """Remove the entry of exactly this name, if there is one."""
        self._entries.pop(name, None)

    def find(self, name: Any) -> Entry:
        """The entry of a name, without regard to case, ``-`` and ``_``, or the entry given.

        It is an error if there is none; the message suggests the nearest name.
        """
        if isinstance(name, self._kind):
            return name
        if isinstance(name, str) and name in self._entries:
            return self._entries[name]
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
