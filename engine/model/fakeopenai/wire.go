package fakeopenai

import (
	"encoding/json"
	"fmt"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/scripted"
)

// wireRequest is what the server reads of a chat-completions request.
type wireRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []wireMessage `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// read turns the conversation into a request, and refuses what a strict
// provider refuses: calls without exactly one result each, ids that are used
// twice, names and arguments that are not legal.
func (q *wireRequest) read() (model.Request, error) {
	req := model.Request{Model: q.Model}
	open := map[string]bool{}
	seen := map[string]bool{}
	for i, m := range q.Messages {
		text, err := content(m.Content)
		if err != nil {
			return req, fmt.Errorf("messages[%d]: %w", i, err)
		}
		if strings.ContainsRune(text, 0) {
			return req, fmt.Errorf("messages[%d] holds a NUL character", i)
		}
		if m.Role != "tool" && len(open) > 0 {
			return req, fmt.Errorf("messages[%d]: an assistant message with tool_calls must be followed by one tool message for each of them; %d are missing", i, len(open))
		}
		switch m.Role {
		case "system", "developer":
			req.System += text
		case "user":
			req.Messages = append(req.Messages, model.Message{Role: model.RoleUser, Text: text})
		case "tool":
			if !open[m.ToolCallID] {
				return req, fmt.Errorf("messages[%d]: tool_call_id %q answers no open call", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			req.Messages = append(req.Messages, model.Message{Role: model.RoleTool, Text: text, CallID: m.ToolCallID})
		case "assistant":
			a := model.Message{Role: model.RoleAssistant, Text: text}
			for _, c := range m.ToolCalls {
				if err := legalCall(c.ID, c.Function.Name, c.Function.Arguments, seen); err != nil {
					return req, fmt.Errorf("messages[%d]: %w", i, err)
				}
				seen[c.ID], open[c.ID] = true, true
				a.Calls = append(a.Calls, model.ToolCall{ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments)})
			}
			if text == "" && len(a.Calls) == 0 {
				return req, fmt.Errorf("messages[%d]: an assistant message needs content or tool_calls", i)
			}
			req.Messages = append(req.Messages, a)
		default:
			return req, fmt.Errorf("messages[%d]: unknown role %q", i, m.Role)
		}
	}
	if len(open) > 0 {
		return req, fmt.Errorf("the conversation ends with %d tool calls that have no result", len(open))
	}
	return req, nil
}

func legalCall(id, name, args string, seen map[string]bool) error {
	switch {
	case id == "" || len(id) > 40:
		return fmt.Errorf("the tool call id %q is empty or longer than 40 characters", id)
	case seen[id]:
		return fmt.Errorf("the tool call id %q is used twice", id)
	case name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "":
		return fmt.Errorf("the function name %q is not legal", name)
	}
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &o) != nil || o == nil {
		return fmt.Errorf("the arguments of %s are no JSON object", id)
	}
	return nil
}

// content reads a message's content: a string, null, or text parts.
func content(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", fmt.Errorf("content is neither text nor parts")
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return "", fmt.Errorf("content of type %q is not understood", p.Type)
		}
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// piece is one event of a stream and where in the answer it stands.
type piece struct {
	event string // its name on the wire; "" for none
	data  string
	at    place
}

type place uint8

const (
	atHead  place = iota // before anything is said
	atText               // text
	atCall               // a call's id and name
	atArgs               // a part of a call's arguments
	atStop               // the stop reason
	atUsage              // usage and end
)

type object = map[string]any

// stream writes an answer as a provider would: text and arguments in pieces
// that are cut without regard for their meaning.
func stream(id, name string, r scripted.Reply, usage *machine.Usage) []piece {
	var out []piece
	add := func(at place, delta object, finish any) {
		out = append(out, piece{at: at, data: encode(object{
			"id": id, "object": "chat.completion.chunk", "created": 0, "model": name,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		})})
	}
	add(atHead, object{"role": "assistant", "content": ""}, nil)
	key := "content"
	if r.Stop == machine.StopRefusal {
		key = "refusal"
	}
	for _, p := range scripted.Pieces(r.Text) {
		add(atText, object{key: p}, nil)
	}
	for i, c := range r.Calls {
		add(atCall, object{"tool_calls": []object{{
			"index": i, "id": c.ProviderID, "type": "function", "function": object{"name": c.Name, "arguments": ""},
		}}}, nil)
		for _, p := range scripted.Pieces(c.Args) {
			add(atArgs, object{"tool_calls": []object{{"index": i, "function": object{"arguments": p}}}}, nil)
		}
	}
	add(atStop, object{}, finishReason(r))
	if usage != nil {
		out = append(out, piece{at: atUsage, data: encode(object{
			"id": id, "object": "chat.completion.chunk", "created": 0, "model": name, "choices": []object{},
			"usage": object{
				"prompt_tokens": usage.Input, "completion_tokens": usage.Output, "total_tokens": usage.Input + usage.Output,
				"prompt_tokens_details": object{"cached_tokens": usage.Cached},
			},
		})})
	}
	return append(out, piece{at: atUsage, data: "[DONE]"})
}

func finishReason(r scripted.Reply) string {
	switch r.Stop {
	case machine.StopTools:
		return "tool_calls"
	case machine.StopLength:
		return "length"
	case machine.StopEnd, machine.StopRefusal:
	}
	return "stop"
}

// encode writes JSON; the values are ours and always encode.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// refusal is how a failure looks on the wire before a stream begins.
type refusal struct {
	status int
	kind   string
	code   string
	text   string
}

func refusalOf(c machine.FailClass) refusal {
	switch c {
	case machine.FailRate:
		return refusal{429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."}
	case machine.FailQuota:
		return refusal{429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."}
	case machine.FailOverload:
		return refusal{529, "overloaded_error", "", "Overloaded."}
	case machine.FailAuth:
		return refusal{401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."}
	case machine.FailNotFound:
		return refusal{404, "invalid_request_error", "model_not_found", "The model does not exist."}
	case machine.FailContext:
		return refusal{400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is exceeded."}
	case machine.FailBadRequest, machine.FailScript:
		return refusal{400, "invalid_request_error", "", "The request is not valid."}
	case machine.FailServer, machine.FailLost, machine.FailCut, machine.FailNetwork, machine.FailEmpty:
	}
	return refusal{500, "server_error", "", "The server had an error."}
}

func (r refusal) body() object {
	e := object{"message": r.text, "type": r.kind, "param": nil, "code": nil}
	if r.code != "" {
		e["code"] = r.code
	}
	return object{"error": e}
}
