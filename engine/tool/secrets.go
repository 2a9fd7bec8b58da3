package tool

import (
	"slices"
	"strings"

	"pawl/engine/secret"
)

// secretsIn lists the secrets that texts of a call ask for. One that is not
// configured is the model's mistake.
func (o Options) secretsIn(texts ...string) ([]string, error) {
	names := secret.Uses(texts...)
	if err := o.Secrets.Known(names); err != nil {
		return nil, argErrorf("%s.", strings.ToUpper(err.Error()[:1])+err.Error()[1:])
	}
	return names, nil
}

// texts are the parts of a request that may ask for secrets. Its URL may not: it
// is shown, matched against rules and kept.
func (a httpArgs) texts() []string {
	var out []string
	for _, v := range a.Headers {
		out = append(out, v)
	}
	slices.Sort(out)
	if a.Body != nil {
		out = append(out, *a.Body)
	}
	return out
}

// filled is the request with its secrets filled in, right before it is sent.
func (o Options) filled(a httpArgs) (httpArgs, error) {
	if len(secret.Uses(a.texts()...)) == 0 {
		return a, nil
	}
	headers := make(map[string]string, len(a.Headers))
	for k, v := range a.Headers {
		f, err := o.Secrets.Fill(v)
		if err != nil {
			return a, err
		}
		headers[k] = f
	}
	a.Headers = headers
	if a.Body != nil {
		body, err := o.Secrets.Fill(*a.Body)
		if err != nil {
			return a, err
		}
		a.Body = &body
	}
	return a, nil
}

// Hide puts the names of configured secrets in the place of their values in
// what came back from the world, before it is kept.
func (s *Set) Hide(b []byte) []byte { return s.o.Secrets.Hide(b) }
