//go:build unix

package workspace

import (
	"os"
	"strings"
	"testing"
)

func TestIgnoredFilesComeBack(t *testing.T) {
	m, ws := newSpace(t)
	put(t, ws.Path+"/x.log", "1")
	put(t, ws.Path+"/deep/er/y.log", "2")
	must(t, os.Chmod(ws.Path+"/x.log", 0o600))
	put(t, ws.Path+"/node_modules/p/index.js", "1")
	put(t, ws.Path+"/big.log", strings.Repeat("b", keptIgnored+1))
	sum, err := m.IgnoredManifest(ctx, ws)
	must(t, err)
	s := snap(t, m, ws)
	before := picture(t, ws.Path)

	sh(t, ws.Path, "echo more >>x.log && chmod 644 x.log && rm -r deep && echo new >new.log && mkdir -p q && echo new >q/n.log")
	_, err = m.Restore(ctx, ws, s)
	must(t, err)
	now, why, err := m.PutBackIgnored(ctx, ws, sum)
	must(t, err)
	if why != "" {
		t.Fatalf("it is not put back: %s", why)
	}
	if got := strings.Replace(picture(t, ws.Path), "\"q\" drwxr-xr-x\n", "", 1); got != before {
		t.Errorf("files:\n%s\nwant:\n%s", got, before)
	}
	if again, err := m.IgnoredManifest(ctx, ws); err != nil || again != now {
		t.Errorf("the manifest that it gives is not the one that is: %v", err)
	}
	if _, why, err := m.PutBackIgnored(ctx, ws, now); err != nil || why != "" {
		t.Errorf("nothing to do: %q %v", why, err)
	}

	put(t, ws.Path+"/x.log", "again")
	put(t, ws.Path+"/big.log", "small now")
	if _, why, err = m.PutBackIgnored(ctx, ws, now); err != nil || !strings.Contains(why, "big.log") {
		t.Errorf("a large file that was changed: %q %v", why, err)
	}
	if read(t, ws.Path+"/x.log") != "again" {
		t.Error("it was put back in part")
	}
}

func TestAnIgnoredFileBehindALinkIsNotWrittenThrough(t *testing.T) {
	m, ws := newSpace(t)
	out := t.TempDir()
	put(t, out+"/y.log", "theirs")
	put(t, ws.Path+"/deep/y.log", "2")
	sum, err := m.IgnoredManifest(ctx, ws)
	must(t, err)
	must(t, os.RemoveAll(ws.Path+"/deep"))
	must(t, os.Symlink(out, ws.Path+"/deep"))
	if _, _, err := m.PutBackIgnored(ctx, ws, sum); err == nil {
		t.Error("it was put back through a link")
	}
	if read(t, out+"/y.log") != "theirs" {
		t.Error("a file outside was changed")
	}
}
