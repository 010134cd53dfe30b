# Everything runs in a virtual environment that is made here from nothing. `make help` lists the targets.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

BIN := $(VENV)/bin
BUILD := build/$(notdir $(VENV))
INSTALLED := $(VENV)/.dc2-installed
# In long words, which the pip of older systems (22.1 and newer) knows too.
INPLACE := $(foreach setting,wheel.cmake=false wheel.py-api= editable.mode=inplace,--config-settings $(setting))

# Tests and benchmarks on public data sets read them from this folder; without it they are skipped.
DC2_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(DC2_DATA),)
export DC2_DATA
endif

.DEFAULT_GOAL := help
.PHONY: help demo test coverage test-slow test-lowest fuzz sanitize lint format bench paper docs man wheels native clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: native ## show what dc2 does, on data made on the spot
	$(BIN)/python -m dc2 demo

test: native lint ## lint, types, tests and doctests, on the native core; lists the slowest ten
	DC2_CORE=native $(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist worksteal --durations=10

# Apart from `make test`, since counting lines takes two fifths more processor time.
coverage: native ## the same tests, with the coverage of src
	DC2_CORE=native $(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist worksteal --cov=dc2 --cov-report=term:skip-covered

# pytest ends with 5 when no test is marked slow, which is no failure.
test-slow: native ## the tests that take longer
	DC2_CORE=native $(BIN)/python -m pytest -m slow || test $$? -eq 5

# The oldest versions that pyproject.toml promises, in an environment of their own. Old packages warn of what has changed
# since; that is not what is tested here.
LOWEST := .venv-lowest
# What only tests use may be of any version; it leaves the old packages as they are.
LOWEST_TOOLS := adbc-driver-sqlite aiohttp duckdb fsspec igraph pooch pytest-xdist scikit-network skops
test-lowest: ## the smoke test and all tests with the oldest packages that are promised
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct ".[all,lowest]"
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python $(LOWEST_TOOLS)
	DC2_CORE=native $(LOWEST)/bin/python tools/smoke.py
	DC2_CORE=native $(LOWEST)/bin/python -m pytest -q -m "not slow" -n $(JOBS) -o filterwarnings=default tests

# Each campaign prints what it found and how to repeat it. FUZZ_LOG: where the first one goes on the next time.
FUZZ_MINUTES ?= 10
FUZZ_MODELS ?= 1000
FUZZ_FILES ?= 1000
FUZZ_COMMANDS ?= 1000
FUZZ_SEED ?= 0
FUZZ_JOBS ?= 1
FUZZ_LOG ?= build/fuzz-$(FUZZ_SEED).jsonl
FUZZ := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests DC2_CORE=native $(BIN)/python

fuzz: native ## look for failures: random fits, damaged models and files, faulty commands, interrupts
	$(FUZZ) tests/fuzz/fuzz_labels.py --minutes $(FUZZ_MINUTES) --jobs $(FUZZ_JOBS) --seed $(FUZZ_SEED) --log $(FUZZ_LOG)
	$(FUZZ) tests/fuzz/fuzz_models.py $(FUZZ_MODELS) --seed $(FUZZ_SEED)
	$(FUZZ) tests/fuzz/fuzz_files.py $(FUZZ_FILES) --seed $(FUZZ_SEED)
	$(FUZZ) tests/fuzz/fuzz_commands.py $(FUZZ_COMMANDS) --seed $(FUZZ_SEED)
	DC2_INTERRUPTS=1000 $(FUZZ) -m pytest -q tests/io/test_atomic.py -k interrupt

# The runtimes of the sanitizers must be loaded before Python is. Python itself leaks by design, so leaks are not looked
# for; ThreadSanitizer does not know the locks of other libraries, so these are left out by name.
SANITIZED_TESTS := $(wildcard tests/core/test_core*.py) tests/core/test_leiden.py tests/trees/test_neighbours.py tests/core/test_concurrency.py
runtime = $(shell $(CXX) -print-file-name=lib$(1).so)
sanitized = LD_PRELOAD="$(1)" PYTHONPATH=tests DC2_CORE=native DC2_SANITIZED=$$(ls build/sanitize/$(2)/_native*.so) \
  $(3) $(BIN)/python -m pytest -q -p support.sanitized_core -p no:cacheprovider $(SANITIZED_TESTS)

sanitize: $(INSTALLED) ## the native core under address, undefined-behaviour and thread sanitizers
	set -e; for kind in address,undefined thread; do \
	  $(BIN)/cmake -S . -B build/sanitize/$${kind%%,*} -G Ninja -DDC2_SANITIZE=$$kind \
	    -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python); \
	  $(BIN)/cmake --build build/sanitize/$${kind%%,*}; done
	$(call sanitized,$(call runtime,asan) $(call runtime,ubsan) $(call runtime,stdc++),address,ASAN_OPTIONS=detect_leaks=0)
	$(call sanitized,$(call runtime,tsan) $(call runtime,stdc++),thread,TSAN_OPTIONS=suppressions=tests/tsan.supp)

lint: $(INSTALLED) ## ruff, mypy and the check of words, changing nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python tools/prose.py

format: $(INSTALLED) ## put the code into shape
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: native ## run every benchmark
	@$(BIN)/python -m pip install --quiet --editable ".[bench]" $(INPLACE)
	@set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; DC2_CORE=native $(BIN)/python $$file; done

# It goes on where it was broken off. QUICK=1: few rows, no downloaded data, minutes instead of hours. More options,
# such as PAPER="--download --runs 3", are those of `python -m evaluation`.
paper: native ## repeat the paper's evaluation into results/paper; QUICK=1 a small form of it into results/paper-quick
	@$(BIN)/python -m pip install --quiet --editable ".[evaluation]" $(INPLACE)
	DC2_CORE=native $(BIN)/python -m evaluation $(if $(QUICK),--quick) $(PAPER)

# Nothing but packages is fetched. Pages made from the code and the examples go to docs/reference, docs/gallery and
# docs/tutorials, which git ignores.
docs: native ## build the site into build/docs; warnings are errors
	@$(BIN)/python -m pip install --quiet --editable ".[docs]" $(INPLACE)
	MPLBACKEND=Agg DC2_CORE=native $(BIN)/python -m sphinx -E -W --keep-going -q -b html docs build/docs
	@echo "open build/docs/index.html"

man: $(INSTALLED) ## write the man page to build/man/dc2.1
	$(BIN)/python docs/_pages/commands.py build/man/dc2.1

wheels: $(INSTALLED) ## build wheels into wheelhouse/, and try each in new environments of every interpreter found
	@$(BIN)/python -m pip install --quiet --editable ".[wheels]" $(INPLACE)
	$(BIN)/python tools/wheels.py

native: $(BUILD)/build.ninja ## compile what changed of the C++ core, into src/dc2/core
	@$(BIN)/cmake --build $(BUILD)

clean: ## remove what was built, and the environment
	rm -rf build dist wheelhouse $(LOWEST) docs/reference docs/gallery docs/tutorials $(VENV) src/dc2/core/_native*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks evaluation examples -name __pycache__ -prune -exec rm -rf {} +

# The editable install is a path to src/ and nothing more: edits of Python files need no reinstall, and the native
# core is compiled by `make native`, where a failure is a failure.
$(INSTALLED): pyproject.toml
	@echo "making the environment $(VENV): a few minutes, the first time"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --editable ".[dev]" $(INPLACE)
	@touch $@

$(BUILD)/build.ninja: $(INSTALLED) CMakeLists.txt
	$(BIN)/cmake --fresh -S . -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	@touch $@
