package fakeopenai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/scripted"
)

// The messages wire format: the same server answers it at /v1/messages.

// messagesRequest is what the server reads of a messages request.
type messagesRequest struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
}

// block is one part of a message.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      json.RawMessage `json:"content"`
	CacheControl json.RawMessage `json:"cache_control"`
}

// maxMarks is how many cache marks one request may hold.
const maxMarks = 4

// read turns the conversation into a request, and refuses what the real
// endpoint refuses: two messages of one role in a row, blank text, calls
// without exactly one result in the next message, results of nothing.
func (q *messagesRequest) read() (model.Request, error) {
	req := model.Request{Model: q.Model}
	switch {
	case q.Model == "":
		return req, errors.New("model: Field required")
	case q.MaxTokens < 1:
		return req, errors.New("max_tokens: Field required")
	case !q.Stream:
		return req, errors.New("only streams are answered: set stream to true")
	case len(q.Messages) == 0:
		return req, errors.New("messages: at least one message is required")
	}
	for i, t := range q.Tools {
		var s struct{ Type string }
		if json.Unmarshal(t.InputSchema, &s) != nil || s.Type != "object" {
			return req, fmt.Errorf("tools.%d.input_schema.type: Field required", i)
		}
		if err := legalName(t.Name); err != nil {
			return req, fmt.Errorf("tools.%d.name: %w", i, err)
		}
	}
	marks, err := countMarks(q.System)
	if err != nil {
		return req, fmt.Errorf("system: %w", err)
	}
	var open []string
	seen := map[string]bool{}
	for i, m := range q.Messages {
		blocks, err := blocksOf(m.Content)
		if err != nil {
			return req, fmt.Errorf("messages.%d.content: %w", i, err)
		}
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return req, fmt.Errorf("messages.%d: the role is %q where %q is expected", i, m.Role, want)
		}
		answered := 0
		for j, b := range blocks {
			where := fmt.Sprintf("messages.%d.content.%d", i, j)
			if len(b.CacheControl) > 0 && string(b.CacheControl) != "null" {
				marks++
			}
			switch {
			case b.Type == "text" && strings.TrimSpace(b.Text) == "":
				return req, fmt.Errorf("%s: text content blocks must be non-empty", where)
			case b.Type == "text" && strings.ContainsRune(b.Text, 0):
				return req, fmt.Errorf("%s: text holds a NUL character", where)
			case b.Type == "text" && m.Role == "user":
				if answered < len(open) {
					return req, fmt.Errorf("%s: tool_result blocks come first", where)
				}
				req.Messages = append(req.Messages, model.Message{Role: model.RoleUser, Text: b.Text})
			case b.Type == "text":
				req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Text: b.Text})
			case b.Type == "tool_use" && m.Role == "assistant":
				if err := legalCall(b.ID, b.Name, string(b.Input), seen); err != nil {
					return req, fmt.Errorf("%s: %w", where, err)
				}
				seen[b.ID] = true
				if n := len(req.Messages); n == 0 || req.Messages[n-1].Role != model.RoleAssistant {
					req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant})
				}
				last := &req.Messages[len(req.Messages)-1]
				last.Calls = append(last.Calls, model.ToolCall{ID: b.ID, Name: b.Name, Args: b.Input})
			case b.Type == "tool_result" && m.Role == "user":
				if answered >= len(open) || open[answered] != b.ToolUseID {
					return req, fmt.Errorf("%s: unexpected tool_use_id found in tool_result blocks: %s", where, b.ToolUseID)
				}
				answered++
				text, err := content(b.Content)
				if err != nil {
					return req, fmt.Errorf("%s: %w", where, err)
				}
				req.Messages = append(req.Messages, model.Message{Role: model.RoleTool, CallID: b.ToolUseID, Text: text})
			default:
				return req, fmt.Errorf("%s: a block of type %q does not belong to the %s", where, b.Type, m.Role)
			}
		}
		if answered < len(open) {
			return req, fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks immediately after: %s", i, strings.Join(open[answered:], ", "))
		}
		open = nil
		for _, b := range blocks {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
	}
	if len(open) > 0 {
		return req, fmt.Errorf("the conversation ends with %d tool_use blocks that have no result", len(open))
	}
	if marks > maxMarks {
		return req, fmt.Errorf("a maximum of %d blocks with cache_control may be provided, found %d", maxMarks, marks)
	}
	return req, nil
}

func countMarks(system json.RawMessage) (int, error) {
	blocks, err := blocksOf(system)
	n := 0
	for _, b := range blocks {
		if len(b.CacheControl) > 0 && string(b.CacheControl) != "null" {
			n++
		}
	}
	return n, err
}

// blocksOf reads content: a string, or blocks.
func blocksOf(raw json.RawMessage) ([]block, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []block{{Type: "text", Text: s}}, nil
	}
	var out []block
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, errors.New("neither text nor a list of blocks")
	}
	return out, nil
}

func legalName(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return fmt.Errorf("%q is not legal", name)
	}
	return nil
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	body, ok := s.take(w, r)
	if !ok {
		return
	}
	w.Header().Set("Request-Id", s.requestID())
	if s.o.Key != "" && r.Header.Get("X-Api-Key") != s.o.Key {
		refuseMessages(w, machine.FailAuth, 0, "")
		return
	}
	if r.Header.Get("Anthropic-Version") == "" {
		refuseMessages(w, machine.FailBadRequest, 0, "anthropic-version: header is required")
		return
	}
	var q messagesRequest
	err := json.Unmarshal(body, &q)
	var req model.Request
	if err == nil {
		req, err = q.read()
	}
	if err != nil {
		refuseMessages(w, machine.FailBadRequest, 0, err.Error())
		return
	}
	s.place(&req, r.Header.Get("X-Client-Request-Id"), body)
	req.Vars = s.o.Vars
	reply, err := s.o.Script.Play(req)
	if err != nil {
		refuseMessages(w, machine.FailBadRequest, 0, err.Error())
		return
	}
	if reply.Fail != "" && reply.FailAt == scripted.FailAtStart && reply.Fail != machine.FailEmpty {
		if reply.Fail == machine.FailCut || reply.Fail == machine.FailNetwork {
			panic(http.ErrAbortHandler) // closes the connection without a word
		}
		refuseMessages(w, reply.Fail, int64(math.Ceil(reply.RetryAfter.Seconds())), "")
		return
	}
	if reply.Fail == machine.FailEmpty {
		reply.Text, reply.Calls, reply.Stop, reply.Fail = "", nil, machine.StopEnd, ""
	}
	usage := model.Estimate(req, reply.Text, reply.Calls)
	s.send(w, r.Context(), messagesStream(s.requestID(), q.Model, reply, usage), req, reply, func(c machine.FailClass) piece {
		return piece{event: "error", data: encode(messagesRefusal(c, ""))}
	})
}

// messagesStream writes an answer as the real endpoint does.
func messagesStream(id, name string, r scripted.Reply, u machine.Usage) []piece {
	var out []piece
	add := func(at place, event string, o object) {
		o["type"] = event
		out = append(out, piece{at: at, event: event, data: encode(o)})
	}
	// Half of what was sent before is said to come from the cache.
	cached := u.Input / 2
	add(atHead, "message_start", object{"message": object{
		"id": "msg_" + id, "type": "message", "role": "assistant", "model": name, "content": []object{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": u.Input - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": 1},
	}})
	out = append(out, piece{at: atHead, event: "ping", data: `{"type": "ping"}`})
	n := 0
	if r.Text != "" {
		add(atHead, "content_block_start", object{"index": n, "content_block": object{"type": "text", "text": ""}})
		for _, p := range scripted.Pieces(r.Text) {
			add(atText, "content_block_delta", object{"index": n, "delta": object{"type": "text_delta", "text": p}})
		}
		add(atCall, "content_block_stop", object{"index": n})
		n++
	}
	for _, c := range r.Calls {
		add(atCall, "content_block_start", object{"index": n, "content_block": object{"type": "tool_use", "id": c.ProviderID, "name": c.Name, "input": object{}}})
		for _, p := range scripted.Pieces(c.Args) {
			add(atArgs, "content_block_delta", object{"index": n, "delta": object{"type": "input_json_delta", "partial_json": p}})
		}
		add(atStop, "content_block_stop", object{"index": n})
		n++
	}
	add(atStop, "message_delta", object{"delta": object{"stop_reason": messagesStop(r), "stop_sequence": nil}, "usage": object{"output_tokens": u.Output}})
	add(atUsage, "message_stop", object{})
	return out
}

func messagesStop(r scripted.Reply) string {
	switch r.Stop {
	case machine.StopTools:
		return "tool_use"
	case machine.StopLength:
		return "max_tokens"
	case machine.StopRefusal:
		return "refusal"
	case machine.StopEnd:
	}
	return "end_turn"
}

// messagesRefusal is how a failure looks in this format.
func messagesRefusal(c machine.FailClass, text string) object {
	kind, said := "api_error", "Internal server error"
	switch c {
	case machine.FailRate:
		kind, said = "rate_limit_error", "This request would exceed your organization's rate limit."
	case machine.FailQuota:
		kind, said = "invalid_request_error", "Your credit balance is too low to access the API."
	case machine.FailOverload:
		kind, said = "overloaded_error", "Overloaded"
	case machine.FailAuth:
		kind, said = "authentication_error", "invalid x-api-key"
	case machine.FailNotFound:
		kind, said = "not_found_error", "model: no such model"
	case machine.FailContext:
		kind, said = "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"
	case machine.FailBadRequest, machine.FailScript:
		kind, said = "invalid_request_error", "The request is not valid."
	case machine.FailServer, machine.FailLost, machine.FailCut, machine.FailNetwork, machine.FailEmpty:
	}
	if text != "" {
		said = text
	}
	return object{"type": "error", "error": object{"type": kind, "message": said}}
}

func refuseMessages(w http.ResponseWriter, c machine.FailClass, after int64, text string) {
	status := refusalOf(c).status
	if c == machine.FailQuota {
		status = http.StatusBadRequest
	}
	if after > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(after))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, encode(messagesRefusal(c, text)))
}
