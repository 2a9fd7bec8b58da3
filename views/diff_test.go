package views

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// diffRows lays out every file of a diff for a panel of w cells, both ways.
func diffRows(pen Pen, diff string, w int) []string {
	iw, _ := Inner(w, 2)
	var rows []string
	for _, f := range ParseDiff(diff) {
		rows = append(rows, f.Rows(pen, iw, false)...)
		rows = append(rows, f.Rows(pen, iw, true)...)
	}
	return rows
}

const twoFiles = `diff --git a/backoff.go b/backoff.go
index 0123..4567 100644
--- a/backoff.go
+++ b/backoff.go
@@ -10,4 +10,4 @@ func wait
 	d := p.Base
-	d = doubled(p.Base, n)
+	d = doubled(p.Base, n-1)
+	// bounded
 	return d
--- not a header
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
`

func TestParseDiff(t *testing.T) {
	files := ParseDiff(twoFiles)
	if len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	f := files[0]
	// The last line of the hunk begins with "--" and is a removed line, no header.
	if f.Name != "backoff.go" || f.Added != 2 || f.Removed != 2 || f.First != 11 {
		t.Errorf("the first file is %+v", f)
	}
	if last := f.Lines[len(f.Lines)-1]; last.Kind != '-' || last.Text != "-- not a header" || last.Old != 13 {
		t.Errorf("the last line is %+v", last)
	}
	if g := files[1]; g.Name != "old.txt" || g.Note != "deleted" || g.Counts() != "+0 −1" {
		t.Errorf("the second file is %+v", g)
	}
}

func TestDiffSetsOffWhatChanged(t *testing.T) {
	a, b := differ("	d = doubled(p.Base, n)", "	d = doubled(p.Base, n-1)")
	join := func(p []diffPiece) string {
		var out strings.Builder
		for _, x := range p {
			if x.changed {
				out.WriteString("[" + x.text + "]")
			} else {
				out.WriteString(x.text)
			}
		}
		return out.String()
	}
	if join(a) != "	d = doubled(p.Base, n[])" || join(b) != "	d = doubled(p.Base, n[-1])" {
		t.Errorf("%q, %q", join(a), join(b))
	}
	a, b = differ("one thing", "quite another")
	if join(a) != "one thing" || join(b) != "quite another" {
		t.Errorf("lines that have nothing in common are marked: %q, %q", join(a), join(b))
	}
}

func TestDiff(t *testing.T) {
	frames(t, func(pen Pen, w, h int) []string {
		rows := diffRows(pen, twoFiles, w)
		return Text{Title: "changes", Rows: rows, Focus: true}.Draw(pen, w, h)
	})
	rows := ParseDiff(twoFiles)[0].Rows(plainPen(), 80, true)
	want := "  11 -     d = doubled(p.Base, n)      │  11 +     d = doubled(p.Base, n-1)"
	if got := strings.TrimRight(ansi.Strip(rows[2]), " "); got != want {
		t.Errorf("beside each other:\n%q, want\n%q", got, want)
	}
}
