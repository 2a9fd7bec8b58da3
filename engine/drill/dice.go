package drill

import "encoding/binary"

// dice draws the decisions of an episode from its seed and from the name of
// what is decided, never from the order in which they come up: a decision
// stays the same when another one is taken out of the episode.
type dice uint64

// topic is what a draw is about.
type topic uint64

const (
	topicPlan topic = iota + 1
	topicFate
	topicModel
	topicProbe
	topicOperator
	topicSpace
	topicRestart
	topicCommand
	topicOrder
	topicIdentity
	topicStrategy
)

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// on names a decision; the numbers tell it from its kind.
func (d dice) on(t topic, n ...int) stream {
	x := mix(uint64(d)) ^ uint64(t)<<56
	for _, v := range n {
		x = mix(x ^ uint64(v))
	}
	return stream{x}
}

// stream is a sequence of draws about one decision.
type stream struct{ x uint64 }

func (s *stream) next() uint64 {
	s.x += 0x9e3779b97f4a7c15
	return mix(s.x)
}

// below draws from 0 to n-1; 0 if there is nothing to draw from.
func (s *stream) below(n int) int {
	if n <= 1 {
		return 0
	}
	return int(s.next() % uint64(n))
}

// between draws from lo to hi, both included.
func (s *stream) between(lo, hi int64) int64 {
	if hi <= lo {
		return lo
	}
	return lo + int64(s.next()%uint64(hi-lo+1))
}

// percent is true n times in a hundred.
func (s *stream) percent(n int) bool { return int(s.next()%100) < n }

// chance is true with probability p.
func (s *stream) chance(p float64) bool { return float64(s.next()>>11)/(1<<53) < p }

// Read fills p, so that a stream can stand for a source of randomness.
func (s *stream) Read(p []byte) (int, error) {
	var word [8]byte
	for i := 0; i < len(p); i += copy(p[i:], word[:]) {
		binary.LittleEndian.PutUint64(word[:], s.next())
	}
	return len(p), nil
}
