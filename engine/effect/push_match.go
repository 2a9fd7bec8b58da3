package effect

import "strings"

// PushName is the name of the contract of git push.
const PushName = "git-push"

const pushVersion = 1

// push is a parsed git push line.
type push struct {
	remote string // as written, "" if left out
	src    string // "" for a deletion or if left out
	dst    string // as written, "" if left out
	spec   bool   // a refspec was given
	delete bool
	force  bool
}

// matchPush recognises git push with at most one remote and one refspec, and
// with options that do not change which ref it writes. Everything else (several
// refs, all, mirror, tags, dry runs, another directory or configuration) is not
// this recipe's.
func matchPush(words []string) (push, bool) {
	if len(words) < 2 || words[0] != "git" || words[1] != "push" {
		return push{}, false
	}
	var p push
	var operands []string
	options := true
	for _, w := range words[2:] {
		switch {
		case !options || !strings.HasPrefix(w, "-") || w == "-":
			operands = append(operands, w)
			continue
		case w == "--":
			options = false
			continue
		}
		switch w {
		case "-u", "--set-upstream", "-q", "--quiet", "-v", "--verbose", "--progress", "--no-progress",
			"--porcelain", "--atomic", "--no-atomic", "--verify", "--no-verify", "--thin", "--no-thin", "--no-signed", "--no-follow-tags", "--no-tags":
		case "-f", "--force", "--force-with-lease", "--force-if-includes":
			p.force = true
		case "-d", "--delete":
			p.delete = true
		default:
			if !strings.HasPrefix(w, "--force-with-lease=") {
				return push{}, false
			}
			p.force = true
		}
	}
	if len(operands) > 2 {
		return push{}, false
	}
	if len(operands) > 0 {
		p.remote = operands[0]
		if p.remote == "" || p.remote == "." || strings.HasPrefix(p.remote, "-") {
			return push{}, false
		}
	}
	if len(operands) < 2 {
		return p, !p.delete
	}
	return p.refspec(operands[1])
}

// refspec reads [+]SRC[:DST], or the ref of --delete.
func (p push) refspec(s string) (push, bool) {
	p.spec = true
	if p.delete {
		p.dst = s
		return p, goodRef(s)
	}
	if rest, ok := strings.CutPrefix(s, "+"); ok {
		p.force, s = true, rest
	}
	src, dst, has := strings.Cut(s, ":")
	switch {
	case src == "" && has: // :ref deletes; a bare colon pushes what matches
		p.delete, p.dst = true, dst
		return p, goodRef(dst)
	case has:
		p.src, p.dst = src, dst
		return p, goodSource(src) && goodRef(dst)
	}
	p.src = src
	return p, goodSource(src)
}

// goodSource accepts what git rev-parse can be asked about.
func goodSource(s string) bool {
	return s != "" && !strings.ContainsAny(s, "* \t\n:?[\\") && s[0] != '-' && s[0] != '^' && !strings.Contains(s, "..")
}

// goodRef accepts a name that can be one ref of a remote.
func goodRef(s string) bool {
	return s != "" && !strings.ContainsAny(s, "* \t\n:?[\\^~") && s[0] != '-' && s[0] != '+' && s[0] != '/' &&
		!strings.Contains(s, "..") && !strings.Contains(s, "//") && !strings.Contains(s, "@{") &&
		!strings.HasSuffix(s, "/") && !strings.HasSuffix(s, ".lock") && s != "HEAD" && s != "@"
}
