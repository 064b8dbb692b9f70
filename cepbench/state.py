"""State as data: what an object is restored from, named once, and saved as arrays.

A class names its state in :attr:`Stateful.SAVED`, and writes only what follows from it
(:meth:`Stateful.resumed`). Arrays are saved under the names of their attributes, after those of the objects
that hold them; all else is one array of JSON, ``known``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import chain, repeat
from operator import attrgetter, is_
from typing import Any, ClassVar

import numpy as np

from cepbench.errors import SnapshotError

Arrays = Mapping[str, np.ndarray]

_KNOWN = "known"

#: What stands for an array, and for one of integers of any size.
_ARRAY, _INTEGERS = {"array": None}, {"integers": None}

#: Types of values that JSON keeps as they are.
_PLAIN = {bool, int, float, str, type(None)}


class Stateful:
    """An object that can be restored from its state."""

    #: The attributes that are its state, after those of its bases, in the order in which they are
    #: restored; ``_state.runs`` is an attribute of another one, and ``counts[:]`` an array, or a list of
    #: such, that keeps its shape, for it is restored in place. Values are arrays, plain ones, and
    #: lists, tuples, sets and mappings of values; or they are stateful themselves, or have
    #: ``snapshot()`` and ``restore(arrays)``. These last two are restored in place, so what comes
    #: before them has to make as many as there were.
    SAVED: ClassVar[tuple[str, ...]] = ()

    #: Of each: its attribute, its name in a snapshot, how it is read, and whether it is in place.
    _NAMED: ClassVar[tuple[tuple[str, str, Callable[[Any], Any], bool], ...]] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        named = (vars(base).get("SAVED", ()) for base in reversed(cls.__mro__))
        cls.SAVED = tuple(dict.fromkeys(chain.from_iterable(named)))
        cls._NAMED = tuple(
            (name, name.lstrip("_").replace(".", "/"), attrgetter(name), name != given)
            for name, given in ((its.removesuffix("[:]"), its) for its in cls.SAVED)
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """The state as plain arrays, which do not change with it."""
        arrays: dict[str, np.ndarray] = {}
        # As bytes, because NumPy's texts take four bytes per character.
        written = json.dumps(_saved_state(self, "", arrays)).encode()
        arrays[_KNOWN] = np.frombuffer(written, np.uint8)
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Resume from what :meth:`snapshot` returned; a SnapshotError if it is no such state."""
        try:
            known = dict(json.loads(arrays[_KNOWN].tobytes()))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(f"no usable {_KNOWN!r}: {error!r}") from error
        _restore_state(self, known, "", arrays)

    def resumed(self) -> None:
        """Make what follows from the state, when it is restored; a SnapshotError if it does not fit."""

    def state_bytes(self, beyond: type[Stateful] | None = None) -> int:
        """The size of the arrays of the state, but for those of objects in it, and of a base class."""
        found = 0
        # Asked after each push: a loop is twice as fast as a sum.
        for _, _, read, _ in self._NAMED[len(beyond.SAVED) if beyond else 0 :]:
            value = read(self)
            if isinstance(value, np.ndarray):
                found += _as_saved(value).nbytes if value.dtype.hasobject else value.nbytes
        return found


def damaged(what: str) -> SnapshotError:
    """The error of a snapshot of which something does not fit."""
    return SnapshotError(f"the snapshot is damaged: {what}")


def check_shape(name: str, array: np.ndarray, due: tuple[int, ...]) -> None:
    """Check that an array of a snapshot fits the others; a SnapshotError if not."""
    if np.shape(array) != due:
        raise damaged(f"{name!r} has the shape {np.shape(array)}, where {due} is due")


def _as_saved(array: np.ndarray) -> np.ndarray:
    """An array; integers of any size are saved as texts."""
    return array.astype(str) if array.dtype.hasobject else array


def _saved_state(of: Stateful, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: _saved(read(of), prefix + name, arrays) for _, name, read, _ in of._NAMED}


def _saved(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A value as one of JSON; its arrays are added to the others."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, np.ndarray):
        arrays[name] = np.array(_as_saved(value), order="C")
        return _INTEGERS if value.dtype.hasobject else _ARRAY
    if kind is list:
        return _saved_list(value, name, arrays)
    if isinstance(value, Stateful):
        return {"state": _saved_state(value, f"{name}/", arrays)}
    match value:
        case np.generic():
            return value.item()
        case tuple():
            return {"tuple": _saved_list([*value], name, arrays)}
        case set():
            return {"set": sorted(value)}
        case Mapping():
            keys = _saved_list([*value], f"{name}/keys", arrays)
            return {"mapping": [keys, _saved_list([*value.values()], name, arrays)]}
    arrays |= {f"{name}/{part}": its for part, its in value.snapshot().items()}
    return {"object": None}


def _saved_list(values: list[Any], name: str, arrays: dict[str, np.ndarray]) -> Any:
    kinds = {*map(type, values)}
    if kinds <= _PLAIN:
        return values
    # Long lists, such as those of the keys of partitions, are not to be walked in Python.
    if kinds == {tuple} and _PLAIN.issuperset(map(type, chain.from_iterable(values))):
        return {"tuples": values}
    return [_saved(value, f"{name}/{number}", arrays) for number, value in enumerate(values)]


def _restore_state(of: Stateful, known: Mapping[str, Any], prefix: str, arrays: Arrays) -> None:
    for attribute, name, read, in_place in of._NAMED:
        if name not in known:
            raise damaged(f"it has no usable {prefix + name!r}")
        before = read(of)
        value = _restored(known[name], before, prefix + name, arrays, in_place=in_place)
        if value is not before:
            _set(of, attribute, value)
    of.resumed()


def _set(of: Any, attribute: str, value: Any) -> None:
    holder, _, field = attribute.rpartition(".")
    held = attrgetter(holder)(of) if holder else of
    if hasattr(held, "_replace"):
        _set(of, holder, held._replace(**{field: value}))
    else:
        setattr(held, field, value)


def _restored(saved: Any, before: Any, name: str, arrays: Arrays, *, in_place: bool = False) -> Any:
    """The value that was saved; ``before``, the present one, if it is restored itself."""
    if type(saved) in _PLAIN:
        return saved
    match saved:
        case {"array": None}:
            found = np.array(_found(name, arrays), order="C")
            if isinstance(before, np.ndarray) and before.dtype not in (found.dtype, object):
                raise damaged(f"{name!r} is of {found.dtype}, where {before.dtype} is due")
            if not in_place:
                return found
            check_shape(name, found, before.shape)
            before[...] = found
            return before
        case {"integers": None}:
            texts = _found(name, arrays)
            return np.array([*map(int, texts.flat), None], object)[:-1].reshape(texts.shape)
        case {"state": its}:
            _restore_state(before, its, f"{name}/", arrays)
            return before
        case {"object": None}:
            under = f"{name}/"
            own = {key.removeprefix(under): arrays[key] for key in arrays if key.startswith(under)}
            other = before.restore(own)
            return other if isinstance(other, type(before)) else before
        case {"tuples": its}:
            return [*map(tuple, its)]
        case {"tuple": its}:
            values = _restored(its, before, name, arrays)
            return before._make(values) if hasattr(before, "_make") else tuple(values)
        case {"set": its}:
            return set(its)
        case {"mapping": [keys, values]}:
            old = [*before.values()] if isinstance(before, dict) else ()
            known = _restored(keys, (), f"{name}/keys", arrays)
            return dict(zip(known, _restored(values, old, name, arrays), strict=True))
    if in_place and len(saved) != len(before):
        raise damaged(f"{name!r} is of {len(saved)} values, where {len(before)} are due")
    if _PLAIN.issuperset(map(type, saved)):
        return saved
    old = before if isinstance(before, list | tuple) else ()
    values = [
        _restored(value, its, f"{name}/{number}", arrays, in_place=in_place)
        for number, (value, its) in enumerate(zip(saved, chain(old, repeat(None)), strict=False))
    ]
    return before if len(values) == len(old) and all(map(is_, values, old)) else values


def _found(name: str, arrays: Arrays) -> np.ndarray:
    if name not in arrays:
        raise damaged(f"it has no array {name!r}")
    return arrays[name]
