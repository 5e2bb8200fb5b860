// Ingot-manager runs Ingot's controllers and its boot service.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/operator"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
)

// Exit statuses.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(run(os.Args[1:])) }

// flags are the flags of the command line. controller-runtime adds --kubeconfig to flag.CommandLine.
type flags struct {
	config, only       string
	print, showVersion bool
	embedBoot          bool
}

func run(args []string) int {
	f, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Println("usage: ingot-manager --config FILE [--embed-boot | --only=boot] [--kubeconfig FILE]")
		flag.CommandLine.SetOutput(os.Stdout)
		flag.PrintDefaults()
		return exitOK
	case err != nil:
		fmt.Fprintf(os.Stderr, "ingot-manager: %v; --help shows the flags\n", err)
		return exitUsage
	case f.showVersion:
		fmt.Println("ingot-manager", version)
		return exitOK
	case f.print:
		err = printDefaults()
	default:
		err = runManager(f)
	}
	// What ended a manager that ran is in its log.
	var ended *operator.EndError
	if err != nil && !errors.As(err, &ended) {
		fmt.Fprintln(os.Stderr, "ingot-manager:", err)
	}
	if err != nil {
		return exitFailed
	}
	return exitOK
}

// parseFlags parses the command line. The error is for the caller to print, in one line.
func parseFlags(args []string) (flags, error) {
	var f flags
	set := flag.CommandLine
	set.Init("ingot-manager", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.config, "config", "", "configuration `file` (required); --print-config shows every field")
	set.StringVar(&f.only, "only", "", "run one `part` alone; boot: the boot service, with fewer rights, on a site's provisioning network")
	set.BoolVar(&f.embedBoot, "embed-boot", false, "serve boots in the manager's own process, which servers then reach; for a demo or a small site")
	set.BoolVar(&f.print, "print-config", false, "print a configuration with every default and exit")
	set.BoolVar(&f.showVersion, "version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	switch {
	case set.NArg() > 0:
		return f, fmt.Errorf("unexpected argument %q: everything is set in the file of --config", set.Arg(0))
	case f.only != "" && f.only != onlyBoot:
		return f, fmt.Errorf("--only: got %q; expected %s", f.only, onlyBoot)
	case f.only != "" && f.embedBoot:
		return f, errors.New("--embed-boot: a process with --only=boot is the boot service already; give one of the two")
	case f.config == "" && !f.print && !f.showVersion:
		return f, errors.New("--config FILE is required; --print-config shows every field with its default")
	}
	return f, nil
}

// onlyBoot is the part of the manager that can run alone.
const onlyBoot = "boot"

func runManager(f flags) error {
	file, err := os.Open(f.config)
	if err != nil {
		return err
	}
	defer file.Close()
	s, err := settings.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", f.config, err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the management cluster: %w: give --kubeconfig, or run in a pod", err)
	}
	if f.only == onlyBoot {
		return operator.RunBoot(ctrl.SetupSignalHandler(), s, config, version)
	}
	return operator.Run(ctrl.SetupSignalHandler(), s, config, operator.Options{Version: version, EmbedBoot: f.embedBoot})
}

func printDefaults() error {
	s := settings.Default()
	s.Boot.URL = "http://10.20.0.2:8090"
	text, err := s.YAML()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
