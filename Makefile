# make demo   a first look: train the paper's systems on a generated corpus, write a report
# make test   everything that is checked: lint, types, import contract, tests, documents
# make lint   style, types and imports only
# make docs   the site, in site/: open site/index.html
# make bench  speed, side by side with the peers that install
# make fuzz      readers, configurations, run folders, text and requests under random damage: MINUTES=10 SEED=1
# make sanitize  the kernels under address, undefined-behaviour and thread sanitizers: ROUNDS=200
# make faults    commands killed, without disk, without rights, in each other's way
# make clean  remove the environments and everything built
# make help   this list

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BENCH  := .venv-bench
SHELL  := bash
TOOLS  := scikit-build-core nanobind cmake ninja pathspec

# pip at the pinned versions. What it says is cut down to how far it is and what went wrong: not its search for every
# package. The shell reads it line by line, since some kinds of awk and sed wait until there is more.
INSTALL = install() { set -o pipefail; "$$1" -m pip install --disable-pip-version-check --progress-bar off \
	-c constraints.txt "$${@:2}" 2>&1 | while IFS= read -r line; do case "$$line" in \
	"Looking in "*|*"Collecting "*|"Requirement already "*|"Obtaining "*|*"Preparing "*|*"Checking if "*) ;; \
	*"Created wheel "*|*"Stored in "*|*"Location "*" is ignored"*|*.metadata*) ;; \
	"Processing "*) line="$${line%% (from *}"; echo "   $${line\#\#*/}" ;; \
	"Installing collected "*) echo "   Unpacking all of it" ;; \
	"Successfully installed "*) echo "   Done" ;; \
	*) echo "   $$line" ;; \
	esac; done; }; install
SAY     = @printf '\n== %s\n'

.PHONY: demo test lint docs bench fuzz sanitize faults clean help
.DEFAULT_GOAL := help

demo: $(VENV)/usable
	$(SAY) "Training six systems: some minutes"
	@$(BIN)/python -m research.demo

# Compiled files are kept even where they usually are not: each process of the tests would compile the library again.
test: lint
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadgroup
	$(MAKE) docs

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(BENCH)/installed
	$(BENCH)/bin/python -m benchmarks

MINUTES ?= 10
SEED    ?= 1
ROUNDS  ?= 200

fuzz: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.spigot_nlp.fuzz --seconds $$(($(MINUTES) * 60)) --seed $(SEED)

sanitize: $(VENV)/installed
	@for kind in address,undefined thread; do \
		folder=build/sanitize-$${kind%%,*}; \
		$(BIN)/cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DSANITIZE=$$kind -S tests/spigot/sanitize -B $$folder > /dev/null && \
		$(BIN)/cmake --build $$folder && TSAN_OPTIONS=halt_on_error=1 $$folder/drive $(ROUNDS) $(SEED) || exit 1; \
	done

faults: $(VENV)/installed
	$(BIN)/python -m tests.spigot_nlp.faults

clean:
	rm -rf $(VENV) $(BENCH) build dist site

help:
	@sed -n '/^$$/q; s/^# //p' Makefile

# What the demo needs; and what the tests need beside it. The kernels are compiled once.
$(VENV)/usable: pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/* native/*/*)
	$(SAY) "Making an environment in $(VENV)"
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(SAY) "Installing what builds the kernels"
	@$(INSTALL) $(BIN)/python $(TOOLS)
	$(SAY) "Installing PyTorch and the rest, compiling the kernels: some minutes"
	@$(INSTALL) $(BIN)/python --no-build-isolation --editable ".[nlp]"
	@touch $@

$(VENV)/installed: $(VENV)/usable
	$(SAY) "Installing what the tests and the site need"
	@$(INSTALL) $(BIN)/python --no-build-isolation --editable ".[dev]"
	@touch $@

$(BENCH)/installed: $(VENV)/installed benchmarks/requirements.txt
	$(SAY) "Making an environment in $(BENCH), with the peers"
	@test -d $(BENCH) || $(PYTHON) -m venv $(BENCH)
	@$(INSTALL) $(BENCH)/bin/python $(TOOLS)
	@$(INSTALL) $(BENCH)/bin/python -r benchmarks/requirements.txt
	@$(INSTALL) $(BENCH)/bin/python --no-build-isolation ".[nlp,piqp]"
	@touch $@
