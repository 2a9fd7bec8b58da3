package confine

import "os"

// Self names this process.
func Self() (Identity, error) { return identify(os.Getpid()) }
