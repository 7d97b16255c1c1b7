# The two main commands are `make run` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_OF_PYTHON := -m pip --disable-pip-version-check --quiet
PIP := $(BIN)/python $(PIP_OF_PYTHON)
COMPILER_STAMP := $(VENV)/.compiler-installed
RUN_STAMP := $(VENV)/.run-installed
DEV_STAMP := $(VENV)/.dev-installed
CORE_STAMP := $(VENV)/.core-installed
CUDA_STAMP := $(VENV)/.cuda-installed
LAB_STAMP := $(VENV)/.lab-installed
BYTECODE_STAMP := $(VENV)/.bytecode
CORE_BYTECODE_STAMP := $(VENV)/.core-bytecode
# A wheel is built in an environment of its own: .venv takes five times the disk, and most of it is of no use there.
WHEEL_VENV := .venv-wheel
WHEEL_STAMP := $(WHEEL_VENV)/.installed
# LiteLLM is a hundred packages, some of them in other versions than ours. Its list is complete and says which versions are
# overridden, so pip does not look at what the packages ask for.
LITELLM_VENV := .venv-litellm
LITELLM_STAMP := $(LITELLM_VENV)/.installed
# The checkers of a release are seventy packages that nothing else needs.
RELEASE_VENV := .venv-release
RELEASE_STAMP := $(RELEASE_VENV)/.installed

# What `make lock` resolves: the three packages against each other. The extras leave out cuda, which takes half a gigabyte and
# needs a GPU (the simulator is part of Numba), and litellm. requirements/wheel.txt is what building a wheel needs.
PACKAGES := core serve lab
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --custom-compile-command "make lock" $(PACKAGES:%=--no-emit-package decoupled-bandits-%) --no-emit-package decoupled-bandits
LOCKED_EXTRAS := --extra dask --extra mcp --extra otel --extra parquet --extra postgres --extra sklearn
IMAGE_EXTRAS := --extra otel --extra postgres
CORE_EXTRAS := --extra cli --extra client --extra conic --extra dask --extra jit --extra parquet --extra plots --extra simulate

# The tests start hundreds of processes that load the package, so Python must cache bytecode even if the
# environment disables that. It compiles modules when they are first loaded: most of those installed never are.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(PIP) install --no-compile

# Building the machine code takes minutes, and pip would show no progress, so it is a step of its own.
# `make run` needs little of it and compiles that on first use. A wheel needs it for all kinds of processors, which takes
# longer: `make build`.
EDITABLE := DECOUPLED_NATIVE=off $(PIP) install --no-deps --no-build-isolation
NATIVE := PYTHONPATH=core/src DECOUPLED_NATIVE=here $(BIN)/python -m decoupled.builder --if-stale
MANIFEST := core/src/decoupled/native/lib/manifest.json

# One test more at a time than the machine has processors, since some of them wait: each worker also collects all tests, which takes
# 15 s, so more of them gain nothing. `make test WORKERS=2` for another number.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := $(BIN)/pytest -q --numprocesses $(WORKERS) --dist worksteal
# Pages are for `make test-docs`, long checks for `make test-slow`.
CODE := -m "not pages and not exhaustive"

# Tests that need no browser, database or whole reproduction. --quick runs a sample of them: see tests/support/quick.py.
QUICK := core/tests/policies/test_contract.py core/tests/kernels core/tests/learner \
  core/tests/policies/test_centred.py core/tests/policies/test_ties.py \
  core/tests/environments/test_loss_table.py \
  core/tests/simulation/test_parity.py core/tests/simulation/test_results.py \
  lab/tests/theory/test_bounds.py tests/docs/test_project.py \
  core/tests/base/test_spec.py core/tests/test_public.py tests/test_quick.py \
  core/src/decoupled/policies core/src/decoupled/environments core/src/decoupled/learner/learner.py \
  core/src/decoupled/decision.py core/src/decoupled/base/spec.py core/src/decoupled/errors.py

.DEFAULT_GOAL := help
.PHONY: help run paper first-verdict mirror litellm litellm-shadow notebooks docs build release-check check-packages sbom native client test test-core test-serve test-lab test-slow test-docs quick install installed ready check lint types layers unit twins test-gpu test-litellm bench core-types mutations reliability coverage fresh-seeds lock clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

run: $(RUN_STAMP) ## Reproduce the paper, quick version: 75 s on two cores, 95 s with installation
	@$(BIN)/decoupled reproduce --quick

paper: $(RUN_STAMP) ## Reproduce the paper in full: about half an hour
	@$(BIN)/decoupled reproduce

mirror: $(DEV_STAMP) ## Run the examples of `decoupled mirror`, and judge what they gain (some minutes)
	@$(BIN)/python examples/llm_router/run.py
	@$(BIN)/python examples/bad_deploy/run.py

first-verdict: $(RUN_STAMP) ## Ask two stub models through a mirror that `decoupled init` sets up, until one is known to be better (three minutes, with installation)
	@$(INSTALL) --require-hashes -r requirements/image.txt && $(EDITABLE) --editable serve
	@$(BIN)/python examples/first_verdict.py

$(LITELLM_STAMP): requirements/litellm.txt core/pyproject.toml serve/pyproject.toml | $(LITELLM_VENV)/bin/python $(MANIFEST)
	@echo "Installing LiteLLM, and the package beside it ..."
	@$(LITELLM_VENV)/bin/python $(PIP_OF_PYTHON) install --no-compile --no-deps --require-hashes -r requirements/litellm.txt
	@DECOUPLED_NATIVE=off $(LITELLM_VENV)/bin/python $(PIP_OF_PYTHON) install --no-deps --no-build-isolation $(PACKAGES:%=--editable %)
	@touch $@

litellm-shadow: $(LITELLM_STAMP) ## Compare the verdict with LiteLLM's own shadow evaluation, at equal dollars (half an hour)
	@$(LITELLM_VENV)/bin/python examples/litellm_shadow/run.py

litellm: $(LITELLM_STAMP) ## Run the example of the plug-in for LiteLLM, against LiteLLM's own adaptive router (some minutes)
	@$(LITELLM_VENV)/bin/python examples/litellm_router/run.py

test-litellm: $(LITELLM_STAMP) ## Test the plug-in for LiteLLM with the real proxy (two minutes)
	@$(LITELLM_VENV)/bin/pytest -q -rs -p no:cacheprovider -W default serve/tests/integrations

# JupyterLab is a hundred packages that nothing else needs.
$(LAB_STAMP): requirements/notebooks.txt $(DEV_STAMP)
	@echo "Installing JupyterLab ..."
	@$(INSTALL) --require-hashes -r requirements/notebooks.txt
	@touch $@

notebooks: $(LAB_STAMP) ## Open the notebooks in JupyterLab
	@$(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks

# The theme prints a notice about MkDocs 2 at every build, which does not concern this version.
# Not --quiet: it also hides warnings, and they must count as errors.
docs: export NO_MKDOCS_2_WARNING = true
docs: $(DEV_STAMP) ## Build the documentation in site/; open site/index.html
	@$(BIN)/mkdocs build --strict

# The hook in hatch_build.py builds the machine code. DECOUPLED_NATIVE=here builds it for this kind of processor only,
# off not at all.
build: $(WHEEL_STAMP) ## Build the wheels and the sdists of the three packages in dist/, with machine code for all kinds of processors: minutes
	@echo "Building the wheels and the sdists ..."
	@rm -rf dist
	@for package in $(PACKAGES); do (cd $$package && ../$(WHEEL_VENV)/bin/python -m hatchling build -d ../dist) || exit; done

release-check: build check-packages sbom ## Build the packages and check them, the workflows and the metadata with stock checkers

# What the container image installs, with versions and hashes. The packages themselves pin no dependency.
sbom: $(RELEASE_STAMP) ## Write the software bill of materials of the image: out/sbom.cdx.json (CycloneDX)
	@mkdir -p out
	@$(RELEASE_VENV)/bin/cyclonedx-py requirements --pyproject serve/pyproject.toml --mc-type application --output-reproducible \
	  --spec-version 1.6 --validate --output-file out/sbom.cdx.json requirements/image.txt

check-packages: $(RELEASE_STAMP)
	@$(RELEASE_VENV)/bin/twine check --strict dist/*
	@$(RELEASE_VENV)/bin/check-wheel-contents --config core/pyproject.toml dist/*.whl
	@$(RELEASE_VENV)/bin/validate-pyproject pyproject.toml $(PACKAGES:%=%/pyproject.toml)
	@$(RELEASE_VENV)/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	@$(RELEASE_VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(RELEASE_VENV)/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(RELEASE_VENV)/bin/zizmor --offline --no-progress .github

native: $(COMPILER_STAMP) ## Build the machine code that ships, for this processor, unless it is up to date: two minutes
	@$(NATIVE)

client: $(DEV_STAMP) ## Write the types of the TypeScript client anew, from the OpenAPI document
	@$(BIN)/python clients/typescript/generate.py

# Mypy takes most of a minute on one core, so types and layers run next to the tests and report after them.
test: ready lint ## Run every check, and every test of the code but the long checks
	@report=$$(mktemp); $(MAKE) --no-print-directory layers types >$$report 2>&1 & checks=$$!; \
	  $(MAKE) --no-print-directory unit; unit=$$?; \
	  wait $$checks; checks=$$?; cat $$report; rm $$report; \
	  [ $$unit = 0 ] && [ $$checks = 0 ]

test-core: $(COMPILER_STAMP) ## Check and test the library alone: all that a change of a policy needs
	@$(MAKE) --silent --no-print-directory --jobs 3 $(CORE_STAMP) $(MANIFEST) $(CORE_BYTECODE_STAMP)
	@echo "Checking format and lint; types and import layers next to the tests of core ..."
	@$(BIN)/ruff format --check --quiet core && $(BIN)/ruff check --quiet core
	@report=$$(mktemp); $(MAKE) --silent --no-print-directory core-types >$$report 2>&1 & checks=$$!; \
	  $(PYTEST) -rs $(CODE) core; unit=$$?; \
	  wait $$checks; checks=$$?; cat $$report; rm $$report; \
	  [ $$unit = 0 ] && [ $$checks = 0 ]

core-types: export PYTHONPATH = serve/src:lab/src
core-types: $(CORE_STAMP)
	@$(BIN)/mypy --no-error-summary core/src core/tests
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo

test-serve: installed ## Test the service, the mirror and the gateways
	@$(PYTEST) -rs $(CODE) serve

test-lab: installed ## Test the reproduction, the theory and the benchmark
	@$(PYTEST) -rs $(CODE) lab

quick: installed lint ## Check format and lint, run a sample of the tests: a minute with built machine code
	@echo "Running a sample of the tests ..."
	@$(PYTEST) --quick $(QUICK)

# The machine code is compiled while everything but the compiler is still being installed.
install: installed ## Create .venv with locked versions, for running and for development, and build the machine code
	@echo "Installed in $(VENV). Next: 'make run' reproduces the paper, 'make test' runs the tests, '$(BIN)/decoupled --help' lists the commands."

installed: $(COMPILER_STAMP)
	@$(MAKE) --silent --no-print-directory --jobs 2 $(DEV_STAMP) $(MANIFEST)

# The tests are collected once while the machine code is built. Otherwise every worker turns all modules into bytecode,
# those of the libraries too, at the same time.
ready: $(COMPILER_STAMP)
	@$(MAKE) --silent --no-print-directory --jobs 3 $(DEV_STAMP) $(MANIFEST) $(BYTECODE_STAMP)

$(BYTECODE_STAMP): $(DEV_STAMP)
	@$(BIN)/pytest --quiet --quiet --collect-only >/dev/null 2>&1 || true
	@touch $@

$(CORE_BYTECODE_STAMP): $(CORE_STAMP)
	@$(BIN)/pytest --quiet --quiet --collect-only core >/dev/null 2>&1 || true
	@touch $@

# Once there, it is built anew by `make native` alone: until then, Numba compiles what an edit made stale.
# `make install DECOUPLED_NATIVE=off` leaves it out.
$(MANIFEST): | $(COMPILER_STAMP)
	@[ "$(DECOUPLED_NATIVE)" = off ] || $(NATIVE) || true

$(VENV)/bin/python $(WHEEL_VENV)/bin/python $(LITELLM_VENV)/bin/python $(RELEASE_VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' || \
	  { echo "decoupled needs Python 3.11, 3.12, 3.13 or 3.14; choose one with: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Creating $(@:/bin/python=) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(@:/bin/python=)
	@$@ $(PIP_OF_PYTHON) install --require-hashes -r requirements/pip.txt  # the pip of an older Python is slower

$(WHEEL_STAMP): requirements/wheel.txt | $(WHEEL_VENV)/bin/python
	@echo "Installing what building a wheel needs (Numba and hatchling) ..."
	@$(WHEEL_VENV)/bin/python $(PIP_OF_PYTHON) install --no-compile --require-hashes -r requirements/wheel.txt
	@touch $@

$(RELEASE_STAMP): requirements/release.txt | $(RELEASE_VENV)/bin/python
	@echo "Installing the checkers of a release ..."
	@$(RELEASE_VENV)/bin/python $(PIP_OF_PYTHON) install --no-compile --require-hashes -r requirements/release.txt
	@touch $@

$(RUN_STAMP): requirements/run.txt core/pyproject.toml lab/pyproject.toml | $(BIN)/python
	@echo "Installing the package and the locked versions it runs on ..."
	@$(INSTALL) --require-hashes -r requirements/run.txt
	@$(EDITABLE) --editable core --editable lab
	@touch $@

$(COMPILER_STAMP): requirements/wheel.txt | $(BIN)/python
	@$(INSTALL) --require-hashes -r requirements/wheel.txt
	@touch $@

# The list for development includes everything that running and compiling need, in the same versions.
$(DEV_STAMP): requirements/dev.txt requirements/run.txt $(PACKAGES:%=%/pyproject.toml) $(COMPILER_STAMP)
	@echo "Installing the package, the locked versions it runs on and the development tools ..."
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@$(EDITABLE) $(PACKAGES:%=--editable %)
	@touch $(RUN_STAMP) $@

# The tests of core need neither a web framework nor a browser.
$(CORE_STAMP): requirements/core.txt core/pyproject.toml $(COMPILER_STAMP)
	@[ -f $(DEV_STAMP) ] || { echo "Installing core and the locked versions that its tests need ..." && \
	  $(INSTALL) --require-hashes -r requirements/core.txt && $(EDITABLE) --editable core; }
	@touch $@

check: lint types layers ## Check format, lint, types and import layers

lint: $(DEV_STAMP) ## Check format and lint (ruff)
	@echo "Checking format and lint ..."
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/ruff check --quiet .

types: $(DEV_STAMP) ## Check types (mypy, strict)
	@echo "Checking types ..."
	@$(BIN)/mypy --no-error-summary

layers: $(DEV_STAMP) ## Check import layers (import-linter)
	@echo "Checking import layers ..."
	@$(BIN)/lint-imports --no-logo

unit: installed ## Run the tests: unit, property and statistical tests, doctests
	@echo "Running the tests ..."
	@$(PYTEST) -rs $(CODE) --ignore tests/docs

test-docs: installed ## Test the documentation (code blocks, notebooks, gallery, figures, site), what `make run` reports, a whole benchmark, LaTeX, and pages in a browser
	@echo "Testing the documentation, the report of the reproduction, a benchmark, and pages in a browser ..."
	@$(PYTEST) -rs -m "pages and not exhaustive" tests/docs lab/tests/benchmark serve/tests/service/console lab/tests/paper lab/tests/report

test-slow: installed ## Run the long checks, of which `make test` has a sample each: suites of hundreds of runs, kills (some minutes)
	@echo "Running the long checks ..."
	@$(PYTEST) -rs -m exhaustive

# `make test` compares them for a few policies, and for all with plain Python.
TWINS := core/tests/native/test_native_functions.py core/tests/simulation/test_traffic.py core/tests/policies/test_forgetting.py core/tests/policies/test_warmup.py
twins: export DECOUPLED_TWINS = all
twins: $(DEV_STAMP) native ## Compare the machine code that ships with what Numba compiles here, for every policy, and loops of late feedback with plain Python (minutes)
	@$(PYTEST) $(TWINS)

$(CUDA_STAMP): requirements/cuda.txt $(DEV_STAMP)
	@echo "Installing the packages for GPUs ..."
	@$(INSTALL) --require-hashes -r requirements/cuda.txt
	@touch $@

test-gpu: $(CUDA_STAMP) ## Run the tests that need an NVIDIA GPU: statistics, grouping, refusals (three minutes)
	@$(BIN)/pytest -q -rs -W default --numprocesses 12 --dist worksteal core/tests/simulation/gpu/*_on_gpu.py

mutations: $(DEV_STAMP) ## Break each kernel in turn and check that a test fails (most of an hour)
	@$(BIN)/python lab/tests/mutations.py

reliability: export DECOUPLED_RELIABILITY = long
reliability: $(DEV_STAMP) ## Kill, pause, trace and starve the service, and check its promises (an hour)
	@$(PYTEST) -rsP serve/tests/service/reliability/test_kills.py
	@$(BIN)/pytest -q -rsP serve/tests/service/reliability --ignore serve/tests/service/reliability/test_kills.py
	@$(BIN)/pytest -q -rsP serve/tests/mirror/test_mirror_memory.py
	@DECOUPLED_SCHEMA_CASES=2000 $(PYTEST) -rsP serve/tests/service/http/test_http_schema.py
	@$(BIN)/decoupled bench service --soak 10 --out out/reliability.json

coverage: export DECOUPLED_COVERAGE = full
coverage: $(DEV_STAMP) ## Watch 2,000 experiments of every kind and count wrong confidence sequences (half an hour)
	@$(PYTEST) -rP core/tests/inference/test_coverage.py

# Tests whose outcome depends on seeds: they take them from tests/support/seeds.py.
SEEDED := core/tests/inference/test_evaluate.py core/tests/inference/test_evaluate_context.py \
  core/tests/inference/test_coverage.py core/tests/inference/test_verdict.py core/tests/policies/test_ladder.py \
  core/tests/learner/test_ladder_learner.py core/tests/learner/test_guardrails.py core/tests/learner/test_by_segment.py \
  core/tests/learner/test_watch.py
fresh-seeds: $(DEV_STAMP) ## Run the statistical tests with 20 seeds that nobody chose, and list what fails (half an hour)
	@for offset in $$(seq 20); do echo "Seeds of offset $$offset ..."; \
	  DECOUPLED_SEED_OFFSET=$$offset $(PYTEST) -m "" $(SEEDED) || true; done

bench: $(DEV_STAMP) ## Measure speed, as ratios within one run
	@$(BIN)/decoupled bench

lock: $(DEV_STAMP) ## Update the locked versions
	@$(PIP) install uv
	@$(LOCK) --upgrade requirements/pip.in -o requirements/pip.txt
	@$(LOCK) --upgrade lab/pyproject.toml requirements/build.in -o requirements/run.txt
	@$(LOCK) --upgrade $(PACKAGES:%=%/pyproject.toml) requirements/build.in $(LOCKED_EXTRAS) --group dev -c requirements/run.txt -o requirements/dev.txt
	@$(LOCK) core/pyproject.toml requirements/build.in $(CORE_EXTRAS) --group core -c requirements/dev.txt -o requirements/core.txt
	@$(LOCK) serve/pyproject.toml $(IMAGE_EXTRAS) -c requirements/dev.txt -o requirements/image.txt
	@$(LOCK) core/pyproject.toml requirements/build.in --extra jit -c requirements/dev.txt -o requirements/wheel.txt
	@$(LOCK) --upgrade core/pyproject.toml --extra cuda -c requirements/run.txt -o requirements/cuda.txt
	@$(LOCK) --upgrade requirements/notebooks.in -c requirements/dev.txt -o requirements/notebooks.txt
	@$(LOCK) --upgrade core/pyproject.toml serve/pyproject.toml requirements/build.in requirements/litellm.in --override requirements/litellm-overrides.txt --extra litellm --extra jit --extra plots --extra simulate -o requirements/litellm.txt
	@$(LOCK) --upgrade requirements/release.in -o requirements/release.txt

clean: ## Remove .venv and everything built
	rm -rf $(VENV) $(WHEEL_VENV) $(LITELLM_VENV) $(RELEASE_VENV) out site dist core/src/decoupled/native/lib .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
