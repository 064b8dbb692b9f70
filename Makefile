# Needs make and Python 3.11 or newer; everything else is built in .venv at the root.
# Settings of pip and uv (PIP_INDEX_URL, pip.conf, UV_INDEX_URL, …) are respected.

PROFILE ?= quick
WORKERS ?= 2
PYTEST_ARGS ?=
REPORT_ARGS ?=
# Citation keys of the studies to run and publish; empty: all, and the notebooks of no study.
STUDIES ?=
# Sweep files, or names of those of the studies.
SWEEP ?= types latency strategies
SWEEP_ARGS ?=
# The Spark master of sweeps and reports; empty: all cores of this machine.
MASTER ?=
# How long `make soak` searches (ten minutes), or how often it goes over the files; its first seed;
# how many examples a property gets that has 10 in `make test`; and where.
SECONDS ?=
ROUNDS ?=
SEED ?=
EXAMPLES ?= 500
FILES ?= tests
# Where `make peers` installs engines, and further arguments of `make conformance`.
PEERS ?= $(HOME)/.cache/cepbench/peers
CONFORMANCE_ARGS ?=
# Further arguments of `make artifact`: --no-trial, --report FOLDER.
ARTIFACT_ARGS ?=
# Further arguments of `make bench-peers`, such as `--events 10000000`.
BENCH_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
BUILT := $(VENV)/built
NOTEBOOKS = $(wildcard notebooks/*.ipynb notebooks/*/*.ipynb)
NBSTRIPOUT = $(BIN)/nbstripout \
	--extra-keys "metadata.papermill cell.metadata.papermill metadata.language_info.version"

# The first Python that is new enough; `make PYTHON=... env` takes another one.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$python; break; fi; done)

# Compiled modules are kept for the next process, which tests and notebooks start many of.
export PYTHONDONTWRITEBYTECODE :=

# At the end of what follows in a line of a recipe, the seconds that it took: $(call took,NAME,>FILE).
took = began=$$(date +%s); trap 'echo "$(1): $$(($$(date +%s) - began)) s" $(2)' EXIT;

.DEFAULT_GOAL := help
.PHONY: help env test soak report report-check docs sweep lint format lab bench bench-history bench-peers peers conformance artifact clean

help:  ## what can be made
	@echo "make <target>; each builds the environment it needs"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1@\2/p' Makefile | sed 's/@/            /; s/^\(.\{16\}\) */\1/'

env: $(BUILT)  ## the environment in .venv, once

$(BUILT): pyproject.toml requirements.txt
	@if [ -z "$(PYTHON)" ]; then \
		echo "make: cepbench needs Python 3.11 or newer, and none was found on the PATH." >&2; \
		echo "      Install one, or name it: make PYTHON=/path/to/python3.12 env" >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: $(PYTHON) is missing or older than Python 3.11." >&2; exit 1; }
	@if $(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then :; \
	elif $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		$(PYTHON) -m venv --clear $(VENV); \
	elif command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --clear --seed --python $(PYTHON) $(VENV); \
	else \
		echo "make: $(PYTHON) cannot make virtual environments: its venv or ensurepip is missing." >&2; \
		echo "      On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; fi
	@echo "installing into $(VENV) (a few minutes) ..."
# Whatever has not the hash in the lock is an error. uv, which takes a third of pip's time, comes first and from the lock
# too, behind setuptools, which builds pyspark and cepbench. Of pip's settings it gets index and certificates. Those that
# only name more places are left out, since the files have the same hashes there; any other puts "false" in the place of
# uv. Where uv fails or cannot be had, pip installs. Archives in the wheel of pyspark are compressed already: it stores them as they are.
	@for name in setuptools uv; do sed -n "/^$$name==/,/[^\\\\]$$/p" requirements.txt >$(VENV)/$$name.txt; done
	@printf '[bdist_wheel]\ncompression=stored\n' >$(VENV)/stored.cfg
	@$(call took,packages,>$(VENV)/took) export DIST_EXTRA_CONFIG="$(CURDIR)/$(VENV)/stored.cfg"; \
	pip() { $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile "$$@"; }; \
	uv() { env $$($(BIN)/python -m pip config list | sort -r | sed -E "s/^(global|:env:)\.//; \
		/^(constraint|disable-pip-version-check|extra-index-url|find-links|(default-)?timeout)=/d; \
		s/^index-url='(.*)'/UV_DEFAULT_INDEX=\1/; s/^cert='(.*)'/SSL_CERT_FILE=\1/; \
		/^(UV_DEFAULT_INDEX|SSL_CERT_FILE)=/!s/.*/false/") \
		$(BIN)/uv pip install --quiet --python $(BIN)/python "$$@"; }; \
	locked() { \
		"$$@" --require-hashes --no-build-isolation -r requirements.txt && \
		"$$@" --no-deps --no-build-isolation -e .; }; \
	pip --require-hashes -r $(VENV)/setuptools.txt && \
		{ { pip --require-hashes -r $(VENV)/uv.txt && locked uv; } || locked pip; }
	@$(call took,compiled kernels,>>$(VENV)/took) $(BIN)/python -m cepbench.experiments.sweeps.warm_up
# Java starts on the other core.
	-@$(call took,costs of engines and classes of Spark,>>$(VENV)/took) $(BIN)/python -m cepbench.spark.class_archive & \
		$(BIN)/python -m cepbench.experiments.sweeps.unit_costs; wait
	@mv $(VENV)/took $@

test: $(BUILT)  ## the tests, then those of the kernels again without compilation
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(WORKERS) -m kernel $(PYTEST_ARGS) \
		$(if $(PYTEST_ARGS),,$$(grep -rl --include='test_*.py' 'mark\.kernel' tests))

soak: $(BUILT)  ## random cases that `make test` does not try; SECONDS=600 or ROUNDS=, SEED=, FILES=
	$(BIN)/python -m tests.soak --examples $(EXAMPLES) --workers $(WORKERS) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(SEED),--seed $(SEED)) $(FILES)

report: docs  ## the site, reports/index.html; PROFILE=quick (minutes), full or reference; STUDIES=KEYS
	$(BIN)/python -m cepbench report build --profile $(PROFILE) \
		$(addprefix --study ,$(STUDIES)) $(REPORT_ARGS)
	@echo "before it, the environment once:"; cat $(BUILT) build/docs/took

report-check: $(BUILT)  ## the tests of the report that was built last, in reports/
	CEPBENCH_REPORT=reports $(BIN)/python -m pytest -n $(WORKERS) tests/report $(PYTEST_ARGS)

# A part of the site, which links to it and back; read again only where something has changed.
docs: $(BUILT)  ## the site's documentation alone, with the reference: reports/docs/index.html
	@mkdir -p build/docs
	$(call took,documentation,>build/docs/took) \
		$(BIN)/python -m sphinx -q -W --keep-going -j auto -b html -d build/docs docs reports/docs

# Results go where the report looks for them: afterwards `make report PROFILE=full` only draws.
sweep: $(BUILT)  ## a sweep, SWEEP=FILE; else those of the report: estimated, resumed if killed
	$(BIN)/python -m cepbench sweep run $(SWEEP) --estimate \
		$(if $(filter-out quick,$(PROFILE)),--profile $(PROFILE)) \
		$(if $(MASTER),--master '$(MASTER)') $(SWEEP_ARGS)

lint: $(BUILT)  ## style, types, and notebooks without outputs
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(NBSTRIPOUT) --verify $(NOTEBOOKS)

format: $(BUILT)  ## mend what lint says of style and notebooks
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(NBSTRIPOUT) $(NOTEBOOKS)

lab: $(BUILT)  ## the notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=. notebooks/explore.ipynb

# What they printed and measured goes where the next report shows it.
bench: $(BUILT)  ## the benchmarks: ratios against other engines in one run
	@mkdir -p reports/benchmarks
	@set -e; for script in $(filter-out benchmarks/bench_peers.py,$(wildcard benchmarks/bench_*.py)); do \
		echo "== $$script"; kept=reports/benchmarks/$$(basename $$script .py); \
		$(BIN)/python $$script --out $$kept.parquet >$$kept.part; \
		mv $$kept.part $$kept.txt; cat $$kept.txt; done

peers: $(BUILT)  ## chDB, CORE and Flink for `make conformance`, each in an environment of its own
	$(BIN)/python -m cepbench.experiments.conformance.adapters $(PEERS)

bench-history: $(BUILT)  ## what is slower by a tenth than at the last commit of benchmarks/history.csv
	@$(BIN)/python benchmarks/bench_history.py --compare

bench-peers: $(BUILT)  ## one table against Flink, CORE and chDB (of `make peers`), DuckDB, Polars and NumPy
	@mkdir -p reports/benchmarks
	@kept=reports/benchmarks/bench_peers; CEPBENCH_PEERS=$(PEERS) \
		$(BIN)/python benchmarks/bench_peers.py $(BENCH_ARGS) --out $$kept.parquet >$$kept.part && \
		mv $$kept.part $$kept.txt && cat $$kept.txt

# At night: CONFORMANCE_ARGS="--random 500 --seed 1" draws cases, and shrinks those that differ.
conformance: $(BUILT)  ## which engine finds the same matches, which fewer: reports/conformance
	CEPBENCH_PEERS=$(PEERS) $(BIN)/python -m cepbench.presentation.reporting.conformance_page \
		$(CONFORMANCE_ARGS)

# Tried from an empty home, as a reviewer would begin; the report has to be finished.
artifact: $(BUILT)  ## the archive for reviewers in build/; ARTIFACT_ARGS=--no-trial only makes it
	$(BIN)/python -m cepbench.presentation.reporting.artifact_archive $(ARTIFACT_ARGS)

clean:  ## remove reports and caches; .venv stays
	find reports -mindepth 1 ! -name .gitignore -delete
	rm -rf build .pytest_cache .ruff_cache .mypy_cache .hypothesis spark-warehouse
	find cepbench tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
