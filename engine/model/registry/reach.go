package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"pawl/engine/model/catalog"
	"pawl/engine/model/wire"
)

// Standing is a provider as it is set up here.
type Standing struct {
	Provider string
	Name     string
	BaseURL  string // "" if it is not known
	KeyEnv   string // variable that holds the key; "" if none is needed
	// Ready: it can be asked; else Why says what to set.
	Ready bool
	Why   string
}

// Providers lists the known and the configured providers by name.
func (r *Registry) Providers() []Standing {
	var out []Standing
	for _, e := range catalog.Endpoints() {
		if e.Chat || e.Messages {
			out = append(out, r.standing(e.ID))
		}
	}
	for id := range r.o.BaseURLs {
		if !slices.ContainsFunc(out, func(s Standing) bool { return s.Provider == id }) {
			out = append(out, r.standing(id))
		}
	}
	slices.SortFunc(out, func(a, b Standing) int { return strings.Compare(a.Provider, b.Provider) })
	return out
}

func (r *Registry) standing(id string) Standing {
	e, known := catalog.Find(id)
	s := Standing{Provider: id, Name: e.Name, KeyEnv: e.KeyEnv}
	if !known {
		s.Name, s.KeyEnv = id, envName(id)+"_API_KEY"
	}
	s.BaseURL, _ = r.baseURL(id, e.BaseURL)
	local := false
	if u, err := url.Parse(s.BaseURL); err == nil && u.Host != "" {
		local = wire.Local(u)
	}
	switch {
	case s.BaseURL == "":
		s.Why = "set " + envName(id) + "_BASE_URL"
	case s.KeyEnv != "" && r.o.Env(s.KeyEnv) == "" && !local:
		s.Why = "set " + s.KeyEnv
	default:
		s.Ready = true
	}
	return s
}

// Answer is what a provider said when it was asked for its models.
type Answer struct {
	OK     bool
	Why    string   // not OK: what is wrong, without the key
	Models []string // by name
}

// Ask asks a provider for its models, once. It costs nothing at any provider.
func (r *Registry) Ask(ctx context.Context, id string) Answer {
	s := r.standing(id)
	if !s.Ready {
		return Answer{Why: s.Why}
	}
	e, _ := catalog.Find(id)
	base := strings.TrimRight(s.BaseURL, "/")
	if e.Messages {
		base = strings.TrimSuffix(base, "/v1") + "/v1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", http.NoBody)
	if err != nil {
		return Answer{Why: fmt.Sprintf("the base URL %q is no address", s.BaseURL)}
	}
	for k, v := range e.Headers {
		req.Header.Set(k, v)
	}
	key := ""
	if s.KeyEnv != "" {
		key = r.o.Env(s.KeyEnv)
	}
	switch {
	case key == "":
	case e.Messages:
		req.Header.Set("X-Api-Key", key)
	default:
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if e.Messages {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	res, err := wire.Client().Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return Answer{Why: fmt.Sprintf("not reached: %v", err)}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	switch {
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return Answer{Why: fmt.Sprintf("reached, but the key is refused (status %d): check %s", res.StatusCode, s.KeyEnv)}
	case res.StatusCode != http.StatusOK:
		return Answer{Why: fmt.Sprintf("reached, but %s/models answers with status %d: check the base URL", base, res.StatusCode)}
	case err != nil:
		return Answer{Why: fmt.Sprintf("reached, but its answer broke off: %v", err)}
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return Answer{Why: fmt.Sprintf("something that is no model server answers at %s: check the base URL", base)}
	}
	a := Answer{OK: true}
	for _, m := range list.Data {
		a.Models = append(a.Models, m.ID)
	}
	slices.Sort(a.Models)
	return a
}
