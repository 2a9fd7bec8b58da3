//go:build unix

package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkSnapshot takes durable snapshots of a warm tree with five changes, beside the least that any snapshot by git
// must do: add, write-tree, commit-tree, one sync, update-ref. The quickest run tells most on a busy machine.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		repo, m := newRepo(b), newManager(b)
		for i := range n {
			put(b, fmt.Sprintf("%s/d%d/e%d/f%d", repo, i%40, i%7, i), strings.Repeat(fmt.Sprintln("line", i), 20))
		}
		sh(b, repo, "git add . && git commit -qm many")
		ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo})
		must(b, err)
		start := time.Now()
		snap(b, m, ws)
		b.Logf("%d files: the first snapshot took %v", n, time.Since(start))
		round := 0
		change := func() {
			round++
			for i := range 5 {
				put(b, fmt.Sprintf("%s/d%d/e%d/f%d", ws.Path, i, i, i), fmt.Sprintln("changed", round))
			}
		}
		b.Run(fmt.Sprintf("files=%d/least", n), func(b *testing.B) {
			index := filepath.Join(ws.Shadow, "index.bench")
			must(b, copyFile(shadowIndex(ws), index))
			g := shadowGit(ws, nil).with("GIT_INDEX_FILE=" + index)
			measure(b, change, func() {
				_, err1 := g.run(ctx, nil, "add", "-A", "--ignore-errors", "--", ".")
				tree, err2 := g.line(ctx, "write-tree")
				commit, err3 := g.line(ctx, "commit-tree", tree, "-m", "x")
				err4 := syncAll(ws.Shadow)
				_, err5 := g.run(ctx, nil, "update-ref", "refs/pawl/bench", commit)
				for _, err := range []error{err1, err2, err3, err4, err5} {
					must(b, err)
				}
			})
			must(b, os.Remove(index))
		})
		b.Run(fmt.Sprintf("files=%d/ours", n), func(b *testing.B) {
			measure(b, change, func() { snap(b, m, ws) })
		})
		b.Run(fmt.Sprintf("files=%d/restore", n), func(b *testing.B) {
			s := snap(b, m, ws)
			measure(b, change, func() {
				if _, err := m.Restore(ctx, ws, s); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

func measure(b *testing.B, before, f func()) {
	var all []float64
	for b.Loop() {
		before()
		t := time.Now()
		f()
		all = append(all, time.Since(t).Seconds()*1e3)
	}
	slices.Sort(all)
	b.ReportMetric(all[0], "min-ms")
	b.ReportMetric(all[len(all)/2], "p50-ms")
}
