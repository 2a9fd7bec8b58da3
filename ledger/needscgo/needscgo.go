// Package needscgo stops a build without cgo early, with a message that says
// so. Without cgo the SQLite driver still compiles, as a stub whose first query
// fails; and a missing C compiler turns cgo off without a word.
package needscgo
