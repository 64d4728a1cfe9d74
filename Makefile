# The two commands: `make demo` (the main job, end to end) and `make test`. Both set up all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: demo test test-full lint generate lock gpu-check clean

demo: $(STAMP)
	$(BIN)/python bin/demo.py

test: $(STAMP)
	bin/test-packages
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# What the full tier adds to `make test`.
test-full: $(STAMP)
	bin/test-packages
	$(BIN)/python -m pytest -m full -n 2 --dist loadgroup

lint: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks bin
	$(BIN)/ruff check src tests benchmarks bin
	$(BIN)/mypy
	$(BIN)/lint-imports

# What is made from the models: the JSON schemas and the recipes' reference page.
generate: $(STAMP)
	$(BIN)/python bin/generate-reference

lock:
	bin/lock

# What a GPU alone can show; exit status 2 where there is none.
gpu-check: $(STAMP)
	$(BIN)/python bin/gpu_check.py

$(STAMP): pyproject.toml requirements/dev.txt bin/bootstrap
	PYTHON=$(PYTHON) bin/bootstrap $(VENV)

clean:
	rm -rf $(VENV) demo .wheelfarm
