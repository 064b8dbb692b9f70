"""altair, imported in half the time; all charts take it from here.

altair imports jsonschema, which compiles a grammar of IRIs where the package ``rfc3987_syntax`` is
installed. That takes a second of every start, for a format that no chart contains.
"""

from __future__ import annotations

import sys

__all__ = ["alt", "spec_to_mimebundle"]

_PARSER = "rfc3987_syntax"

if "jsonschema" in sys.modules or _PARSER in sys.modules:
    import altair as alt
else:
    sys.modules[_PARSER] = None  # type: ignore[assignment]  # an import of it is an ImportError
    try:
        import altair as alt
    finally:
        del sys.modules[_PARSER]

from altair.utils.mimebundle import spec_to_mimebundle  # noqa: E402 - altair is loaded above
