# Thin on purpose: each target calls the tool that does the work. 'make help' lists them.
PYTHON ?= python3
VENV := build/venv/bin
INVENTORY ?= inventory/lab

.DEFAULT_GOAL := help
.PHONY: help demo setup site check test test-all lab lab-down lab-status lint audit unit browser runner ee hca faults jobs collectives machines nvidia openshift docs release clean-cache

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(MAKEFILE_LIST) | column -t -s:

demo: ## a first look in a minute, without lab and root, at a made-up fleet, first as it should be, then with four faults; wants Python 3.10 or newer
	@$(PYTHON) -m dev.demo

setup: ## virtual environment and collections, below build/
	@$(PYTHON) -m dev.setup

lab: setup ## build and start the lab
	@$(VENV)/python -m lab up

lab-down: setup ## stop the lab and leave nothing of it
	@$(VENV)/python -m lab down

lab-status: setup ## what of the lab runs
	@$(VENV)/python -m lab status

site: lab ## the lab, then site.yml on it; ends with the verdict and the path of the report
	@$(VENV)/python -m dev.site -i $(INVENTORY)

lint: setup ## all linters, ansible-test as 'make test' has it among them
	@$(VENV)/python -m dev.lint

audit: setup ## known vulnerabilities in what is pinned, by pip-audit; fails where the index of them can't be reached; no part of 'make test'
	@$(VENV)/python -m dev.audit

unit: setup ## all tests that need no lab
	@$(VENV)/python -m dev.unit

browser: ## the report in Debian's chromium: both schemes, both widths, keyboard, paper, load; 'make test' leaves it out. 'python3 -m dev.browser --pictures' makes docs/*.png
	@$(PYTHON) -m dev.browser

runner: setup ## jobs as AWX runs them, by ansible-runner and by what the execution environment has alone; wants Python 3.12 or newer; 'make test' leaves it out
	@$(PYTHON) -m dev.runner

ee: setup ## the image of the execution environment from this checkout, with podman, and the demonstration in it; options in EE='--base IMAGE'; 'make test' leaves it out
	@$(VENV)/python -m dev.ee $(EE)

check: setup ## before a commit, in minutes: linters, and the tests that start no processes
	@$(VENV)/python -m dev.test check

test: setup ## everything that CI runs: all of 'make check', ansible-test, molecule, and a fault of each kind on the lab
	@$(VENV)/python -m dev.test test

test-all: setup ## before a release, in hours: all of 'make test', and what the other targets run; CONTRIBUTING.md has the table
	@$(VENV)/python -m dev.test test-all

hca: setup ## build the emulated HCA alone, boot one guest that has six of them, with a shell; needs no lab
	@$(VENV)/python -m lab hca

faults: site ## every fault, injected into the lab one after the other, and what else takes too long for 'make test', which has one of each kind
	@$(VENV)/python -m pytest tests/lab/test_second_run.py
	@$(VENV)/python -m pytest tests/lab $(foreach name,collectives hca jobs machine_config nvidia olm second_run teardown,--ignore tests/lab/test_$(name).py)
	@$(VENV)/python -m pytest tests/lab/test_teardown.py

jobs: setup ## training jobs before the real operators, which are compiled first; 'make test' leaves this out
	@$(VENV)/python -m lab build --operators
	@$(MAKE) --no-print-directory site
	@$(VENV)/python -m pytest tests/lab/test_jobs.py

collectives: setup ## stage collectives on real pods, with a stand-in for nccl-tests in an image that is made first; 'make test' leaves this out
	@$(VENV)/python -m lab build --collectives
	@$(MAKE) --no-print-directory site
	@$(VENV)/python -m pytest tests/lab/test_collectives.py

machines: setup ## MachineConfigs before OpenShift's own controller, which is compiled first: real drains and resets; 'make test' leaves this out
	@$(VENV)/python -m lab build --machines
	@$(MAKE) --no-print-directory site
	@$(VENV)/python -m pytest tests/lab/test_machine_config.py

nvidia: setup ## what is rendered for NVIDIA's network operator, before its own controllers, which are compiled first; 'make test' leaves this out
	@$(VENV)/python -m lab build --nvidia
	@$(MAKE) --no-print-directory site
	@$(VENV)/python -m pytest tests/lab/test_nvidia.py

openshift: setup ## the lab with real OLM and machine config controller, which are compiled first: site.yml installs by it, then its faults; 'make test' leaves this out
	@$(VENV)/python -m lab build --olm --machines
	@$(MAKE) --no-print-directory lab
	@$(VENV)/python -m lab olm on
	@$(VENV)/python -m dev.site -i inventory/lab-olm
	@$(VENV)/python -m pytest tests/lab/test_olm.py

release: setup ## VERSION=1.2.0: make test-all, version, changelog, tarball, commit and tag; DRY_RUN=1 leaves out tests, commit and tag
	@$(VENV)/python -m dev.release $(VERSION) $(if $(DRY_RUN),--dry-run)

docs: setup ## the documentation as a site, in build/docs/html: no warning, no dead link inside of it; then its pages in Debian's chromium
	@$(PYTHON) -m dev.docs
	@$(PYTHON) -m dev.browser site

clean-cache: ## empty the cache of builds and downloads
	@$(PYTHON) -m dev.clean_cache
