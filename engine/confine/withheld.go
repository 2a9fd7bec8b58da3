package confine

import (
	"slices"
	"strings"
)

// Withheld lists the variables of an environment that commands do not get, by
// name, sorted: what is not known to be needed by builds and tests, and what
// carries a login. environ is as os.Environ gives it.
func Withheld(environ []string) []string {
	out := []string{}
	for _, kv := range environ {
		name, v, _ := strings.Cut(kv, "=")
		if name != "" && (!allowedName(name) || carriesLogin(v)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
