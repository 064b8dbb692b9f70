"""Arrays that are looked at without counting references.

Numba counts a reference, with an atomic instruction, whenever an array is sliced, taken from a
tuple or handed to another function. In loops that do little else this was four fifths of the time.
A borrowed array owns nothing, so there is nothing to count; whoever borrows must see that the
owner lives longer.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core import cgutils
from numba.core.extending import intrinsic
from numba.np.arrayobj import make_array


@intrinsic
def _without_owner(typing_context: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = make_array(array)(context, builder, value=arguments[0])
        for field in ("meminfo", "parent"):
            setattr(view, field, cgutils.get_null_value(getattr(view, field).type))
        return view._getvalue()

    return array(array), generate


def _same(array: Any) -> Any:
    return array


_settings: Any = numba.config  # its attributes are made at run time

#: The same array without an owner; only callable from a kernel.
borrowed = _same if _settings.DISABLE_JIT else _without_owner
