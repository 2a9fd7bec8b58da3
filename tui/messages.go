package tui

import (
	"time"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/themes"
	"pawl/views"
)

// Messages name what has happened.
type (
	// pumpedMsg gathers what the engine signalled since the last one.
	pumpedMsg struct {
		changed bool
		live    []engine.LiveText // the newest of each run
	}
	// loadedMsg is one reading of what is on screen.
	loadedMsg struct {
		status  engine.Status
		items   []engine.Item
		page    runsLoadedMsg
		subject *subjectLoadedMsg
		tail    *pageLoadedMsg
		began   time.Time
		err     error
	}
	// runsLoadedMsg is a page of runs.
	runsLoadedMsg struct {
		search string
		before machine.RunID
		lines  []engine.RunLine
		err    error
	}
	// subjectLoadedMsg is what the main panel shows.
	subjectLoadedMsg struct {
		subject  subject
		effect   *engine.EffectCard
		approval *engine.ApprovalCard
		question *engine.QuestionCard
		recovery *engine.Recovery
		run      *engine.RunLine
		err      error
	}
	// pageLoadedMsg is a page of a timeline.
	pageLoadedMsg struct {
		run   machine.RunID
		after int64
		back  bool
		jump  bool // it replaces what is there
		rows  []engine.TimelineRow
		err   error
	}
	diffLoadedMsg struct {
		run   machine.RunID
		text  string
		files []views.DiffFile
		err   error
	}
	landLoadedMsg struct {
		run  machine.RunID
		view engine.LandView
		err  error
	}
	// decidedMsg ends a command given to the engine.
	decidedMsg struct {
		seq  int    // of the form that it was sent from, 0 for none
		what string // "approve a3"
		done string // what to say if it went well
		run  machine.RunID
		err  error
		idle error // why the run is not driven from here
	}
	armedMsg      struct{ seq int }
	restedMsg     struct{}
	framedMsg     struct{} // the time for a frame that was held back has come
	toastEndedMsg struct{ seq int }
	tickedMsg     struct{ seq int }
	copiedMsg     struct {
		path string
		err  error
	}
	themesChangedMsg struct{}
	themeLoadedMsg   struct {
		styles *themes.Styles
		err    error
	}
	leftMsg struct{ err error }
	// unsuspendedMsg says that there is no shell to go to.
	unsuspendedMsg struct{}
	signalledMsg   struct{ name string }
)
