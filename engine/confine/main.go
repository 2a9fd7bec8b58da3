package confine

import "os"

// The names under which the binary re-executes itself. They stand in argv[0], where no user's command line can put
// them by accident.
const (
	argvKeeper = "pawl:keeper" // builds the box, starts the command in it, reaps, reports
	argvProbe  = "pawl:probe"  // tries to get out of the box and prints what worked
)

// Main is the hook for the stages that the box runs in this same binary. It must be the first call of main(), and of
// TestMain in packages whose tests start boxes. In a stage it does not return; otherwise it returns at once.
func Main() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case argvKeeper:
		keeperMain()
	case argvProbe:
		probeMain()
	}
}
