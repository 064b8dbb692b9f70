"""What the kernels of all engines agree on when they process a batch of events.

``columns`` are the columns of a match, 0 to count matches only. No event follows with an earlier
timestamp than ``until``: the batch's last one, of whatever type, or ``NEVER`` if no event follows at
all.
"""

from __future__ import annotations

import numpy as np

#: A timestamp after all others.
NEVER = np.iinfo(np.int64).max

# Matches in the first chunk of a batch, and in the largest ones. Chunks are not enlarged by
# copying, which would move a large result repeatedly.
FIRST_CHUNK, LARGEST_CHUNK = 1 << 10, 1 << 20
