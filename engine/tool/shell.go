package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/engine/policy"
)

var shellSpec = Spec{
	Name:    "shell",
	Version: 1,
	Description: "Run a command line in the workspace, with bash where there is one, and get what it printed and its exit code (of a pipe: " +
		"that of its last command). Each call starts afresh: cd and variables do not carry over. Where the machine can confine it, it may " +
		"write to the workspace only and has no network; network true asks for it, and the operator may have to agree. Processes left in the " +
		"background end with the command. One command a call is best for what reaches the outside: git push alone can be looked up afterwards " +
		"if its answer is lost, a push inside a longer line cannot. A result may be unknown: then the command may or may not have had its " +
		"effect; do not repeat it or do the same another way.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "the command line"},
    "timeout_s": {"type": "integer", "minimum": 1, "maximum": 3600, "description": "seconds after which it is stopped; default 120"},
    "network": {"type": "boolean", "description": "it needs the network; default false"}
  },
  "required": ["command"],
  "additionalProperties": false
}`),
}

// maxFiles bounds the files whose contents one digest covers.
const maxFiles = 64

type shell struct{ o Options }

type shellArgs struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_s"`
	Network bool   `json:"network"`
}

func (a shellArgs) timeout() time.Duration {
	if a.Timeout == 0 {
		return DefaultTimeout
	}
	return min(time.Duration(a.Timeout)*time.Second, MaxTimeout)
}

func (*shell) Spec() Spec { return shellSpec }

// Plan parses the command line and finds its contract.
func (s *shell) Plan(ctx context.Context, env Env, args json.RawMessage) (Plan, error) {
	a, err := decode[shellArgs](args)
	if err != nil {
		return Plan{}, err
	}
	if err := checkLine(a.Command); err != nil {
		return Plan{}, err
	}
	secrets, err := s.o.secretsIn(a.Command)
	if err != nil {
		return Plan{}, err
	}
	p := planLine(env, shellSpec, a.Command)
	p.Subject.Secrets = secrets
	p.Args = args
	p, why, ok := planRecipe(ctx, s.o, env, p)
	if ok {
		return p, nil
	}
	sealed := env.Level == confine.LevelSealed && !a.Network
	p.Contract = machine.Contract{
		Name: shellSpec.Name, Version: shellSpec.Version, Class: machine.ClassIrreversible,
		Sender: machine.SenderCommand, Writes: true, Network: a.Network,
		BeforeEffect: []string{CodeNotStarted},
	}
	if sealed {
		p.Contract.Class = machine.ClassWorkspace
	}
	if a.Network || env.Level < confine.LevelGuarded { // below that nothing keeps it from the network
		p.Contract.InFlight = networkInFlight.Microseconds()
	}
	if a.Network {
		p.Text += "\n\n(with the network)"
	}
	if why != "" {
		p.Text += "\n\n(" + why + ")"
	}
	p.Subject.Class, p.Subject.Sealed, p.Subject.Network = p.Contract.Class, sealed, a.Network
	return p, nil
}

// networkInFlight is D of a command with the network that declares nothing:
// how long what it sent may take to land after it has died. It is what TCP
// needs to give up on an orphaned connection, rounded up.
const networkInFlight = 2 * time.Minute

// checkLine refuses a line that no shell can be given.
func checkLine(line string) error {
	if strings.ContainsRune(line, 0) {
		return argErrorf("The command holds a NUL byte; a shell would read only what stands before it.")
	}
	if strings.TrimSpace(line) == "" {
		return argErrorf("The command is empty.")
	}
	return nil
}

// planLine is what every plan of a command line has in common.
func planLine(env Env, s Spec, line string) Plan {
	p := Plan{
		Summary: oneLine(line, 120),
		Text:    line,
		Subject: policy.Subject{Tool: s.Name, Line: line},
	}
	cmds, err := policy.Parse(line)
	if err != nil {
		// It still may run, if a person agrees: what cannot be read is undeclared.
		cmds = policy.Commands{Unresolved: []string{plain(err)}}
	}
	p.Subject.Commands = &cmds
	p.Files = namedFiles(env, cmds)
	return p
}

// Measure reads what a recipe's probe will need.
func (s *shell) Measure(ctx context.Context, env Env, c machine.Contract, args json.RawMessage) (Measured, error) {
	a, err := decode[shellArgs](args)
	if err != nil {
		return Measured{}, err
	}
	return measureRecipe(ctx, s.o, env, c, a.Command)
}

// Run runs the command once.
func (s *shell) Run(ctx context.Context, env Env, c Call) Outcome {
	a, err := decode[shellArgs](c.Args)
	if err != nil {
		return badArgs(err)
	}
	if err := checkLine(a.Command); err != nil {
		return badArgs(err)
	}
	line, secrets, err := s.o.Secrets.Command(a.Command)
	if err != nil {
		return notStarted(fmt.Sprintf("It was not started: %v.", err))
	}
	return runLine(ctx, s.o, env, c, lineRun{line: line, env: secrets, timeout: a.timeout(), network: a.Network || c.Contract.Network})
}
