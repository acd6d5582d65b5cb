# `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# ARGS reaches the underlying command: make test ARGS="-k checkpoint"
ARGS ?=
# Several processes, each file of tests in one of them, in the order of the folders: the long ones
# are not left for the end. Their threads must not wait in busy loops: they would take each other's
# cores.
PARALLEL := OMP_WAIT_POLICY=passive $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
QUICK := $(PARALLEL) -n 2 -m "not slow and not ray and not data"
# These wait more than they compute: for Ray, for leases to expire, for machines to be missed.
REST := $(PARALLEL) -n 3 --durations=20 -m "slow or ray or data"

.DEFAULT_GOAL := help
.PHONY: help install demo readme quick test chaos check format bench clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

# torch first and on its own: a resolver that sees an open range would replace it
# with a newer build and several gigabytes of accelerator packages.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version)'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

install: $(STAMP) ## build .venv from nothing when it is missing or stale

DEMO_DATA := data/quickstart

$(DEMO_DATA)/edges.parquet: peg_core/generators/paper_graph.py peg_core/generators/paper_words.py | $(STAMP)
	$(BIN)/peg generate papers --papers 2400 --nodes-out $(DEMO_DATA)/nodes.parquet \
		--candidates 300000 --candidates-out $(DEMO_DATA)/candidates.parquet \
		--out $@ --overwrite

demo: $(STAMP) $(DEMO_DATA)/edges.parquet ## generate a graph, run the quickstart, show ten predicted links and the report
	$(BIN)/peg run configs/quickstart.yaml $(ARGS)
	@echo
	$(BIN)/peg top configs/quickstart.yaml --count 10 --show field --show words
	@echo
	@echo "report: runs/quickstart/current/report/report.html"

# In a folder of its own, so that the runs of this one stay as they are.
readme: $(STAMP) $(DEMO_DATA)/edges.parquet ## run the commands of the README and record what they print
	$(BIN)/python docs/record_readme.py

quick: $(STAMP) ## run the quick part of the tests, in less than two minutes
	@start=$$(date +%s); $(QUICK) $(ARGS); code=$$?; \
		echo "quick part: $$(($$(date +%s) - start)) s"; exit $$code

# Measuring makes the quick part half as slow again, so the rest is run without. Chosen tests
# (ARGS) are run as they are.
test: $(STAMP) ## run every test and print the coverage of the quick part (ARGS chooses tests)
ifeq ($(strip $(ARGS)),)
	$(QUICK) --cov --cov-report=
	$(REST)
	@echo "coverage of the quick part: $$($(BIN)/coverage report --format=total) %"
else
	$(BIN)/python -m pytest $(ARGS)
endif

TRIALS ?= 100
SEED ?= 0
JOBS ?= 2

chaos: $(STAMP) ## kill runs at random and compare what they compute (TRIALS, SEED, JOBS)
	$(BIN)/python -m tests.faults.chaos --trials $(TRIALS) --seed $(SEED) --jobs $(JOBS) $(ARGS)

check: $(STAMP) ## lint, format, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## rewrite the sources in house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## run every benchmark, each beside its peer
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean: ## remove .venv, caches and the demo's data and runs
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage runs/quickstart $(DEMO_DATA)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
