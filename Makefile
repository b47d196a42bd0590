# Thin targets; works with GNU make 3.81. `make` alone lists them.
VENV = .venv
BIN = $(VENV)/bin
RUN = $(VENV)/.ready
PEERS = .peers
DEV = $(VENV)/.ready-dev

.DEFAULT_GOAL = help
.PHONY: help run up test test-crash test-faults test-hosts test-models quick test-parked bench bench-peers lint types format pictures docs-pictures flower-pictures skill-pages docs docs-serve lock lock-check audit clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile

run: $(RUN) ## Set up, start the stack, run the example to its end (YES=1 answers its one approval)
	@$(BIN)/officina up --run examples/seattle-weather/project.yaml $(if $(YES),--yes)

up: $(RUN) ## Start the embedded stack and leave it up until Ctrl-C (ARGS="--workers 2")
	@$(BIN)/officina up $(ARGS)

test: $(DEV) lint types ## Lint, types, layers and every test
	@$(BIN)/pytest -n 2 -m "not long" $(ARGS)

test-crash: $(DEV) ## The long forms: every case with deaths at every point, every race many times
	@$(BIN)/pytest -n 2 -m long $(ARGS)

# It takes all there is of the machine; what is timed beside it would be late.
STORM := tests/faults/test_storm.py::test_everything_ends_and_nothing_happens_twice[300]

test-faults: $(DEV) ## Break every part on purpose, the long form; at its end a table of what held (ARGS="--seed 7")
	@$(BIN)/pytest -n 2 tests/faults --deselect "$(STORM)" $(ARGS)
	@$(BIN)/pytest -n 0 "$(STORM)" $(ARGS) || [ $$? -eq 5 ]

test-hosts: $(DEV) ## Four hosts in namespaces of this machine: cut one off, stop Redis, roll all workers (root, iproute2)
	@$(BIN)/pytest -n 0 tests/hosts -k "not short" $(ARGS)

test-models: $(DEV) ## The model client against a server of others (llmock, into an environment of its own)
	@test -x .llmock/bin/llmock || { $(BIN)/python -m venv .llmock && .llmock/bin/pip install -q llmock==0.2.2; }
	@$(BIN)/pytest -n 0 tests/integration/test_foreign_model.py $(ARGS)

quick: $(DEV) ## The fast tests only
	@$(BIN)/pytest -n 2 -m "not slow and not long" tests/unit tests/contract $(ARGS)

test-parked: $(DEV) ## Park 2,000 runs on timers and 2,000 on people, then let all go on (PARKED=5000 for more)
	@PARKED=$(or $(PARKED),2000) $(BIN)/pytest -s tests/integration/test_parked.py $(ARGS)

bench: $(DEV) ## Measure Officina beside bare Celery (ARGS="W1 --quick")
	@$(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(DEV) $(PEERS)/.ready ## Measure LangGraph and DBOS doing the same work, in an environment of their own (ARGS="W1 --quick")
	@$(BIN)/python -m benchmarks.peers --python $(PEERS)/bin/python $(ARGS)

lint: $(DEV) ## Style, and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache

types: $(DEV) ## mypy in strict mode
	@$(BIN)/mypy
	@$(BIN)/mypy docs/skill_pages.py docs/reference_pages.py

format: $(DEV) ## Put the code in shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

pictures: $(RUN) ## Draw the pictures of docs/graphs.md, docs/concepts.md and the tutorial anew
	@$(BIN)/python docs/draw.py

docs-pictures: $(DEV) ## Take the pictures of docs/desk.md from real pages (needs chromium; ARGS="desk-talk" for some)
	@$(BIN)/python docs/desk_pictures.py $(ARGS)

flower-pictures: $(DEV) ## Take the pictures of docs/flower.md from a real Flower (needs chromium)
	@$(BIN)/python docs/flower_pictures.py

skill-pages: $(RUN) ## Write the pages that are made from code (docs/skills, docs/packs.md, docs/reference) anew
	@$(BIN)/python docs/skill_pages.py
	@$(BIN)/python docs/reference_pages.py

docs: $(DEV) $(if $(PICTURES),docs-pictures flower-pictures) ## Build docs/ into site/; a warning is a fault (PICTURES=1: with new pictures)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

docs-serve: $(DEV) ## Show the pages at http://127.0.0.1:8000, anew whenever one changes
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --dev-addr 127.0.0.1:8000

lock: ## Write the lock files anew (ARGS=--upgrade moves the pins; needs uv)
	@deploy/lock $(ARGS)

lock-check: ## See that every pin has a wheel for each Python and system we promise (needs uv)
	@deploy/lock check

audit: $(RUN) ## Look every pin up in the public list of known holes (needs the internet; ends with 3 where it cannot)
	@deploy/audit $(ARGS)

clean: ## Remove the environment and all caches; .officina with your projects stays
	@rm -rf $(VENV) $(PEERS) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(PEERS)/.ready: benchmarks/peers/requirements.txt
	@python3 -m venv $(PEERS) && $(PEERS)/bin/pip install --quiet --requirement benchmarks/peers/requirements.txt
	@touch $@

$(RUN): requirements.lock
	@deploy/make-venv $(VENV) requirements.lock
	@touch $@

# The development lock holds all of the other one, at the same pins.
$(DEV): requirements-dev.lock
	@deploy/make-venv $(VENV) requirements-dev.lock
	@touch $(RUN) $@
