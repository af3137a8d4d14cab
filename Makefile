# make demo: build the demo into out/demo    make test: the tests    make env: fill .venv    make bench: benchmarks
# make gpu: what needs a GPU, tests and benchmarks, in eight minutes
# make reference: write docs/reference.md again, from the settings and docstrings of the code
VENV := .venv
PYTHON ?= python3.11
PYTEST ?=
# Bytecode is kept whatever the shell or a container's image says: else each process, and the tests start hundreds,
# compiles again what it imports, for about half of the time that importing takes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: env demo test test-slow lint bench gpu reference lock system browser

env: $(VENV)/installed

demo: env
	$(VENV)/bin/twinset build demo --out out/demo
	$(VENV)/bin/twinset look out/demo

# Two processes; a file's tests stay in one, which builds what they share once. Files start in the order of their names:
# tests/end_to_end, which takes longest, is early. PYTEST="-n 0" runs all in one process.
test: env
	$(VENV)/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST)

test-slow: env browser
	$(VENV)/bin/pytest -m "slow and not gpu" -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST)

lint: env
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# Writes docs/benchmarks.md. NAMES="kubric video": measures these again, and leaves the others as they are.
bench: env
	$(VENV)/bin/python -m tests.benchmarks.page $(NAMES)

# Writes the page's table of a GPU. NAMES="sdxl scoring-b32": some of its rows.
gpu: env
	$(VENV)/bin/python -m tests.benchmarks.gpu $(NAMES)

reference: env
	$(VENV)/bin/python docs/reference.py

system:
	bash docker/system_libraries.sh $(PYTHON)

# Debian's Chromium, for tests of the review page; without it these are skipped.
browser:
	bash docker/system_libraries.sh $(PYTHON) browser

# requirements.lock is all that gets installed: versions and hashes, no dependency is resolved here.
$(VENV)/installed: requirements.lock docker/uv.lock pyproject.toml demo/pyproject.toml extras/pyproject.toml | system
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r docker/uv.lock
	$(VENV)/bin/uv pip sync --quiet --python $(VENV)/bin/python --require-hashes requirements.lock
	$(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --no-deps --no-build-isolation --editable . --editable demo --editable extras
	touch $@

# After a change of pyproject.toml's dependencies.
lock:
	$(VENV)/bin/uv pip compile pyproject.toml --all-extras --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --quiet --output-file requirements.lock
	echo "uv==0.13.8" | $(VENV)/bin/uv pip compile - --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --quiet --output-file docker/uv.lock
