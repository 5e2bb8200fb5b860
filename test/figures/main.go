package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, notes io.Writer) error {
	if len(args) == 0 {
		return errors.New("expected update or check, and files")
	}
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	only := set.String("only", "", "update the block of that `name` alone")
	since := set.String("since", "", "warn of blocks from before that `date`")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "update":
		return update(ctx, set.Args(), *only, notes)
	case "check":
		return check(set.Args(), *since, notes)
	}
	return fmt.Errorf("%s: expected update or check", args[0])
}

// check returns an error for documents with figures that no command has written.
func check(files []string, since string, notes io.Writer) error {
	var all []string
	for _, file := range files {
		d, err := readDocument(file)
		if err != nil {
			return err
		}
		for _, finding := range d.findings() {
			all = append(all, file+": "+finding)
		}
		for _, name := range d.olderThan(since) {
			fmt.Fprintf(notes, "%s: the figures %s are older than what they measure: go run ./test/figures update -only %s %s\n", file, name, name, file)
		}
	}
	if len(all) > 0 {
		return errors.New(strings.Join(all, "\nfigures: "))
	}
	return nil
}

// update runs the commands of the blocks and writes what they print. What one command measured is written before the next one runs.
func update(ctx context.Context, files []string, only string, notes io.Writer) error {
	isFound := false
	for _, file := range files {
		d, err := readDocument(file)
		if err != nil {
			return err
		}
		for i := range d.blocks {
			b := &d.blocks[i]
			if only != "" && b.name != only {
				continue
			}
			isFound = true
			fmt.Fprintf(notes, "%s: %s\n", b.name, b.command)
			if err := measure(ctx, b, notes); err != nil {
				return fmt.Errorf("%s: %w", b.command, err)
			}
			if err := os.WriteFile(file, []byte(d.String()), 0o644); err != nil {
				return err
			}
		}
	}
	if !isFound {
		return fmt.Errorf("no file has figures named %s", only)
	}
	return nil
}

func readDocument(file string) (document, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return document{}, err
	}
	d, err := parse(string(text))
	if err != nil {
		return d, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// measure runs the command of a block and sets its text.
func measure(ctx context.Context, b *block, notes io.Writer) error {
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=10").Output()
	if err != nil {
		return fmt.Errorf("read the commit: %w", err)
	}
	processors, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	command := exec.CommandContext(ctx, "sh", "-c", b.command)
	command.Stdout, command.Stderr = &out, notes
	if b.isTime() {
		command.Stdout = notes
	}
	began := time.Now()
	if err := command.Run(); err != nil {
		return err
	}
	b.fill(stamp{
		commit: strings.TrimSpace(string(commit)), machine: machineText(string(processors), string(memory)), date: began.UTC().Format(time.DateOnly), took: time.Since(began),
	}, out.String())
	return nil
}
