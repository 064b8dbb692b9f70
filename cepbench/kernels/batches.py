"""Constants shared by the kernels of all engines for batches of events."""

from __future__ import annotations

import numpy as np

#: A timestamp after all others.
NEVER = np.iinfo(np.int64).max

# Matches in the first chunk of a batch, and in the largest ones. Chunks are not enlarged by
# copying, which would move a large result repeatedly.
FIRST_CHUNK, LARGEST_CHUNK = 1 << 10, 1 << 20
