# fieldperm. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Nothing here uses C. The race detector does: see test-all.
export CGO_ENABLED ?= 0
BIN := $(CURDIR)/bin
COMMANDS := fieldperm-webhook fieldperm-gen kubectl-fieldperm
# Memory for processor time: the collector runs less often, in compilers and tests too. Benchmarks keep Go's default.
lint verify build controlplane controllers test test-all: export GOGC ?= 300

# With K8S=1.35 the targets with a control plane use that of Kubernetes 1.35: see test/controlplane/versions.
ifneq ($(K8S),)
export K8S
export KUBEBUILDER_ASSETS := $(BIN)/controlplane-$(K8S)
endif

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
controlplane: ## Build kube-apiserver, etcd and kubectl into bin/controlplane, unless $KUBEBUILDER_ASSETS has them; K8S=1.35 those of that release.
	@test/controlplane/build.sh

.PHONY: demo
demo: build controlplane ## Play the stories on a local control plane; KEEP=1 leaves it running to try things on.
	@CGO_ENABLED=0 hack/gobuild.sh "build: demo" -o $(BIN)/demo ./test/demo
	@KEEP="$(KEEP)" PATH="$(BIN):$$PATH" $(BIN)/demo

.PHONY: controllers
controllers: build ## Build the controllers of Kubernetes and of other projects that make test-controllers runs, into bin/controllers.
	@test/controlplane/build.sh controllers
	@test/controllers/modules/build.sh

.PHONY: test
test: ## The tests of each rule, endpoint and command, about a quarter of an hour. It builds what it needs.
	@go run ./test/suite

.PHONY: test-all
test-all: ## The tests that make test leaves out, the race detector and the oldest minor of Kubernetes, about half an hour.
	@go run ./test/suite -all

.PHONY: test-versions
test-versions: ## Install, demo, kinds, corpus and recordings on each minor of Kubernetes; K8S=1.35 on one; UPDATE=1 writes the differences.
	@env -u KUBEBUILDER_ASSETS go run ./test/versions $(if $(UPDATE),-update) $(K8S)

.PHONY: test-faults
test-faults: build controlplane ## Kill, freeze, tamper and revoke while users write; print what landed.
	go test -tags integration -count=1 -v -timeout 30m ./test/faults

.PHONY: test-model
test-model: ## Check the protocol of the proof of enforcement in every order of events; print how each broken variant does harm.
	go test -count=1 -v ./test/model

WRITES ?= 20000
SEED ?= 1
.PHONY: test-oracle
test-oracle: build controlplane ## Send WRITES random writes from SEED; judge what etcd holds by what was permitted.
	@go build -o $(BIN)/oracle ./test/oracle/cmd
	@# Memory for processor time: the collector of each process runs less often.
	@GOGC=300 $(BIN)/oracle -bin $(BIN) -writes $(WRITES) -seed $(SEED) $(ORACLE)

.PHONY: test-previous
test-previous: build controlplane ## Record WRITES random writes from SEED; compare the decisions of this core and of the previous one on them.
	@go build -o $(BIN)/oracle ./test/oracle/cmd
	@rm -rf $(BIN)/recorded
	@GOGC=300 $(BIN)/oracle -bin $(BIN) -writes $(WRITES) -seed $(SEED) -record $(BIN)/recorded $(ORACLE)
	@go run ./test/previous/replay $(BIN)/recorded

.PHONY: test-oracle-faults
test-oracle-faults: controlplane ## Put known faults back, one at a time; the oracle must find each.
	go run ./test/oracle/faults -seed $(SEED)

.PHONY: test-controllers
test-controllers: controlplane controllers ## Run Kubernetes' controllers and those of other projects with granular verbs only; UPDATE=1 writes config/roles.
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
