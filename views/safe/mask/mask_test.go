package mask

import (
	"strings"
	"testing"
)

var long = strings.Repeat("a1B2c3D4", 8)

func TestKeysAreMasked(t *testing.T) {
	for _, tt := range []struct{ key, keeps string }{
		{"sk-" + long[:48], "sk-"},
		{"sk-ant-" + "api03-" + long, "sk-ant-"},
		{"sk-proj-" + long, "sk-proj-"},
		{"sk_live_" + long[:24], "sk_live_"},
		{"ghp_" + long[:36], "ghp_"},
		{"gho_" + long[:36], "gho_"},
		{"github_pat_" + long[:40], "github_pat_"},
		{"glpat-" + long[:20], "glpat-"},
		{"AKIA" + "IOSFODNN7EXAMPLE", "AKIA"},
		{"AIza" + long[:35], "AIza"},
		{"xoxb-" + "123456789012-abcdef", "xoxb-"},
		{"npm_" + long[:36], "npm_"},
		{"pypi-" + long[:56], "pypi-"},
		{"hf_" + long[:34], "hf_"},
		{"eyJ" + "hbGciOiJIUzI1" + ".eyJzdWIiOiIxMjM0" + ".SflKxwRJSMeKKF2QT4", "eyJ"},
	} {
		for _, frame := range []string{"%", "key=%", "export KEY=\"%\"", "{\"key\":\"%\"}", "a % b", "x\n%\ny", "'%',", "(%)", "Authorization: Bearer %"} {
			got, n := Text(strings.Replace(frame, "%", tt.key, 1))
			secret := strings.TrimPrefix(tt.key, tt.keeps)
			if n < 1 || strings.Contains(got, secret) || !strings.Contains(got, Sign) {
				t.Errorf("%q in %q: %d masked, %q", tt.key, frame, n, got)
			}
			if again, _ := Text(got); again != got {
				t.Errorf("masked twice: %q, then %q", got, again)
			}
		}
	}
	for text, want := range map[string]string{
		"git clone https://ann:hunter22@example.com/x":                                              "git clone https://ann:" + Sign + "@example.com/x",
		"a\n-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\nabc\n-----END RSA " + "PRIVATE KEY-----\nb": "a\n-----BEGIN RSA " + "PRIVATE KEY-----" + Sign + "\nb",
		"-----BEGIN OPENSSH " + "PRIVATE KEY-----\ncut off":                                         "-----BEGIN OPENSSH " + "PRIVATE KEY-----" + Sign,
		"two: ghp_" + long[:36] + " and ghp_" + long[1:37]:                                          "two: ghp_" + Sign + " and ghp_" + Sign,
	} {
		if got, _ := Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestOrdinaryTextPasses(t *testing.T) {
	for _, s := range []string{
		"", "plain", "task-runner-with-a-very-long-name-1234567890", "desk-1234567890123456789012", "sk-learn", "sk-learn-extras-without-digits-in-it",
		"a sk- b", "risk-assessment-2024-final-version-three", "d9298a10d1b0c1511ccc03f6ddc20b677877f942a3dc4907", "ghp_short", "github_pattern",
		"AKIAshort", "https://example.com:8080/a@b", "https://example.com/a:b@c", "http://user@host/x", "git@github.com:a/b", "eyJ is how tokens begin",
		"Bearer of bad news", "bearer token", "https://u:${secret:TOKEN}@h/x", "-----BEGIN CERTIFICATE-----\nabc", "postgres://localhost:5432/db", "日本語 sk-…",
	} {
		if got, n := Text(s); n != 0 || got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func FuzzMask(f *testing.F) {
	for _, s := range []string{"sk-" + long, "://a:bcd@", "-----BEGIN A PRIVATE KEY-----", "Bearer " + long, "\xff sk-", "://:…[masked]@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, n := Text(s)
		if n == 0 && once != s {
			t.Fatalf("nothing masked, and changed: %q, %q", s, once)
		}
		if twice, _ := Text(once); twice != once {
			t.Fatalf("%q, then %q, then %q", s, once, twice)
		}
	})
}

func BenchmarkOrdinaryLine(b *testing.B) {
	s := strings.Repeat("an ordinary row of a list, as most of them are; ", 4)
	b.ReportAllocs()
	for b.Loop() {
		Text(s)
	}
}
