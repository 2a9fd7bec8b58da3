# Everything a change must pass is in check and test; .ci/run does both.
# Formatter and linters are tools of this module (go.mod), so everyone runs the
# same versions.

GO ?= go
BENCH ?= .
FUZZTIME ?= 20s

.PHONY: help build check fmt test demo bench drill recovery fuzz screens bench-tui play

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

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

bench: ## what a durable step costs, into docs/benchmarks.md; BENCH=REGEXP picks
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./ledger ./engine ./engine/drill | $(GO) run ./engine/drill/benchreport docs/benchmarks.md

drill: ## break it: the explorer, the comparison, real processes, and each guard switched off
	$(GO) run . drill
	$(GO) run . drill --kill
	$(GO) test -tags mutate -run Mutation -v ./engine/drill

recovery: ## write docs/recovery-strategies.md again; takes up to an hour
	$(GO) run . drill --seeds 10000 --markdown --pictures docs > docs/recovery-strategies.md.new
	mv docs/recovery-strategies.md.new docs/recovery-strategies.md

fuzz: ## every fuzz target for FUZZTIME
	@set -e; \
	for file in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$file); do \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file); \
		done; \
	done

screens: ## draw the pictures of docs/screen.md anew
	@set -e; dir=$$(mktemp -d); \
	$(GO) test -count 1 -run 'WholeScreens|TestTabs|RecoverySteps|DiffTab' ./tui -shots $$dir; \
	for p in 2-effect-120x40:effect 4-approval-120x40:approval 6-timeline-120x40:timeline 24-recovery:recovery 27-diff-beside:diff 22-context:context 23-state:state 16-empty:empty; do \
		cp $$dir/$${p%%:*}.svg docs/screens/$${p##*:}.svg; \
	done; rm -r $$dir

bench-tui: ## what the screen costs: frames, and key to wire through a pseudo-terminal
	$(GO) test -run '^$$' -bench 'Key|Reading' -benchmem ./tui
	$(GO) test -count 1 -v -run TestFigures ./tui -figures

play: build ## plays the demo on the screen in tmux: start, crash, recover, step, decide, finish
	sh fixtures/screen/play.sh ./pawl
