// Benchreport turns the output of go test -bench into docs/benchmarks.md. It
// passes the output on as it comes.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -bench … | benchreport FILE")
		os.Exit(2)
	}
	text, failed, err := report(io.TeeReader(os.Stdin, os.Stdout), time.Now())
	if err == nil && failed {
		err = fmt.Errorf("a benchmark failed, so %s is left as it was", os.Args[1])
	}
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

// result is one line of a benchmark.
type result struct {
	pkg, name string
	values    []value
}

type value struct {
	number float64
	unit   string
}

func (r result) of(unit string) (float64, bool) {
	for _, v := range r.values {
		if v.unit == unit {
			return v.number, true
		}
	}
	return 0, false
}

// report reads benchmark output and words it. failed says that it is not whole.
func report(in io.Reader, now time.Time) (text string, failed bool, err error) {
	var results []result
	pkg, cpu := "", ""
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l := lines.Text()
		switch {
		case strings.HasPrefix(l, "pkg: "):
			pkg = strings.TrimPrefix(l, "pkg: ")
		case strings.HasPrefix(l, "cpu: "):
			cpu = strings.TrimPrefix(l, "cpu: ")
		case strings.HasPrefix(l, "FAIL"), strings.HasPrefix(l, "--- FAIL"), strings.HasPrefix(l, "panic:"):
			failed = true
		case strings.HasPrefix(l, "Benchmark"):
			if r, ok := parse(pkg, l); ok {
				results = append(results, r)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return "", failed, err
	}
	return words(results, cpu, now), failed || len(results) == 0, nil
}

// parse reads a line like "BenchmarkX/y-2  3  12 ns/op  4 things/op".
func parse(pkg, l string) (result, bool) {
	f := strings.Fields(l)
	if len(f) < 4 {
		return result{}, false
	}
	r := result{pkg: strings.TrimPrefix(pkg, "pawl/"), name: strings.TrimPrefix(f[0], "Benchmark")}
	for i := 2; i+1 < len(f); i += 2 {
		n, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return result{}, false
		}
		r.values = append(r.values, value{n, f[i+1]})
	}
	return r, true
}

// fdatasync is the median of the raw disk in µs, 0 if it was not measured.
func fdatasync(r result) float64 {
	for _, unit := range []string{"fdatasync-p50-µs", "fdatasync-µs"} {
		if n, ok := r.of(unit); ok {
			return n
		}
	}
	return 0
}

// load says how busy the machine was, "" where that cannot be told.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	one, _, _ := strings.Cut(string(b), " ")
	return ", load " + one + " at the end (1 is the benchmark itself)"
}

func words(results []result, cpu string, now time.Time) string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nMade by `make bench`; it writes this page over. Figures of one machine and one day: compare ratios, not numbers.\n\n")
	fmt.Fprintf(&b, "- %s, %s/%s, %d cores, %s%s\n- %s\n", now.UTC().Format("2006-01-02"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), load(), cpu)
	b.WriteString("\n## What they say\n\n")
	for _, r := range results {
		if steps, ok := r.of("steps/s"); ok {
			p50, _ := r.of("p50-µs")
			syncs, _ := r.of("syncs/step")
			bytes, _ := r.of("bytes/step")
			raw := fdatasync(r)
			fmt.Fprintf(&b, "- **%s**: %.0f durable steps/s, p50 %.0f µs", r.name, steps, p50)
			if raw > 0 {
				fmt.Fprintf(&b, "; an append and fdatasync of the same disk takes %.0f µs, so that a step's latency is %.1f of them and %.2f steps are done in the time of one", raw, p50/raw, steps*raw/1e6)
			}
			fmt.Fprintf(&b, "; %.2f blocking syncs and %.0f bytes a step", syncs, bytes)
			if flat, ok := r.of("last/first"); ok {
				fmt.Fprintf(&b, "; the last tenth costs %.2f times the first", flat)
			}
			b.WriteString(".\n")
		}
		if first, ok := r.of("first-page-ms"); ok {
			inbox, _ := r.of("inbox-ms")
			all, _ := r.of("taken-over-ms")
			fmt.Fprintf(&b, "- **%s**: after a crash of 1,000 runs with an effect in flight each, the first page is there in %.0f ms, the whole inbox in %.0f ms, and all are taken over in %.0f ms.\n", r.name, first, inbox, all)
		}
		if n, ok := r.of("episodes/s"); ok {
			fmt.Fprintf(&b, "- **%s**: the explorer plays %.0f episodes/s on one core.\n", r.name, n)
		}
	}
	b.WriteString("\n## All figures\n\n| package | benchmark | figures |\n|---|---|---|\n")
	for _, r := range results {
		var v []string
		for _, x := range r.values {
			v = append(v, strconv.FormatFloat(x.number, 'g', 6, 64)+" "+x.unit)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.pkg, r.name, strings.Join(v, ", "))
	}
	return b.String()
}
