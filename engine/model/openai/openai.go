// Package openai asks models that speak the chat-completions wire format,
// through the official SDK: OpenAI itself and whatever imitates it (Ollama,
// vLLM, OpenRouter, Gemini's compatible endpoint and many more).
//
// One Complete is one HTTP request. The SDK's retries are off, and so are the
// ones that net/http does by itself when a reused connection dies.
package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/wire"
)

// Options say whom to ask.
type Options struct {
	BaseURL string // with its version path, "https://api.openai.com/v1"
	Key     string
	KeyEnv  string // name of the variable that the key comes from, for messages
	Headers map[string]string
	Limits  model.Limits
	// Idle bounds the silence before and within an answer; 0: wire.DefaultIdle.
	Idle time.Duration
	// Now is the clock for Retry-After dates; nil: time.Now.
	Now func() time.Time
}

// Provider asks one endpoint. It is safe for concurrent use.
type Provider struct {
	peer    wire.Peer
	openai  bool // OpenAI's own endpoint, which wants the newer parameter names
	service sdk.ChatCompletionService
}

// New checks the options; nothing is sent. The error says what to set.
func New(o Options) (*Provider, error) {
	u, err := wire.Address(o.BaseURL)
	if err != nil {
		return nil, err
	}
	local := wire.Local(u)
	if o.Key == "" && !local {
		env := o.KeyEnv
		if env == "" {
			env = "OPENAI_API_KEY"
		}
		return nil, fmt.Errorf("no key for %s: set %s, or use a local server by setting OPENAI_BASE_URL to its address", u.Host, env)
	}
	if o.Idle <= 0 {
		o.Idle = wire.DefaultIdle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	opts := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithMaxRetries(0),
		option.WithHTTPClient(wire.Client()),
	}
	if o.Key != "" {
		opts = append(opts, option.WithAPIKey(o.Key))
	}
	for k, v := range o.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	return &Provider{
		peer: wire.Peer{
			Host: u.Host, BaseURL: o.BaseURL, Key: o.Key, IDHeader: "X-Request-Id", Idle: o.Idle, Now: o.Now, Limits: o.Limits,
		},
		openai:  strings.EqualFold(u.Hostname(), "api.openai.com"),
		service: sdk.NewChatCompletionService(opts...),
	}, nil
}

// Complete makes one request and reads its answer to the end.
func (p *Provider) Complete(ctx context.Context, req model.Request, live func(string)) (model.Response, error) {
	params, err := p.params(req)
	if err != nil {
		return model.Response{}, &model.Error{Class: machine.FailBadRequest, Message: fmt.Sprintf("The request could not be written: %v. %s", err, model.Advice(machine.FailBadRequest)), Err: err}
	}
	a := wire.Begin(ctx, &p.peer, req)
	defer a.Close()
	stream := p.service.NewStreaming(a.Context(), params,
		option.WithMiddleware(a.Send),
		option.WithHeader("X-Client-Request-Id", wire.ClientID(req)))
	defer func() { _ = stream.Close() }()
	var c collector
	for stream.Next() {
		if d := c.add(stream.Current()); d != "" && live != nil {
			live(d)
		}
	}
	if err := stream.Err(); err != nil && c.stop == "" {
		return model.Response{}, a.Failed(err, c.heard(err))
	}
	// An error after the stop reason loses at most the usage: the answer is whole.
	return finish(a, &c)
}

// finish judges a stream that ended without an error.
func finish(a *wire.Attempt, c *collector) (model.Response, error) {
	if c.stop == "" {
		return model.Response{}, a.Failed(io.ErrUnexpectedEOF, c.heard(nil))
	}
	r := c.response()
	r.RequestID = a.RequestID()
	if r.RequestID == "" {
		r.RequestID = c.id
	}
	var calls []model.RawCall
	for _, p := range c.calls {
		calls = append(calls, model.RawCall{Name: p.name, Args: p.args.String()})
	}
	r.Usage = a.Usage(c.usage, c.text.String(), calls)
	if strings.TrimSpace(r.Text) == "" && len(r.Calls) == 0 && r.Stop != machine.StopLength {
		return model.Response{}, a.Empty(r.Usage, "an empty answer")
	}
	return r, nil
}

func (p *Provider) params(req model.Request) (sdk.ChatCompletionNewParams, error) {
	out := sdk.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	if req.MaxOutput > 0 {
		if p.openai {
			out.MaxCompletionTokens = sdk.Int(int64(req.MaxOutput))
		} else {
			out.MaxTokens = sdk.Int(int64(req.MaxOutput))
		}
	}
	if req.System != "" {
		out.Messages = append(out.Messages, sdk.SystemMessage(req.System))
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		switch m.Role {
		case model.RoleUser:
			out.Messages = append(out.Messages, sdk.UserMessage(m.Text))
		case model.RoleTool:
			out.Messages = append(out.Messages, sdk.ToolMessage(m.Text, m.CallID))
		case model.RoleAssistant:
			out.Messages = append(out.Messages, assistant(m))
		default:
			return out, fmt.Errorf("message %d has the role %q", i+1, m.Role)
		}
	}
	for _, t := range req.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name, Description: sdk.String(t.Description)}
		if len(t.Schema) > 0 {
			if err := json.Unmarshal(t.Schema, &f.Parameters); err != nil {
				return out, fmt.Errorf("the schema of tool %s: %w", t.Name, err)
			}
		}
		out.Tools = append(out.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	return out, nil
}

func assistant(m *model.Message) sdk.ChatCompletionMessageParamUnion {
	var a sdk.ChatCompletionAssistantMessageParam
	if m.Text != "" || len(m.Calls) == 0 {
		a.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(c.Args)},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &a}
}
