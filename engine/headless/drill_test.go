package headless_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/headless"
)

// commandLine runs one command in this process.
func commandLine(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = headless.Execute(t.Context(), headless.Options{Args: args, Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// A drill ends with what it played and what fell, as an object of its own.
func TestDrillEndsWithItsSum(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := commandLine(t, "drill", "--seeds", "2", "--json", "--pictures", dir)
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var sum struct {
		Episodes, Violations *int
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &sum); err != nil {
		t.Fatal(err)
	}
	if sum.Episodes == nil || *sum.Episodes < 40 || sum.Violations == nil || *sum.Violations != 0 {
		t.Errorf("the last line is %s", lines[len(lines)-1])
	}
	cells := 0
	for _, l := range lines {
		var c struct {
			Workload, Strategy string
			Effects            int
		}
		if err := json.Unmarshal([]byte(l), &c); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		if c.Workload != "" && c.Strategy != "" && c.Effects > 0 {
			cells++
		}
	}
	if want := 8*9*(6+11) + 9*6; cells != want {
		t.Errorf("%d cells, want %d", cells, want)
	}
	for _, name := range []string{"recovery-break-even.svg", "recovery-sweep.svg"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A document has its tables and the command that makes it again.
func TestDrillAsADocument(t *testing.T) {
	code, out, errs := commandLine(t, "drill", "--seeds", "1", "--markdown")
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	for _, want := range []string{"# Recovery strategies", "`pawl drill --seeds 1 --markdown", "| **Pawl** |", "## Where Pawl loses", "## Limits", "recovery-sweep.svg"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the document", want)
		}
	}
}

// A seed is played again line by line, the same each time.
func TestDrillPlaysASeedAgain(t *testing.T) {
	_, first, _ := commandLine(t, "drill", "--seed", "8")
	code, second, errs := commandLine(t, "drill", "--seed", "8")
	if code != 0 || first != second || !strings.Contains(first, "RunCreated") {
		t.Errorf("code %d, %s, same: %v", code, errs, first == second)
	}
}

func TestDrillRefusesWhatMakesNoSense(t *testing.T) {
	for _, args := range [][]string{
		{"drill", "--seeds", "0"},
		{"drill", "--strategy", "hope"},
		{"drill", "--kill", "--markdown"},
		{"drill", "now"},
	} {
		if code, _, errs := commandLine(t, args...); code != headless.ExitUsage || !strings.Contains(errs, "next:") {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
	}
}
