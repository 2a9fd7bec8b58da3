package tui

// The smallest terminal that shows panels, and the width from which they stand
// side by side.
const (
	minW, minH = 40, 12
	wideW      = 100
)

// rect is a part of the screen, in cells.
type rect struct{ x, y, w, h int }

func (r rect) has(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// layout is where the panels are. Those that do not show are empty.
type layout struct{ needs, runs, main rect }

func (l layout) of(p panel) rect {
	switch p {
	case panelNeeds:
		return l.needs
	case panelRuns:
		return l.runs
	case panelMain:
		return l.main
	}
	return rect{}
}

// at finds the panel at a place, and the row within it.
func (l layout) at(x, y int) (panel, int, bool) {
	for _, p := range []panel{panelNeeds, panelRuns, panelMain} {
		if r := l.of(p); r.has(x, y) {
			return p, y - r.y, true
		}
	}
	return 0, 0, false
}

func (m *Model) tooSmall() bool { return m.w < minW || m.h < minH }

// layout divides the screen below the top line and above the bottom line: side
// by side where there is room, else the panel with focus alone.
func (m *Model) layout() layout {
	var l layout
	body := rect{0, 1, m.w, max(m.h-2, 0)}
	if m.w < wideW {
		switch m.focus {
		case panelNeeds:
			l.needs = body
			if m.h >= 20 { // room for both lists
				l.needs.h = m.needsHeight(body.h)
				l.runs = rect{0, 1 + l.needs.h, m.w, body.h - l.needs.h}
			}
		case panelRuns:
			l.runs = body
			if m.h >= 20 {
				l.needs = rect{0, 1, m.w, m.needsHeight(body.h)}
				l.runs = rect{0, 1 + l.needs.h, m.w, body.h - l.needs.h}
			}
		case panelMain:
			l.main = body
		}
		return l
	}
	left := min(max(m.w*36/100, 38), 60)
	nh := m.needsHeight(body.h)
	l.needs = rect{0, 1, left, nh}
	l.runs = rect{0, 1 + nh, left, body.h - nh}
	l.main = rect{left, 1, m.w - left, body.h}
	return l
}

// needsHeight gives Needs you as much as it needs, up to half.
func (m *Model) needsHeight(h int) int {
	return min(max(len(m.needs.shown)+2, 5), max(h/2, 4))
}
