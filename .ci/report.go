// Command report reads the stream of go test -json and prints what a person
// wants to see of it: a line for each package, the whole output of what failed,
// every skipped test with its reason, and the counts.
//
// With CI=true a test that was skipped because a program is missing counts as
// failed: its reason is the word "needs" and the program's name, nothing else.
// (root is no program: who runs the tests without being root knows it.)
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// event is one line of the stream.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build events
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// missing matches the output line by which a test says that it lacks a program.
var missing = regexp.MustCompile(`^\s+\S+\.go:\d+: needs [A-Za-z0-9_.+-]+\s*$`)

type report struct {
	out                     io.Writer
	strict                  bool
	passed, failed, skipped int
	broken                  bool // a package failed, or the stream did
	output                  map[string][]string
	skips                   []string
}

func main() {
	r := report{out: os.Stdout, strict: os.Getenv("CI") == "true", output: map[string][]string{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "read the test stream:", err)
		os.Exit(1)
	}
	if !r.finish() {
		os.Exit(1)
	}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			r.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(r.out, line) // go's own words, such as a module that is missing
		return
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.broken = true
	case "pass", "skip", "fail":
		r.ended(e, key)
	}
}

func (r *report) ended(e event, key string) {
	text := r.output[key]
	delete(r.output, key)
	if e.Test == "" {
		r.packageEnded(e, text)
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "%s", strings.Join(text, ""))
	case "skip":
		r.skipped++
		r.skip(e, text)
	}
}

func (r *report) packageEnded(e event, text []string) {
	switch {
	case e.Action == "fail":
		r.broken = true
		fmt.Fprint(r.out, strings.Join(text, "")) // panics and time-outs are told here
		fmt.Fprintf(r.out, "FAIL\t%s\t%.3fs\n", e.Package, e.Elapsed)
	case e.Action == "pass":
		fmt.Fprintf(r.out, "ok  \t%s\t%.3fs\n", e.Package, e.Elapsed)
	default:
		fmt.Fprintf(r.out, "?   \t%s\t[no test files]\n", e.Package)
	}
}

func (r *report) skip(e event, text []string) {
	reason := ""
	for _, line := range text {
		if strings.HasPrefix(line, "=== ") || strings.HasPrefix(strings.TrimSpace(line), "--- SKIP") {
			continue
		}
		reason += line
		if r.strict && missing.MatchString(line) && !strings.HasSuffix(strings.TrimSpace(line), " root") {
			r.failed++
			r.skipped--
			fmt.Fprintf(r.out, "skipped for want of a program, which must be there: %s %s\n%s", e.Package, e.Test, line)
		}
	}
	r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, strings.TrimSpace(reason)))
}

// finish prints what is left to say and reports whether all is well.
func (r *report) finish() bool {
	for _, s := range r.skips {
		fmt.Fprintln(r.out, "skipped:", s)
	}
	for key, text := range r.output { // a test that never ended
		if strings.TrimSpace(strings.Join(text, "")) != "" && !strings.HasSuffix(key, " ") {
			fmt.Fprintf(r.out, "no end: %s\n%s", key, strings.Join(text, ""))
		}
	}
	if r.passed == 0 {
		fmt.Fprintln(r.out, "no test ran")
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return r.passed > 0 && r.failed == 0 && !r.broken
}
