// Package rollout shows rollouts at a terminal, pauses and resumes them, and undoes them by setting the NodeType back.
package rollout

import (
	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// Command is `ingot rollout`, with further commands below it.
func Command(more ...*cobra.Command) *cobra.Command {
	return cli.Group("rollout", "Show, pause, resume, undo or simulate how a change reaches the fleet", append(control(), more...)...)
}
