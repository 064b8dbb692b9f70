"""What the kernels of all engines agree on when they process a batch of events."""

from __future__ import annotations

import numpy as np

#: A timestamp after all others.
NEVER = np.iinfo(np.int64).max

# Matches in the first chunk of a batch, and in the largest ones. Chunks are never copied: a large
# result would be moved again and again.
FIRST_CHUNK, LARGEST_CHUNK = 1 << 10, 1 << 20
