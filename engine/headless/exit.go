package headless

// The exit codes of every command.
const (
	ExitDone    = 0 // done
	ExitError   = 1 // something is in the way; standard error says what
	ExitUsage   = 2 // the command line makes no sense
	ExitWaits   = 3 // a run waits for the operator, or was stopped and can go on
	ExitFailed  = 4 // a run failed or was cancelled
	ExitDamaged = 5 // the ledger failed verification
)

// codeError ends a command with a code of its own after everything has been
// said already.
type codeError int

func (e codeError) Error() string { return "" }
