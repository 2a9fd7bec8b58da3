package effect

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// remoteKind tells how git reaches a remote.
type remoteKind string

const (
	remotePath  remoteKind = "path"
	remoteHTTP  remoteKind = "http"
	remoteSSH   remoteKind = "ssh"
	remoteGit   remoteKind = "git"
	remoteOther remoteKind = ""
)

// remote is where a push goes.
type remote struct {
	kind remoteKind
	url  string // as git uses it, credentials included; never stored
	path string // absolute, of a path remote: the repository that is written to
}

// readRemote tells what a URL of git's configuration or command line is. top is
// the directory that relative paths start from.
func readRemote(s, top string) remote {
	switch {
	case s == "" || strings.ContainsAny(s, "\x00\n") || strings.HasPrefix(s, "-"):
		return remote{}
	case strings.Contains(s, "://"):
		u, err := url.Parse(s)
		if err != nil {
			return remote{}
		}
		switch strings.ToLower(u.Scheme) {
		case "http", "https":
			return remote{kind: remoteHTTP, url: s}
		case "ssh", "git+ssh", "ssh+git":
			return remote{kind: remoteSSH, url: s}
		case "git":
			return remote{kind: remoteGit, url: s}
		case "file":
			if u.Host != "" && u.Host != "localhost" || u.Path == "" {
				return remote{}
			}
			return pathRemote(u.Path)
		}
		return remote{}
	case strings.Contains(s, "::"): // a transport helper, which is a program
		return remote{}
	}
	colon, slash := strings.IndexByte(s, ':'), strings.IndexByte(s, '/')
	if colon >= 0 && (slash < 0 || colon < slash) {
		return remote{kind: remoteSSH, url: s} // host:path
	}
	if strings.HasPrefix(s, "~") {
		return remote{}
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(top, s)
	}
	return pathRemote(s)
}

func pathRemote(p string) remote {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		p = real
	}
	p = filepath.Clean(p)
	return remote{kind: remotePath, url: p, path: repositoryAt(p)}
}

// repositoryAt is the repository that git opens when it is given a path, ""
// if there is none. It tries the same endings in the same order as git, so that
// what is made writable for a push is that repository and not the directory
// around it.
func repositoryAt(p string) string {
	for _, end := range []string{"/.git", "", ".git/.git", ".git"} {
		dir := p + end
		if st, err := os.Lstat(dir); err == nil && st.Mode().IsRegular() {
			return "" // a link file: the repository lies elsewhere
		}
		if isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs")) {
			if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
				return dir
			}
		}
	}
	return ""
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

// shown is the remote without credentials: what is stored and displayed.
func (r remote) shown() string { return HideCredentials(r.url) }

// HideCredentials removes user name, password and query from a URL. A user
// name that ssh needs ("git@host:path") stays.
func HideCredentials(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return "(a URL that cannot be read)"
	}
	if u.User != nil {
		if _, has := u.User.Password(); !has && strings.Contains(strings.ToLower(u.Scheme), "ssh") {
			u.User = url.User(u.User.Username())
		} else {
			u.User = nil
		}
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}

var inText = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s'"]+`)

// hideInText removes the credentials of every URL in a message.
func hideInText(s string) string {
	return inText.ReplaceAllStringFunc(s, HideCredentials)
}

// hostPort is the host and port of a URL, both normalised, with every way to
// name this machine made one. "" if there is none.
func hostPort(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		switch strings.ToLower(u.Scheme) {
		case "http", "ws":
			port = "80"
		case "https", "wss":
			port = "443"
		}
	}
	return net.JoinHostPort(oneHost(u.Hostname()), port)
}

// oneHost makes host names comparable.
func oneHost(h string) string {
	h = strings.TrimSuffix(strings.ToLower(h), ".")
	if h == "localhost" || strings.HasSuffix(h, ".localhost") {
		return "localhost"
	}
	if ip := net.ParseIP(h); ip != nil {
		if ip.IsLoopback() || ip.IsUnspecified() {
			return "localhost"
		}
		return ip.String()
	}
	return h
}
