package machine

// foldRebuilt notes that the workspace was gone and was made again. The model
// is told, since what was done after the snapshot is not there.
func foldRebuilt(s State, e Event, b WorkspaceRebuilt) (State, error) {
	if err := GuardFrom.need(s.Space.Ready, b, string(s.Charter.ID), "the run had no workspace that could be gone"); err != nil {
		return s, err
	}
	whole := (b.Path == "") == (len(b.Data) == 0)
	if err := GuardFrom.need(whole, b, string(s.Charter.ID), "a workspace elsewhere needs a path and a record"); err != nil {
		return s, err
	}
	turn := 0
	if t := s.LastTurn(); t != nil {
		turn = t.N
	}
	s.Changes = s.Changes.push(Change{Rebuilt: b.Why, After: b.After, From: b.Rescue, To: b.From, N: e.N, At: e.At, Turn: turn})
	s.Space.Known = b.From
	if b.Path != "" {
		s.Moved = e.N
		s.Space.Path, s.Space.Branch, s.Space.Level, s.Space.Data = b.Path, b.Branch, b.Level, b.Data
	}
	return s, nil
}

// Newest is the newest snapshot that the run's effects account for. after names
// the effect that ended later than it, whose traces it does not hold.
func (s *State) Newest() (snap Snapshot, after EffectID) {
	if !s.Space.Known.IsZero() {
		return s.Space.Known, ""
	}
	for i := s.Effects.Len() - 1; i >= 0; i-- {
		f := s.Effects.At(i)
		for k := len(f.Attempts) - 1; k >= 0; k-- {
			a := &f.Attempts[k]
			switch {
			case !a.Post.IsZero():
				return a.Post, after
			case !a.Pre.IsZero():
				return a.Pre, f.ID
			}
		}
	}
	return Snapshot{}, after
}

// spaceAsked: the workspace could not be used, and the operator has not said
// what to do about it. Until then nothing that needs it is tried again.
func (s *State) spaceAsked() bool {
	for _, q := range s.Questions.All() {
		if !q.Answered && q.Sort == SortDrift && q.Effect == "" {
			return true
		}
	}
	return false
}
