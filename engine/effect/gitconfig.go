package effect

import (
	"context"
	"strings"
)

// gitConfig holds git's configuration of a place: section and variable in lower
// case, the subsection as written, values in order.
type gitConfig map[string][]string

// config reads the configuration of the working directory, without running
// anything of it.
func (at Place) config(ctx context.Context) (gitConfig, error) {
	out, err := at.git(ctx, at.Dir, "", "config", "--list", "-z", "--show-scope")
	if err != nil {
		return nil, err
	}
	cfg := gitConfig{}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "command" {
			continue // our own -c settings
		}
		key, value, ok := strings.Cut(fields[i+1], "\n")
		if !ok {
			value = "true" // a variable without "=" is a set switch
		}
		cfg[key] = append(cfg[key], value)
	}
	return cfg, nil
}

// last is the value that counts, "" if there is none.
func (c gitConfig) last(key string) string {
	if v := c[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// plainPush refuses configurations under which a push writes more than its ref.
func (c gitConfig) plainPush() error {
	for _, key := range []string{"push.followtags", "submodule.recurse", "push.pushoption", "push.gpgsign", "push.recursesubmodules"} {
		switch v := strings.ToLower(c.last(key)); v {
		case "", "false", "no", "off", "0", "check":
		default:
			return unresolved("%s is %s, so a push may do more than its line says", key, v)
		}
	}
	return nil
}

// rewrites reports whether URLs given on the command line are replaced by others.
func (c gitConfig) rewrites() bool {
	for key := range c {
		if strings.HasPrefix(key, "url.") {
			return true
		}
	}
	return false
}
