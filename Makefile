# Everything runs in .venv, made on first use and complete in itself, even where another ROS 2 is sourced.
PYTHON ?= python3
VENV ?= .venv
ROBOT ?= tx40
ARGS ?=
OLDEST := .venv-oldest
DOCS := .venv-docs
# Tests in so many processes at once: much of their time is waiting, for robots in real time and for nodes.
# One thread of BLAS in each.
WORKERS ?= 4
PYTEST := -m pytest -n $(WORKERS) --dist worksteal

export PYTHON
export PYTHONNOUSERSITE := 1
export ROS_AUTOMATIC_DISCOVERY_RANGE ?= LOCALHOST
unexport PYTHONPATH PYTHONHOME LD_LIBRARY_PATH AMENT_PREFIX_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE
unexport RMW_IMPLEMENTATION
# Each of several hundred processes would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test slow venv lint unit trajectories pictures docs golden wheel oldest lock colcon clean

help:
	@echo 'make demo    a whole session on a simulated robot (ROBOT=tx40 scara emps ur10 arm3 planar_2r_elastic puma560_elastic)'
	@echo 'make test    style, types and the tests that are not slow'
	@echo 'make slow    the slow tests: whole sessions that other tests or benchmarks see as well'
	@echo 'make lint    style and types only'
	@echo 'make docs    the site, into build/site (python3 -m http.server -d build/site shows it)'
	@echo 'make pictures   draw the pictures of docs/ again'
	@echo 'make golden  write test/golden/golden.json from the results as they are now'
	@echo 'make wheel   build the wheel and try it in an empty environment'
	@echo 'make trajectories   design all of config/trajectories again: the same ones, unless something changed'
	@echo 'make oldest  every test with the oldest supported NumPy, SciPy and Pinocchio'
	@echo 'make lock    hashes of the packages that .ci/requirements*.in name'
	@echo 'make colcon  build as on a robot, and check what is installed'
	@echo 'make clean   remove what these made'

venv:
	@bash .ci/environment.sh $(VENV)

demo: venv
	@$(VENV)/bin/robotid demo $(ROBOT) $(ARGS); code=$$?; command -v robotid >/dev/null || \
	  echo 'robotid is in $(VENV): . $(VENV)/bin/activate   lets this shell find it'; exit $$code

# While types are checked, tests are compiled once: each of the processes that run them would do it.
test: venv
	@$(VENV)/bin/python -m pytest -q --collect-only >/dev/null 2>&1 & $(MAKE) --no-print-directory lint && wait
	@$(MAKE) --no-print-directory unit

lint: venv
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

unit: venv
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python $(PYTEST) -m 'not slow' $(ARGS)

slow: venv
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python $(PYTEST) -m slow $(ARGS)

DESIGNED := $(basename $(notdir $(wildcard config/trajectories/*.yaml)))
trajectories: venv
	@for name in $(DESIGNED); do $(VENV)/bin/robotid design config/$$name.yaml \
	  -o config/trajectories/$$name.yaml --time-limit 600 --force || exit 1; done

# What builds the site is in an environment of its own; the package's runs it, which knows the package.
docs: venv
	@$(VENV)/bin/python -m venv $(DOCS) && $(DOCS)/bin/python -m pip install -q --disable-pip-version-check \
	  --no-deps --require-hashes -r .ci/requirements-docs.txt
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=$$($(DOCS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
	  $(VENV)/bin/python -m mkdocs build --strict --clean

pictures: venv
	@$(VENV)/bin/python .ci/pictures.py docs/pictures

wheel: venv
	@$(VENV)/bin/python benchmarks/wheel.py

golden: venv
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=test/tools $(VENV)/bin/python test/golden/test_golden.py

oldest:
	@bash .ci/environment.sh $(OLDEST) oldest
	OPENBLAS_NUM_THREADS=1 $(OLDEST)/bin/python $(PYTEST) $(ARGS)

LOCKS := $(wildcard .ci/requirements*.in)
lock: venv
	@for file in $(LOCKS:.in=); do $(VENV)/bin/uv pip compile -q --no-deps \
	  --generate-hashes --no-annotate --no-header --python-version 3.11 $$file.in -o $$file.txt || exit 1; done

colcon: venv
	@bash .ci/colcon.sh $(VENV)

clean:
	rm -rf $(VENV) $(OLDEST) $(DOCS) .venv-colcon build/site .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info demo
