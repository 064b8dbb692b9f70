"""Lengths of time as users pass them: a number, a text such as ``20 minutes``, or a window."""

from __future__ import annotations

from cepbench.arguments import number, shown
from cepbench.errors import CepbenchError
from cepbench.patterns.model import Window
from cepbench.patterns.parse import parse


def window_of(
    given: float | str | Window, unit: str, what: str, error: type[CepbenchError]
) -> Window:
    """A length of time as a window.

    Parameters
    ----------
    given : float, str or Window
        A text has a number and a unit of the pattern language.
    unit : str
        Unit of a plain number.
    what : str
        Name of the argument, for the message.
    error : type
        Type of the error to raise.

    Raises
    ------
    CepbenchError
        Of the type ``error``, if the length is invalid.
    """
    if isinstance(given, Window):
        return given
    try:
        if isinstance(given, str):
            return parse("PATTERN SEQ(A a) WITHIN W", W=given).window
        return Window(number(given, what, error), unit)
    except CepbenchError:
        raise error(
            f"{what} = {shown(given)} is not a length of time; give a number of {unit}, or a text "
            "such as '20 minutes' or '500 units'"
        ) from None
