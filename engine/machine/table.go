package machine

import "iter"

// table is a persistent vector: changing one element copies a chunk and the
// spine, never the elements, so that a State is a value and an abandoned
// future of it costs nothing.
type table[T any] struct {
	chunks []*[chunkLen]*T
	n      int
}

const chunkLen = 32

// Len is the number of elements.
func (t table[T]) Len() int { return t.n }

// At returns element i, which must not be written to.
func (t table[T]) At(i int) *T { return t.at(i) }

// at returns element i, which must not be written to.
func (t table[T]) at(i int) *T { return t.chunks[i/chunkLen][i%chunkLen] }

// last returns the newest element or nil.
func (t table[T]) last() *T {
	if t.n == 0 {
		return nil
	}
	return t.at(t.n - 1)
}

// set returns a table in which element i is v; i == Len appends.
func (t table[T]) set(i int, v T) table[T] {
	c := i / chunkLen
	chunks := make([]*[chunkLen]*T, max(len(t.chunks), c+1))
	copy(chunks, t.chunks)
	var chunk [chunkLen]*T
	if chunks[c] != nil {
		chunk = *chunks[c]
	}
	chunk[i%chunkLen] = &v
	chunks[c] = &chunk
	return table[T]{chunks: chunks, n: max(t.n, i+1)}
}

func (t table[T]) push(v T) table[T] { return t.set(t.n, v) }

// All yields the elements in order; they must not be written to.
func (t table[T]) All() iter.Seq2[int, *T] { return t.From(0) }

// From yields the elements from i on.
func (t table[T]) From(i int) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for ; i < t.n; i++ {
			if !yield(i, t.at(i)) {
				return
			}
		}
	}
}

// Changed yields the elements of t that are not the very same in old, an
// earlier state of t. It costs what changed, not what there is.
func (t table[T]) Changed(old table[T]) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for c, chunk := range t.chunks {
			var was *[chunkLen]*T
			if c < len(old.chunks) {
				was = old.chunks[c]
			}
			if chunk == was {
				continue
			}
			for j, v := range chunk {
				if v != nil && (was == nil || was[j] != v) && !yield(c*chunkLen+j, v) {
					return
				}
			}
		}
	}
}
