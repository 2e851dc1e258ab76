# Every command does all its own set-up in .venv; nothing has to be installed first but Python 3.11 or 3.12.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: test test-browser quickstart docs benchmark clean

test: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --dist worksteal

# The studio's page in a real browser.
test-browser: .venv/test.stamp
	@(command -v chromium || command -v chromium-browser || command -v google-chrome) > /dev/null \
		|| (echo "test-browser needs a Chromium on PATH"; exit 1)
	$(BIN)/pytest -n 0 tests/studio/test_browser*.py

quickstart: .venv/run.stamp
	$(BIN)/himatch quickstart

docs: .venv/docs.stamp
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

benchmark: .venv/test.stamp
	$(BIN)/python benchmarks/relabelling.py
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/training.py --preset paper cpu --reference

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[sim,studio]"
	touch $@

.venv/test.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[sim,joint,ogbench,minari,arrow,sb3,ray,hub,onnx,video,studio,docs,dev]"
	touch $@

.venv/docs.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[sim,docs]"
	touch $@

clean:
	rm -rf .venv build quickstart
