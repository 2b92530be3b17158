# Each command sets up what it needs. `make help` lists them.
#
# PYTHON=/path/to/python3.12   the Python that environments are made with; without it one is looked for
# LAB_ARGS=--no-browser        more options for jupyter lab
# PYTEST_ARGS="-k matrix"      more options for pytest

.DEFAULT_GOAL := help
.PHONY: help lab test test-versions lint format requirements readme exercises release bench soak reset

# `test` and the like run by the environment that this makes first.
ENVIRONMENT = python=$$(sh tools/python.sh) && "$$python" tools/environment.py
TEST = .venv-test/bin/python

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

lab: ## make the environment if need be, open JupyterLab on chapter 00; Ctrl-C ends it
	@$(ENVIRONMENT) lab
	@.venv/bin/python tools/lab.py $(LAB_ARGS)

test: ## run all tests and all notebooks, in an environment of their own
	@$(ENVIRONMENT) test
	@$(TEST) tools/check.py $(PYTEST_ARGS)

test-versions: ## the same, browser left out, on each Python found and on the oldest LangGraph
	@python=$$(sh tools/python.sh) && "$$python" -m tools.versions $(VERSIONS)

lint: ## what ruff says about code and notebooks
	@$(ENVIRONMENT) test
	@$(TEST) -m ruff check
	@$(TEST) -m ruff format --check

format: ## let ruff put code and notebooks in order
	@$(ENVIRONMENT) test
	@$(TEST) -m ruff check --fix
	@$(TEST) -m ruff format

requirements: ## pin anew what pyproject.toml asks for (needs uv; UPGRADE=1 takes the newest)
	@python=$$(sh tools/python.sh) && "$$python" tools/requirements.py $(if $(UPGRADE),--upgrade)

readme: ## write the generated parts of the README: chapters, output from the terminal
	@$(ENVIRONMENT) test
	@$(TEST) tools/readme.py

exercises: ## make the learners' exercises anew from the solutions
	@$(ENVIRONMENT) test
	@$(TEST) -m tools.exercises

release: ## pack the learner's bundle from the last commit into dist/
	@$(ENVIRONMENT) test
	@$(TEST) -m tools.release

bench: ## measure the library's speed, as ratios of two things measured in the same run
	@$(ENVIRONMENT) test
	@$(TEST) bench/run.py

soak: ## kill a thousand processes at varied points, see that all promises hold and nothing is left
	@$(ENVIRONMENT) test
	@$(TEST) bench/soak.py

reset: ## put notebooks and exercises back as they came, and forget the progress
	@python=$$(sh tools/python.sh) && "$$python" tools/reset.py
