package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"pawl/engine/model"
)

// ParseFault reads the error formats that are about.
func ParseFault(body []byte) model.Fault {
	var f model.Fault
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    any             `json:"code"`
		Type    string          `json:"type"`
	}
	if json.Unmarshal(body, &doc) != nil {
		var list []json.RawMessage // Gemini wraps it
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			return ParseFault(list[0])
		}
		if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
			f.Text = string(body)
		}
		return f
	}
	var inner struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
		Type    string `json:"type"`
		Status  string `json:"status"`
	}
	var plain string
	switch {
	case json.Unmarshal(doc.Error, &plain) == nil:
		f.Text = plain
	case json.Unmarshal(doc.Error, &inner) == nil && len(doc.Error) > 0:
		f.Text, f.Type = inner.Message, inner.Type
		if f.Type == "" {
			f.Type = inner.Status
		}
		f.Code = word(inner.Code)
	default:
		f.Text, f.Type, f.Code = doc.Message, doc.Type, word(doc.Code)
		if f.Text == "" && len(doc.Detail) > 0 && json.Unmarshal(doc.Detail, &f.Text) != nil {
			f.Text = string(doc.Detail)
		}
	}
	return f
}

func word(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		return fmt.Sprintf("%.0f", x)
	}
	return ""
}
