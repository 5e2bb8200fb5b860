package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/api/input"
)

// Exit statuses.
const (
	ExitOK = iota
	ExitFailed
	ExitUsage
)

// UsageError says that the command line was not understood.
type UsageError struct {
	// Line is the command's usage line.
	Line string
	Err  error
}

// Error returns the message of the cause.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a *UsageError of the command.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{Line: cmd.UseLine(), Err: fmt.Errorf(format, args...)}
}

// NewGroup returns a command that only has other commands below it.
func NewGroup(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var names []string
			for _, s := range cmd.Commands() {
				if s.IsAvailableCommand() {
					names = append(names, s.Name())
				}
			}
			return &UsageError{Line: cmd.CommandPath() + " COMMAND", Err: fmt.Errorf("unknown command %q: expected %s", args[0], strings.Join(names, ", "))}
		},
	}
	c.AddCommand(subs...)
	return c
}

// SilenceLibraries keeps the client libraries from writing to the terminal. Their failures reach a command as errors.
func SilenceLibraries() {
	quiet := slog.New(slog.DiscardHandler)
	klog.SetSlogLogger(quiet)
	ctrl.SetLogger(logr.FromSlogHandler(quiet.Handler()))
}

// Run runs the command line and returns the exit status.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &UsageError{cmd.UseLine(), err} })
	wrapArgumentErrors(root)
	root.SetArgs(args)
	root.SetOut(visibleOn(stdout))
	root.SetErr(visibleOn(stderr))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	fmt.Fprintln(stderr, root.Name()+":", input.Text(strings.ReplaceAll(err.Error(), "\n", "; ")))
	var usage *UsageError
	if errors.As(err, &usage) {
		fmt.Fprintln(stderr, "usage:", usage.Line)
		return ExitUsage
	}
	return ExitFailed
}

// wrapArgumentErrors turns the errors of cobra's argument checks into usage errors.
func wrapArgumentErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &UsageError{cmd.UseLine(), argumentError(args, err)}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgumentErrors(sub)
	}
}

// argumentError returns the error of cobra's argument checks in the words of the other messages: expected and seen.
func argumentError(args []string, err error) error {
	seen, number := "none", 0
	if len(args) > 0 {
		seen = strings.Join(args, " ")
	}
	if strings.HasPrefix(err.Error(), "unknown command ") {
		return fmt.Errorf("expected no argument, seen %s", seen)
	}
	for format, expected := range map[string]string{"accepts %d arg(s), received": "", "accepts at most %d arg(s), received": "at most "} {
		if read, _ := fmt.Sscanf(err.Error(), format, &number); read != 1 {
			continue
		}
		arguments := "arguments"
		if number == 1 {
			arguments = "argument"
		}
		return fmt.Errorf("expected %s%d %s, seen %s", expected, number, arguments, seen)
	}
	return err
}
