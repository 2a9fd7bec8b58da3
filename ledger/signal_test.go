package ledger

import (
	"context"
	"os/signal"
	"syscall"
)

// signalIgnore lets writes beyond a file size limit fail instead of killing us.
func signalIgnore() { signal.Ignore(syscall.SIGXFSZ) }

const sigCont = syscall.SIGCONT

func contextWithCancel() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}
