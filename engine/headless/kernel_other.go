//go:build !unix

package headless

func kernel() string { return "" }
