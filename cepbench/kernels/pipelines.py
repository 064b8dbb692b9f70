"""How kernels are compiled: optimized where they are called from Python, not where they are included.

Numba optimizes every kernel by itself, and again within each kernel that calls it, by LLVM's whole
pipeline; and it makes machine code and an entry from Python for each. What only other kernels call
needs none of this, since it is linked into its callers and optimized there.

In a large kernel no loop is unrolled whose number of rounds is not known before it runs. LLVM analyses all
of the kernel again for each such loop, which took half the time of its module passes there, and
the benchmarks run as fast without, or faster. Smaller kernels run slower.

This uses interfaces that Numba does not document. With a version of Numba for which that was not tried,
importing this module fails, and :mod:`cepbench.kernels.jit` compiles as Numba does by default.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary, ll  # type: ignore[attr-defined]
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

#: Basic blocks of a large kernel. Three have more; two of 1,500 ran up to a fifth slower as large ones.
_LARGE = 2_000

_TRIED = ("0.68.",)
if not numba.__version__.startswith(_TRIED):
    raise ImportError(f"not tried with numba {numba.__version__}")


class _IncludedLibrary(JITCodeLibrary):
    """Code that is linked into that of callers: neither optimized nor executable by itself."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _EntryLibrary(JITCodeLibrary):
    """Code that is optimized as by Numba, but in a large kernel without copies of loops' bodies."""

    def _optimize_final_module(self):
        codegen, module = self._codegen, self._final_module
        first, builder = codegen._module_pass_manager(
            loop_vectorize=codegen._loopvect,
            slp_vectorize=False,
            opt=codegen._opt_level,
            cost="cheap",
        )
        first.run(module, builder)
        is_large = sum(1 for one in module.functions for _ in one.blocks) >= _LARGE
        full, builder = codegen._module_pass_manager()
        if is_large:
            ll.set_option("cepbench", "-unroll-runtime=false")
        try:
            full.run(module, builder)
        finally:
            if is_large:
                ll.set_option(
                    "cepbench", "-unroll-runtime=true"
                )  # as by default, but for loops with calls


@register_pass(mutates_CFG=True, analysis_only=False)
class _IncludedLowering(NativeLowering):
    _name = "lowering_of_included_kernels"

    def run_pass(self, state):
        library = _IncludedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library = library
        state.flags.no_compile = True
        done = super().run_pass(state)
        lowered = state.cr
        # Numba wants a function of Python; nothing calls it.
        name = lowered.fndesc.qualname.rpartition(".")[2]
        never_called = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(never_called, lowered.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state.cr = lowered._replace(cfunc=never_called)
        return done


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(NativeLowering):
    _name = "lowering_of_kernels"

    def run_pass(self, state):
        library = _EntryLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        state.library = library
        done = super().run_pass(state)
        # Included kernels have no code of their own by which Numba would have set this.
        for variable in library._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                library.codegen.set_env(variable.name, environment)
        return done


class _Pipeline(CompilerBase):
    lowering: type[NativeLowering]

    def define_pipelines(self) -> list[Any]:
        """Numba's own, with another lowering."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (self.lowering if one is NativeLowering else one, description)
            for one, description in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]


class ForCallers(_Pipeline):
    """The pipeline of a kernel that is included in others."""

    lowering = _IncludedLowering


class ForPython(_Pipeline):
    """The pipeline of a kernel that Python calls."""

    lowering = _EntryLowering
