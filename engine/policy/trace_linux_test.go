package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// bench is a folder in which lines are run for real, with every execve traced.
// Its PATH holds the wrappers and stand-ins that do nothing.
type bench struct {
	dir, bin, trace string
	strace, bash    string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	b := &bench{dir: t.TempDir(), bin: t.TempDir(), trace: filepath.Join(t.TempDir(), "trace"), strace: strace}
	for _, name := range []string{"bash", "sh", "env", "xargs", "find", "timeout", "nohup", "nice", "setsid", "cat", "tee", "stdbuf", "true"} {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Skip("needs " + name)
		}
		if name == "bash" {
			b.bash = real
		}
		b.link(t, real, name)
	}
	nothing, _ := exec.LookPath("true")
	for _, name := range []string{"good", "bad", "other"} {
		b.link(t, nothing, name)
	}
	if out, err := b.run(t, "good"); err != nil || !slices.Contains(out, "good") {
		t.Skipf("this machine lets no process be traced: %v %v", out, err)
	}
	return b
}

func (b *bench) link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(b.bin, name)); err != nil {
		t.Fatal(err)
	}
}

var execved = regexp.MustCompile(`execve(?:at)?\((?:[A-Z_0-9]+, )?"([^"]*)"[^\n]*= 0`)

// run runs a line and returns the base names of all programs that were started,
// but for the shell that reads it. Files that appear are named as "> file".
func (b *bench) run(t *testing.T, line string) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.strace, "-f", "-qq", "-s", "4096", "-e", "trace=execve,execveat", "-o", b.trace, b.bash, "-c", line)
	cmd.Dir = b.dir
	cmd.Env = []string{"PATH=" + b.bin, "HOME=" + b.dir}
	if err := cmd.Run(); err != nil {
		if _, ok := err.(*exec.ExitError); !ok || ctx.Err() != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(b.trace)
	if err != nil {
		return nil, err
	}
	var out []string
	for i, m := range execved.FindAllStringSubmatch(string(text), -1) {
		if i > 0 {
			out = append(out, filepath.Base(m[1]))
		}
	}
	files, err := os.ReadDir(b.dir)
	for _, f := range files {
		out = append(out, "> "+f.Name())
		_ = os.Remove(filepath.Join(b.dir, f.Name()))
	}
	return out, err
}

// frames put a command into places where a shell runs it, or does not.
var frames = []string{
	"%", "% x", "%; other", "other; %", "% && other", "other || %", "true | %", "% | cat", "% &", "(%)", "{ %; }", "! %", "if %; then other; fi",
	"for i in 1; do %; done", "case x in x) %;; esac", "echo $(%)", "echo `%`", "cat <(%)", "x=$(%)", "X=1 %", "% > f", "> f %", "% 2>&1",
	"env %", "env X=1 %", "nice %", "timeout 5 %", "nohup %", "setsid %", "stdbuf -oL %", "command %", "exec %", "eval '%'", "eval %", "sh -c '%'",
	"bash -c \"%\"", "echo x | xargs %", "find . -maxdepth 0 -exec % ';'", "f() { %; }; f", "f() { %; }", "cat <<E\n$(%)\nE", "cat <<'E'\n%\nE",
	"echo '%'", "echo \"%\"", "echo \\%", "# %", "true # %", "echo a;%", "echo 'a;'%", "x=%; $x", "x='%'; eval $x", "bash <<< '%'", "echo % | sh",
	"alias q=%; q", "q() { other; }; %", "printf '%'", "declare x=$(%)", "[[ -n $(%) ]]", "echo $(( $(%) ))", "coproc %", "trap '%' EXIT", "time %",
	"\\%", "'%'", "\"%\"", "g=%; \"$g\"", "{ %; } 2>/dev/null", "echo ${y:-$(%)}", "a=($(%))", "function f { %; }; f", "while %; do break; done",
	"%\nother", "%\\\n", "builtin command %", "command -v %", "true && (cd . && %)", "tee >(%) < /dev/null", "echo {%,x}", "echo x 3< <(%)",
}

// lines makes n lines, each a command in up to three frames.
func lines(seed uint64, n int, commands ...string) []string {
	r := rand.New(rand.NewPCG(seed, 7))
	out := make([]string, 0, n)
	for range n {
		line := commands[r.IntN(len(commands))]
		for range 1 + r.IntN(2) + r.IntN(2) {
			line = strings.Replace(frames[r.IntN(len(frames))], "%", line, 1)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A line that an allow rule lets go starts the allowed program and nothing
// else, and writes no file: checked by running it.
func TestAllowedLinesRunNothingElse(t *testing.T) {
	b := newBench(t)
	set := Set{Allow: []string{"good", "good x", "good *"}}
	accepted := 0
	for _, line := range append(lines(1, 4000, "good", "bad", "good x", "good 'a b'"), "good", "good x") {
		if set.Decide(shell(line)).Verdict != Allow {
			continue
		}
		if accepted++; accepted > 60 {
			break
		}
		ran, err := b.run(t, line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for _, p := range ran {
			if p != "good" {
				t.Errorf("%q was let go, and did %q", line, p)
			}
		}
	}
	if accepted < 4 {
		t.Errorf("%d lines were let go: too few to tell anything", accepted)
	}
}

// A line that no deny rule holds back does not start the forbidden program,
// however it is wrapped: checked by running it.
func TestForbiddenProgramNeverRuns(t *testing.T) {
	b := newBench(t)
	es, err := ParseFile("p.toml", []byte("[[rule]]\ndecision = \"deny\"\ncommand = \"bad\"\n"), ScopeUser)
	if err != nil {
		t.Fatal(err)
	}
	set := Set{Entries: es}
	most := 150
	if testing.Short() {
		most = 40
	}
	count := map[Verdict]int{}
	var let []string
	for _, line := range lines(2, 6000, "bad", "bad x", "ba''d", "/usr/bin/../bin/bad", "good bad") {
		v := set.Decide(sealed(line)).Verdict
		count[v]++
		if v == Allow {
			let = append(let, line)
		}
	}
	if count[Deny] == 0 || count[Ask] == 0 || count[Allow] < 20 {
		t.Fatalf("decided %v: too few of a kind to tell anything", count)
	}
	rand.New(rand.NewPCG(3, 7)).Shuffle(len(let), func(i, j int) { let[i], let[j] = let[j], let[i] })
	for _, line := range let[:min(len(let), most)] {
		ran, err := b.run(t, line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if slices.Contains(ran, "bad") {
			t.Errorf("%q was let go, and ran what is forbidden: %q", line, ran)
		}
	}
	t.Log(fmt.Sprint(count))
}
