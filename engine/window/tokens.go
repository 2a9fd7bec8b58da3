package window

import "pawl/engine/machine"

// Tokens guesses how many tokens a text takes: a quarter of its bytes, rounded
// up. It errs on the small side for text that is no prose or code; budgets keep
// a margin for that, and Scale corrects it by what the provider counted.
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

// Scale says by how much the provider counts more than Tokens does, in parts
// per thousand: the greatest ratio of the last eight answers whose tokens the
// provider told, within 500 and 4000; the model family's usual one before the
// first answer.
func Scale(s *machine.State) int {
	const looked = 8
	most := 0
	seen := 0
	for n := s.Turns.Len(); n >= 1 && seen < looked && n > s.Turns.Len()-4*looked; n-- {
		t := s.Turn(n)
		if t.State != machine.TurnAnswered || t.Usage.Guessed || t.Usage.Input <= 0 || t.Guess <= 0 {
			continue
		}
		seen++
		most = max(most, int(min(t.Usage.Input*1000/int64(t.Guess), 4000)))
	}
	if seen == 0 {
		return family(s.Charter.Model)
	}
	return max(most, 500)
}

func calibrated(tokens, scale int) int { return int((int64(tokens)*int64(scale) + 999) / 1000) }
