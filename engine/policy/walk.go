package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker visits one syntax tree and adds its simple commands to the collector.
type walker struct {
	*collector
	line    string // source of the tree
	wrapper []string
	depth   int
}

func (w *walker) file(f *syntax.File) {
	// A statement owns its redirections, so statements are the unit; Walk finds
	// those inside words, bodies, and here-documents too.
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			w.stmt(n)
		case *syntax.FuncDecl:
			w.unresolved("it defines a function, so a command's name may mean something else")
		case *syntax.CmdSubst:
			if n.Backquotes {
				w.unresolved("it uses backquotes, whose inner quoting differs between shells")
			}
		}
		return true
	})
}

// stmt adds the simple command of one statement, if it is one.
func (w *walker) stmt(st *syntax.Stmt) {
	s := Simple{Wrapper: w.wrapper}
	for _, r := range st.Redirs {
		s.Redirects = append(s.Redirects, w.redirect(r))
	}
	switch cmd := st.Cmd.(type) {
	case *syntax.CallExpr:
		for _, a := range cmd.Assigns {
			s.Assign = append(s.Assign, w.source(a))
		}
		for i, word := range cmd.Args {
			text, ok := literal(word)
			if !ok {
				text = w.source(word)
				s.Opaque = append(s.Opaque, i)
				if i == 0 {
					w.unresolved("the program is not literal: %s", text)
				} else {
					w.vague("a word is not literal: %s", text)
				}
			}
			s.Words = append(s.Words, text)
		}
	case *syntax.DeclClause:
		s.Words = append(s.Words, cmd.Variant.Value)
		for _, a := range cmd.Args {
			s.Words = append(s.Words, w.source(a))
			s.Opaque = append(s.Opaque, len(s.Words)-1)
		}
	default:
		if len(s.Redirects) == 0 {
			return
		}
	}
	w.add(s, 0)
}

// add keeps a simple command and what it wraps.
func (w *walker) add(s Simple, wrapped int) {
	if len(w.out.Simple) >= maxSimple {
		w.unresolved("it runs more than %d commands", maxSimple)
		return
	}
	for _, r := range s.Redirects {
		if !r.Literal {
			w.vague("the target of a redirection is not literal: %s", r.Target)
		}
	}
	w.out.Simple = append(w.out.Simple, s)
	if len(s.Words) > 0 {
		w.unwrap(s, wrapped)
	}
}

func (w *walker) redirect(r *syntax.Redirect) Redirect {
	out := Redirect{Op: r.Op.String()}
	if r.N != nil {
		out.N = r.N.Value
	}
	target, ok := literal(r.Word)
	if !ok {
		target = w.source(r.Word)
	}
	out.Target, out.Literal = target, ok
	switch r.Op {
	case syntax.WordHdoc:
		out.Body = target
	case syntax.Hdoc, syntax.DashHdoc:
		out.Body, ok = body(r.Hdoc)
		// The delimiter is no target, and a body that expands is data unless a
		// shell reads it, which unwrap looks at.
		out.Literal = true
		if !ok {
			out.Body = ""
			if r.Hdoc != nil {
				out.Literal = false
				out.Target = "<<" + target
			}
		}
	}
	return out
}

// body returns a here-document's text if nothing in it is expanded.
func body(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	var b strings.Builder
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			return "", false
		}
		b.WriteString(lit.Value)
	}
	return b.String(), true
}

// source is the text of a node as written.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.line) || from >= to {
		return "?"
	}
	return w.line[from:to]
}
