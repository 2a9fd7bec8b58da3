package fakeopenai

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"pawl/engine/model/scripted"
)

// Main runs a server as a process of its own until a signal, the end of ctx or,
// with -until-eof, the end of stdin, which is how it goes away with a parent
// that was killed. It prints the base URL as its first line once it listens.
// The exit code is 0, 1 for an error or 2 for wrong usage.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	fs := flag.NewFlagSet("fake-openai", flag.ContinueOnError)
	fs.SetOutput(stderr)
	script := fs.String("script", "", "script `FILE` to answer from")
	addr := fs.String("addr", "127.0.0.1:0", "`ADDRESS` to listen on")
	addrFile := fs.String("addr-file", "", "`FILE` to write the base URL to, once it listens")
	key := fs.String("key", "", "`KEY` that requests must carry")
	untilEOF := fs.Bool("until-eof", false, "end when standard input ends")
	vars := map[string]string{}
	fs.Func("var", "`NAME=VALUE` for {{env.NAME}}; may be repeated", func(s string) error {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return fmt.Errorf("want NAME=VALUE, have %q", s)
		}
		vars[k] = v
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if *script == "" || fs.NArg() > 0 {
		fmt.Fprintln(stderr, "fake-openai: -script FILE is needed, and nothing beside the flags")
		return 2
	}
	b, err := os.ReadFile(*script)
	if err != nil {
		fmt.Fprintf(stderr, "fake-openai: the script cannot be read: %v\n", err)
		return 1
	}
	s, err := scripted.Parse(filepath.Base(*script), b)
	if err != nil {
		fmt.Fprintf(stderr, "fake-openai: %v\n", err)
		return 1
	}
	srv, err := Start(*addr, Options{Script: s, Vars: vars, Key: *key})
	if err != nil {
		fmt.Fprintf(stderr, "fake-openai: %v\n", err)
		return 1
	}
	defer func() { _ = srv.Close() }()
	if *addrFile != "" {
		if err := writeWhole(*addrFile, srv.URL+"\n"); err != nil {
			fmt.Fprintf(stderr, "fake-openai: %v\n", err)
			return 1
		}
	}
	fmt.Fprintln(stdout, srv.URL)
	if *untilEOF {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		go func() { // ends with stdin, or with the process
			_, _ = io.Copy(io.Discard, stdin)
			end()
		}()
	}
	<-ctx.Done()
	return 0
}

// writeWhole makes a file appear with all of its content.
func writeWhole(path, text string) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
