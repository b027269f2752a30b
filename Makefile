# Everything a newcomer needs: `make reproduce` and `make test` set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: help setup test test-long reproduce serve demo browser lint types imports bench clean

help:           ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(STAMP) ## create .venv with everything pinned

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "surefoot needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

reproduce: setup ## the paper's experiment at full scale, into results/paper
	$(BIN)/surefoot reproduce

serve: setup    ## decisions over HTTP at 127.0.0.1:8080, kept in surefoot.journal
	$(BIN)/surefoot serve

demo: setup     ## service, page and simulated visitors: a learner goes from its baseline to free play in a minute
	$(BIN)/surefoot demo

CHROMIUM_FOUND = command -v "$${CHROMIUM:-chromium}" || command -v chromium-browser || command -v google-chrome

browser:        ## Debian's Chromium for the page's tests, where it is missing and may be installed
	@{ $(CHROMIUM_FOUND); } >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "No Chromium, so the browser's tests will be skipped: apt-get install chromium, or set CHROMIUM to one you have."

test: setup browser lint types imports ## what CI runs: linters, types, imports, all tests but the long ones
	$(BIN)/pytest -q -n 2 --dist worksteal

test-long: setup ## the runs that take minutes
	$(BIN)/pytest -q -m long

lint: setup
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports --no-logo

bench: setup    ## speed as ratios, measured in one run
	$(BIN)/python -m bench

clean:          ## remove what the other targets made
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
