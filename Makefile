# `make` lists the targets; `make run` and `make test` are all that a fresh
# machine with Go and make needs.

GO       ?= go
FUZZTIME ?= 30s
SOAKTIME ?= 10m
COUNT    ?= 6
PREEMPTIONS ?= 2
MUTANTS  ?= 20
SEED     ?= 1
PACKAGES ?= ./...
# grpcnotrace leaves the trace pages of gRPC out; they keep a quarter of the binary alive.
TAGS     ?= grpcnotrace
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS   = -X main.version=$(VERSION) -X main.revision=$(REVISION)

# Without cgo, as the released binaries; that of the tests is compiled from the same cache.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## start the daemon with its embedded configuration: admin on 127.0.0.1:9901, StatsD on 127.0.0.1:8125
	@echo 'compiling; with an empty build cache this takes a minute or two'
	$(GO) run -ldflags '$(LDFLAGS)' ./cmd/statsd-admin

build: ## build bin/statsd-admin
	$(GO) build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/statsd-admin ./cmd/statsd-admin

# Two at a time: many tests wait. What lint compiles, all but race use.
test: tools ## run all checks and tests
	@$(MAKE) --no-print-directory -j2 lint race e2e unit portable schedules

tools: ## install the tools of the tests (with CI=true; otherwise list missing ones)
	@./scripts/tools

lint: ## gofmt, go vet, staticcheck
	@./scripts/lint

unit: ## unit tests, golden files, rules of the module
	@./scripts/gotest ./...
	@for module in bench/peers bridge/* tools/mutants; do (cd $$module && ../../scripts/gotest ./...) || exit 1; done

race: ## the same under the race detector, except house rules and long single-goroutine tests
	@./scripts/race

portable: ## test the code without architecture-specific fast paths: tag purego, 386
	@./scripts/portable

arm64: ## the same as arm64 programs in an emulator: takes minutes, needs qemu-aarch64
	@./scripts/portable arm64

schedules: ## explore interleavings of lock-free code with up to PREEMPTIONS preemptions
	$(GO) test -vet=off -tags schedule -short ./internal/schedule
	$(GO) test -vet=off -tags schedule -run '^TestSchedules$$' ./histogram ./store -preemptions $(PREEMPTIONS)

seeded: ## check that the exploration and the matrix find seeded faults
	@./scripts/seeded

mutants: ## change MUTANTS random places of PACKAGES, one at a time, and report what no test notices
	@cd tools/mutants && $(GO) run . -root ../.. -n $(MUTANTS) -seed $(SEED) $(PACKAGES)

e2e: ## test the binary against third-party programs
	@./scripts/e2e

fuzz: ## run each fuzz target for FUZZTIME
	@./scripts/fuzz $(FUZZTIME)

soak: ## hostile input, scrapes and mutations for SOAKTIME
	@./scripts/soak $(SOAKTIME)

slow: ## measure slow clients, half-open connections, expensive filters and canaries: takes minutes
	@./scripts/slow

proof: ## run the long proofs and write docs/proofs.md: takes hours, unless SOAKTIME and FUZZTIME are given
	@$(if $(filter file,$(origin SOAKTIME)),,SOAKTIME=$(SOAKTIME)) $(if $(filter file,$(origin FUZZTIME)),,FUZZTIME=$(FUZZTIME)) PREEMPTIONS=$(PREEMPTIONS) ./scripts/proof $(PARTS)

matrix: ## break hot restarts at every step of the protocol: takes minutes
	@./scripts/matrix

packages: ## build archives, Debian and RPM packages, an OCI image and bills of materials into dist/
	@./scripts/packages

packages-test: ## build packages twice, install and upgrade them under systemd, run the image: takes minutes, needs root
	@./scripts/packages-test

pictures: ## save screenshots of all pages to docs/images
	@./scripts/pictures docs/images

cross: ## compile for systems on which the tests do not run
	@./scripts/cross

bench: ## measure everything in bench/ and check the budget
	@./scripts/bench $(COUNT)

bench-peers: ## measure other libraries for the table in docs/performance/libraries.md
	@./scripts/bench-peers $(COUNT)

.PHONY: help run build test tools lint unit race portable arm64 schedules seeded mutants e2e fuzz soak slow proof matrix packages packages-test pictures cross bench bench-peers
