package window

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"pawl/engine/machine"
)

func TestShrinkKeepsHeadAndTail(t *testing.T) {
	lines := strings.Repeat(strings.Repeat("x", 19999)+"\n", 199) + "ERROR: the only one\n"
	for _, c := range []struct {
		name, in string
		limit    int
		whole    bool
	}{
		{"error on the last of many long lines", lines, OutputLimit, false},
		{"one line of 10 MB", strings.Repeat("y", 10<<20), OutputLimit, false},
		{"exactly the limit", strings.Repeat("z", OutputLimit), OutputLimit, true},
		{"one more than the limit", strings.Repeat("z", OutputLimit+1), OutputLimit, false},
		{"limit 0", strings.Repeat("z", 1000), 0, false},
		{"limit 0, shorter than what would be said", "short", 0, true},
		{"empty", "", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, gone := Shrink(c.in, c.limit, "abcdef012345")
			if c.whole != (out == c.in) || c.whole != (gone == 0) {
				t.Fatalf("whole is %v, %d bytes gone", out == c.in, gone)
			}
			if c.whole {
				return
			}
			if !strings.Contains(out, "read_evidence with handle abcdef012345") {
				t.Error("no handle")
			}
			if c.limit > 0 && len(out) > c.limit {
				t.Errorf("%d bytes, limit %d", len(out), c.limit)
			}
			if strings.HasSuffix(c.in, "one\n") && !strings.HasSuffix(out, "ERROR: the only one\n") {
				t.Errorf("the end is lost: %q", out[len(out)-60:])
			}
		})
	}
}

func TestShrinkProperties(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "é", "e\u0301", "👩‍👩‍👧", "❤️", "🇩🇪", "👍🏽", "क्ष", "\n", "\r\n", "日本", " "})
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(piece, 0, 400).Draw(rt, "parts")
		s := strings.Join(parts, "")
		limit := rapid.IntRange(-1, 1200).Draw(rt, "limit")
		out, gone := Shrink(s, limit, "h")
		if !utf8.ValidString(out) {
			rt.Fatalf("cut inside a character: %q", out)
		}
		if len(out) > len(s) {
			rt.Fatalf("%d bytes became %d", len(s), len(out))
		}
		if gone == 0 {
			if out != s {
				rt.Fatal("nothing is gone, but the text differs")
			}
			return
		}
		head, tail, ok := strings.Cut(out, "\n[… ")
		_, tail, ok2 := strings.Cut(tail, "…]\n")
		if !ok || !ok2 || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || len(head)+len(tail)+gone != len(s) {
			rt.Fatalf("head %q, tail %q, %d gone of %d", head, tail, gone, len(s))
		}
		for _, c := range []int{len(head), len(s) - len(tail)} { // each cut falls between two parts
			at := 0
			for _, p := range parts {
				if at == c {
					break
				}
				at += len(p)
				if at > c && strings.ContainsAny(p, "\u0301\u200d\ufe0f🇩👍") {
					rt.Fatalf("%q is cut in two", p)
				}
			}
		}
	})
}

func TestLegible(t *testing.T) {
	random := make([]byte, 64<<10)
	src := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(src.Uint32())
	}
	for _, c := range []struct {
		name  string
		in    []byte
		ok    bool
		stray int
	}{
		{"text", []byte("hé\x1b[31m"), true, 0},
		{"NUL", []byte("a\x00b"), false, 0},
		{"NUL after a stray byte", []byte("a\xff\x00b"), false, 0},
		{"random", random, false, 0},
		{"one Latin-1 letter", append([]byte(strings.Repeat("gr", 20)), 0xfc), true, 1},
		{"mostly stray", bytes.Repeat([]byte{0xff}, 100), false, 100},
	} {
		text, stray, ok := Legible(c.in)
		if ok != c.ok || (ok && stray != c.stray) || (ok && (!utf8.ValidString(text) || len(text) > len(c.in))) {
			t.Errorf("%s: ok %v, %d stray", c.name, ok, stray)
		}
	}
}

// A result with NUL bytes must not break the requests after it.
func TestBinaryOutputIsDescribed(t *testing.T) {
	r := newRun(t)
	raw := append([]byte("head\x00\xff\x1b"), bytes.Repeat([]byte{0xfe}, 4000)...)
	n := r.ask(t, "", call("shell", `{"command":"cat x"}`))
	r.complete(t, n, 0, machine.Result{OK: true, Code: "0", Output: r.bytes(raw)})
	p := r.build(t)
	res := p.Messages[2].Text
	d := machine.DigestOf(raw)
	for _, want := range []string{"exit code 0", "(4007 bytes that are no text, sha256 " + d.String(), "handle " + d.Short()} {
		if !strings.Contains(res, want) {
			t.Errorf("%q lacks %q", res, want)
		}
	}
	if len(p.Left) != 1 || p.Left[0].Bytes != 4007 || p.Left[0].Handle != d.Short() {
		t.Errorf("left out: %+v", p.Left)
	}
}

func TestLongOutputKeepsCodeAndEnd(t *testing.T) {
	r := newRun(t)
	n := r.ask(t, "", call("shell", `{"command":"make"}`))
	r.complete(t, n, 0, machine.Result{Code: "2", Output: r.text(strings.Repeat("noise\n", 10_000) + "fatal: here\n")})
	res := r.build(t).Messages[2].Text
	if !strings.HasPrefix(res, "completed: exit code 2\n") || !strings.HasSuffix(res, "fatal: here\n") || len(res) > OutputLimit+100 {
		t.Errorf("%d bytes: %.200q … %q", len(res), res, res[len(res)-50:])
	}
}
