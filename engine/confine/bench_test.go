//go:build linux

package confine

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkCommand runs /bin/true at each level. The overhead of a level is its time less that of "plain"; the
// quickest run tells it best on a busy machine. start-ms ends when the box stands and waits at its gate.
func BenchmarkCommand(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		timed(b, func() time.Time {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
			return time.Now()
		})
	})
	for _, l := range levels(b) {
		b.Run(l.String(), func(b *testing.B) {
			s := shSpec(b, l, "")
			s.Argv = []string{"/bin/true"}
			timed(b, func() time.Time {
				p, err := Start(context.Background(), s)
				if err != nil {
					b.Fatal(err)
				}
				up := time.Now()
				if err := p.Open(); err != nil {
					b.Fatal(err)
				}
				if e, err := p.Wait(context.Background()); err != nil || e.Code != 0 {
					b.Fatal(e, err)
				}
				return up
			})
		})
	}
}

// timed reports the quickest and the middle run, in milliseconds; f returns when its first half was over.
func timed(b *testing.B, f func() time.Time) {
	var all, first []float64
	for b.Loop() {
		t := time.Now()
		up := f()
		all = append(all, time.Since(t).Seconds()*1e3)
		first = append(first, up.Sub(t).Seconds()*1e3)
	}
	slices.Sort(all)
	slices.Sort(first)
	b.ReportMetric(all[0], "min-ms")
	b.ReportMetric(all[len(all)/2], "p50-ms")
	b.ReportMetric(first[len(first)/2], "start-ms")
}
