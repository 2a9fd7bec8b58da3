package confine

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The golden-file package may define the same flag in other test binaries; not in this one.
var update = flag.Bool("update", false, "write the generated part of docs/confinement.md")

const (
	tableStart = "<!-- generated: what each level promises -->\n"
	tableEnd   = "<!-- end -->\n"
)

// promises is the table of what is kept from a command at each level, from the very list that the self-probe tries.
func promises() string {
	var b strings.Builder
	b.WriteString("| a command tries to | none | partial | guarded | sealed |\n|---|---|---|---|---|\n")
	row := func(a attempt, before, from string) {
		fmt.Fprintf(&b, "| %s |", a.name)
		for _, l := range []Level{LevelNone, LevelPartial, LevelGuarded, LevelSealed} {
			word := before
			if l >= a.from {
				word = from
			}
			fmt.Fprintf(&b, " %s |", word)
		}
		b.WriteString("\n")
	}
	for _, a := range escapes {
		row(a, "–", "blocked")
	}
	for _, a := range needs {
		row(a, "–", "works")
	}
	return b.String()
}

// What the documentation says of the levels is what the self-probe holds them to.
func TestTheDocumentedTableIsTheOneThatIsMeasured(t *testing.T) {
	if len(escapes) < 40 {
		t.Errorf("only %d attempts", len(escapes))
	}
	const path = "../../docs/confinement.md"
	b, err := os.ReadFile(path)
	must(t, err)
	before, rest, ok := strings.Cut(string(b), tableStart)
	table, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatal("the marks of the generated table are missing")
	}
	want := promises()
	if *update {
		must(t, os.WriteFile(path, []byte(before+tableStart+want+tableEnd+after), 0o644))
		return
	}
	if table != want {
		t.Error("docs/confinement.md differs from the self-probe's list: run this test with -update, and read what changed")
	}
}
