package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"
)

// target is a function of a package.
type target struct{ name, importPath, dir string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	each := flag.Duration("time", 20*time.Second, "how long to run each target")
	match := flag.String("match", "", "run only targets whose package and name match this regular `expression`")
	flag.Parse()
	if err := run(ctx, os.Stdout, *each, *match, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		stop()
		os.Exit(1)
	}
}

// run runs the targets of the packages; none named: all.
func run(ctx context.Context, out io.Writer, each time.Duration, match string, patterns []string) error {
	wanted, err := regexp.Compile(match)
	if err != nil {
		return fmt.Errorf("-match: %w", err)
	}
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	targets, err := list(ctx, patterns)
	if err != nil {
		return err
	}
	targets = slices.DeleteFunc(targets, func(t target) bool { return !wanted.MatchString(t.importPath + "." + t.name) })
	if len(targets) == 0 {
		return errors.New("expected at least one target, seen none: name a package with one")
	}
	var findings []error
	for i, t := range targets {
		fmt.Fprintf(out, "%d/%d %s %s\n", i+1, len(targets), t.importPath, t.name)
		if err := t.run(ctx, out, each); err != nil {
			findings = append(findings, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(findings...)
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// list returns the targets of the packages, in the order of the packages.
func list(ctx context.Context, patterns []string) ([]target, error) {
	c := exec.CommandContext(ctx, "go", append([]string{"list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles"}, patterns...)...)
	c.Stderr = os.Stderr
	listed, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	var out []target
	for decoder := json.NewDecoder(bytes.NewReader(listed)); decoder.More(); {
		var p struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			for _, found := range declaration.FindAllSubmatch(text, -1) {
				out = append(out, target{string(found[1]), p.ImportPath, p.Dir})
			}
		}
	}
	return out, nil
}

var failing = regexp.MustCompile(`testdata/fuzz/(\w+/\w+)`)

// run runs the target. The error says how to repeat what was found.
func (t target) run(ctx context.Context, out io.Writer, each time.Duration) error {
	c := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(),
		// An input is made smaller for a minute otherwise, in which nothing else is tried.
		"-fuzzminimizetime", "1s", t.importPath)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	text, err := c.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return nil
	}
	fmt.Fprintf(out, "%s\n", text)
	found := failing.FindSubmatch(text)
	if found == nil {
		return fmt.Errorf("%s %s: %w, and no input is named: go test -run '^$' -fuzz '^%s$' %s", t.importPath, t.name, err, t.name, t.importPath)
	}
	return fmt.Errorf("%s: an input fails; it is kept in %s and repeated by go test -run '%s' %s: correct the code, and commit the input",
		t.importPath, filepath.Join(t.dir, string(found[0])), found[1], t.importPath)
}
