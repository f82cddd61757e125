# make demo             a recorded run of four passes, at readable speed; no key, no model
# make run task="..."   the main job: environment, installation and run (args="key=value ..." for overrides)
# make test             the same for the tests, but for the slow ones (args="-k name" for pytest)
# make test-slow        the tests that take a third of a second or more each
# make test-browser     the pages in Chromium, which it installs on Debian where there is none
# make test-local       the tests of the model in this process; compiles llama-cpp-python, once, for some minutes
# make test-cluster     sweeps and batches with Ray and other launchers, which it installs
# make test-mcp         `aeon mcp` with the conformance suite and the TypeScript SDK of MCP, which it installs; needs npm
# make test-inspect     logs and solvers of Inspect, which it installs
# make test-lowest      the quick tests with the lowest versions of dependencies that pyproject.toml allows
# make test-wheel       a built wheel in an empty environment: the version, the demo and a simulated run
# make test-pythons     the quick tests with each Python from 3.11 to 3.14 that is installed
# make coverage         the quick tests with the branches that they take; fails below the floor in pyproject.toml
# make test-hydra-next  the tests of composing with the next version of Hydra, in release or not
# make bench            what Aeon costs beside the model, as JSON
# make lint             style, types, import contracts, dependencies, spelling
# make complexity       the most complex functions, counted strictly
# make site             the project's pages and the reference of its Python interface, in build/site
#
# Needs Python >= 3.11 and a package index; PYTHON=... names another interpreter.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo run test test-slow test-browser chromium test-local test-cluster test-mcp test-inspect test-lowest test-wheel test-pythons \
	coverage test-hydra-next bench lint complexity site clean
# Else make expands the task's text once more, when it hands its variables to the shell.
unexport task
# Kept bytecode halves what each of the tests' many processes costs.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && echo $$python && break; done)

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

# By call and order, so that a prompt that was edited since the recording does not end it.
demo: $(VENV)/installed
	@$(BIN)/python -m aeon store.mode=replay store.path=examples/cassettes/web-architecture.aeon \
		store.match=order store.pace_seconds=2 $(args)
	@echo 'This was a recording. A run of your own: make run task="..."' >&2

# The text travels through the environment and standard input, so that no shell and no make reads anything into it. Only blanks
# at its very beginning are lost: make strips them from what its command line sets. `task="  x" make run` and
# `make run args="task_file=FILE"` keep them.
run: export AEON_TASK := $(value task)
run: export AEON_ARGS := $(value args)
run: $(VENV)/installed
	@if [ -n "$$AEON_TASK" ]; then printf '%s' "$$AEON_TASK" | $(BIN)/python -m aeon task=- $(args); status=$$?; \
	elif [ -n "$$AEON_ARGS" ]; then $(BIN)/python -m aeon $(args); status=$$?; \
	else echo 'No task is given. Say what to do: make run task="..."' >&2; exit 2; fi; \
	if [ $$status -eq 3 ]; then \
		echo "The run finished without converging (exit status 3). Its answer and its artefacts are the best it had." >&2; \
	fi; exit $$status

# Tests against MCP servers written for Node are skipped where there is no npm to install them.
NODE_SERVERS := $(if $(shell command -v npm 2> /dev/null),$(patsubst %/package.json,%/node_modules,$(wildcard tests/mcp/package.json)))

# `make test-local`, `test-browser`, `test-cluster` and `test-inspect` run the others. One process for each logical core.
PYTEST := $(BIN)/python -m pytest $(addprefix --ignore=tests/,llm/local browser cluster inspect) -n logical --dist worksteal

test: $(VENV)/installed-dev $(NODE_SERVERS)
	$(PYTEST) -m "not slow" $(args)

test-slow: $(VENV)/installed-dev $(NODE_SERVERS)
	$(PYTEST) -m slow $(args)

test-browser: $(VENV)/installed-dev chromium
	$(BIN)/python -m pytest tests/browser $(args)

chromium:
	@command -v chromium > /dev/null || { echo "Installing chromium ..." >&2; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium > /dev/null; } || \
		{ echo "The tests need chromium: install it, then run make test-browser again." >&2; exit 1; }

test-local: $(VENV)/installed-local
	$(BIN)/python -m pytest tests/llm/local $(args)

test-cluster: $(VENV)/installed-cluster
	$(BIN)/python -m pytest tests/cluster $(args)

# A Node that is new enough comes with the packages.
MCP_NODE := $(VENV)/mcp-node
test-mcp: $(VENV)/installed-dev $(MCP_NODE)/installed
	AEON_TEST_NODE=$(abspath $(MCP_NODE)) $(BIN)/python -m pytest tests/service/mcp/test_node.py $(args)

$(MCP_NODE)/installed: $(wildcard tests/service/mcp/node/*)
	@command -v npm > /dev/null || { echo "make test-mcp needs npm: install Node, then run it again." >&2; exit 1; }
	@echo "Installing the conformance suite and the TypeScript SDK into $(MCP_NODE) ..." >&2
	@mkdir -p $(MCP_NODE)
	@cp tests/service/mcp/node/*.json tests/service/mcp/node/*.mjs $(MCP_NODE)
	@npm install --prefix $(MCP_NODE) --no-package-lock --no-audit --no-fund --loglevel=error >&2
	@touch $@

# What Inspect warns of itself is no failure.
test-inspect: $(VENV)/installed-inspect
	$(BIN)/python -m pytest -W default tests/inspect $(args)

# These look at what the program has loaded; what counts the branches loads sqlite3 and threading itself.
UNCOUNTED := terminal/test_interrupt.py::test_ctrl_c_while_the_program_is_loaded_leaves_no_traceback \
	test_front_door.py::test_a_mistake_in_the_configuration_does_not_load_the_engine
coverage: $(VENV)/installed-dev $(NODE_SERVERS)
	$(PYTEST) -m "not slow" --cov --cov-report=term:skip-covered $(addprefix --deselect=tests/cli/,$(UNCOUNTED)) $(args)

# Direct dependencies at their lowest, what comes with them at its newest, in an environment of its own.
LOWEST := $(VENV)/lowest
test-lowest: $(LOWEST)/installed-dev
	@$(MAKE) --no-print-directory test VENV=$(LOWEST)

$(LOWEST)/installed-dev: pyproject.toml constraints.txt | $(VENV)/installed-dev
	@echo "Installing the lowest versions into $(LOWEST) ..." >&2
	@rm -rf $(LOWEST)
	@$(BIN)/uv venv --quiet --python $(BIN)/python $(LOWEST)
	@$(BIN)/uv pip compile --quiet --no-annotate --no-header --python $(LOWEST)/bin/python \
		--resolution lowest-direct --extra dev --output-file $(LOWEST)/versions.txt pyproject.toml
	@$(BIN)/uv pip sync --quiet --python $(LOWEST)/bin/python $(LOWEST)/versions.txt
	@$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --no-deps -e .
	@touch $@

# As a stranger would, in an empty folder: nothing of the checkout is found by chance.
WHEEL := $(VENV)/wheel
test-wheel: $(VENV)/installed-dev
	@rm -rf $(WHEEL)
	$(BIN)/python -m build --wheel --outdir $(WHEEL)/dist > /dev/null
	@$(BIN)/python -m venv $(WHEEL)/environment
	$(WHEEL)/environment/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(WHEEL)/dist/*.whl
	@mkdir $(WHEEL)/empty
	cd $(WHEEL)/empty && ../environment/bin/aeon --version
	cd $(WHEEL)/empty && ../environment/bin/aeon progress=none store.mode=replay store.match=order \
		store.path=$(CURDIR)/examples/cassettes/web-architecture.aeon > answer.md && test -s answer.md
	cd $(WHEEL)/empty && ../environment/bin/aeon ask "name three rivers" provider=simulated progress=none

test-pythons: $(VENV)/installed-dev
	$(BIN)/nox --session tests $(args)

# The next Hydra and its OmegaConf lie in a folder before the installed ones; what fails is what an upgrade has to mend.
HYDRA_NEXT := $(VENV)/hydra-next
test-hydra-next: $(HYDRA_NEXT)/installed
	PYTHONPATH=$(abspath $(HYDRA_NEXT)) $(BIN)/python -m pytest -q -n logical --dist worksteal tests/config \
		tests/cli/test_main.py tests/cli/test_multirun.py tests/cli/test_unreadable.py $(args)

$(HYDRA_NEXT)/installed: $(VENV)/installed-dev
	@echo "Fetching the next version of Hydra into $(HYDRA_NEXT) ..." >&2
	@rm -rf $(HYDRA_NEXT)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(HYDRA_NEXT) --pre 'hydra-core==1.4.*' 'omegaconf>=2.4.1rc1,<2.5'
	@touch $@

bench: $(VENV)/installed-dev
	@$(BIN)/python benchmarks/bench.py $(args)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/codespell

complexity: $(VENV)/installed-dev
	@$(BIN)/python -m tests.test_bounds

site: export NO_MKDOCS_2_WARNING := 1
site: $(VENV)/installed-site
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) tests/mcp/node_modules

# Versions are exact in package.json; a lock file would record where they came from.
tests/mcp/node_modules: tests/mcp/package.json
	@echo "Installing MCP servers into $@ ..." >&2
	@npm install --prefix tests/mcp --no-package-lock --no-audit --no-fund --loglevel=error >&2
	@touch $@

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Aeon needs Python 3.11 or newer; PYTHON=/path/to/python3 names one." >&2; exit 1; }
	@echo "Making the environment $(VENV) with $(PYTHON) ..." >&2
	@$(PYTHON) -m venv $(VENV)

# The stamps keep a second call from installing again; a changed dependency installs anew.
# pip compiles what it copies, and an editable installation is not copied.
$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@$(BIN)/python -m compileall -q aeon
	@touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -q aeon
	@touch $@ $(VENV)/installed

$(VENV)/installed-site: pyproject.toml constraints.txt $(VENV)/installed-dev
	@echo "Installing what makes the pages into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	@touch $@

# The part of llama.cpp that looks at pictures is left out: compiling it takes a quarter of the time.
$(VENV)/installed-local: export CMAKE_ARGS ?= -DLLAVA_BUILD=OFF
$(VENV)/installed-local: pyproject.toml constraints.txt $(VENV)/installed-dev
	@echo "Compiling llama-cpp-python into $(VENV), which takes minutes ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[local-test]'
	@touch $@

$(VENV)/installed-inspect: pyproject.toml constraints.txt $(VENV)/installed-dev
	@echo "Installing Inspect into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[inspect-test]'
	@touch $@

$(VENV)/installed-cluster: pyproject.toml constraints.txt $(VENV)/installed-dev
	@echo "Installing Ray and launchers into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cluster-test]'
	@touch $@
