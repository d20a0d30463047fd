# Needs python3 (3.11 or later), pip and make; everything else comes from requirements-dev.lock.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

NUMBA_CACHE := $(CURDIR)/.cache/numba
export NUMBA_CACHE_DIR := $(NUMBA_CACHE)
WARM := $(NUMBA_CACHE)/.warm
# One thread per test process: the tests are spread over processes already.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 tests src $(wildcard README.md)

.PHONY: help setup test test-all test-lowest lint format docs reproduce bench lock clean
.DELETE_ON_ERROR:

help:
	@echo "make setup      .venv with the locked dependencies and this package, kernels compiled"
	@echo "make test       what must hold on each change: tests, doctests, the README's examples"
	@echo "make test-all   the same and the slow and statistical tests"
	@echo "make test-lowest  the tests with the lowest versions that pyproject.toml allows"
	@echo "make lint       ruff and mypy          make format     ruff's formatter and safe fixes"
	@echo "make docs       the documentation site, into docs/_build/html"
	@echo "make reproduce  the paper's experiment make bench      the benchmarks"
	@echo "make lock       both locks anew        make clean      remove all that can be made again"

setup: $(STAMP) $(WARM)

# Wheels only: no code of a package runs while it is installed.  The lock is complete, so pip resolves nothing; it would
# miss gym, which icu-sepsis asks for and nobody here imports.  Python compiles what is imported, and no more.
$(STAMP): requirements-dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --no-deps \
		--no-compile -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Every kernel is compiled once, here, so that no later process has to (nor two test processes at once).  An edit makes
# the cache stale (core/compiling/jit.py); sources that only look newer are loaded in a few seconds.
$(WARM): $(STAMP) $(shell find src/livarot -name '*.py')
	$(BIN)/livarot warmup
	touch $@

test: setup
	$(PYTEST) -m "not slow and not statistical"

test-all: setup
	$(PYTEST)

# In an environment of its own.  Old packages warn of what newer ones of their own dependencies deprecate.
LOWEST := .cache/lowest
test-lowest:
	rm -rf $(LOWEST); $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: uv
	$(LOWEST)/bin/uv pip compile pyproject.toml --extra dev --resolution lowest-direct --only-binary :all: --quiet \
		--python $(LOWEST)/bin/python -o $(LOWEST)/versions.txt
	$(LOWEST)/bin/uv pip install --python $(LOWEST)/bin/python --only-binary :all: --no-deps -r $(LOWEST)/versions.txt
	$(LOWEST)/bin/uv pip install --python $(LOWEST)/bin/python --no-deps --no-build-isolation -e .
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest \
		-n 2 tests -m "not slow and not statistical and not long" -W ignore::DeprecationWarning

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Offline, warnings are errors; what has not changed is not read or executed again.
docs: setup
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/sphinx-build -q -W --keep-going -b html \
		-d docs/_build/doctrees docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# It compiles what it needs by itself, a fifth of all kernels.
reproduce: $(STAMP)
	$(BIN)/livarot reproduce

bench: setup
	$(BIN)/python -m benchmarks.core

# Hashes for every platform and Python the package supports, wheels only, and no host or path in the files.
COMPILE := pip compile pyproject.toml --universal --generate-hashes --only-binary :all: --emit-build-options \
	--no-emit-index-url --no-header --upgrade --quiet
lock:
	set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(PYTHON) -m venv "$$folder"; \
	"$$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: uv; \
	"$$folder/bin/uv" $(COMPILE) --extra dev -o requirements-dev.lock; \
	"$$folder/bin/uv" $(COMPILE) --extra all --constraints requirements-dev.lock -o requirements.lock

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	rm -rf docs/_build docs/api docs/environment docs/gallery docs/sg_execution_times.rst
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
