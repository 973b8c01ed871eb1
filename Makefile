# The two commands of a newcomer: `make demo` and `make test`. `make help` lists the rest.

export CARGO_TARGET_DIR ?= $(HOME)/.cache/whyso-target
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin
WHYSO := $(CARGO_TARGET_DIR)/release/whyso
WEB_SOURCES := $(shell find web -type f -not -path '*/node_modules/*' -not -path '*/dist/*' 2>/dev/null)

.PHONY: help demo demo-lab demo-web build web test test-hard test-lab test-all test-packages package fuzz matrix book check clean setup-build setup-demo setup-test setup-hard setup-packages

help: ## list the commands
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z%-]+):.*## /  make \1\t/' | expand -t 22

demo: setup-demo build ## from nothing to an explained scalability report, on a server of its own
	$(WHYSO) run oltp-read-write --users 1,2,4,8,16,32,64 --seconds 8 --warmup 3 --tables 4 --rows 25000

demo-lab: setup-test build ## the same over four hosts of this machine: a load, a database and a hub, as root
	tests/lab.sh

demo-web: setup-test build ## three troubles of a web application, from nothing to where the time of a request went, as root
	scripts/demo-web.sh

build: setup-build web ## build the program: $(CARGO_TARGET_DIR)/release/whyso
	cargo build --release --locked

web: web/dist/report.html ## build the page that the program embeds

web/dist/report.html: web/node_modules/.built-from $(WEB_SOURCES)
	cd web && npm run --silent build
	@touch $@

web/node_modules/.built-from: web/package-lock.json
	cd web && npm ci --no-audit --no-fund --silent
	@touch $@

package: setup-packages web ## write the packages into dist/: a .deb, a tarball, a Python wheel, an OCI image, the debug information
	packaging/package.sh

test: setup-test ## install what the tests need, and run them all
	scripts/test.sh

test-hard: setup-hard web ## run the long tests, then the fuzz targets (FUZZ_SECONDS=900 in all); adds to bench/hard/log.md
	scripts/test-hard.sh

test-packages: package ## install each package in a clean Debian 11 and 12, and run the demo there (as root)
	scripts/test-packages.sh

test-lab: setup-hard web ## measure on a quiet machine: planted causes (LAB_MINUTES=60), searches, kills, studies of clusters; adds to bench/proof/log.md
	scripts/test-lab.sh

test-all: ## run test, then test-hard, test-lab and test-packages
	$(MAKE) test
	$(MAKE) test-hard
	$(MAKE) test-lab
	$(MAKE) test-packages

fuzz: setup-test web ## look for inputs that break properties and fuzz targets, other ones each time (FUZZ_SECONDS=3600 in all)
	scripts/fuzz.sh $(FUZZ_SECONDS)

matrix: setup-test web ## fetch other servers' builds, MySQL among them, and test whyso on each
	scripts/matrix.sh

bench-%: ## write the tables of bench/NAME/README.md from its results.json: make bench-NAME
	bench/tables.py $*

book: ## build the book (docs/) as HTML, with mdbook: target/book/index.html
	@command -v mdbook >/dev/null || { echo "mdbook is not installed: cargo install mdbook --locked"; exit 1; }
	mdbook build docs
	@echo "open target/book/index.html"

check: web ## formatting and lints, warnings are errors
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets --locked -- -D warnings

setup-build:
	@scripts/setup.sh build

setup-demo:
	@scripts/setup.sh demo

setup-test:
	@scripts/setup.sh test

setup-hard:
	@scripts/setup.sh hard

setup-packages:
	@scripts/setup.sh packages

clean: ## remove what the build made in this folder (the cargo cache stays)
	rm -rf dist web/dist web/node_modules
