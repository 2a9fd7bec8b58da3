package effect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/engine/machine"
)

func TestHTTPContract(t *testing.T) {
	for _, tt := range []struct {
		method, key string
		want        machine.Class
	}{
		{"GET", "", machine.ClassRead},
		{"head", "", machine.ClassRead},
		{"OPTIONS", "Idempotency-Key", machine.ClassRead},
		{"POST", "", machine.ClassIrreversible},
		{"PUT", "", machine.ClassIrreversible},
		{"PATCH", "", machine.ClassIrreversible},
		{"DELETE", "", machine.ClassIrreversible},
		{"BREW", "", machine.ClassIrreversible},
		{"POST", "Idempotency-Key", machine.ClassKeyed},
	} {
		c := HTTP(tt.method, "https://u:secret@Example.com/x?token=1", tt.key)
		if c.Class != tt.want || c.Sender != machine.SenderPawl || !c.Network || c.Writes {
			t.Errorf("%s: %+v", tt.method, c)
		}
		if c.Params["url"] != "https://Example.com/x" || c.Params["host"] != "example.com:443" {
			t.Errorf("%s: %v", tt.method, c.Params)
		}
		if (c.KeyHorizon > 0) != (tt.want == machine.ClassKeyed) || c.KeyHorizon >= (24*time.Hour).Microseconds() {
			t.Errorf("%s: horizon %d", tt.method, c.KeyHorizon)
		}
		if changes := tt.want != machine.ClassRead; changes != slices.Contains(c.ProvesNothing, "503") || changes != (c.InFlight > 0) {
			t.Errorf("%s: %+v", tt.method, c)
		}
		for _, code := range []string{"timeout", "reset", "", "500"} {
			if slices.Contains(c.BeforeEffect, code) {
				t.Errorf("%s: %q counts as before the effect", tt.method, code)
			}
		}
	}
}

// Errors are classified as a real client meets them.
func TestHTTPError(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + closed.Addr().String()
	closed.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the handshake
	secure.StartTLS()
	defer secure.Close()
	hijack := func(f func(net.Conn)) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			f(conn)
		}))
	}
	reset := hijack(func(c net.Conn) {
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			panic(err)
		}
		c.Close()
	})
	defer reset.Close()
	cut := hijack(func(c net.Conn) { c.Close() })
	defer cut.Close()
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer silent.Close()
	defer close(release)

	dial := func(err error) *http.Client {
		return &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}}}
	}
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, tt := range []struct {
		name   string
		client *http.Client
		url    string
		code   string
		before bool
	}{
		{"nobody listens", plain, refused, CodeRefused, true},
		{"a certificate that we do not trust", plain, secure.URL, CodeCertificate, true},
		{"no such name", dial(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}), "http://x/", CodeDNS, true},
		{"connecting takes too long", dial(os.ErrDeadlineExceeded), "http://x/", CodeDialTimeout, true},
		{"no way there", dial(syscall.ENETUNREACH), "http://x/", CodeUnreachable, true},
		{"reset after the request", plain, reset.URL, "", false},
		{"cut after the request", plain, cut.URL, "", false},
		{"no answer", &http.Client{Transport: plain.Transport, Timeout: 50 * time.Millisecond}, silent.URL, "", false},
		{"a dial error that says nothing", dial(errors.New("strange")), "http://x/", "", false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tt.url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tt.client.Do(req)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s: no error", tt.name)
			continue
		}
		code, before := HTTPError(err)
		if code != tt.code || before != tt.before {
			t.Errorf("%s: %q %v for %v, want %q %v", tt.name, code, before, err, tt.code, tt.before)
		}
		if before && !slices.Contains(HTTP("POST", tt.url, "").BeforeEffect, code) {
			t.Errorf("%s: the contract does not list %q", tt.name, code)
		}
	}
	if code, before := HTTPError(fmt.Errorf("read: %w", &net.OpError{Op: "read", Err: errors.New("refused")})); code != "" || before {
		t.Error("a read error counts as before the effect")
	}
	if code, before := HTTPError(nil); code != "" || before {
		t.Error("no error has a code")
	}
}

func TestHideCredentials(t *testing.T) {
	for in, want := range map[string]string{
		"https://bob:secret@h/r?token=1#x": "https://h/r",
		"https://token@h/r":                "https://h/r",
		"ssh://git@h:22/r":                 "ssh://git@h:22/r",
		"ssh://git:secret@h/r":             "ssh://h/r",
		"git@h:r":                          "git@h:r",
		"/srv/r.git":                       "/srv/r.git",
		"http://%zz:x@h/":                  "(a URL that cannot be read)",
	} {
		if got := HideCredentials(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if got := hideInText("fatal: unable to access 'https://bob:secret@h/r/': no"); strings.Contains(got, "secret") {
		t.Error(got)
	}
}
