package secret

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func set(t *testing.T) *Set {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-a-file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TOK": "s3cr3t value", "SHORT": "abc"}
	return New(map[string]Source{"TOKEN": {Env: "TOK"}, "FILE": {File: file}, "SHORT": {Env: "SHORT"}, "UNSET": {Env: "NOPE"}, "GONE": {File: file + "x"}},
		func(k string) string { return env[k] })
}

func TestFillAndHide(t *testing.T) {
	s := set(t)
	got, err := s.Fill("a ${secret:TOKEN}, ${secret:FILE}; $secret:TOKEN ${TOKEN}")
	if err != nil || got != "a s3cr3t value, from-a-file; $secret:TOKEN ${TOKEN}" {
		t.Errorf("%q, %v", got, err)
	}
	if back := string(s.Hide([]byte("echo: s3cr3t value from-a-file abc"))); back != "echo: ${secret:TOKEN} ${secret:FILE} abc" {
		t.Errorf("hidden: %q", back)
	}
	for text, want := range map[string]string{
		"${secret:UNSET}": "NOPE is not set", "${secret:GONE}": "cannot be read", "${secret:OTHER}": "there are FILE, GONE", "${secret:}": "no secret \"\"",
	} {
		if _, err := s.Fill(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestCommandsFindSecretsInTheirEnvironment(t *testing.T) {
	line, env, err := set(t).Command(`curl -H "X: ${secret:TOKEN}" ${secret:TOKEN}`)
	if err != nil || line != `curl -H "X: ${PAWL_SECRET_TOKEN}" ${PAWL_SECRET_TOKEN}` || !slices.Equal(env, []string{"PAWL_SECRET_TOKEN=s3cr3t value"}) {
		t.Errorf("%q %q %v", line, env, err)
	}
}

func TestNoSecrets(t *testing.T) {
	var s *Set
	if b := s.Hide([]byte("x")); string(b) != "x" || s.Names() != nil {
		t.Error("a nil set does something")
	}
	if _, err := s.Fill("${secret:A}"); err == nil || !strings.Contains(err.Error(), "none is configured") {
		t.Errorf("%v", err)
	}
	if !slices.Equal(Uses("${secret:A} ${secret:B}", "${secret:A}"), []string{"A", "B"}) {
		t.Error("uses")
	}
	for src, bad := range map[Source]bool{{}: true, {Env: "A"}: false, {File: "/a"}: false, {File: "a"}: true, {Env: "A", File: "/a"}: true} {
		if (src.Check() != "") != bad {
			t.Errorf("%+v: %q", src, src.Check())
		}
	}
}
