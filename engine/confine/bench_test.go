//go:build linux

package confine

import (
	"context"
	"os/exec"
	"testing"
)

// The overhead of a level is its time less that of the plain start.
func BenchmarkCommand(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, l := range levels(b) {
		b.Run(l.String(), func(b *testing.B) {
			s := shSpec(b, l, "")
			s.Argv = []string{"/bin/true"}
			for b.Loop() {
				p, err := Start(context.Background(), s)
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Open(); err != nil {
					b.Fatal(err)
				}
				if e, err := p.Wait(context.Background()); err != nil || e.Code != 0 {
					b.Fatal(e, err)
				}
			}
		})
	}
}
