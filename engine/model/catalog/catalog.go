// Package catalog knows the prices, limits and addresses of public models,
// from a table that is compiled in. Nothing is fetched.
package catalog

import (
	"slices"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"pawl/engine/model"
)

// Endpoint is where a provider answers, and which key it wants.
type Endpoint struct {
	ID      string
	Name    string
	BaseURL string
	KeyEnv  string // environment variable that holds the key; "" if none is needed
	Headers map[string]string
	// Chat: it speaks the chat-completions wire format.
	Chat bool
	// Messages: it speaks Anthropic's messages wire format.
	Messages bool
}

// Model is one known model.
type Model struct {
	ID     string
	Name   string
	Limits model.Limits
}

type entry struct {
	endpoint Endpoint
	models   []Model // sorted by id
}

// table decodes the compiled-in table once, when it is first asked for.
var table = sync.OnceValue(func() map[string]entry {
	out := map[string]entry{}
	for _, p := range embedded.GetAll() {
		e := entry{endpoint: endpointOf(p)}
		for _, m := range p.Models {
			e.models = append(e.models, Model{ID: m.ID, Name: m.Name, Limits: limitsOf(m)})
		}
		slices.SortFunc(e.models, func(a, b Model) int { return strings.Compare(a.ID, b.ID) })
		out[e.endpoint.ID] = e
	}
	out["ollama"] = entry{endpoint: Endpoint{ID: "ollama", Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1", Chat: true}}
	return out
})

func endpointOf(p catwalk.Provider) Endpoint {
	e := Endpoint{ID: string(p.ID), Name: p.Name, BaseURL: p.APIEndpoint, KeyEnv: strings.TrimPrefix(p.APIKey, "$"), Headers: p.DefaultHeaders}
	switch p.Type {
	case catwalk.TypeOpenAI, catwalk.TypeOpenAICompat, catwalk.TypeOpenRouter, catwalk.TypeVercel:
		e.Chat = true
	case catwalk.TypeGoogle:
		e.Chat = p.ID == catwalk.InferenceProviderGemini
	case catwalk.TypeAnthropic:
		e.Messages = true
	case catwalk.TypeAzure, catwalk.TypeBedrock, catwalk.TypeVertexAI:
	}
	switch p.ID {
	case catwalk.InferenceProviderOpenAI:
		e.BaseURL = "https://api.openai.com/v1"
	case catwalk.InferenceProviderAnthropic:
		e.BaseURL = "https://api.anthropic.com"
	case catwalk.InferenceProviderGemini: // its own compatible endpoint
		e.BaseURL = "https://generativelanguage.googleapis.com/v1beta/openai"
	case catwalk.InferenceProviderCopilot: // signs in by device flow, not by key
		e.Chat = false
	}
	if strings.HasPrefix(e.BaseURL, "$") {
		e.BaseURL = ""
	}
	return e
}

// limitsOf reads a model's row. Its two "cached" prices are one for writing and
// one for reading the cache, and not every row has them in the same order: the
// price of a cached token read is the lower one, if it is below the full price.
func limitsOf(m catwalk.Model) model.Limits {
	l := model.Limits{
		Context: int(m.ContextWindow), MaxOutput: int(m.DefaultMaxTokens),
		InPrice: m.CostPer1MIn, OutPrice: m.CostPer1MOut, CachedPrice: m.CostPer1MIn,
		Priced: m.CostPer1MIn > 0 || m.CostPer1MOut > 0,
	}
	for _, c := range []float64{m.CostPer1MInCached, m.CostPer1MOutCached} {
		if c > 0 && c < l.CachedPrice {
			l.CachedPrice = c
		}
		if c > m.CostPer1MIn {
			l.WritePrice = c
		}
	}
	return l
}

// Find returns a provider's endpoint.
func Find(provider string) (Endpoint, bool) {
	e, ok := table()[provider]
	return e.endpoint, ok
}

// Limits returns what is known of a model.
func Limits(provider, name string) (model.Limits, bool) {
	ms := table()[provider].models
	i, ok := slices.BinarySearchFunc(ms, name, func(m Model, id string) int { return strings.Compare(m.ID, id) })
	if !ok {
		return model.Limits{}, false
	}
	return ms[i].Limits, true
}

// Models lists a provider's known models by id.
func Models(provider string) []Model { return slices.Clone(table()[provider].models) }

// Endpoints lists the known providers by id.
func Endpoints() []Endpoint {
	var out []Endpoint
	for _, e := range table() {
		out = append(out, e.endpoint)
	}
	slices.SortFunc(out, func(a, b Endpoint) int { return strings.Compare(a.ID, b.ID) })
	return out
}
