# The door: each target sets up what is missing (scripts/setup), then calls CMake, ctest or the binary. `make` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build program study explain check format test test-slow test-faults test-cluster test-asan test-tsan fuzz oracles bench-training bench-scaling bench-optimizers bench-curvature coverage tidy wheel docs clean

ifndef PRESET
PRESET := $(shell BASIN_CUDA=$(BASIN_CUDA) scripts/setup preset)
endif
BUILD := build/$(PRESET)
BASIN := $(BUILD)/bin/basin
PYTHON := .venv/bin/python
JOBS ?= 2
CTEST := ctest --test-dir $(BUILD) --output-on-failure --no-label-summary

export PYTHONPATH := $(CURDIR)/python
export PYTHONDONTWRITEBYTECODE := 1
# What notebooks and matplotlib would otherwise leave in $HOME.
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export IPYTHONDIR := $(CURDIR)/.cache/ipython
export JUPYTER_CONFIG_DIR := $(CURDIR)/.cache/jupyter/config
export JUPYTER_DATA_DIR := $(CURDIR)/.cache/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CURDIR)/.cache/jupyter/runtime

help:            ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1 	/' | expand -t 26

setup:           ## install missing system packages and the Python environment
	@scripts/setup

build: setup     ## configure and build everything (PRESET=release, or cuda where there is a GPU)
	@test $(BUILD)/build.ninja -nt CMakePresets.json || cmake --preset $(PRESET)
	@cmake --build $(BUILD) -j $(JOBS)

program: setup   ## configure, and build the program alone
	@test $(BUILD)/build.ninja -nt CMakePresets.json || cmake --preset $(PRESET)
	@cmake --build $(BUILD) -j $(JOBS) --target basin

study: program   ## the quick study on the embedded data: out/quick/{table.md,sweep.h5,report.html}
	$(BASIN) sweep configs/quick.toml --out out/quick --jobs $(JOBS)
	$(PYTHON) -m basin.report out/quick

explain: program ## why accuracy drops, both stages on the embedded data: out/explain{,-matched}/{table.md,verdicts.md,report.html}
	$(BASIN) sweep configs/explain.toml --out out/explain --jobs $(JOBS)
	$(PYTHON) -m basin.report out/explain
	$(BASIN) sweep configs/explain-matched.toml --out out/explain-matched --jobs $(JOBS)
	$(PYTHON) -m basin.report out/explain-matched

check:           ## without a build: format, lint, types, rooms, links of docs, phrases
	@scripts/setup check
	@scripts/check

format:          ## format every C++ and Python source in place
	@scripts/setup check
	@scripts/check --format

# One more at a time than there are processors to use: tests of killed, silent and interrupted processes wait for most of their time.
test: build      ## every test but the slow ones
	@scripts/setup tests
	@$(CTEST) -LE 'slow|oracle' -j $$(( $(JOBS) + 1 ))

test-slow: build ## the campaigns: many kills, whole studies
	@$(CTEST) -L slow -j $(JOBS)

# What of it is made: FAULTS="--dry-run", FAULTS="--only kills --kills 2000" (docs/reliability.md).
test-faults: program ## kills at random moments, machines at fault, a sweep of 2,000 runs; hours, goes on where it was stopped: out/faults/table.md
	@BASIN_BINARY=$(CURDIR)/$(BASIN) $(PYTHON) tests/faults/campaign.py --out out/faults --dry-run $(FAULTS)
	@BASIN_BINARY=$(CURDIR)/$(BASIN) $(PYTHON) tests/faults/campaign.py --out out/faults $(FAULTS)

CASES ?= slow or not slow
ifeq ($(shell id -u),0)
test-cluster: build ## the program under a real Slurm, two nodes on this host whose jobs and machines are killed (needs root; quick part: CASES="not slow")
	@scripts/setup cluster
	@BASIN_BINARY=$(CURDIR)/$(BASIN) BASIN_SOURCE_DIR=$(CURDIR) OMP_NUM_THREADS=1 \
	  $(PYTHON) -m pytest -q -rs -p no:cacheprovider -m "$(CASES)" tests/cluster
else
test-cluster:
	@echo "test-cluster: SKIPPED, nothing was tested: Slurm's daemons need root"
endif

oracles: build   ## compare with PyTorch (its own environment, .venv-oracles)
	@scripts/setup oracles
	@$(CTEST) -L oracle -j $(JOBS)

bench-training: build ## training speed against PyTorch, eager, careful and compiled: out/bench/training.json
	@scripts/setup oracles
	$(PYTHON) bench/training.py --bin $(BUILD)/bin --python .venv-oracles/bin/python --out out/bench/training.json

bench-scaling: build ## a run on 1 and 2 ranks against PyTorch's DistributedDataParallel: out/bench/scaling.json
	@scripts/setup oracles
	$(PYTHON) bench/scaling.py --bin $(BUILD)/bin --python .venv-oracles/bin/python --out out/bench/scaling.json

bench-optimizers: build ## time of an update against torch.optim and torch_optimizer: out/bench/optimizers.json
	@scripts/setup peers
	$(PYTHON) bench/optimizers.py --basin $(BUILD)/bin/bench_optimizers --python .venv-peers/bin/python --out out/bench/optimizers.json

bench-curvature: build ## eigenvalues against PyHessian, curvlinops, eigenthings and eigsh: out/bench/curvature.json
	@scripts/setup peers
	$(PYTHON) bench/curvature.py --basin $(BUILD)/bin/bench_curvature --python .venv-peers/bin/python --out out/bench/curvature.json
	@BASIN_BINARY=$(BUILD)/bin/basin PYTHONPATH=python .venv-peers/bin/python bench/your_network.py

coverage: setup  ## line coverage of the rooms by the tests; fails below 85 %
	@cmake --preset coverage
	@cmake --build build/coverage -j $(JOBS)
	@find build/coverage -name '*.gcda' -delete
	@# What is left of sources that are gone would be looked for.
	@ninja -C build/coverage -t cleandead >/dev/null
	@find build/coverage -name '*.gcno' -exec sh -c 'test -e "$${1%.gcno}.o" || rm "$$1"' _ {} \;
	@# A limit on the size of a program's files also cuts gcov's own, and a consumer would have to link gcov.
	@ctest --test-dir build/coverage --output-on-failure --no-label-summary -LE 'slow|oracle' -E '^apps[.]FullDisk|package' -j $(JOBS)
	@$(PYTHON) scripts/coverage.py build/coverage --at-least 85

test-asan: setup ## every test but the slow ones with address and undefined-behaviour sanitizers
	@cmake --preset asan
	@cmake --build build/asan -j $(JOBS)
	@ctest --preset asan -j $(JOBS)

# Ranks as threads, the process pool, and what trains: the rest has one thread of its own.
test-tsan: setup ## thread sanitizer over the process pool, the ranks, their sums and the hooks
	@cmake --preset tsan
	@cmake --build build/tsan -j $(JOBS) --target basin test_core test_ranks test_trainers
	@scripts/tsan

fuzz: setup      ## a million mutants of each kind of file that Basin reads, under sanitizers (clang's libFuzzer): out/fuzz/
	@scripts/setup fuzz
	@cmake --preset fuzz
	@cmake --build build/fuzz -j $(JOBS) --target fuzz
	@scripts/fuzz --jobs $(JOBS)

tidy:            ## clang-tidy over every source
	@scripts/setup tidy
	@cmake --preset tidy
	@.venv-tidy/bin/python .venv-tidy/bin/run-clang-tidy.py -clang-tidy-binary .venv-tidy/bin/clang-tidy -p build/tidy -quiet \
	  -j $(JOBS) -warnings-as-errors '*' $(addprefix -extra-arg=,-Wno-unknown-warning-option -fmodules -fcxx-modules \
	    -fmodule-map-file=$(CURDIR)/core/precompiled.modulemap -fmodules-cache-path=$(CURDIR)/build/tidy/modules) '^(?!.*/generated/)'

wheel: setup     ## two wheels: the Python package, and the program for machines without a compiler: out/wheels/
	@scripts/setup wheel
	@rm -rf out/wheels
	@.venv-wheel/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir out/wheels ./python ./python/engine
	@.venv-wheel/bin/wheel tags --remove --platform-tag manylinux_2_36_x86_64 out/wheels/basin_sharpness_engine-*-linux_x86_64.whl
	@ls -l out/wheels

docs:            ## one searchable offline site of all documents, the C++ and the Python API: out/site/index.html
	@scripts/setup docs
	@.venv-docs/bin/python scripts/docs_site/build.py
	@.venv-docs/bin/python -m pytest -q -p no:cacheprovider tests/docs/test_site.py

clean:           ## remove build trees (keeps environments and results)
	rm -rf build
