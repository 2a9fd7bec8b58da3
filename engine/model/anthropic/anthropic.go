// Package anthropic asks models that speak the messages wire format, through
// Anthropic's official SDK.
//
// One Complete is one HTTP request. The SDK's retries are off, and so are the
// ones that net/http does by itself when a reused connection dies. An answer
// counts only once its message_stop has come: the SDK itself takes a stream
// that merely ends for a whole one.
package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/wire"
)

// Options say whom to ask.
type Options struct {
	BaseURL string // with or without its version path
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
	service sdk.MessageService
}

// New checks the options; nothing is sent. The error says what to set.
func New(o Options) (*Provider, error) {
	u, err := wire.Address(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if o.Key == "" && !wire.Local(u) {
		env := o.KeyEnv
		if env == "" {
			env = "ANTHROPIC_API_KEY"
		}
		return nil, fmt.Errorf("no key for %s: set %s, or use a local server by setting ANTHROPIC_BASE_URL to its address", u.Host, env)
	}
	if o.Idle <= 0 {
		o.Idle = wire.DefaultIdle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	base := strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1")
	opts := []option.RequestOption{
		option.WithBaseURL(base + "/"),
		option.WithMaxRetries(0),
		option.WithHTTPClient(wire.Client()),
		option.WithHeader("anthropic-version", "2023-06-01"),
	}
	if o.Key != "" {
		opts = append(opts, option.WithHeader("X-Api-Key", o.Key))
	}
	for k, v := range o.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	return &Provider{
		peer: wire.Peer{
			Host: u.Host, BaseURL: o.BaseURL, Key: o.Key, IDHeader: "Request-Id", Idle: o.Idle, Now: o.Now, Limits: o.Limits,
		},
		service: sdk.NewMessageService(opts...),
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
	for !c.whole && stream.Next() {
		if d := c.add(stream.Current()); d != "" && live != nil {
			live(d)
		}
	}
	if !c.whole {
		err := stream.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF // the stream ended, without an error, before its answer did
		}
		return model.Response{}, a.Failed(err, c.heard(err))
	}
	return p.finish(a, &c)
}

// finish judges a whole answer.
func (p *Provider) finish(a *wire.Attempt, c *collector) (model.Response, error) {
	r, err := c.response()
	r.RequestID = a.RequestID()
	if r.RequestID == "" {
		r.RequestID = c.id
	}
	r.Usage = a.Usage(c.usage, c.text.String(), r.Calls)
	if err != nil {
		return model.Response{}, &model.Error{Class: machine.FailServer, Message: fmt.Sprintf("The answer of %s is not used: %v. %s", p.peer.Host, err, model.Advice(machine.FailServer)), Sent: true, Usage: r.Usage, Err: err}
	}
	if strings.TrimSpace(r.Text) == "" && len(r.Calls) == 0 && r.Stop == machine.StopEnd {
		why := "an empty answer"
		if c.thought {
			why = "reasoning and no answer"
		}
		return model.Response{}, a.Empty(r.Usage, why)
	}
	return r, nil
}

// defaultOutput bounds an answer, in tokens, where nothing is known of the
// model: this format has no "as much as you like".
const defaultOutput = 8 << 10

// params writes a request. What stays the same between requests stands first
// and is marked for the provider's cache: tools and instructions, the opening
// of the window, and the conversation up to here.
func (p *Provider) params(req model.Request) (sdk.MessageNewParams, error) {
	out := sdk.MessageNewParams{Model: req.Model, MaxTokens: int64(req.MaxOutput)}
	if out.MaxTokens <= 0 {
		out.MaxTokens = int64(p.peer.Limits.MaxOutput)
	}
	if out.MaxTokens <= 0 {
		out.MaxTokens = defaultOutput
	}
	for _, t := range req.Tools {
		s, err := schema(t)
		if err != nil {
			return out, err
		}
		tool := sdk.ToolParam{Name: t.Name, InputSchema: s}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		out.Tools = append(out.Tools, sdk.ToolUnionParam{OfTool: &tool})
	}
	cache := sdk.NewCacheControlEphemeralParam()
	if req.System != "" {
		out.System = []sdk.TextBlockParam{{Text: req.System, CacheControl: cache}}
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		role, blocks, err := blocksOf(m, i)
		if err != nil {
			return out, err
		}
		// Results and what the operator says after them are one message here.
		last := len(out.Messages) - 1
		switch {
		case role == model.RoleAssistant:
			out.Messages = append(out.Messages, sdk.NewAssistantMessage(blocks...))
		case last >= 0 && out.Messages[last].OfUser != nil:
			u := out.Messages[last].OfUser
			u.Content = append(u.Content, blocks...)
		default:
			out.Messages = append(out.Messages, sdk.NewUserMessage(blocks...))
		}
	}
	if n := len(out.Messages); n > 0 {
		mark(out.Messages[0], cache)
		if n > 1 {
			mark(out.Messages[n-1], cache)
		}
	}
	return out, nil
}

// mark puts a cache mark on the last block of what the user's side says.
func mark(m sdk.MessageParam, c sdk.CacheControlEphemeralParam) {
	if m.OfUser == nil || len(m.OfUser.Content) == 0 {
		return
	}
	blocks := m.OfUser.Content
	switch b := &blocks[len(blocks)-1]; {
	case b.OfText != nil:
		b.OfText.CacheControl = c
	case b.OfToolResult != nil:
		b.OfToolResult.CacheControl = c
	}
}

func blocksOf(m *model.Message, i int) (model.Role, []sdk.ContentBlockParamUnion, error) {
	switch m.Role {
	case model.RoleUser:
		return model.RoleUser, []sdk.ContentBlockParamUnion{sdk.NewTextBlock(said(m.Text))}, nil
	case model.RoleTool:
		return model.RoleUser, []sdk.ContentBlockParamUnion{sdk.NewToolResultBlock(m.CallID, said(m.Text), false)}, nil
	case model.RoleAssistant:
		var blocks []sdk.ContentBlockParamUnion
		if strings.TrimSpace(m.Text) != "" {
			blocks = append(blocks, sdk.NewTextBlock(m.Text))
		}
		for _, c := range m.Calls {
			blocks = append(blocks, sdk.NewToolUseBlock(c.ID, c.Args, c.Name))
		}
		if len(blocks) == 0 {
			blocks = append(blocks, sdk.NewTextBlock(said("")))
		}
		return model.RoleAssistant, blocks, nil
	}
	return "", nil, fmt.Errorf("message %d has the role %q", i+1, m.Role)
}

// said is a text as this format accepts it: no block may be blank.
func said(s string) string {
	if strings.TrimSpace(s) == "" {
		return "(nothing)"
	}
	return s
}

func schema(t model.ToolSpec) (sdk.ToolInputSchemaParam, error) {
	var s sdk.ToolInputSchemaParam
	if len(t.Schema) == 0 {
		return s, nil
	}
	var all map[string]any
	if err := json.Unmarshal(t.Schema, &all); err != nil {
		return s, fmt.Errorf("the schema of tool %s: %w", t.Name, err)
	}
	s.Properties = all["properties"]
	if list, ok := all["required"].([]any); ok {
		for _, x := range list {
			if name, ok := x.(string); ok {
				s.Required = append(s.Required, name)
			}
		}
	}
	for _, k := range []string{"type", "properties", "required"} {
		delete(all, k)
	}
	if len(all) > 0 {
		s.ExtraFields = all
	}
	return s, nil
}
