package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"pawl/engine/config/source"
	"pawl/engine/effect"
	"pawl/engine/machine"
)

// Request is what the operator says about HTTP requests to one place.
type Request struct {
	Name   string `toml:"name"` // of the contract, for people
	Method string `toml:"method"`
	// URL is scheme, host and path; a {name} stands for one segment of the path.
	URL           string                 `toml:"url"`
	Class         string                 `toml:"class"`
	KeyHeader     string                 `toml:"key_header"`
	KeyHorizon    source.Duration        `toml:"key_horizon"`
	InFlight      *source.Duration       `toml:"in_flight"`
	ProvesNothing source.Codes           `toml:"proves_nothing"`
	Probe         *effect.ProbeDecl      `toml:"probe"`
	Compensate    *effect.CompensateDecl `toml:"compensate"`

	class    machine.Class
	origin   string
	segments []string
}

// bodyPrefix begins the slots that stand for fields of a request's JSON body.
const bodyPrefix = "body_"

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// Contract is the class that was declared, ClassUnknown if the method decides.
func (r *Request) Contract() machine.Class { return r.class }

// Bound is D.
func (r *Request) Bound() time.Duration { return bound(r.InFlight, true, r.class) }

// Horizon is how long its key may be used again.
func (r *Request) Horizon() time.Duration {
	if r.KeyHorizon > 0 {
		return time.Duration(r.KeyHorizon)
	}
	return keyHorizon
}

// Vars reads a request. ok is false if it is not one of these.
func (r *Request) Vars(method string, u *url.URL, body string) (effect.Vars, bool) {
	if method != r.Method || originOf(u) != r.origin || strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") {
		return nil, false
	}
	segments := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	if len(segments) != len(r.segments) {
		return nil, false
	}
	v := effect.Vars{effect.OriginName: r.origin}
	for i, s := range r.segments {
		if names := effect.Slots(s); len(names) == 1 {
			if segments[i] == "" || segments[i] == "." || segments[i] == ".." {
				return nil, false
			}
			v[names[0]] = segments[i]
		} else if s != segments[i] {
			return nil, false
		}
	}
	fields := map[string]any{}
	if json.Unmarshal([]byte(body), &fields) == nil {
		for name, x := range fields {
			switch x := x.(type) {
			case string:
				v[bodyPrefix+name] = x
			case float64, bool:
				b, err := json.Marshal(x)
				if err == nil {
					v[bodyPrefix+name] = string(b)
				}
			}
		}
	}
	return v, true
}

func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return strings.ToLower(u.Scheme) + "://" + host
}

func (r *Request) check(text *source.Text, i int) []*source.Problem {
	c := toolCheck{text: text, at: []any{"http", i}}
	if !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}, r.Method) {
		c.bad("method", fmt.Sprintf("%q is no method", r.Method), "an entry is for one method", "use GET, HEAD, OPTIONS, POST, PUT, PATCH or DELETE")
	}
	r.place(&c)
	r.class = c.class(r.Class)
	reads := slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method)
	switch {
	case r.class == machine.ClassWorkspace:
		c.bad("class", "a request is never WORKSPACE", "it reaches the outside", "declare another class")
	case r.class == machine.ClassKeyed && r.KeyHeader == "":
		c.bad("class", "class KEYED and no key_header", "without a key a second sending is a second effect", "name the header that carries the key")
	case r.class == machine.ClassProbeable && r.Probe == nil:
		c.bad("class", "class PROBEABLE and no probe", "there would be no way to look", "add [http.probe], or declare IRREVERSIBLE")
	case r.class == machine.ClassCompensable && r.Compensate == nil:
		c.bad("class", "class COMPENSABLE and no compensation", "there would be no way back", "add [http.compensate], or declare another class")
	case r.class == machine.ClassRead && (r.Probe != nil || r.Compensate != nil || r.KeyHeader != "" || r.InFlight != nil):
		c.bad("class", "class READ promises too much", "what only reads has no key, and nothing to probe, to undo or to wait for", "take them out, or declare another class")
	case r.class == machine.ClassUnknown && r.KeyHeader != "":
		c.bad("class", "there is a key_header and no class", "a key promises that sending twice is one effect", "declare KEYED")
	case r.class != machine.ClassKeyed && r.KeyHeader != "" && r.class != machine.ClassUnknown:
		c.bad("key_header", "there is a key_header and the class is not KEYED", "a key promises that sending twice is one effect", "declare KEYED, or take the header out")
	case reads && r.class != machine.ClassRead && r.class != machine.ClassUnknown:
		c.bad("class", fmt.Sprintf("a %s of class %s", r.Method, r.class), "requests of this method only look, and are sent without an approval for their effect", "declare READ, or leave the entry out")
	}
	if r.KeyHeader != "" && !headerName.MatchString(r.KeyHeader) {
		c.bad("key_header", fmt.Sprintf("%q is no name of a header", r.KeyHeader), "", "write the name alone, as in Idempotency-Key")
	}
	d := effect.Declared{Text: text, At: c.at, Names: append(effect.Slots(r.URL), effect.KeyName, effect.OriginName), Prefix: bodyPrefix, Class: r.class, Network: true}
	if r.Probe != nil {
		c.out = append(c.out, r.Probe.Faults(d)...)
		if r.class == machine.ClassUnknown {
			c.bad("class", "there is a probe and no class", "what is undeclared counts as the method's own class", "declare PROBEABLE")
		}
		if r.Probe.Tested && r.InFlight == nil {
			c.bad("in_flight", "the probe may prove that nothing happened, and there is no in-flight bound", "what was sent over a network may land after its sender is dead", `say how long, as in in_flight = "30s"`)
		}
	}
	if r.Compensate != nil {
		c.out = append(c.out, r.Compensate.Faults(d)...)
	}
	return c.out
}

// place reads the URL's pattern.
func (r *Request) place(c *toolCheck) {
	plain := regexp.MustCompile(`\{[a-z][a-z0-9_]*\}`).ReplaceAllString(r.URL, "x")
	u, err := url.Parse(plain)
	why := ""
	switch {
	case r.URL == "" || err != nil:
		why = "it is no URL"
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		why = "it does not begin with http:// or https:// and a host"
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		why = "it holds more than scheme, host and path"
	case strings.ContainsAny(plain, "{}*"):
		why = "a slot is written {name}, in small letters"
	}
	if why == "" {
		_, rest, _ := strings.Cut(r.URL, "://")
		host, path, _ := strings.Cut(rest, "/")
		if len(effect.Slots(host)) > 0 {
			why = "a slot stands where the host is named"
		}
		r.origin, r.segments = originOf(u), strings.Split(path, "/")
		for _, s := range r.segments {
			if n := effect.Slots(s); len(n) > 0 && s != "{"+n[0]+"}" {
				why = "a slot is one whole segment of the path"
			}
		}
		for _, n := range effect.Slots(r.URL) {
			if n == effect.KeyName || n == effect.OriginName || strings.HasPrefix(n, bodyPrefix) || strings.Count(r.URL, "{"+n+"}") > 1 {
				why = "{" + n + "} is taken, or stands there twice"
			}
		}
	}
	if why != "" {
		c.bad("url", fmt.Sprintf("the url %q cannot be used", r.URL), why, "write it as in https://api.example.com/orders/{order}")
	}
}
