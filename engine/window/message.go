package window

import "encoding/json"

// Role says who speaks in a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation, free of any provider's wire format.
// A Message is immutable once it is in a Pack: packs share them.
type Message struct {
	Role  Role
	Text  string
	Calls []Call // RoleAssistant
	// CallID names the call that a RoleTool message is the one result of.
	CallID string
}

// Call is one tool call as it stands in a request.
type Call struct {
	ID   string          // ours: unique in the request and legal for every provider
	Name string          // letters, digits, _ and -; at most 64 bytes
	Args json.RawMessage // always a valid JSON object
}

// ToolSpec is a tool as the model sees it.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON schema of the arguments, an object
}
