# Everything a newcomer needs: `make reproduce` and `make test` set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
BUILT := .venv/.built
PEERS := .venv/.peers
PIP := $(BIN)/pip install --quiet --quiet --disable-pip-version-check
NATIVE := $(shell find src/surefoot/core -name '*.[ch]pp')
PYTHON_FOLDERS := src tests bench docs examples
# Workers share the processors; threads of BLAS that wait for work would keep them busy beside that. A third worker plays
# while others wait for servers, disks and children.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n 3 --dist worksteal
SANITIZED := build/sanitized
SANITIZED_TESTS := tests/core tests/linear tests/safety tests/policies/test_conformance.py

.PHONY: help setup compiler test test-long test-native reproduce serve demo docs browser coq proofs lint tidy types imports bench sbom wheel clean

help:           ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(BUILT) ## create .venv with everything pinned, and build the core where its sources changed

# `using enum` came to g++ with 11, as did the levels of x86-64 that the core is built for.
CXX20_FOUND = echo 'template <class T> concept number = requires(T x) { x + x; }; enum class yes { no }; using enum yes;' | \
	$${CXX:-c++} -std=c++20 -fsyntax-only -x c++ - 2>/dev/null

compiler:       ## g++ for the core, where it is missing and may be installed
	@{ $(CXX20_FOUND); } || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++ >/dev/null && $(CXX20_FOUND); } || \
	  { echo "surefoot needs a compiler for C++20, such as g++ 11 or newer: apt-get install g++, or set CXX to one you have."; exit 1; }

NEW_ENVIRONMENT = { $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "surefoot needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; } } && $(PYTHON) -m venv .venv

$(STAMP): requirements/dev.txt requirements/docs.txt requirements/litellm.txt | compiler
	@$(NEW_ENVIRONMENT)
	$(PIP) -r requirements/dev.txt -r requirements/docs.txt
	$(PIP) --no-deps -r requirements/litellm.txt
	@touch $@

$(BUILT): $(STAMP) pyproject.toml CMakeLists.txt $(NATIVE)
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# What one command needs, at the same versions, without the tools to develop; and the core for this machine alone, as
# glibc knows it (all builds where it does not say). It compiles while the rest is downloaded.
PACKAGES = $(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*project["dependencies"], *project["optional-dependencies"]["$*"], sep="\n")'
GLIBC := /lib64/ld-linux-x86-64.so.2
THIS_MACHINE = $(subst -,_,$(shell $(GLIBC) --help 2>/dev/null | awk '/^ *x86-64-v[34] .supported/ { print $$1; exit }'))

# A simulation runs for minutes, and is worth the compiler's time; a service is not, unless the simulation has built the core.
QUICK = $(if $(filter service,$*),$(if $(wildcard .venv/.lean-simulation),,-C cmake.define.SUREFOOT_QUICK=ON))
BINDINGS = $(filter-out $(if $(QUICK),%_4.cpp),$(wildcard src/surefoot/core/bindings/*.cpp))
COMPILED = find build -name '*.cpp.o' -newer .venv/pyvenv.cfg 2>/dev/null | wc -l

.venv/.lean-%: requirements/dev.txt pyproject.toml CMakeLists.txt $(NATIVE) | compiler
	@echo "1 of 3: a Python environment in .venv"
	@$(NEW_ENVIRONMENT)
	@echo "2 of 3: what builds the core"
	@$(PIP) --no-compile -c requirements/dev.txt cmake ninja nanobind scikit-build-core
	@echo "3 of 3: the core, for this machine, and the packages of $*; this takes longest"
	@while sleep 5; do echo "        $$($(COMPILED)) of $(words $(BINDINGS)) files compiled"; done & progress=$$!; \
	  { $(PACKAGES) | $(PIP) --no-compile -c requirements/dev.txt -r /dev/stdin; } && echo "        packages installed" & packages=$$!; \
	  $(PIP) --no-deps --no-build-isolation $(QUICK) $(THIS_MACHINE:%=-C cmake.define.SUREFOOT_BUILDS=%) -e . && echo "        core built" && wait $$packages; \
	  done=$$?; kill $$progress; exit $$done
	@touch $@

# The whole set-up serves as well where it is there.
LEAN = $(if $(wildcard $(BUILT)),$(BUILT),.venv/.lean-$(1))

reproduce: $(call LEAN,simulation) ## the paper's experiment at full scale, into results/paper
	$(BIN)/surefoot reproduce

serve: $(call LEAN,service) ## decisions over HTTP at 127.0.0.1:8080, kept in surefoot.journal
	$(BIN)/surefoot serve

demo: $(call LEAN,service) ## service, page and simulated visitors: a learner goes from its baseline to free play in a minute
	$(BIN)/surefoot demo

docs: setup     ## the documentation as a site, which opens from site/index.html and needs no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

CHROMIUM_FOUND = command -v "$${CHROMIUM:-chromium}" || command -v chromium-browser || command -v google-chrome

browser:        ## Debian's Chromium for the page's tests, where it is missing and may be installed
	@{ $(CHROMIUM_FOUND); } >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "No Chromium, so the browser's tests will be skipped: apt-get install chromium, or set CHROMIUM to one you have."

test: setup browser lint types imports ## what CI runs: linters, types, imports, all tests but the long ones
	$(PYTEST)

COQ_FOUND = command -v coqc && command -v coqchk && ocamlfind query zarith

coq:            ## Debian's Coq for the proofs, where it is missing and may be installed
	@{ $(COQ_FOUND); } >/dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends coq ocaml-nox ocaml-findlib libzarith-ocaml-dev >/dev/null && \
	    { $(COQ_FOUND); } >/dev/null; } || \
	  { echo "The proofs need Coq 8.16 or newer and OCaml's Zarith: apt-get install coq ocaml-findlib libzarith-ocaml-dev"; exit 1; }

proofs: setup coq ## the theorem and the checkers through Coq, and ours against the program that comes out of it
	@$(MAKE) --no-print-directory -C proofs

# Peers and data that others collected. Of their own requirements those in use are pinned; torch is gigabytes, and is not.
$(PEERS): $(BUILT) requirements/long.txt
	$(PIP) --no-deps -r requirements/long.txt
	@touch $@

test-long: $(PEERS) ## the runs that take minutes, and those beside obp and on data of others
	$(BIN)/pytest -q -m long

$(SANITIZED)/compile_commands.json: $(BUILT)
	$(BIN)/cmake -S . -B $(SANITIZED) -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Debug -DSUREFOOT_SANITIZE=ON -DSUREFOOT_TESTS=ON \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir) >/dev/null
	@touch $@

# The sanitizers must be loaded before all else. Python keeps memory until it ends, which is no leak of ours.
test-native: $(SANITIZED)/compile_commands.json ## the core's own tests and its Python tests under address and undefined-behaviour sanitizers
	$(BIN)/cmake --build $(SANITIZED) --parallel 2 >/dev/null
	SUREFOOT_NATIVE_BUILD=$(CURDIR)/$(SANITIZED) $(BIN)/pytest -q tests/core/test_native.py
	SUREFOOT_CORE=sanitized SUREFOOT_CORE_DIR=$(CURDIR)/$(SANITIZED) LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) \
	  $$($${CXX:-c++} -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(PYTEST) $(SANITIZED_TESTS)

lint: setup
	$(BIN)/clang-format --dry-run --Werror $(NATIVE) tests/core/native/* tests/simulation/warp.hpp
	$(BIN)/ruff check $(PYTHON_FOLDERS)
	$(BIN)/ruff format --check $(PYTHON_FOLDERS)

# Of the sanitized build, which compiles every file once: of the others clang-tidy would read each file three times.
tidy: $(SANITIZED)/compile_commands.json ## what clang-tidy says of the core
	$(BIN)/clang-tidy --quiet -p $(SANITIZED) $(filter %.cpp,$(NATIVE)) tests/core/native/*.cpp

wheel: setup    ## the sdist, and from it the wheel, into dist
	$(BIN)/python -m build --no-isolation --outdir dist .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports --no-logo

# What the image of the Containerfile installs, at the versions that are tested; and the program that lists it, apart.
SHIPPED := $(shell sed -n "s/.*'\.\[\([a-z,]*\)\]'.*/\1/p" Containerfile)
SHIPPED_PACKAGES = $(PYTHON) -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*project["dependencies"], *(one for extra in sys.argv[1].split(",") for one in project["optional-dependencies"][extra]), sep="\n")'

sbom:           ## every part of the service with its version and licence, in CycloneDX form, as build/sbom/surefoot.cdx.json
	@$(PYTHON) -m venv --clear --without-pip build/sbom/parts && $(PYTHON) -m venv --clear build/sbom/tool
	@build/sbom/tool/bin/pip install -q --disable-pip-version-check cyclonedx-bom
	@$(SHIPPED_PACKAGES) $(SHIPPED) | build/sbom/tool/bin/pip --python build/sbom/parts install -q --disable-pip-version-check -c requirements/dev.txt -r /dev/stdin
	@build/sbom/tool/bin/cyclonedx-py environment build/sbom/parts --pyproject pyproject.toml --output-reproducible -o build/sbom/surefoot.cdx.json

bench: setup    ## speed as ratios, measured in one run
	$(BIN)/python -m bench

clean:          ## remove what the other targets made
	@$(MAKE) --no-print-directory -C proofs clean
	rm -rf .venv build dist site src/surefoot/core/native.pyi .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
