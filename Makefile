# make demo | up | test | check | bench: each makes .venv first, when it is missing or out of date.
PYTHON ?= python3
WORKERS ?= 3

.PHONY: help environment demo up test check format bench contracts contracts-audit lock clean

help:
	@echo "make demo    the whole flow on real engines, three tasks, then everything stops"
	@echo "make up      all in one, stays up; prints URLs and a funded development wallet"
	@echo "make test    all tests but the longest, on the same real engines"
	@echo "make check   format, lint, types, imports, all tests"
	@echo "make format  rewrite the code in the project's format"
	@echo "make bench   speed and memory, as a table"
	@echo "make contracts  compile and test the contracts, write their artifacts (needs node and npm)"
	@echo "make contracts-audit  slither and halmos over the contracts, each in its own environment"
	@echo "make lock    resolve the dependencies anew into .ci/requirements.txt"
	@echo "make clean   remove .venv and caches"

environment:
	@PYTHON="$(PYTHON)" .ci/environment

demo: environment
	@.venv/bin/offpeak demo

up: environment
	@.venv/bin/offpeak up

test: environment
	@echo "test: pytest"
	@.venv/bin/python -m pytest -q -n $(WORKERS) --dist loadgroup -m "not long"

check: environment
	@echo "check: format"
	@.venv/bin/ruff format --check .
	@echo "check: lint"
	@.venv/bin/ruff check .
	@echo "check: types"
	@.venv/bin/mypy
	@echo "check: imports"
	@.venv/bin/lint-imports --no-logo
	@echo "check: tests"
	@.venv/bin/python -m pytest -q -n $(WORKERS) --dist loadgroup

format: environment
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .

bench: environment
	@.venv/bin/python -m tests.bench

contracts: environment
	@.venv/bin/python -m tests.packaging.contracts

contracts-audit: environment
	@.venv/bin/python -m tests.packaging.contracts_audit

lock: environment
	@.ci/lock

clean:
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .schemathesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "clean: removed .venv and caches"
