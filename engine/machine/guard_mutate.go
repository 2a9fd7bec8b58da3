//go:build mutate

package machine

// Off is the one guard that a mutation run has switched off.
var Off Guard

func off(g Guard) bool { return g == Off }
