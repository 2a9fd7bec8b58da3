//go:build unix

package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestPackedAndUnpackedElsewhere(t *testing.T) {
	m, ws, _, _, _ := worked(t)
	put(t, ws.Path+"/x.log", "ignored, and kept")
	sum, err := m.IgnoredManifest(ctx, ws)
	must(t, err)
	s := snap(t, m, ws)
	files, git := picture(t, ws.Path), gitPicture(t, ws)
	packed := map[string][]byte{}
	must(t, m.Pack(ctx, ws, func(name string, r io.Reader) error {
		b, err := io.ReadAll(r)
		packed[name] = b
		return err
	}))
	var names []string
	for n := range packed {
		names = append(names, n)
	}
	open := func(name string) (io.ReadCloser, error) {
		b, ok := packed[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(bytes.NewReader(b)), nil
	}

	// Nothing of the old machine is there any more.
	must(t, os.Rename(ws.Repo, ws.Repo+".away"))
	must(t, os.RemoveAll(m.state))
	there := newManager(t)
	for range 2 { // a second time finds what the first has made
		got, err := there.Unpack(ctx, ws, s, "", names, open)
		must(t, err)
		if _, _, err := there.PutBackIgnored(ctx, got, sum); err != nil {
			t.Fatal(err)
		}
		if g := gitPicture(t, got); g != git {
			t.Errorf("git:\n%s\nwant:\n%s", g, git)
		}
		a := strings.Replace(picture(t, got.Path), got.GitDir, ws.GitDir, 1)
		if a != files {
			t.Errorf("files:\n%s\nwant:\n%s", a, files)
		}
		sh(t, got.Path, "git fsck --no-dangling && git log --oneline main | grep -q second")
		next := snap(t, there, got)
		if next.Tree != s.Tree || next.Head != s.Head {
			t.Errorf("it is another tree: %+v", next)
		}
		if _, err := there.Preview(ctx, got, ""); err == nil || !strings.Contains(err.Error(), "--repo") {
			t.Errorf("landing without a repository: %v", err)
		}
	}
	if _, err := there.Unpack(ctx, ws, s, t.TempDir(), names, open); err == nil {
		t.Error("a folder without git was taken for the project")
	}

	// With a checkout of the project it lands there.
	must(t, os.Rename(ws.Repo+".away", ws.Repo))
	second := newManager(t)
	got, err := second.Unpack(ctx, ws, s, ws.Repo, names, open)
	must(t, err)
	sh(t, got.Path, "git add -A && git commit -qm rest")
	p, err := second.Preview(ctx, got, "")
	must(t, err)
	must(t, second.Land(ctx, got, p))
	if out := sh(t, ws.Repo, "git log -1 --format=%s main"); out != "rest\n" {
		t.Errorf("landed: %s", out)
	}

	delete(packed, packClone)
	if _, err := newManager(t).Unpack(ctx, ws, s, "", names, open); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a pack without the commits: %v", err)
	}
	packed[packShadow][100] ^= 1
	if _, err := newManager(t).Unpack(ctx, ws, s, "", names, open); err == nil {
		t.Error("a damaged pack was taken")
	}
}
