//go:build !mutate

package machine

func off(Guard) bool { return false }
