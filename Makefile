# Both commands do all their own set-up in .venv; nothing has to be installed first but Python 3.11 or 3.12.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: test quickstart benchmark clean

test: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto

quickstart: .venv/run.stamp
	$(BIN)/himatch quickstart

benchmark: .venv/test.stamp
	$(BIN)/python benchmarks/relabelling.py
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/training.py --preset paper cpu --reference

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/test.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[minari,arrow,sb3,ray,hub,onnx,dev]"
	touch $@

clean:
	rm -rf .venv quickstart
