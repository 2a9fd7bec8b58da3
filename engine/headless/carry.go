package headless

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/ledger"
)

// An export is a tar file, compressed with zstd.

func (a *app) exportCommand() *cobra.Command {
	var out string
	var keep bool
	cmd := &cobra.Command{
		Use:   "export [RUN...]",
		Short: "Pack runs into one file, to go on elsewhere",
		Long: `Pack runs, all of them if none is named, into one file: their events, what the events name, the snapshots and the commits of their workspaces. "pawl import FILE" makes them again on another machine.
A run that was under way is paused here, so that it does not go on in two places; --keep leaves it as it is. The file holds everything that the agent has seen: it is readable for you alone.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error { return a.export(ctx, s, args, out, keep) })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the FILE to write (default: pawl-export.tar.zst)")
	cmd.Flags().BoolVar(&keep, "keep", false, "do not pause the runs here")
	return cmd
}

func (a *app) export(ctx context.Context, s *session, args []string, out string, keep bool) error {
	if out == "" {
		out = "pawl-export.tar.zst"
	}
	var ids []machine.RunID
	for _, arg := range args {
		if err := want(idRun, arg); err != nil {
			return err
		}
		ids = append(ids, machine.RunID(arg))
	}
	if len(ids) == 0 {
		for before := ""; ; {
			rows, err := s.db.Runs(ctx, ledger.RunFilter{Before: before, Limit: 200})
			if err != nil {
				return err
			}
			for _, r := range rows {
				before = r.ID
				ids = append(ids, machine.RunID(r.ID))
			}
			if len(rows) < 200 {
				break
			}
		}
	}
	if len(ids) == 0 {
		return &Problem{What: "nothing was exported", Why: "the ledger holds no runs", Next: "`pawl list` shows what there is"}
	}
	if _, err := os.Lstat(out); err == nil {
		return &Problem{What: "the export was not written", Why: out + " exists already", Next: "choose another name with --output"}
	}
	tmp, err := os.OpenFile(out+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone after the rename
	defer tmp.Close()
	head, err := writeExport(ctx, s.Engine, ids, tmp, filepath.Dir(out))
	if err == nil {
		err = tmp.Sync()
	}
	if err == nil {
		err = os.Link(tmp.Name(), out) // refuses to replace what appeared there meanwhile
	}
	if err != nil {
		return err
	}
	var paused []machine.RunID
	for _, r := range head.Runs {
		if keep || r.Phase != machine.PhaseRunning {
			continue
		}
		if err := s.Pause(ctx, r.ID, "exported to "+filepath.Base(out)); err != nil {
			return err
		}
		paused = append(paused, r.ID)
	}
	if a.json {
		return object(a.out(), map[string]any{"file": out, "runs": head.Runs, "paused": paused})
	}
	fmt.Fprintf(a.out(), "Exported %s to %s.\n", count(len(head.Runs), "run"), line(out, 0))
	for _, id := range paused {
		fmt.Fprintf(a.out(), "Run %s is paused here: `%s` lets it go on in this place after all.\n", id, a.command("unpause", string(id)))
	}
	return nil
}

// writeExport writes an export as a compressed tar file. Files of unknown size go through a temporary one in dir.
func writeExport(ctx context.Context, e *engine.Engine, ids []machine.RunID, w io.Writer, dir string) (engine.Exported, error) {
	z, err := zstd.NewWriter(w)
	if err != nil {
		return engine.Exported{}, err
	}
	t := tar.NewWriter(z)
	head, err := e.Export(ctx, ids, func(name string, r io.Reader) error {
		f, err := os.CreateTemp(dir, ".pawl-export-*")
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		n, err := io.Copy(f, r)
		if err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: n, Mode: 0o600, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err = io.Copy(t, f)
		return err
	})
	if err != nil {
		return head, errors.Join(err, z.Close())
	}
	return head, errors.Join(t.Close(), z.Close())
}

func (a *app) importCommand() *cobra.Command {
	var repo string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Go on with exported runs here",
		Long: `Bring the runs of an exported file into this ledger, and make their workspaces below its state directory, as they were. Everything in the file is checked before anything is written.
--repo names your checkout of the project here; without it the work can go on, but not land. What had been sent from the other machine and has no result stays open: whether it can still arrive cannot be seen from here.`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, making, func(ctx context.Context, s *session) error { return a.bring(ctx, s, args[0], repo) })
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "a checkout of the project, `DIR`, to land in")
	return cmd
}

func (a *app) bring(ctx context.Context, s *session, file, repo string) error {
	dir, err := os.MkdirTemp(filepath.Dir(s.db.Path()), ".import-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := readExport(file, dir)
	if err == nil {
		_, err = files.Head()
	}
	if err != nil {
		return &Problem{What: file + " cannot be imported", Why: err.Error(), Next: "check that it is a whole file of `pawl export`; nothing was changed", Err: err}
	}
	head, err := s.Import(ctx, files, repo)
	if err != nil {
		return err
	}
	if a.json {
		return object(a.out(), map[string]any{"file": file, "from": head.Host, "runs": head.Runs})
	}
	fmt.Fprintf(a.out(), "Imported %s from %s.\n", count(len(head.Runs), "run"), line(head.Host, 0))
	for _, r := range head.Runs {
		fmt.Fprintf(a.out(), "%s  %s\n", r.ID, line(r.Goal, 60))
	}
	fmt.Fprintf(a.out(), "`%s` goes on with them.\n", a.command("resume", "--all"))
	return nil
}

// readExport unpacks an export into dir, under names of its own making.
func readExport(file, dir string) (engine.Files, error) {
	var files engine.Files
	f, err := os.Open(file)
	if err != nil {
		return files, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return files, err
	}
	defer z.Close()
	at := map[string]string{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return files, err
		}
		if _, twice := at[h.Name]; twice || h.Typeflag != tar.TypeReg {
			return files, fmt.Errorf("it holds something that no export has: %q", h.Name)
		}
		path := filepath.Join(dir, hex.EncodeToString(fmt.Append(nil, len(at))))
		w, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return files, err
		}
		_, err = io.Copy(w, t)
		if err = errors.Join(err, w.Close()); err != nil {
			return files, err
		}
		at[h.Name] = path
		files.Names = append(files.Names, h.Name)
	}
	files.Open = func(name string) (io.ReadCloser, error) {
		path, ok := at[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return os.Open(path)
	}
	return files, nil
}

// sound checks the chains and blobs of a copy.
func (a *app) sound(ctx context.Context, path string) error {
	db, err := ledger.Open(ctx, ledger.Options{Path: path, Owner: ownerOf("backup"), BusyTimeout: a.o.BusyTimeout, MustExist: true, ViewOnly: true})
	if err != nil {
		return err
	}
	found, err := db.VerifyChain(ctx, nil)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if len(found.Problems) > 0 {
		return &Problem{What: "the copy in " + path + " is not whole", Why: found.Problems[0].Error(), Next: "`pawl verify` tells whether the ledger itself is", Code: ExitDamaged}
	}
	return nil
}

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the ledger, verified, while it is in use",
		Long: `Write a copy of the whole ledger to FILE, as it is at this moment, whoever else is writing to it. The copy is read back and verified before it gets its name. To look into it: "pawl list --ledger FILE".
Workspaces and snapshots are not part of the ledger: "pawl export" packs them.`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, viewing, func(ctx context.Context, s *session) error {
				if err := s.db.Backup(ctx, args[0]); err != nil {
					return err
				}
				st, err := os.Stat(args[0])
				if err != nil {
					return err
				}
				if err := a.sound(ctx, args[0]); err != nil {
					return err
				}
				if a.json {
					return object(a.out(), map[string]any{"file": args[0], "bytes": st.Size()})
				}
				fmt.Fprintf(a.out(), "The ledger is copied to %s (%d bytes), and the copy is verified.\n", line(args[0], 0), st.Size())
				return nil
			})
		},
	}
}
