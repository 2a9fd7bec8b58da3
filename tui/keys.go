package tui

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"pawl/views"
)

// Intent is what the operator wants, apart from the key that says so.
type Intent string

// Scope is where a key has a meaning. The scope of what has focus is asked
// first, then the global one.
type Scope string

// The scopes.
const (
	ScopeGlobal   Scope = "everywhere"
	ScopeNeeds    Scope = "needs you"
	ScopeRuns     Scope = "runs"
	ScopeRun      Scope = "run"
	ScopeEffect   Scope = "effect"
	ScopeApproval Scope = "approval"
	ScopeQuestion Scope = "question"
	ScopeRecovery Scope = "recovery"
	ScopeForm     Scope = "dialog"
	ScopePager    Scope = "pager"
	ScopePick     Scope = "palette"
	ScopeFilter   Scope = "filter"
	ScopeQuit     Scope = "quit"
)

// The intents. Those that decide something are marked in the table of bindings.
const (
	Help      Intent = "help"
	Palette   Intent = "palette"
	Log       Intent = "log"
	Quit      Intent = "quit"
	New       Intent = "new-run"
	Filter    Intent = "filter"
	Next      Intent = "next-panel"
	Prev      Intent = "previous-panel"
	ToNeeds   Intent = "to-needs"
	ToRuns    Intent = "to-runs"
	ToMain    Intent = "to-main"
	FirstNeed Intent = "first-need"
	Redraw    Intent = "redraw"
	Demo      Intent = "demo"
	Pager     Intent = "pager"
	EditFile  Intent = "edit-file"
	EditText  Intent = "edit-text"
	Recover   Intent = "recovery"
	OpenStep  Intent = "open-step"
	GoOn      Intent = "go-on"
	Suspend   Intent = "suspend"
	Copy      Intent = "copy"

	Up       Intent = "up"
	Down     Intent = "down"
	PageUp   Intent = "half-page-up"
	PageDown Intent = "half-page-down"
	Top      Intent = "top"
	Bottom   Intent = "bottom"
	Open     Intent = "open"
	Back     Intent = "back"
	Fold     Intent = "fold"
	Unfold   Intent = "unfold"
	TabNext  Intent = "next-tab"
	TabPrev  Intent = "previous-tab"
	Behind   Intent = "effect"
	// The context windows of a run.
	Sides      Intent = "side-by-side"
	WindowNext Intent = "next-window"
	WindowPrev Intent = "previous-window"

	PauseRun  Intent = "pause"
	LandRun   Intent = "land"
	TellRun   Intent = "tell"
	CancelRun Intent = "cancel-run"

	Wait       Intent = "wait"
	ProbeNow   Intent = "probe"
	Happened   Intent = "happened"
	Retry      Intent = "retry"
	Compensate Intent = "compensate"
	Abandon    Intent = "abandon"
	Approve    Intent = "approve"
	Deny       Intent = "deny"
	ApproveRun Intent = "approve-for-run"
	ApproveAll Intent = "approve-for-project"
	EditIt     Intent = "edit"
	AnswerIt   Intent = "answer"
	Choose     Intent = "choose"

	Send      Intent = "send"
	NextField Intent = "next-field"
	PrevField Intent = "previous-field"
	LeavePaus Intent = "leave-paused"
	LeaveBack Intent = "leave-background"
)

// Binding ties keys to an intent in one scope.
type Binding struct {
	Keys   []string
	Intent Intent
	Help   string
	// Decides: it changes something for a run, so the guard is asked first.
	Decides bool
	// Brief: shown in the bottom line, not only in the help.
	Brief bool
}

// Keymap holds every scope's bindings in the order in which help shows them.
type Keymap map[Scope][]Binding

// DefaultKeys is the keymap before configuration.
func DefaultKeys() Keymap {
	move := []Binding{
		{[]string{"k", "up"}, Up, "up", false, false},
		{[]string{"j", "down"}, Down, "down", false, false},
		{[]string{"ctrl+u", "pgup"}, PageUp, "half a page up", false, false},
		{[]string{"ctrl+d", "pgdown"}, PageDown, "half a page down", false, false},
		{[]string{"g", "home"}, Top, "first", false, false},
		{[]string{"G", "end"}, Bottom, "last", false, false},
	}
	run := []Binding{
		{[]string{"space"}, PauseRun, "pause, go on", true, true},
		{[]string{"l"}, LandRun, "land", false, true},
		{[]string{"t"}, TellRun, "tell", false, false},
		{[]string{"X"}, CancelRun, "cancel run", false, false},
	}
	join := func(parts ...[]Binding) []Binding { return slices.Concat(parts...) }
	copyIt := []Binding{{[]string{"y"}, Copy, "copy", false, false}}
	back := []Binding{{[]string{"esc"}, Back, "back", false, true}}
	clear := []Binding{{[]string{"esc"}, Back, "clear the filter", false, false}}
	return Keymap{
		ScopeGlobal: {
			{[]string{"?"}, Help, "help", false, true},
			{[]string{":"}, Palette, "palette", false, true},
			{[]string{"/"}, Filter, "filter", false, true},
			{[]string{"n"}, New, "new run", false, true},
			{[]string{"!"}, FirstNeed, "to what waits", false, false},
			{[]string{"tab"}, Next, "next panel", false, false},
			{[]string{"shift+tab"}, Prev, "previous panel", false, false},
			{[]string{"1"}, ToNeeds, "needs you", false, false},
			{[]string{"2"}, ToRuns, "runs", false, false},
			{[]string{"3"}, ToMain, "main panel", false, false},
			{[]string{"r"}, Recover, "recovery", false, true},
			{[]string{"P"}, Pager, "read in the pager", false, false},
			{[]string{"D"}, Demo, "play the demo", false, false},
			{[]string{"@"}, Log, "command log", false, false},
			{[]string{"ctrl+l"}, Redraw, "draw anew", false, false},
			{[]string{"ctrl+z"}, Suspend, "to the shell", false, false},
			{[]string{"q", "ctrl+c"}, Quit, "quit", false, true},
		},
		ScopeNeeds: join([]Binding{
			{[]string{"enter"}, Open, "open", false, true},
			{[]string{"l"}, LandRun, "land", false, false},
		}, move, copyIt, clear),
		ScopeRuns: join([]Binding{
			{[]string{"enter"}, Open, "open", false, true},
			{[]string{"left"}, Fold, "fold", false, false},
			{[]string{"right"}, Unfold, "unfold", false, false},
		}, run, move, copyIt, clear),
		ScopeRun: join([]Binding{
			{[]string{"enter"}, Open, "unfold", false, true},
			{[]string{"e"}, Behind, "effect", false, true},
			{[]string{"]", "right"}, TabNext, "next tab", false, true},
			{[]string{"[", "left"}, TabPrev, "previous tab", false, false},
			{[]string{"E"}, EditFile, "open the file in the editor", false, false},
			{[]string{"v"}, Sides, "diff in two columns", false, false},
			{[]string{">"}, WindowNext, "next context window", false, false},
			{[]string{"<"}, WindowPrev, "context window before", false, false},
		}, run, move, copyIt, back),
		ScopeEffect: join([]Binding{
			{[]string{"w"}, Wait, "wait", true, true},
			{[]string{"p"}, ProbeNow, "probe", true, true},
			{[]string{"h"}, Happened, "happened", true, true},
			{[]string{"t"}, Retry, "did not, retry", true, true},
			{[]string{"c"}, Compensate, "compensate", true, true},
			{[]string{"x"}, Abandon, "abandon", true, true},
		}, move, copyIt, back),
		ScopeApproval: join([]Binding{
			{[]string{"a"}, Approve, "approve once", true, true},
			{[]string{"s"}, ApproveRun, "for this run", true, true},
			{[]string{"S"}, ApproveAll, "for this project", true, true},
			{[]string{"e"}, EditIt, "edit and approve", true, true},
			{[]string{"d"}, Deny, "deny", true, true},
		}, move, copyIt, back),
		ScopeQuestion: join([]Binding{
			{[]string{"a"}, AnswerIt, "answer", true, true},
			{[]string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, Choose, "choose", true, true},
		}, move, copyIt, back),
		ScopeRecovery: join([]Binding{
			{[]string{"o"}, GoOn, "let it go on", true, true},
			{[]string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, OpenStep, "open a step", false, false},
		}, move, copyIt, back),
		ScopeForm: {
			{[]string{"ctrl+s"}, Send, "send", true, true},
			{[]string{"tab"}, NextField, "next field", false, false},
			{[]string{"ctrl+e"}, EditText, "write it in the editor", false, false},
			{[]string{"shift+tab"}, PrevField, "previous field", false, false},
			{[]string{"pgup"}, PageUp, "text up", false, false},
			{[]string{"pgdown"}, PageDown, "text down", false, false},
			{[]string{"esc", "ctrl+c"}, Back, "back", false, true},
		},
		ScopePager: join(move, []Binding{{[]string{"esc", "q", "ctrl+c"}, Back, "close", false, true}}),
		ScopePick: {
			{[]string{"up", "ctrl+p"}, Up, "up", false, false},
			{[]string{"down", "ctrl+n"}, Down, "down", false, false},
			{[]string{"enter"}, Open, "do", false, true},
			{[]string{"esc", "ctrl+c"}, Back, "close", false, true},
		},
		ScopeFilter: {
			{[]string{"enter"}, Open, "keep", false, true},
			{[]string{"esc", "ctrl+c"}, Back, "clear", false, true},
		},
		ScopeQuit: {
			{[]string{"p"}, LeavePaus, "pause them and quit", true, true},
			{[]string{"b"}, LeaveBack, "go on in the background and quit", true, true},
			{[]string{"esc", "ctrl+c"}, Back, "stay", false, true},
		},
	}
}

// With returns the keymap with the keys of the named intents replaced, in every
// scope that has them. Two intents on one key in a scope are refused.
func (k Keymap) With(own map[string][]string) (Keymap, error) {
	out := Keymap{}
	known := map[string]bool{}
	for scope, list := range k {
		list = slices.Clone(list)
		for i, b := range list {
			known[string(b.Intent)] = true
			if keys, ok := own[string(b.Intent)]; ok {
				if len(keys) == 0 {
					return nil, fmt.Errorf("keys: %s has no key left: name at least one", b.Intent)
				}
				list[i].Keys = keys
			}
			if list[i].Decides && (slices.Contains(list[i].Keys, "enter") || slices.Contains(list[i].Keys, "ctrl+m")) {
				return nil, fmt.Errorf("keys: %s decides and cannot be on enter: choose another key", b.Intent)
			}
		}
		seen := map[string]Intent{}
		for _, b := range list {
			for _, key := range b.Keys {
				if was, ok := seen[key]; ok {
					return nil, fmt.Errorf("keys: %q means both %s and %s in %s: change one of them", key, was, b.Intent, scope)
				}
				seen[key] = b.Intent
			}
		}
		out[scope] = list
	}
	names := make([]string, 0, len(own))
	for name := range own {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("keys: there is no %q: the names stand in the help (?)", name)
		}
	}
	return out, nil
}

// find returns what a key means in a scope.
func (k Keymap) find(s Scope, key string) (Binding, bool) {
	for _, b := range k[s] {
		if slices.Contains(b.Keys, key) {
			return b, true
		}
	}
	return Binding{}, false
}

// of returns the binding of an intent in a scope.
func (k Keymap) of(s Scope, i Intent) Binding {
	for _, b := range k[s] {
		if b.Intent == i {
			return b
		}
	}
	return Binding{}
}

// hint is a binding for the bottom line or a card.
func (b Binding) hint() views.KeyHint {
	key := ""
	if len(b.Keys) > 0 {
		key = b.Keys[0]
	}
	if len(b.Keys) > 4 {
		key += "…" + b.Keys[len(b.Keys)-1]
	}
	return views.KeyHint{Key: key, Does: b.Help}
}

// brief are the hints of a scope for the bottom line.
func (k Keymap) brief(scopes ...Scope) []views.KeyHint {
	var out []views.KeyHint
	for _, s := range scopes {
		for _, b := range k[s] {
			if b.Brief {
				out = append(out, b.hint())
			}
		}
	}
	return out
}

func (b Binding) allKeys() string { return strings.Join(b.Keys, " ") }
