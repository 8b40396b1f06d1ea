# fieldperm. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Nothing here uses C. The race detector does: see test-unit.
export CGO_ENABLED ?= 0
BIN := $(CURDIR)/bin
COMMANDS := fieldperm-webhook fieldperm-gen kubectl-fieldperm
# The tests that speak to the real control plane, and their packages. The longest packages are first.
INTEGRATION_FILES = $(shell grep -rl '^//go:build integration' --include='*_test.go' .)
INTEGRATION_TESTS = $(or $(shell grep -oh '^func Test[A-Za-z0-9_]*' $(INTEGRATION_FILES) | sed 's/^func //' | sort -u | paste -sd '|' -),$(error no test begins with //go:build integration))
INTEGRATION = $(patsubst %/,%,$(sort $(dir $(INTEGRATION_FILES))))
LONGEST := ./test/faults ./test/e2e ./test/corpus ./internal/plugin ./test/asks ./test/aggregated ./test/fields ./test/oracle
UNIT ?= ./...
# Memory for processor time: the collector runs less often, in compilers and tests too. Benchmarks keep Go's default.
lint verify test test-unit test-integration: export GOGC ?= 300

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the three commands into bin/.
	@# With the flags of the tests, so that no dependency is compiled twice.
	@mkdir -p $(BIN)
	@CGO_ENABLED=0 hack/gobuild.sh "build: fieldperm" -o $(BIN)/ $(addprefix ./cmd/,$(COMMANDS))

VERSION ?= v0.0.0-unknown
.PHONY: dist
dist: ## Build the archives of the kubectl plugin of VERSION for a release into bin/dist.
	@hack/dist.sh $(VERSION)

.PHONY: controlplane
controlplane: ## Build kube-apiserver, etcd and kubectl into bin/controlplane, unless $KUBEBUILDER_ASSETS has them.
	@test/controlplane/build.sh

.PHONY: demo
demo: build controlplane ## Play the stories on a local control plane; KEEP=1 leaves it running to try things on.
	@CGO_ENABLED=0 hack/gobuild.sh "build: demo" -o $(BIN)/demo ./test/demo
	@KEEP="$(KEEP)" PATH="$(BIN):$$PATH" $(BIN)/demo

.PHONY: test
test: build controlplane ## Every test, those against the real control plane included.
	@# Tests against the control plane wait most of the time. The others fill that time, with a lower priority so that they delay nothing.
	@status=0; nice -n 5 $(MAKE) --no-print-directory test-unit & unit=$$!; \
	$(MAKE) --no-print-directory test-integration || status=1; wait $$unit || status=1; exit $$status

.PHONY: test-unit
test-unit: ## The tests that need no control plane, with the race detector where there is a C compiler.
	@# Built, not looked for: a compiler without the C library's headers is none. Without vet, because make lint runs all of it.
	@if CGO_ENABLED=1 go build -race runtime/cgo 2>/dev/null; then \
	  echo "CGO_ENABLED=1 go test -vet=off -race -timeout 30m $(UNIT)"; CGO_ENABLED=1 go test -vet=off -race -timeout 30m $(UNIT); \
	else \
	  echo "test-unit: the race detector is off, because it needs a C compiler: install gcc or clang, with the C library's headers"; \
	  echo "go test -vet=off -timeout 30m $(UNIT)"; go test -vet=off -timeout 30m $(UNIT); \
	fi
	go -C test/observability test -vet=off ./...
	go -C generators/analyzer test -vet=off ./...
	@# The reviews only: make bench-peers runs the peers, which are large.
	go -C test/peers test -vet=off ./...
	@# Without $$CHROMIUM it is skipped.
	go -C test/browser test -vet=off ./...

.PHONY: test-integration
test-integration: build controlplane ## The tests against the real control plane.
	@# Servers start and tests wait: three packages at a time keep two processors busy. The longest are first, so that none runs alone at the
	@# end. make test-unit runs the other tests of these packages, and make lint go vet.
	@export FIELDPERM_BIN=$(BIN); status=0; go -C examples/operator test -count=1 -vet=off -timeout 20m ./website/... & website=$$!; \
	go test -tags integration -count=1 -vet=off -p 3 -timeout 45m -run '^($(INTEGRATION_TESTS))$$' \
	  $(LONGEST) $(filter-out $(LONGEST),$(INTEGRATION)) || status=1; \
	wait $$website || status=1; exit $$status

.PHONY: test-faults
test-faults: build controlplane ## Kill, freeze, tamper and revoke while users write; print what landed.
	go test -tags integration -count=1 -v -timeout 30m ./test/faults

.PHONY: test-model
test-model: ## Check the interlock's protocol in every order of events; print how each broken variant does harm.
	go test -count=1 -v ./test/model

WRITES ?= 20000
SEED ?= 1
.PHONY: test-oracle
test-oracle: build controlplane ## Send WRITES random writes from SEED; judge what etcd holds by what was permitted.
	@go build -o $(BIN)/oracle ./test/oracle/cmd
	@# Memory for processor time: the collector of each process runs less often.
	@GOGC=300 $(BIN)/oracle -bin $(BIN) -writes $(WRITES) -seed $(SEED) $(ORACLE)

.PHONY: test-oracle-faults
test-oracle-faults: controlplane ## Put known faults back, one at a time; the oracle must find each.
	go run ./test/oracle/faults -seed $(SEED)

.PHONY: test-controllers
test-controllers: build controlplane ## Run Kubernetes' controllers and those of other projects with granular verbs only; UPDATE=1 writes config/roles.
	@test/controlplane/build.sh controllers
	@test/controllers/modules/build.sh
	go test -tags controllers -count=1 -p 1 -v -timeout 60m ./test/controllers/... -args $(if $(UPDATE),-update) $(if $(KEEP),-keep=$(KEEP)) $(if $(SHUFFLE),-shuffle=$(SHUFFLE))

LOADTIME ?= 60s
.PHONY: test-load
test-load: build controlplane ## 1,000 reviews a second for LOADTIME, every answer checked; and the costs of a call beside a webhook that does nothing.
	go test -tags integration -count=1 -v -timeout 60m ./test/load -args -duration=$(LOADTIME) -slice=2s -turns=2

SCALETIME ?= 60s
.PHONY: test-scale
test-scale: build controlplane ## Play a cluster of 5,000 nodes, 500 definitions and 20,000 bindings; SCALE=-rbac decides in process.
	go test -tags integration -count=1 -v -timeout 60m ./test/scale -args -nodes=5000 -controllers=300 -definitions=500 -bindings=20000 -objects=100 -duration=$(SCALETIME) $(SCALE)

DURATION ?= 1h
.PHONY: test-soak
test-soak: build controlplane ## 1,000 requests a second for DURATION, while schemas, grants and certificates change and processes end; SAMPLES=FILE.
	go test -tags integration -count=1 -v -timeout 0 ./test/soak -args -rounds=0 -duration=$(DURATION) -rate=1000 -pause=30s -hold=3s -ttl=10s -every=10s -growth $(if $(SAMPLES),-samples=$(abspath $(SAMPLES)))

.PHONY: test-mutation
test-mutation: ## Break the code on purpose, once per mutation; the tests must notice each.
	go run ./test/mutation

BENCHTIME ?= 1s
.PHONY: bench
bench: controlplane ## Benchmarks; keep the output for benchstat.
	go test -run '^$$' -bench . -benchmem $$(go list ./... | grep -v /test/bench$$)
	@# A whole review against what it could cost at least, and hostile input: ratios at the end.
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m ./test/bench | go run ./test/bench/ratios
	@# What a check costs in process, beside a round trip to the real server.
	go test -tags integration -run '^$$' -bench SubjectAccessReview -benchmem ./internal/rbac

ROUNDS ?= 100
VARIANTS ?=
.PHONY: bench-apiserver
bench-apiserver: build controlplane ## A PATCH through kube-apiserver, with fieldperm and with others, in ROUNDS turns of 20.
	go test -tags integration -count=1 -v -timeout 60m ./test/patch -args -rounds=$(ROUNDS) -writes=20 -variants='$(VARIANTS)'

TURNS ?= 5
.PHONY: bench-peers
bench-peers: ## Other programs decide the same reviews, in TURNS turns. It downloads and compiles them, which takes long.
	go -C test/peers run ./compare -rounds $(TURNS)

FUZZTIME ?= 30s
PAIRS ?= 20000
.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME each, and compare Diff on PAIRS drawn pairs.
	@for target in ./generators/markers/grammar:FuzzLine ./verbs:FuzzParse ./verbs:FuzzParameter ./fieldperm:FuzzD10_Law ./internal/rawjson:FuzzScan ./internal/rawjson:FuzzEqual ./admission:FuzzRead ./test/exact:FuzzExact ./internal/configfile:FuzzLoad ./internal/review:FuzzP4_Body ./internal/conditions/wire:FuzzK3_ReadStatus ./internal/conditions/wire:FuzzK3_ConditionsReview; do \
	  go test "$${target%%:*}" -run '^$$' -fuzz "^$${target##*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x; \
	done
	go test -count=1 ./test/exact -run Exact -pairs $(PAIRS) -seed $$RANDOM -timeout 2h

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run golangci-lint, and go vet on modules of their own.
	@# From 4 GiB on, memory counts more than time.
	GOMEMLIMIT=4GiB $(BIN)/golangci-lint run --allow-parallel-runners ./...
	go -C examples/operator vet ./...
	go -C generators/analyzer vet ./...
	go -C test/observability vet ./...
	go -C test/browser vet ./...
	go -C test/peers vet ./...

$(BIN)/golangci-lint: hack/tools/go.mod
	@mkdir -p $(BIN)
	go -C hack/tools build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: generate
generate: ## Write what is generated into the tree.
	go generate ./...

.PHONY: verify
verify: ## Check that modules are tidy and that generated files are what the generators write.
	@hack/verify.sh
