"""The definition of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cepbench.papers import REFERENCES, Reference


@dataclass(frozen=True, slots=True)
class Study:
    """The experiments of one paper, done again: notebooks, sweeps and claims.

    Attributes
    ----------
    key : str
        The paper's citation key, of :data:`cepbench.papers.REFERENCES`.
    folder : Path
        Its package, with ``ledger.toml`` and, if it has sweeps, ``sweeps/*.toml``.
    notebooks : sequence of str
        Names in ``notebooks/<key>/``, in the order of the pages; that of the ledger comes last
        and is the same notebook for all studies.
    generators : sequence of str
        The plan generators that its claims are about; empty: every row counts.
    profiles : sequence of str
        Sizes in which all of it can be run.
    """

    key: str
    folder: Path
    notebooks: Sequence[str]
    generators: Sequence[str] = ()
    profiles: Sequence[str] = ("quick", "full")

    @property
    def reference(self) -> Reference:
        """The paper."""
        return REFERENCES[self.key]

    @property
    def label(self) -> str:
        """Name in texts: ``Kolchinsky & Schuster 2018``."""
        return self.reference.label

    @property
    def ledger(self) -> Path:
        """The file of its claims."""
        return self.folder / "ledger.toml"
