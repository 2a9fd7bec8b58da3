package headless

import (
	"github.com/spf13/cobra"

	"pawl/engine/model/fakeopenai"
	"pawl/fixtures/world"
)

// hiddenCommands are the processes that demo, tests and drills start beside
// Pawl; nobody types them.
func (a *app) hiddenCommands() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "demo-world", Short: "The world of the demo, as a process of its own", Hidden: true, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return exit(world.Main(cmd.Context(), args, a.o.In, a.o.Out, a.o.Err))
			},
		},
		{
			Use: "demo-model", Short: "A local server that plays a script over the wire of a model provider", Hidden: true, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return exit(fakeopenai.Main(cmd.Context(), args, a.o.In, a.o.Out, a.o.Err))
			},
		},
	}
}

func exit(code int) error {
	if code == ExitDone {
		return nil
	}
	return codeError(code)
}
