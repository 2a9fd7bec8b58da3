package engine

import (
	"os"
	"strings"
	"syscall"
)

// Point names a boundary at which a test or drill can make this process kill
// itself with SIGKILL, as a power cut or an OOM killer would.
type Point string

// The crash points of an effect, in the order in which they are passed.
const (
	PointBeforeIntent   Point = "before-intent"   // the response is in memory only
	PointAfterIntent    Point = "after-intent"    // intended, not dispatched
	PointBeforeDispatch Point = "before-dispatch" // snapshot taken, DISPATCHED not committed
	PointAfterDispatch  Point = "after-dispatch"  // DISPATCHED committed, no byte sent
	PointWhileRunning   Point = "while-running"   // at the first output byte of a command
	PointAfterEffect    Point = "after-effect"    // the world has changed, nobody has noted it
	PointBeforeAck      Point = "before-ack"      // the result is in memory only
	PointAfterAck       Point = "after-ack"       // the result is committed
)

// PointPageTurn is passed when a new window is in the ledger and nothing has
// been asked in it; its line is "window N".
const PointPageTurn Point = "at-page-turn"

// Points lists those of an effect.
func Points() []Point {
	return []Point{
		PointBeforeIntent, PointAfterIntent, PointBeforeDispatch, PointAfterDispatch, PointWhileRunning,
		PointAfterEffect, PointBeforeAck, PointAfterAck,
	}
}

// Crasher is told of each boundary as it is passed, with a line that says of
// which effect: "shell git push origin main".
type Crasher interface {
	Pass(p Point, what string)
}

// CrashFromEnv reads POINT or POINT@TEXT: the process kills itself when it
// first passes POINT for an effect whose line contains TEXT. "" arms nothing.
func CrashFromEnv(s string) Crasher {
	if s == "" {
		return noCrash{}
	}
	p, text, _ := strings.Cut(s, "@")
	return armed{point: Point(p), text: text}
}

type noCrash struct{}

func (noCrash) Pass(Point, string) {}

type armed struct {
	point Point
	text  string
}

func (a armed) Pass(p Point, what string) {
	if p != a.point || !strings.Contains(what, a.text) {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
