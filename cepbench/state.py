"""State as data: what an object is restored from, named once, and saved as arrays.

A class names its state in :attr:`Stateful.SAVED`, and writes only what follows from it
(:meth:`Stateful.resumed`). Arrays are saved under the names of their attributes, after those of the objects
that hold them; all else is one array of JSON, ``known``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from cepbench.errors import SnapshotError

Arrays = Mapping[str, np.ndarray]

_KNOWN = "known"

#: Types of values that JSON keeps as they are.
_PLAIN = {bool, int, float, str, type(None)}


class Stateful:
    """An object that can be restored from its state.

    Attributes
    ----------
    SAVED : tuple of str
        The attributes that are its state, after those of its bases, in the order in which they are
        restored. A name such as ``_state.runs`` is of a field of a NamedTuple. Values are arrays, plain
        ones, and lists, tuples, sets and mappings of values; or they are stateful themselves, or have
        ``snapshot()`` and ``restore(arrays)``. These last two are restored in place, so what comes
        before them has to make as many as there were.
    """

    SAVED: ClassVar[tuple[str, ...]] = ()

    #: Of each: its attribute, its name in a snapshot, and how it is read.
    _NAMED: ClassVar[tuple[tuple[str, str, Callable[[Any], Any]], ...]] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        named = (vars(base).get("SAVED", ()) for base in reversed(cls.__mro__))
        cls.SAVED = tuple(dict.fromkeys(chain.from_iterable(named)))
        cls._NAMED = tuple(
            (name, name.lstrip("_").replace(".", "/"), attrgetter(name)) for name in cls.SAVED
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """The state as plain arrays, which do not change with it."""
        arrays: dict[str, np.ndarray] = {}
        # As bytes, because NumPy's texts take four bytes per character.
        written = json.dumps(_saved_state(self, "", arrays)).encode()
        arrays[_KNOWN] = np.frombuffer(written, np.uint8)
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Resume from what :meth:`snapshot` returned.

        Raises
        ------
        SnapshotError
            If it is no state of such an object.
        """
        try:
            known = dict(json.loads(arrays[_KNOWN].tobytes()))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(f"no usable {_KNOWN!r}: {error!r}") from error
        _restore_state(self, known, "", arrays)

    def resumed(self) -> None:
        """Make what follows from the state; called when it is restored.

        Raises
        ------
        SnapshotError
            If the state does not fit the object.
        """

    @property
    def state_bytes(self) -> int:
        """The size of the arrays of the state, but for those of objects in it."""
        values = (read(self) for _, _, read in self._NAMED)
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


def damaged(what: str) -> SnapshotError:
    """The error of a snapshot of which something does not fit."""
    return SnapshotError(f"the snapshot is damaged: {what}")


def arrays_under(prefix: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """The arrays with a prefix of the name, by name without prefix."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _saved_state(of: Stateful, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: _saved(read(of), prefix + name, arrays) for _, name, read in of._NAMED}


def _saved(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A value as one of JSON; its arrays are added to the others."""
    if type(value) in _PLAIN:
        return value
    match value:
        case np.ndarray():
            # Integers of any size are saved as texts.
            has_objects = value.dtype.hasobject
            arrays[name] = value.astype(str) if has_objects else value.copy()
            return {"integers" if has_objects else "array": None}
        case np.generic():
            return value.item()
        case Stateful():
            return {"state": _saved_state(value, f"{name}/", arrays)}
        case list():
            return _saved_list(value, name, arrays)
        case tuple():
            return {"tuple": _saved_list([*value], name, arrays)}
        case set():
            return {"set": sorted(value)}
        case dict():
            keys = _saved_list([*value], f"{name}/keys", arrays)
            return {"mapping": [keys, _saved_list([*value.values()], name, arrays)]}
    arrays |= {f"{name}/{part}": its for part, its in value.snapshot().items()}
    return {"object": None}


def _saved_list(values: list[Any], name: str, arrays: dict[str, np.ndarray]) -> list[Any]:
    if _PLAIN.issuperset(map(type, values)):
        return values
    return [_saved(value, f"{name}/{number}", arrays) for number, value in enumerate(values)]


def _restore_state(of: Stateful, known: Mapping[str, Any], prefix: str, arrays: Arrays) -> None:
    for attribute, name, read in of._NAMED:
        if name not in known:
            raise damaged(f"it has no usable {prefix + name!r}")
        before = read(of)
        value = _restored(known[name], before, prefix + name, arrays)
        if value is before:
            continue
        holder, _, field = attribute.rpartition(".")
        if holder:
            attribute, value = holder, getattr(of, holder)._replace(**{field: value})
        setattr(of, attribute, value)
    of.resumed()


def _restored(saved: Any, before: Any, name: str, arrays: Arrays) -> Any:
    """The value that was saved.

    Parameters
    ----------
    saved : object
        What :func:`_saved` returned, from JSON.
    before : object
        The present value, which is restored itself if it has a state.
    name : str
    arrays : mapping of str to ndarray
    """
    match saved:
        case {"array": None}:
            return np.array(_found(name, arrays))
        case {"integers": None}:
            texts = _found(name, arrays)
            integers = np.empty(texts.shape, object)
            integers.flat = [*map(int, texts.flat)]
            return integers
        case {"state": its}:
            _restore_state(before, its, f"{name}/", arrays)
            return before
        case {"object": None}:
            other = before.restore(arrays_under(f"{name}/", arrays))
            return before if other is None else other
        case {"tuple": its}:
            values = _restored_list(its, before, name, arrays)
            return before._make(values) if hasattr(before, "_make") else tuple(values)
        case {"set": its}:
            return set(its)
        case {"mapping": [keys, values]}:
            old = [*before.values()] if isinstance(before, dict) else ()
            return dict(
                zip(
                    _restored_list(keys, (), f"{name}/keys", arrays),
                    _restored_list(values, old, name, arrays),
                    strict=True,
                )
            )
        case list():
            return _restored_list(saved, before, name, arrays)
    return saved


def _restored_list(saved: list[Any], before: Any, name: str, arrays: Arrays) -> list[Any]:
    if _PLAIN.issuperset(map(type, saved)):
        return saved
    old: Sequence[Any] = before if isinstance(before, list | tuple) else ()
    rest = [None] * (len(saved) - len(old))
    return [
        _restored(value, its, f"{name}/{number}", arrays)
        for number, (value, its) in enumerate(zip(saved, [*old, *rest], strict=False))
    ]


def _found(name: str, arrays: Arrays) -> np.ndarray:
    if name not in arrays:
        raise damaged(f"it has no array {name!r}")
    return arrays[name]
