"""The definition of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cepbench.papers import REFERENCES, Reference


@dataclass(frozen=True, slots=True)
class Study:
    """The experiments of one paper, done again: notebooks, sweeps and claims."""

    #: The paper's citation key, of :data:`cepbench.papers.REFERENCES`.
    key: str
    #: Its package, with ``ledger.toml`` and, if it has sweeps, ``sweeps/*.toml``.
    folder: Path
    #: Names in ``notebooks/<key>/``, in the order of the pages; that of the ledger comes last and is
    #: the same notebook for all studies.
    notebooks: Sequence[str]
    #: The plan generators that its claims are about; empty: every row counts.
    generators: Sequence[str] = ()
    #: The paper's engine, as results name it in ``engine`` or ``regime``: where several ran, it decides. The
    #: first of these that was measured.
    engines: Sequence[str] = ()
    #: Sizes in which all of it can be run.
    profiles: Sequence[str] = ("quick", "full")

    is_builtin = False  # another one of the same key replaces it

    @property
    def name(self) -> str:
        """The key."""
        return self.key

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
