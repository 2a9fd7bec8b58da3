package anthropic

import (
	"errors"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/wire"
)

// collector puts the pieces of one answer together.
type collector struct {
	id      string
	text    strings.Builder
	calls   []*partial
	stop    string // as received
	usage   *machine.Usage
	thought bool // reasoning came
	whole   bool // message_stop came, and the stop reason before it
	pieces  int
}

// partial is a tool call that is still arriving.
type partial struct {
	index int64
	id    string
	name  string
	first string // the input that its start held
	args  strings.Builder
}

// heard is what had arrived when the stream ended with err.
func (c *collector) heard(err error) wire.Heard {
	h := wire.Heard{Text: c.text.String(), Pieces: c.pieces, Usage: c.usage}
	var in *sdk.Error
	if errors.As(err, &in) && in.RawJSON() != "" {
		h.Event = []byte(in.RawJSON())
	}
	return h
}

// add takes one event and returns the text in it.
func (c *collector) add(e sdk.MessageStreamEventUnion) string {
	c.pieces++
	switch e.Type {
	case "message_start":
		c.id = e.Message.ID
		u := e.Message.Usage
		c.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, e.Message.JSON.Usage.Valid())
	case "content_block_start":
		switch b := e.ContentBlock; b.Type {
		case "text":
			c.text.WriteString(b.Text)
			return b.Text
		case "tool_use":
			p := &partial{index: e.Index, id: b.ID, name: b.Name}
			if raw := b.JSON.Input.Raw(); raw != "" && raw != "null" && raw != "{}" {
				p.first = raw
			}
			c.calls = append(c.calls, p)
		case "thinking", "redacted_thinking":
			c.thought = true
		}
	case "content_block_delta":
		switch d := e.Delta; d.Type {
		case "text_delta":
			c.text.WriteString(d.Text)
			return d.Text
		case "input_json_delta":
			for i := len(c.calls) - 1; i >= 0; i-- {
				if c.calls[i].index == e.Index {
					c.calls[i].args.WriteString(d.PartialJSON)
					break
				}
			}
		}
	case "message_delta":
		if s := string(e.Delta.StopReason); s != "" {
			c.stop = s
		}
		u := e.Usage
		if e.JSON.Usage.Valid() {
			was := machine.Usage{}
			if c.usage != nil {
				was = *c.usage
			}
			// The figures are totals; what is left out keeps the earlier one.
			in, read, written := was.Input-was.Cached-was.Written, was.Cached, was.Written
			if u.JSON.InputTokens.Valid() && u.InputTokens > 0 {
				in = u.InputTokens
			}
			if u.JSON.CacheReadInputTokens.Valid() {
				read = u.CacheReadInputTokens
			}
			if u.JSON.CacheCreationInputTokens.Valid() {
				written = u.CacheCreationInputTokens
			}
			c.count(in, read, written, u.OutputTokens, true)
		}
	case "message_stop":
		c.whole = c.stop != ""
	}
	return ""
}

// count keeps the newest totals; nothing is ever added up.
func (c *collector) count(in, read, written, out int64, told bool) {
	if !told {
		return
	}
	c.usage = &machine.Usage{Input: in + read + written, Cached: read, Written: written, Output: out}
}

// response is the whole answer. It must not be called before message_stop came.
// The error says why the answer means nothing that could be acted on.
func (c *collector) response() (model.Response, error) {
	r := model.Response{Text: c.text.String()}
	switch sdk.StopReason(c.stop) {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence, sdk.StopReasonPauseTurn:
		r.Stop = machine.StopEnd
	case sdk.StopReasonToolUse:
		r.Stop = machine.StopTools
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		r.Stop = machine.StopLength
	case sdk.StopReasonRefusal:
		r.Stop = machine.StopRefusal
		return r, nil // whatever was called is not meant to run
	default:
		return r, fmt.Errorf("it ended with the stop reason %.40q, which this pawl does not know", c.stop)
	}
	for _, p := range c.calls {
		args := p.args.String()
		if args == "" {
			args = p.first
		}
		if strings.TrimSpace(args) == "" && r.Stop != machine.StopLength {
			args = "{}" // a call without arguments
		}
		r.Calls = append(r.Calls, model.RawCall{ProviderID: p.id, Name: p.name, Args: args})
	}
	if len(r.Calls) > 0 && r.Stop == machine.StopEnd {
		r.Stop = machine.StopTools // some servers say so although they call
	}
	return r, nil
}
