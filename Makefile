# fieldperm. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Nothing here uses C. The race detector does: see test-unit.
export CGO_ENABLED ?= 0
BIN := $(CURDIR)/bin
COMMANDS := fieldperm-webhook fieldperm-gen kubectl-fieldperm
# The packages with tests that speak to the real control plane.
INTEGRATION = $(shell grep -rl '^//go:build integration' --include='*_test.go' . | xargs -n1 dirname | sort -u)
UNIT ?= ./...
INTEGRATION_FLAGS := -tags integration -count=1 -p 2 -timeout 20m

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
test: test-unit test-integration ## Every test, those against the real control plane included.

.PHONY: test-unit
test-unit: ## The tests that need no control plane, with the race detector where there is a C compiler.
	@# Built, not looked for: a compiler without the C library's headers is none.
	@if CGO_ENABLED=1 go build -race runtime/cgo 2>/dev/null; then \
	  echo "CGO_ENABLED=1 go test -race $(UNIT)"; CGO_ENABLED=1 go test -race $(UNIT); \
	else \
	  echo "test-unit: the race detector is off, because it needs a C compiler: install gcc or clang, with the C library's headers"; \
	  echo "go test $(UNIT)"; go test $(UNIT); \
	fi
	go -C test/observability test ./...
	go -C generators/analyzer test ./...
	@# Without $$CHROMIUM it is skipped.
	go -C test/browser test ./...

.PHONY: test-integration
test-integration: build controlplane ## The tests against the real control plane.
	@# Servers start and tests wait: two packages at a time, and the faults beside them, keep two processors busy.
	@status=0; go test $(INTEGRATION_FLAGS) ./test/faults & faults=$$!; \
	go test $(INTEGRATION_FLAGS) $(filter-out ./test/faults,$(INTEGRATION)) || status=1; \
	wait $$faults || status=1; \
	FIELDPERM_BIN=$(BIN) go -C examples/operator test -count=1 -timeout 10m ./website/... || status=1; exit $$status

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
test-load: build controlplane ## 1,000 reviews a second for LOADTIME; every answer is checked.
	go test -tags integration -count=1 -v -timeout 30m ./test/load -args -duration=$(LOADTIME)

SCALETIME ?= 60s
.PHONY: test-scale
test-scale: build controlplane ## Play a cluster of 5,000 nodes, 500 definitions and 20,000 bindings; SCALE=-rbac decides in process.
	go test -tags integration -count=1 -v -timeout 60m ./test/scale -args -nodes=5000 -controllers=300 -definitions=500 -bindings=20000 -objects=100 -duration=$(SCALETIME) $(SCALE)

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
	$(BIN)/golangci-lint run --allow-parallel-runners ./...
	go -C examples/operator vet ./...
	go -C generators/analyzer vet ./...

$(BIN)/golangci-lint: hack/tools/go.mod
	@mkdir -p $(BIN)
	go -C hack/tools build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: generate
generate: ## Write what is generated into the tree.
	go generate ./...

.PHONY: verify
verify: ## Check that modules are tidy and that generated files are what the generators write.
	@hack/verify.sh
