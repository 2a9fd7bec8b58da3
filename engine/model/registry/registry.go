// Package registry finds the provider that a model's name stands for.
//
// A name is PROVIDER/MODEL: "openai/gpt-5", "ollama/qwen3", "openrouter/a/b",
// or "script/NAME" for the scripted model, whose script comes with the run.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"pawl/engine/model"
	"pawl/engine/model/anthropic"
	"pawl/engine/model/catalog"
	"pawl/engine/model/openai"
	"pawl/engine/model/scripted"
	"pawl/engine/model/wire"
)

// Script is the provider name of the scripted model.
const Script = "script"

// Options are the settings of a registry.
type Options struct {
	// Env looks a variable up, as os.Getenv does.
	Env func(string) string
	// BaseURLs are configured addresses by provider; they win over the environment.
	BaseURLs map[string]string
	// Limits are configured limits and prices by full model name.
	Limits map[string]model.Limits
}

// Registry resolves names and keeps the providers it made. It is safe for
// concurrent use.
type Registry struct {
	o  Options
	mu sync.Mutex
	// made holds providers by name; scripted ones are not kept, they are cheap.
	made map[string]found
}

type found struct {
	provider model.Provider
	limits   model.Limits
}

// New returns a registry; nothing is looked up yet.
func New(o Options) *Registry {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	return &Registry{o: o, made: map[string]found{}}
}

// Resolve returns the provider of a model, the model's name at that provider,
// and what is known of it. script holds the run's script for a scripted model.
// The error says what is wrong with the name, what is missing and what to set.
func (r *Registry) Resolve(_ context.Context, name string, script []byte) (model.Provider, string, model.Limits, error) {
	provider, id, ok := strings.Cut(name, "/")
	if !ok || provider == "" || id == "" {
		return nil, "", model.Limits{}, fmt.Errorf("the model %q is no PROVIDER/MODEL: write it like openai/gpt-5 or ollama/qwen3 (`pawl models` lists what is known)", name)
	}
	if provider == Script {
		if len(script) == 0 {
			return nil, "", model.Limits{}, errors.New("the scripted model has no script: give one with --script FILE")
		}
		s, err := scripted.Parse(id, script)
		if err != nil {
			return nil, "", model.Limits{}, err
		}
		return scripted.New(s), id, model.Limits{Context: 1 << 20, Priced: true}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.made[name]; ok {
		return f.provider, id, f.limits, nil
	}
	f, err := r.open(name, provider, id)
	if err != nil {
		return nil, "", model.Limits{}, fmt.Errorf("model %s: %w", name, err)
	}
	r.made[name] = f
	return f.provider, id, f.limits, nil
}

func (r *Registry) open(name, provider, id string) (found, error) {
	e, known := catalog.Find(provider)
	base, moved := r.baseURL(provider, e.BaseURL)
	switch {
	case !known && base == "":
		return found{}, fmt.Errorf("no provider is called %q: use one that `pawl models` lists, or openai with OPENAI_BASE_URL set to the address of any compatible server", provider)
	case known && !e.Chat && !e.Messages && !moved:
		return found{}, fmt.Errorf("%s speaks a wire format that this pawl does not know: use it through a compatible gateway such as openrouter/%s", e.Name, id)
	case base == "":
		return found{}, fmt.Errorf("the address of %s is not known: set a base URL for it", provider)
	}
	limits, _ := catalog.Limits(provider, id)
	if u, err := url.Parse(base); moved && err == nil && wire.Local(u) {
		// A server of one's own has neither the table's prices nor its limits.
		limits = model.Limits{}
	}
	if l, ok := r.o.Limits[name]; ok {
		limits = l
	}
	keyEnv := e.KeyEnv
	if keyEnv == "" && !known {
		keyEnv = envName(provider) + "_API_KEY"
	}
	if e.Messages {
		o := anthropic.Options{BaseURL: base, KeyEnv: keyEnv, Headers: e.Headers, Limits: limits}
		if keyEnv != "" {
			o.Key = r.o.Env(keyEnv)
		}
		p, err := anthropic.New(o)
		return found{p, limits}, err
	}
	o := openai.Options{BaseURL: base, KeyEnv: keyEnv, Headers: e.Headers, Limits: limits}
	if keyEnv != "" {
		o.Key = r.o.Env(keyEnv)
	}
	p, err := openai.New(o)
	if err != nil {
		return found{}, err
	}
	return found{p, limits}, nil
}

// baseURL is the address to use, and whether it is another than the table's.
func (r *Registry) baseURL(provider, known string) (base string, moved bool) {
	base = r.o.BaseURLs[provider]
	if base == "" {
		base = r.o.Env(envName(provider) + "_BASE_URL")
	}
	if base == "" && provider == "ollama" {
		if h := r.o.Env("OLLAMA_HOST"); h != "" {
			if !strings.Contains(h, "://") {
				h = "http://" + h
			}
			base = strings.TrimRight(h, "/") + "/v1"
		}
	}
	if base == "" {
		return known, false
	}
	return base, strings.TrimRight(base, "/") != strings.TrimRight(known, "/")
}

func envName(provider string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(provider))
}

// Known is a model that the table lists, for `pawl models`.
type Known struct {
	Name   string // PROVIDER/MODEL
	Limits model.Limits
	// Ready: its key is set, or it needs none.
	Ready bool
}

// List lists the models that can be asked, by provider; all providers for "".
func (r *Registry) List(provider string) []Known {
	var out []Known
	for _, e := range catalog.Endpoints() {
		if !e.Chat && !e.Messages || (provider != "" && e.ID != provider) {
			continue
		}
		ready := e.KeyEnv == "" || r.o.Env(e.KeyEnv) != ""
		for _, m := range catalog.Models(e.ID) {
			out = append(out, Known{Name: e.ID + "/" + m.ID, Limits: m.Limits, Ready: ready})
		}
	}
	return out
}
