"""Records in the outputs of a running notebook, which its page is made from.

A record is an output of a type that no viewer shows. In the executed notebook it precedes the
figure that the cell shows next.
"""

from __future__ import annotations

import sys
from typing import Any

#: Type of an output that is a record.
RECORD_MIME = "application/vnd.cepbench.record+json"


def record(**what: Any) -> None:
    """Leave a record in the output of the cell that is running; outside of a kernel do nothing.

    It is of a ``figure``, by the stem of the files saved to the folder of results, or a ``finding``, a
    sentence for the top of its page.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if ipython and hasattr(shell, "kernel"):
        ipython.display.display({RECORD_MIME: what}, raw=True)


def finding(text: str) -> None:
    """Show a sentence, the main result of a notebook, and record it for the top of its page; not an empty one."""
    if text:
        from IPython.display import Markdown, display

        display(Markdown(text.replace("*", r"\*")))  # no emphasis: names such as p3*
        record(finding=text)
