# make demo   a first look: train the paper's systems on the built-in corpus, write a report
# make test   everything that is checked: lint, types, import contract, tests, documents
# make bench  speed, side by side with the peers that install
# make docs   the site, strictly

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
USABLE := $(VENV)/usable
STAMP  := $(VENV)/installed
BENCH  := .venv-bench/installed

.PHONY: demo test lint bench docs clean

demo: $(USABLE)
	$(BIN)/spigot demo

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup
	$(MAKE) docs

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(BENCH)
	.venv-bench/bin/python -m benchmarks

# What the demo needs; and what the tests need beside it. The kernels are compiled once.
$(USABLE): pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(PIP) scikit-build-core nanobind cmake ninja pathspec
	$(PIP) --no-build-isolation --editable .
	@touch $@

$(STAMP): $(USABLE)
	$(PIP) --no-build-isolation --editable ".[dev]"
	@touch $@

$(BENCH): $(STAMP) benchmarks/requirements.txt
	test -d .venv-bench || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt scikit-build-core nanobind cmake ninja pathspec
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/requirements.txt
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation ".[piqp]"
	@touch $@

clean:
	rm -rf $(VENV) .venv-bench build dist site
