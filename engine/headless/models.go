package headless

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"pawl/engine/model/registry"
)

// reachWithin bounds how long a provider is asked for its models.
const reachWithin = 5 * time.Second

// providerLine is a provider as `pawl models --json` tells it.
type providerLine struct {
	Provider string `json:"provider"`
	BaseURL  string `json:"base_url"`
	KeyEnv   string `json:"key_env,omitempty"`
	Ready    bool   `json:"ready"` // set up so that it can be asked
	Reached  bool   `json:"reached"`
	Models   int    `json:"models"` // that it says it has
	Why      string `json:"why,omitempty"`
}

// modelLine is one model of a provider.
type modelLine struct {
	Name     string  `json:"name"` // for --model
	Served   bool    `json:"served"`
	Context  int     `json:"context"` // tokens; 0: not known
	Output   int     `json:"output"`
	InPrice  float64 `json:"usd_per_million_in"`
	OutPrice float64 `json:"usd_per_million_out"`
	Priced   bool    `json:"priced"`
}

func (a *app) modelsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "List the model providers that are set up, and whether they answer",
		Long: `List the model providers that are set up here, and whether each answers: it is asked for its models, which costs nothing. --all lists the others too, with what to set.
With PROVIDER, list its models: those it serves now, and what is known of their context and prices. The names go with --model.`,
		Example: `pawl models
pawl models ollama`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			reg := registry.New(registry.Options{Env: a.o.Getenv})
			if len(args) == 1 {
				return a.modelsOf(cmd.Context(), reg, args[0])
			}
			return a.providers(cmd.Context(), reg, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list providers that are not set up, too")
	return cmd
}

func (a *app) providers(ctx context.Context, reg *registry.Registry, all bool) error {
	var lines []providerLine
	for _, s := range reg.Providers() {
		if s.Ready || all {
			lines = append(lines, providerLine{Provider: s.Provider, BaseURL: s.BaseURL, KeyEnv: s.KeyEnv, Ready: s.Ready, Why: s.Why})
		}
	}
	var group sync.WaitGroup
	for i := range lines {
		if !lines[i].Ready {
			continue
		}
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, reachWithin)
			defer cancel()
			ans := reg.Ask(ctx, lines[i].Provider)
			lines[i].Reached, lines[i].Models, lines[i].Why = ans.OK, len(ans.Models), ans.Why
		})
	}
	group.Wait()
	if a.json {
		for _, l := range lines {
			if err := object(a.out(), l); err != nil {
				return err
			}
		}
		return nil
	}
	t := table{head: []string{"PROVIDER", "ANSWERS", "MODELS", "ADDRESS", "WHAT TO DO"}}
	for _, l := range lines {
		models := "-"
		if l.Reached {
			models = fmt.Sprint(l.Models)
		}
		t.add(l.Provider, yes(l.Reached), models, l.BaseURL, l.Why)
	}
	if err := t.write(a.out(), a.o.Width); err != nil {
		return err
	}
	if !all {
		a.say("`pawl models PROVIDER` lists its models; `pawl models --all` lists what else can be set up. Without a key, a script does: `pawl run … --script FILE`.")
	}
	return nil
}

func (a *app) modelsOf(ctx context.Context, reg *registry.Registry, provider string) error {
	i := slices.IndexFunc(reg.Providers(), func(s registry.Standing) bool { return s.Provider == provider })
	if i < 0 {
		return usage(fmt.Sprintf("no provider is called %s", quote(provider)), "`pawl models --all` lists those that are known", "for another server that speaks the chat-completions format set OPENAI_BASE_URL and use openai")
	}
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	ans := reg.Ask(ctx, provider)
	known := map[string]modelLine{}
	var names []string
	for _, k := range reg.List(provider) {
		_, id, _ := strings.Cut(k.Name, "/")
		known[id] = modelLine{Name: k.Name, Context: k.Limits.Context, Output: k.Limits.MaxOutput, InPrice: k.Limits.InPrice, OutPrice: k.Limits.OutPrice, Priced: k.Limits.Priced}
		names = append(names, id)
	}
	for _, id := range ans.Models {
		l, ok := known[id]
		if !ok {
			l.Name = provider + "/" + id
			names = append(names, id)
		}
		l.Served = true
		known[id] = l
	}
	slices.Sort(names)
	t := table{head: []string{"MODEL", "SERVED", "CONTEXT", "OUTPUT", "$ IN/M", "$ OUT/M"}}
	for _, id := range names {
		l := known[id]
		if a.json {
			if err := object(a.out(), l); err != nil {
				return err
			}
			continue
		}
		in, out := "?", "?"
		if l.Priced {
			in, out = fmt.Sprintf("%.2f", l.InPrice), fmt.Sprintf("%.2f", l.OutPrice)
		}
		served := "?"
		if ans.OK {
			served = yes(l.Served)
		}
		t.add(l.Name, served, number(l.Context), number(l.Output), in, out)
	}
	if !a.json {
		if err := t.write(a.out(), a.o.Width); err != nil {
			return err
		}
	}
	if !ans.OK {
		a.say("%s was not asked for what it serves: %s", provider, ans.Why)
	}
	return nil
}

func number(n int) string {
	if n == 0 {
		return "?"
	}
	return fmt.Sprint(n)
}
