"""Notebooks as functions of parameters; several may run at the same time, each in its kernel."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from cepbench.errors import ReportError
from cepbench.presentation.reporting.forked_kernels import Kernel, peaks, quiet_kernels
from cepbench.presentation.reporting.parameters import (
    checked_parameters,
    literals,
    unknown_parameter,
)
from cepbench.presentation.reporting.provenance import of_this_run

#: A line that Python prints for a warning.
_WARNING = re.compile(r"^.*\b\w*Warning: .*$", re.MULTILINE)
_TABLE = re.compile(r'measured_table\(\s*"([\w/]+)"')


def parameters_of(notebook: str | Path) -> dict[str, str]:
    """Parameter → default value in a notebook's ``parameters`` cell, as Python text; ReportError without it."""
    path = Path(notebook)
    if not path.is_file():
        raise ReportError(f"there is no notebook {path}; run this at the root of the project")
    try:
        found = papermill.inspect_notebook(path)
    except (nbformat.ValidationError, nbformat.reader.NotJSONError, KeyError) as error:
        raise ReportError(f"{path} is no notebook that Jupyter can read: {error}") from error
    return {name: entry["default"] for name, entry in found.items()}


def run_notebook(
    notebook: str | Path,
    executed: str | Path,
    parameters: Mapping[str, Any],
    *,
    metadata: Mapping[str, Any] | None = None,
    sweeps: Sequence[str] = (),
    strict: bool = False,
) -> nbformat.NotebookNode:
    """Run a notebook, which stays as it is, in a new kernel, in its folder.

    The notebook with its outputs is written to ``executed``, also when a cell fails; if none does,
    the machine, the versions of packages, the commit, the files of ``sweeps`` that it read and the kernel's peak of
    memory are in its metadata, under ``cepbench``, beside the metadata given, such as its title. Parameters replace
    the defaults of its ``parameters`` cell.
    Where ``strict``, a warning that a cell prints is an error.

    Raises ReportError if the notebook is missing or has no parameter of a given name, a value is
    invalid, see :func:`cepbench.presentation.reporting.parameters.checked_parameters`, or a cell
    fails or ends the kernel.
    """
    path, target = Path(notebook), Path(executed)
    known = parameters_of(path)
    for name in parameters:
        if name not in known:  # papermill would only warn
            raise unknown_parameter(name, known, path.name)
    checked = checked_parameters(parameters, literals(known), path.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with quiet_kernels() as sockets:
        try:
            done = papermill.execute_notebook(
                path,
                target,
                checked,
                # The folder of the kernel; ``cwd=`` would be that of this whole process meanwhile.
                resources={"metadata": {"path": str(path.parent)}},
                start_timeout=300,  # a busy machine imports slowly
                progress_bar=False,
                # Written at its end: before and after each cell takes as long as the charts of a page.
                request_save_on_cell_execute=False,
                autosave_cell_every=0,
                kernel_manager_class=Kernel,
                config=sockets,
            )
        except PapermillExecutionError as error:
            raise ReportError(
                f"{path.name}, cell {error.exec_count}: {error.ename}: {error.evalue}\n"
                f"The notebook as far as it came is in {target}"
            ) from error
        except DeadKernelError as error:
            raise ReportError(
                f"{path.name}: {error} Its process ended, as it does when memory runs out; run it again "
                "with more memory, or on a smaller profile"
            ) from error
        if done.metadata.papermill.exception:  # which papermill takes for an end
            raise ReportError(
                f"{path.name}: a cell ends by sys.exit, so that those after it did not run; leave that out"
            )
        done.metadata.update(metadata or {})
        memory = peaks.pop(sockets.KernelManager.ip, None)
        done.metadata["cepbench"] = of_this_run() | {"sweeps": list(sweeps), "memory": memory}
        nbformat.write(done, target)
    if strict:
        _refuse_warnings(path.name, done)
    return done


def _refuse_warnings(name: str, executed: nbformat.NotebookNode) -> None:
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            text = output.get("text", "") if output.output_type == "stream" else ""
            found = _WARNING.search(text) if output.get("name") == "stderr" else None
            if found:
                raise ReportError(f"{name}, cell {cell.execution_count} warns: {found[0].strip()}")


def measured_tables(path: Path) -> list[str]:
    """The tables that a notebook measures, ``kolchinsky2018/figure_7/results``; none without the notebook.

    See :func:`cepbench.experiments.studies.reference.measured_table`.
    """
    cells = read_notebook(path).cells if path.exists() else ()
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return _TABLE.findall(code)


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """A notebook, executed or not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=nbformat.warnings.MissingIDFieldWarning)
        return nbformat.read(path, as_version=4)
