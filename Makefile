# Everything a change must pass is in check and test; .ci/run does both.
# Formatter and linters are tools of this module (go.mod), so everyone runs the
# same versions.

GO ?= go
BENCH ?= .
FUZZTIME ?= 20s

.PHONY: help build check fmt test demo bench fuzz

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

build: ## build ./pawl
	$(GO) build -o pawl .

check: ## format, vet, static analysis, exhaustive switches, import rules
	@out=$$($(GO) tool gofumpt -l .); test -z "$$out" || \
		{ printf 'not formatted:\n%s\nrun make fmt\n' "$$out" >&2; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@# a switch over a type of ours names every value or says what it does with the rest
	$(GO) tool exhaustive -typeonly '^pawl/' -d ./...
	$(GO) test -run '^TestImports' .

fmt: ## format every file
	$(GO) tool gofumpt -w .

test: ## all tests, with the race detector and in random order
	$(GO) test -race -shuffle=on ./...

demo: ## a real repair, interrupted and recovered, without a screen
	$(GO) run . demo --headless

bench: ## what a durable step costs; BENCH=REGEXP picks
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./ledger ./engine

fuzz: ## every fuzz target for FUZZTIME
	@set -e; \
	for file in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$file); do \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file); \
		done; \
	done
