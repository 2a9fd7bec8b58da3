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
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"pawl/engine/machine"
	"pawl/engine/model"
)

// DefaultIdle is how long a provider may stay silent before the attempt ends.
// Models that think before they speak are silent for minutes.
const DefaultIdle = 10 * time.Minute

// Options say whom to ask.
type Options struct {
	BaseURL string // with its version path, "https://api.openai.com/v1"
	Key     string
	KeyEnv  string // name of the variable that the key comes from, for messages
	Headers map[string]string
	Limits  model.Limits
	// Idle bounds the silence before and within an answer; 0: DefaultIdle.
	Idle time.Duration
	// Now is the clock for Retry-After dates; nil: time.Now.
	Now func() time.Time
}

// Provider asks one endpoint. It is safe for concurrent use.
type Provider struct {
	o       Options
	host    string
	openai  bool // OpenAI's own endpoint, which wants the newer parameter names
	service sdk.ChatCompletionService
}

// New checks the options; nothing is sent. The error says what to set.
func New(o Options) (*Provider, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("the base URL %q is no http or https address: set it to something like http://127.0.0.1:11434/v1", o.BaseURL)
	}
	local := Local(u)
	if o.Key == "" && !local {
		env := o.KeyEnv
		if env == "" {
			env = "OPENAI_API_KEY"
		}
		return nil, fmt.Errorf("no key for %s: set %s, or use a local server by setting OPENAI_BASE_URL to its address", u.Host, env)
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	opts := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithMaxRetries(0),
		option.WithHTTPClient(client()),
	}
	if o.Key != "" {
		opts = append(opts, option.WithAPIKey(o.Key))
	}
	for k, v := range o.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	return &Provider{
		o: o, host: u.Host, openai: strings.EqualFold(u.Hostname(), "api.openai.com"),
		service: sdk.NewChatCompletionService(opts...),
	}, nil
}

// client makes connections that are used once, so that no request ever meets
// one that died meanwhile, and follows no redirect.
func client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 30 * time.Second,
			ForceAttemptHTTP2:   true,
			DisableKeepAlives:   true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Local reports whether an address is of this machine or a private network, so
// that it may well want no key.
func Local(u *url.URL) bool {
	h := u.Hostname()
	if ip := net.ParseIP(h); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return h == "localhost" || strings.HasSuffix(h, ".localhost") || strings.HasSuffix(h, ".local") ||
		strings.HasSuffix(h, ".internal") || !strings.Contains(h, ".")
}

// Complete makes one request and reads its answer to the end.
func (p *Provider) Complete(ctx context.Context, req model.Request, live func(string)) (model.Response, error) {
	params, err := p.params(req)
	if err != nil {
		return model.Response{}, &model.Error{Class: machine.FailBadRequest, Message: fmt.Sprintf("The request could not be written: %v. %s", err, model.Advice(machine.FailBadRequest)), Err: err}
	}
	a := newAttempt(ctx, p, req)
	defer a.close()
	stream := p.service.NewStreaming(a.ctx, params,
		option.WithMiddleware(a.send),
		option.WithHeader("X-Client-Request-Id", clientID(req)))
	defer func() { _ = stream.Close() }()
	var c collector
	for stream.Next() {
		if d := c.add(stream.Current()); d != "" && live != nil {
			live(d)
		}
	}
	if err := stream.Err(); err != nil && c.stop == "" {
		return model.Response{}, a.failed(err, &c)
	}
	// An error after the stop reason loses at most the usage: the answer is whole.
	return a.finish(&c)
}

// clientID names a request in the provider's logs. It is no idempotency key:
// under that name net/http itself would send the request again.
func clientID(req model.Request) string {
	return fmt.Sprintf("%s-t%d-a%d", req.Run, req.Turn, max(req.Attempt, 1))
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

// errIdle is the cause of an attempt that ended because nothing came.
var errIdle = errors.New("nothing came")
