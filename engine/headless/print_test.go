package headless

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pawl/engine/machine"
)

// What a terminal could obey is never printed, and what a program reads back is exact.
func TestObjectIsExactAndHarmless(t *testing.T) {
	hostile := "a\x1b[2Kb\u009b31mc\u202edcba\u2066x\u200b\ufeff\x7f — é 世界 👍"
	var b bytes.Buffer
	if err := object(&b, map[string]string{"text": hostile}); err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if r < 0x20 || steers(r) {
			t.Errorf("U+%04X is printed as it is", r)
		}
	}
	if !strings.Contains(b.String(), "é 世界 👍") {
		t.Errorf("ordinary text is escaped: %s", b.String())
	}
	var back map[string]string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["text"] != hostile {
		t.Errorf("read back %q, %v", back["text"], err)
	}
}

func TestLinesAndBlocksAreHarmless(t *testing.T) {
	for _, s := range []string{line("a\x1b[2Jb\nc\rd", 0), block("one\x1b]0;title\x07\ntwo\u202ethree", "  ")} {
		for _, r := range strings.TrimRight(s, "\n") {
			if r != '\n' && (r < 0x20 || steers(r)) {
				t.Errorf("U+%04X in %q", r, s)
			}
		}
	}
	if got := line("世界世界", 5); got != "世界…" {
		t.Errorf("cut to %q", got)
	}
}

func TestTableAlignsByWidth(t *testing.T) {
	tab := table{head: []string{"A", "B", "C"}}
	tab.add("世界", "x", "long tail that does not fit")
	tab.add("é", "\x1b[31m", "end")
	var b bytes.Buffer
	if err := tab.write(&b, 24); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("a control sequence is printed")
	}
	if !strings.HasSuffix(lines[1], "…") {
		t.Errorf("not cut: %q", lines[1])
	}
	b.Reset()
	if err := tab.write(&b, 0); err != nil || !strings.Contains(b.String(), "long tail that does not fit") {
		t.Errorf("cut although nobody looks: %q, %v", b.String(), err)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/tmp/l.db": "/tmp/l.db", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME;rm": "'$HOME;rm'",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for d, want := range map[time.Duration]string{
		0: "now", 3 * time.Second: "3s", 59 * time.Minute: "59m", 30 * time.Hour: "30h", 72 * time.Hour: "3d",
	} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("age of %v: %s, want %s", d, got, want)
		}
	}
	if got := age(now, time.UnixMicro(0)); got != "-" {
		t.Errorf("no time: %s", got)
	}
}

func TestKindOf(t *testing.T) {
	for id, kind := range map[string]idKind{
		"r7k2m9x": idRun, "r1.e12": idEffect, "r1.a1": idApproval, "r1.q3": idQuestion,
		"": idNone, "e7": idNone, "r1.e0": idNone, "r1.x1": idNone, "r1.e1.e2": idNone, "R1": idNone, "r1.e1 ": idNone, "r1/../x": idNone,
	} {
		if got := kindOf(id); got != kind {
			t.Errorf("%q is %q, want %q", id, got, kind)
		}
	}
	if err := want(idApproval, "r1.e1"); err == nil || !strings.Contains(err.Error(), "an effect") {
		t.Errorf("an effect passes for an approval: %v", err)
	}
}

// No state without a result on record claims that something failed.
func TestVerdictOf(t *testing.T) {
	for s, want := range map[machine.EffectState]string{
		machine.StateAmbiguous: "unknown", machine.StateDispatched: "unknown", machine.StateAbandoned: "unknown",
		machine.StateCompleted: "happened", machine.StateForcedHappened: "happened", machine.StateCancelled: "not_happened",
		machine.StateContradicted: "conflict", machine.StateIntended: "",
	} {
		if got := verdictOf(s, machine.StateUnknown); got != want {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
	if got := verdictOf(machine.StateCompensated, machine.StateForcedHappened); got != "happened" {
		t.Errorf("compensated: %q", got)
	}
}
