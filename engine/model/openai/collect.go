package openai

import (
	"errors"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/wire"
)

// collector puts the pieces of one answer together.
type collector struct {
	id      string
	text    strings.Builder
	refused bool
	calls   []*partial
	stop    string // finish reason as received
	usage   *machine.Usage
	pieces  int
}

// partial is a tool call that is still arriving.
type partial struct {
	index int64
	id    string
	name  string
	args  strings.Builder
}

// heard is what had arrived when the stream ended with err.
func (c *collector) heard(err error) wire.Heard {
	h := wire.Heard{Text: c.text.String(), Pieces: c.pieces, Usage: c.usage}
	var in *ssestream.StreamError
	if errors.As(err, &in) {
		h.Event = in.Event.Data
	}
	return h
}

// add takes one chunk and returns the text in it.
func (c *collector) add(k sdk.ChatCompletionChunk) string {
	c.pieces++
	if c.id == "" {
		c.id = k.ID
	}
	if k.JSON.Usage.Valid() {
		c.usage = &machine.Usage{
			Input: k.Usage.PromptTokens, Output: k.Usage.CompletionTokens, Cached: k.Usage.PromptTokensDetails.CachedTokens,
		}
	}
	if len(k.Choices) == 0 || k.Choices[0].Index != 0 || c.stop != "" {
		return ""
	}
	ch := k.Choices[0]
	delta := ch.Delta.Content
	if ch.Delta.Refusal != "" {
		c.refused = true
		delta += ch.Delta.Refusal
	}
	c.text.WriteString(delta)
	for _, t := range ch.Delta.ToolCalls {
		c.call(t)
	}
	c.stop = ch.FinishReason
	return delta
}

// call takes one piece of a tool call. Pieces belong together by their index;
// some servers give every call the index 0, so that a new id with a name
// starts a new one, too.
func (c *collector) call(t sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	var p *partial
	for i := len(c.calls) - 1; i >= 0; i-- {
		if c.calls[i].index == t.Index {
			p = c.calls[i]
			break
		}
	}
	if p == nil || (t.ID != "" && p.id != "" && t.ID != p.id && t.Function.Name != "") {
		p = &partial{index: t.Index}
		c.calls = append(c.calls, p)
	}
	if p.id == "" {
		p.id = t.ID
	}
	if p.name == "" {
		p.name = t.Function.Name
	}
	p.args.WriteString(t.Function.Arguments)
}

// response is the whole answer. It must not be called before a stop reason came.
func (c *collector) response() model.Response {
	r := model.Response{Text: c.text.String()}
	switch {
	case c.refused || c.stop == "content_filter":
		r.Stop = machine.StopRefusal
		return r // whatever was called is not meant to run
	case c.stop == "length":
		r.Stop = machine.StopLength
	case len(c.calls) > 0: // some servers say "stop" although they call
		r.Stop = machine.StopTools
	default:
		r.Stop = machine.StopEnd
	}
	for _, p := range c.calls {
		args := p.args.String()
		if strings.TrimSpace(args) == "" && r.Stop == machine.StopTools {
			args = "{}" // how several models call a tool without arguments
		}
		r.Calls = append(r.Calls, model.RawCall{ProviderID: p.id, Name: p.name, Args: args})
	}
	return r
}
