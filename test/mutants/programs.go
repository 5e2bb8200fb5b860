package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// proofs are the packages whose tests judge the code of other packages, beside those packages' own tests. The key is the path of
// a package within the module; it holds for the packages below it, too.
var proofs = map[string][]string{
	"presentation":               {"presentation", "presentation/dra", "presentation/mig", "presentation/nvidia", "presentation/passthrough", "presentation/tenantsoftware", "presentation/vgpu"},
	"cloudinit":                  {"cloudinit"},
	"controllers/plan/lifecycle": {"controllers/plan/lifecycle"},
	"controllers/plan/rollout":   {"controllers/plan/rollout"},
}

// testProgram is the compiled tests of a package, with all mutants in them.
type testProgram struct {
	path  string // import path of the package
	dir   string
	file  string
	tests []*testFunction
}

// testFunction is one test, and what it needs without a mutant.
type testFunction struct {
	program *testProgram
	name    string
	cpu     time.Duration
	err     error
}

// shortPath is the path of the package within its module.
func (p *goPackage) shortPath() string { return strings.TrimPrefix(p.path, p.module+"/") }

// testPackages returns the packages whose tests judge the mutants of p.
func (p *goPackage) testPackages(proofs map[string][]string) []string {
	var paths []string
	if p.tests {
		paths = append(paths, p.path)
	}
	for dir, tests := range proofs {
		if p.shortPath() != dir && !strings.HasPrefix(p.shortPath(), dir+"/") {
			continue
		}
		for _, t := range tests {
			paths = append(paths, p.module+"/"+t)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// buildPrograms compiles the tests that judge the packages.
func buildPrograms(ctx context.Context, o options, packages []*goPackage, work string) ([]*testProgram, error) {
	var paths []string
	for _, p := range packages {
		p.judges = p.testPackages(o.proofs)
		paths = append(paths, p.judges...)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) == 0 {
		return nil, errors.New("no package has tests")
	}
	out, err := goCommand(ctx, o.root, append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, paths...)...)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[path] = dir
	}
	var programs []*testProgram
	batches := map[string][]string{}
	for _, path := range paths {
		folder := batchFolder(batches, path, work)
		batches[folder] = append(batches[folder], path)
		programs = append(programs, &testProgram{path: path, dir: dirs[path], file: filepath.Join(folder, filepath.Base(path)+".test")})
	}
	for folder, paths := range batches {
		args := []string{"test", "-c", "-vet=off", "-overlay=" + overlayFile(work), "-ldflags=-s -w", "-o", folder + "/"}
		if _, err := goCommand(ctx, o.root, append(args, paths...)...); err != nil {
			return nil, err
		}
	}
	for _, p := range programs {
		if err := p.list(ctx); err != nil {
			return nil, err
		}
	}
	return programs, nil
}

// batchFolder returns the folder for the test program of a package. One go command compiles a whole batch, and names each program
// after the last element of its path: packages with the same one are in different batches.
func batchFolder(batches map[string][]string, path, work string) string {
	for n := 0; ; n++ {
		folder := filepath.Join(work, fmt.Sprintf("batch-%d", n))
		taken := slices.ContainsFunc(batches[folder], func(other string) bool { return filepath.Base(other) == filepath.Base(path) })
		if !taken {
			return folder
		}
	}
}

// list asks the program for its tests.
func (p *testProgram) list(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, p.file, "-test.list", ".")
	cmd.Dir = p.dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s -test.list: %w", p.path, err)
	}
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); !strings.HasPrefix(name, "Benchmark") {
			p.tests = append(p.tests, &testFunction{program: p, name: name})
		}
	}
	return nil
}

// recordReach runs every test alone and notes which mutants it reaches and how much processor time it needs.
func recordReach(ctx context.Context, programs []*testProgram, mutants []*mutant, o options) error {
	byName := map[string]*mutant{}
	for _, m := range mutants {
		byName[m.name()] = m
	}
	var tests []*testFunction
	for _, p := range programs {
		tests = append(tests, p.tests...)
	}
	var lock sync.Mutex
	concurrently(o.workers, tests, func(t *testFunction) {
		reached, err := t.record(ctx, o.longest)
		lock.Lock()
		defer lock.Unlock()
		t.err = err
		for _, name := range reached {
			if m := byName[name]; m != nil && slices.Contains(m.pkg.judges, t.program.path) {
				m.reached = append(m.reached, t)
			}
		}
	})
	var errs []error
	for _, t := range tests {
		errs = append(errs, t.err)
	}
	return errors.Join(errs...)
}

// record runs one test without a mutant and returns the mutants that it reaches: none if it needs more than the limit.
func (t *testFunction) record(ctx context.Context, limit time.Duration) ([]string, error) {
	trace, err := os.CreateTemp(filepath.Dir(t.program.file), "trace-")
	if err != nil {
		return nil, err
	}
	defer trace.Close()
	r := t.program.run(ctx, []*testFunction{t}, limit, traceVariable+"="+trace.Name())
	if limit < noLimit && (r.timedOut || r.cpu > limit) && ctx.Err() == nil {
		return nil, nil
	}
	if r.err != nil {
		return nil, fmt.Errorf("%s fails without a mutant: %w\n%s", t.name, r.err, r.output)
	}
	t.cpu = r.cpu
	data, err := os.ReadFile(trace.Name())
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(data)), nil
}

// runResult is what became of one run of a test program.
type runResult struct {
	err      error // nil: the tests pass
	timedOut bool
	cpu      time.Duration
	output   []byte
}

// memoryLimit is how much address space a test program may use, in KiB: a mutant that makes a loop endless often allocates.
const memoryLimit = 6 << 20

// waitPerCPU is how much longer than its processor time a test program may run: it waits for others, and some tests sleep.
const waitPerCPU = 10

// run runs some tests of the program. The limit is on processor time, so that a busy machine kills no test.
func (p *testProgram) run(ctx context.Context, tests []*testFunction, limit time.Duration, variable string) runResult {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	seconds := int(limit/time.Second) + 1
	ctx, cancel := context.WithTimeout(ctx, waitPerCPU*time.Duration(seconds)*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf(`ulimit -t %d; ulimit -v %d; exec "$0" "$@"`, seconds, memoryLimit),
		p.file, "-test.short", "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), variable)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	r := runResult{err: err, output: output.Bytes()}
	if state := cmd.ProcessState; state != nil {
		r.cpu = state.UserTime() + state.SystemTime()
		status, ok := state.Sys().(syscall.WaitStatus)
		r.timedOut = ctx.Err() != nil || ok && status.Signaled() || bytes.Contains(r.output, []byte("SIGXCPU"))
	}
	return r
}

// concurrently calls a function for every item, with several workers.
func concurrently[T any](workers int, items []T, do func(T)) {
	queue := make(chan T)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for item := range queue {
				do(item)
			}
		})
	}
	for _, item := range items {
		queue <- item
	}
	close(queue)
	group.Wait()
}
