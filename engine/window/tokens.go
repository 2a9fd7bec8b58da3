package window

// Tokens guesses how many tokens a text takes: a quarter of its bytes, rounded
// up. It errs on the small side for text that is no prose or code; budgets keep
// a margin for that.
func Tokens(s string) int { return (len(s) + 3) / 4 }

// messageOverhead is what providers add around each message and call.
const messageOverhead = 4

// MessageTokens guesses how many tokens a message takes in a request.
func MessageTokens(m *Message) int {
	n := messageOverhead + Tokens(m.Text)
	for i := range m.Calls {
		c := &m.Calls[i]
		n += messageOverhead + Tokens(c.Name) + (len(c.Args)+3)/4
	}
	return n
}
