"""Validation and conversion of arguments: numbers, texts, switches, choices.

Each function takes the value ``given``, the ``name`` of its argument, and the type of the ``error``
that it raises for another value, with that name. Arguments of kernels, such as limits, are
converted to one type, because Numba compiles a kernel for each combination of types.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from numbers import Integral, Real
from reprlib import Repr
from typing import Any

from cepbench.errors import CepbenchError, did_you_mean

#: The largest signed integer of 64 bits.
MOST = 2**63 - 1

#: Characters of a value that a message quotes.
_QUOTED = 60

_SHORTENED = Repr()
_SHORTENED.maxstring = _SHORTENED.maxother = _SHORTENED.maxlong = _QUOTED


def whole(
    given: Any,
    name: str,
    error: type[CepbenchError],
    *,
    least: int | None = None,
    most: int | None = MOST,
) -> int:
    """A whole number as an int: an int, a NumPy integer, or a float without a fraction; no bool.

    Both bounds are inclusive.
    """
    if not is_real(given) or not _is_whole(given):
        raise error(f"{name} must be a whole number, not {shown(given)}")
    number = int(given)
    if least is not None and number < least:
        raise error(f"{name} must be at least {least:,}, not {shown(given)}")
    if most is not None and number > most:
        raise error(f"{name} must be at most {most:,}, not {shown(given)}")
    return number


def number(
    given: Any,
    name: str,
    error: type[CepbenchError],
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> float:
    """A finite number of any type that fits a float, as one; no bool.

    Of the bounds, ``above`` is exclusive.
    """
    if not is_real(given):
        raise error(f"{name} must be a number, not {shown(given)}")
    try:
        found = float(given)
    except (OverflowError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise error(f"{name} must be finite and fit a float, not {shown(given)}")
    if least is not None and found < least:
        raise error(f"{name} must be at least {least:g}, not {shown(given)}")
    if above is not None and found <= above:
        raise error(f"{name} must be more than {above:g}, not {shown(given)}")
    if most is not None and found > most:
        raise error(f"{name} must be at most {most:g}, not {shown(given)}")
    return found


def decimal(
    given: Any, name: str, error: type[CepbenchError], *, least: float | None = None
) -> Decimal:
    """A finite number, no bool, as an exact decimal, a float as its shortest text: 0.1 is 0.1."""
    if not is_real(given):
        raise error(f"{name} must be a number, not {shown(given)}")
    if isinstance(given, Decimal):
        found = given
    elif isinstance(given, Integral):
        found = Decimal(int(given))
    else:
        # NumPy's floats of 32 bits too have a shortest text, other numbers that of their float.
        try:
            short = str(given) if comes_from(given, "numpy", "floating") else repr(float(given))
        except OverflowError:
            raise error(f"{name} is beyond the range of a float: {shown(given)}") from None
        found = Decimal(short)
    if not found.is_finite():
        raise error(f"{name} must be finite, not {shown(given)}")
    if least is not None and found < Decimal(least):
        raise error(f"{name} must be at least {least:g}, not {shown(given)}")
    return found


def seed(given: Any, error: type[CepbenchError], *, most: int | None = None) -> int:
    """A seed as an int, of any size or up to ``most``; not None, with which NumPy draws a random one."""
    return whole(given, "seed", error, least=0, most=most)


def flag(given: Any, name: str, error: type[CepbenchError]) -> bool:
    """A switch as a bool."""
    if isinstance(given, bool) or type(given).__name__ in ("bool", "bool_"):  # also NumPy's
        return bool(given)
    raise error(f"{name} is True or False, not {shown(given)}")


def text(given: Any, name: str, error: type[CepbenchError]) -> str:
    """A text that is not empty, such as a name."""
    if not isinstance(given, str) or not given:
        raise error(f"{name} must be a text such as a name, not {shown(given)}")
    return given


def texts(given: Any, name: str, error: type[CepbenchError]) -> list[str]:
    """Texts, such as names of columns, without duplicates."""
    names = elements(given, name, '["a", "b"]', error)
    return list(dict.fromkeys(text(one, f"each of {name}", error) for one in names))


def elements(given: Any, name: str, example: str, error: type[CepbenchError]) -> list[Any]:
    """The elements of a list or another iterable that is not a text."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise error(f"{name} must be a list such as {example}, not {shown(given)}")
    return list(given)


def choice(
    given: Any, name: str, known: Collection[str], error: Callable[[str], CepbenchError]
) -> str:
    """One of the known words; for another one, the message suggests the nearest."""
    if isinstance(given, str) and given in known:
        return given
    near = did_you_mean(given, known)
    raise error(f"{name} is one of {', '.join(known)}, not {shown(given)}{near}")


def folded(name: str) -> str:
    """The form in which names are compared: case, ``-`` and ``_`` do not matter."""
    return name.casefold().replace("_", "-")


def callback(given: Any, name: str, error: type[CepbenchError]) -> Callable[..., Any] | None:
    """A progress callback, or None."""
    if given is None or callable(given):
        return given
    raise error(f"{name} must be a function, not {shown(given)}")


def named_values(given: Iterable[str], name: str, error: type[Exception]) -> dict[str, Any]:
    """Values by name from texts such as ``rows=100``; values that are not JSON are texts."""
    found: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not (key and equals):
            raise error(f"{name} {one}: write NAME=VALUE, such as rows=100")
        if key in found:
            raise error(f"{name} {one}: {key} is given twice; give it once")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def kind_of(given: Any) -> str:
    """The type of a value, for a message: ``a DataFrame``, ``the text 'abc'``, ``None``."""
    if given is None:
        return "None"
    if isinstance(given, str):
        return f"the text {shown(given)}"
    if isinstance(given, type):
        return f"the class {given.__name__} itself"
    name = type(given).__name__
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def comes_from(given: Any, library: str, *names: str) -> bool:
    """Whether a value has one of these types of a library, which is not imported for that."""
    return any(
        kind.__module__.partition(".")[0] == library and kind.__name__ in names
        for kind in type(given).__mro__
    )


def shown(given: Any) -> str:
    """A value for a message: at most a line; never raises."""
    if isinstance(given, int) and abs(given) > 2**64:
        return f"a number of {given.bit_length()} bits"
    if not isinstance(given, str | Real | Decimal | list | tuple | dict | set | None):
        return kind_of(given)
    try:
        said = _SHORTENED.repr(given)
    except Exception:  # from an element's repr, or for too many digits
        return f"a {type(given).__name__}"
    return said if len(said) <= _QUOTED else f"{said[:_QUOTED]} …"


def is_real(given: Any) -> bool:
    """Whether it is a number of Python or NumPy, other than a bool or a complex number."""
    if type(given) is float or type(given) is int:  # most are
        return True
    # NumPy derives its lengths of time from its integers.
    is_other = isinstance(given, bool) or comes_from(given, "numpy", "timedelta64")
    return isinstance(given, Real | Decimal) and not is_other


def _is_whole(given: Any) -> bool:
    if isinstance(given, Integral):
        return True
    try:
        return bool(math.isfinite(given) and given == int(given))
    except (OverflowError, ValueError):  # infinite as a float; a signaling NaN
        return False
