# Every target sets up what it needs, from Python 3.11, a shell and make. Type `make` for what there is.

VENV := .venv
DOCS_VENV := .venv-docs
BIN := $(VENV)/bin
# PYTHON=python3.13 make test: another Python. Without it, the first one found that is new enough.
PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$candidate" && break; \
	done)

# PYTEST="-k policies -x" make test: only some of the tests.
PYTEST ?=
# RACE=--short make race: fewer calls and rounds.
RACE ?=
# UPGRADE=1 make lock: the newest releases, rather than the pinned ones wherever they still fit.
UPGRADE ?=

# What Python compiles is kept, also where the environment says not to: each process that compiles for the studies, and
# each server that a test starts, would read all its sources anew, half a second of every start.
unexport PYTHONDONTWRITEBYTECODE

say = @printf '\n\033[1m== %s\033[0m\n'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test lint bench race docs smoke sbom lock clean

help: ## say what there is
	@printf 'pamo: make TARGET. The first call sets up $(VENV); the next ones start at once.\n\n'
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do \
		printf '%-10s %s\n' "$$name" "$$what"; done
	@printf '\nSettings:\n'
	@printf '  PYTHON=python3.13 make test         set up with that Python, after make clean\n'
	@printf '  PYTEST="-k policies -x" make test   pass options to pytest\n'
	@printf '  PAMO_BROWSER=/path make test        use that Chromium, rather than look for one\n'
	@printf '  RACE=--short make race              a race of some minutes\n'
	@printf '  UPGRADE=1 make lock                 move to the newest releases\n'
	@printf '\nAfter the first call, $(BIN) holds pamo, python, pytest, ruff and mypy,\n'
	@printf 'and $(BIN)/pre-commit install has git check each commit.\n'

run: $(VENV)/.runs ## reproduce the paper's figures
	$(say) 'Reproducing the paper'
	$(BIN)/pamo reproduce

test: lint ## check everything: lint, then the tests and the examples in the docstrings
	$(say) 'Running the tests, with a browser for those that look at pages'
	@# One more at a time than there are cores: a fifth of the time a test waits, for a server, a database or a browser.
	browser=$$($(BIN)/python scripts/browser.py --remember $(VENV)/.browser) && \
		workers=$$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)') && \
		PAMO_BROWSER="$$browser" $(BIN)/python -m pytest --numprocesses "$$workers" --dist worksteal $(PYTEST)

lint: $(VENV)/.ready ## check style, types and who imports whom
	$(say) 'Checking style'
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(say) 'Checking types'
	$(BIN)/mypy
	$(say) 'Checking who imports whom'
	$(BIN)/lint-imports

bench: $(VENV)/.ready ## measure speed: the simulator beside a plain NumPy loop, the service beside a bare echo
	$(say) 'Measuring'
	$(BIN)/python -m benchmarks

race: $(VENV)/.ready ## measure pamo beside other libraries, each in an environment of its own under .race/
	$(say) 'Racing'
	$(BIN)/python -m benchmarks.race $(RACE)

docs: $(DOCS_VENV)/.ready $(VENV)/.runs ## build the documentation into docs/_build/html, the paper's report in it
	$(say) 'Reproducing the paper, where that is not done yet'
	$(BIN)/pamo reproduce
	$(say) 'Building the documentation'
	@# -E: a page that is not read again does not repeat its warning, and a second build would hide the first's.
	$(DOCS_VENV)/bin/python -m sphinx -E -W --keep-going -b html docs docs/_build/html
	cp reports/paper/report.html docs/_build/html/report.html

smoke: $(VENV)/.ready ## install the wheel into clean environments, by pip and by uv, with each extra
	$(say) 'Trying the wheel'
	$(BIN)/python scripts/smoke.py

sbom: $(VENV)/.ready ## list every package that pamo brings in, with its licence and its hashes, into dist/
	$(say) 'Listing what pamo is made of'
	$(BIN)/python scripts/sbom.py dist/pamo.cdx.json

# The pinned versions are those for every supported Python and system (--universal); the files name no index, so that
# each machine uses its own.
COMPILE = scripts/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)

lock: $(VENV)/.uv ## pin the dependencies anew, from pyproject.toml into requirements/
	$(say) 'Pinning the dependencies'
	echo uv | $(COMPILE) --output-file requirements/uv.txt -
	$(COMPILE) --extra all --group dev --output-file requirements/dev.txt pyproject.toml
	$(COMPILE) --extra all --group build --constraints requirements/dev.txt --output-file requirements/run.txt pyproject.toml
	$(COMPILE) --extra docs --constraints requirements/dev.txt --output-file requirements/docs.txt pyproject.toml

clean: ## remove the environments and all that was built
	rm -rf $(VENV) $(DOCS_VENV) .race docs/_build dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What is set up already is known by files inside the environments, so that removing one resets it.

$(VENV)/.uv: requirements/uv.txt
	$(say) 'Setting up $(VENV)'
	@test -n '$(PYTHON)' || { echo 'pamo needs Python 3.11 or newer, and found none: PYTHON=/path/to/python make' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

# What pamo itself takes, of the same versions: a third of what its tests do.
$(VENV)/.runs: $(VENV)/.uv requirements/run.txt pyproject.toml src/pamo/_version.py
	$(say) 'Installing pamo from src/, with all that it can use'
	scripts/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/run.txt
	scripts/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.ready: $(VENV)/.uv requirements/dev.txt pyproject.toml src/pamo/_version.py
	$(say) 'Installing the pinned dependencies, and pamo itself from src/'
	@# Compiled on the way in, since the first start would do so otherwise, or every start where it may not write.
	scripts/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements/dev.txt
	scripts/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# An environment of its own: Sphinx's dependencies should not decide what the tests run against.
$(DOCS_VENV)/.ready: $(VENV)/.uv requirements/docs.txt
	$(say) 'Setting up $(DOCS_VENV)'
	scripts/uv venv --quiet --clear --python $(BIN)/python $(DOCS_VENV)
	scripts/uv pip sync --quiet --python $(DOCS_VENV)/bin/python --require-hashes requirements/docs.txt
	@touch $@
