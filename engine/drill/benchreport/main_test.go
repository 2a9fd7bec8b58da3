package main

import (
	"strings"
	"testing"
	"time"
)

func TestReportWordsWhatWasMeasured(t *testing.T) {
	text, failed, err := report(strings.NewReader(`goos: linux
pkg: pawl/engine
cpu: Some Processor
BenchmarkStep/runs=1/steps=2000-2   1  900000 ns/op  210.0 p50-µs  110.5 fdatasync-p50-µs  1.00 syncs/step  2500 steps/s  900 bytes/step  1.02 last/first
PASS
`), time.Unix(0, 0))
	if err != nil || failed {
		t.Fatal(err, failed)
	}
	for _, want := range []string{"1970-01-01", "Some Processor", "2500 durable steps/s", "a step's latency is 1.9 of them", "| engine | Step/runs=1/steps=2000-2 | 900000 ns/op,"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestReportIsNotWrittenFromFailures(t *testing.T) {
	for _, in := range []string{"", "BenchmarkX-2 1 5 ns/op\nFAIL\tpawl/engine\n"} {
		if _, failed, err := report(strings.NewReader(in), time.Now()); err != nil || !failed {
			t.Errorf("%q: failed %v, %v", in, failed, err)
		}
	}
}
