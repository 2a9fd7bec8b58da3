package tool

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// maxFineDiff is the size in bytes of both texts up to which a diff is minimal.
// Above it one hunk from the first to the last changed line is shown, which
// takes linear time and is as exact, only longer.
const maxFineDiff = 256 << 10

// diffContext is the number of unchanged lines around a change.
const diffContext = 3

// unifiedDiff shows what turns old into new, bytes that are no line feed kept
// as they are. It is "" if there is no difference. A file that does not exist
// is given as exists = false.
func unifiedDiff(name, old, new string, exists bool) string {
	from, to := "a/"+name, "b/"+name
	if !exists {
		from = "/dev/null"
	}
	if old == new {
		if !exists {
			return fmt.Sprintf("--- %s\n+++ %s\n", from, to) // an empty file comes to be
		}
		return ""
	}
	if len(old)+len(new) <= maxFineDiff {
		return udiff.Unified(from, to, old, new)
	}
	return fmt.Sprintf("--- %s\n+++ %s\n%s", from, to, oneHunk(lineSplit(old), lineSplit(new)))
}

// oneHunk writes a single hunk from the first to the last line that differs.
func oneHunk(old, new []string) string {
	head := 0
	for head < len(old) && head < len(new) && old[head] == new[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(new)-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	first := max(0, head-diffContext)
	after := min(tail, diffContext)
	var b strings.Builder
	oldN, newN := len(old)-tail+after-first, len(new)-tail+after-first
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", hunkRange(first, oldN), hunkRange(first, newN))
	write := func(sign string, lines []string) {
		for _, l := range lines {
			b.WriteString(sign + l)
			if !strings.HasSuffix(l, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	write(" ", old[first:head])
	write("-", old[head:len(old)-tail])
	write("+", new[head:len(new)-tail])
	write(" ", old[len(old)-tail:len(old)-tail+after])
	return b.String()
}

// hunkRange spells a hunk's place as the format wants it: lines count from 1,
// and an empty range names the line before it.
func hunkRange(first, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", first)
	}
	return fmt.Sprintf("%d,%d", first+1, n)
}

// diffStat counts the lines that a diff adds and takes away.
func diffStat(diff string) (added, removed int) {
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}
