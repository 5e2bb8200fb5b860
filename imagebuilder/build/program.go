package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

// Programs builds those of the recipe's Go programs that are named by their paths in the image, and returns their files in opts.Output, in that
// order. The log gets what the Go tool says.
func Programs(ctx context.Context, opts Options, log io.Writer, paths ...string) (out []string, err error) {
	b := &builder{Options: opts, work: opts.Output}
	if b.scratch, err = os.MkdirTemp("", "ingot-programs-*"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.scratch)) }()
	for _, p := range paths {
		i := slices.IndexFunc(opts.Recipe.Programs, func(q recipe.Program) bool { return q.Path == p })
		if i < 0 {
			return nil, fmt.Errorf("%s: the recipe %s has no such program", p, opts.Recipe.Name)
		}
		if err := b.buildProgram(ctx, i, log); err != nil {
			return nil, fmt.Errorf("build %s: %w", p, err)
		}
		out = append(out, b.programPath(i))
	}
	return out, nil
}

// buildProgram builds one program of the recipe in a module of its own, which requires the program's module. So the program's build information
// names every module with its version and digest.
func (b *builder) buildProgram(ctx context.Context, i int, log io.Writer) error {
	p := b.Recipe.Programs[i]
	dir := filepath.Join(b.scratch, fmt.Sprintf("program-%d", i))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	g := goTool{dir: dir, architecture: b.Recipe.Architecture, log: log}
	allowed, err := b.prepareSums(ctx, p, g)
	if err != nil {
		return err
	}
	module, err := g.moduleFile(ctx, p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), module, 0o644); err != nil {
		return err
	}
	out, err := filepath.Abs(b.programPath(i))
	if err != nil {
		return err
	}
	flags := strings.Join(append([]string{"-s", "-w"}, p.LinkerFlags...), " ")
	err = g.run(ctx, log, "build", "-mod=mod", "-trimpath", "-buildvcs=false", "-tags="+strings.Join(p.Tags, ","), "-ldflags="+flags, "-o", out, cmp.Or(p.Package, p.Module))
	if err != nil || allowed == nil {
		return err
	}
	return checkSums(filepath.Join(dir, "go.sum"), allowed)
}

// goTool runs the Go tool.
type goTool struct {
	dir, architecture string
	log               io.Writer
}

func (g goTool) run(ctx context.Context, stdout io.Writer, args ...string) error {
	c := command{name: "go", args: args, dir: g.dir, environment: []string{
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + g.architecture, "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "GOEXPERIMENT="}}
	return c.run(ctx, stdout, g.log)
}

// moduleFile returns the go.mod that the program is built in.
func (g goTool) moduleFile(ctx context.Context, p recipe.Program) ([]byte, error) {
	out := fmt.Appendf(nil, "module image.invalid/program\n\nrequire %s %s\n", p.Module, p.Version)
	if p.LocalReplacements == "" {
		return out, nil
	}
	var answer bytes.Buffer
	if err := g.run(ctx, &answer, "mod", "download", "-json", p.Module+"@"+p.Version); err != nil {
		return nil, err
	}
	var downloaded struct{ GoMod string }
	if err := json.Unmarshal(answer.Bytes(), &downloaded); err != nil {
		return nil, err
	}
	answer.Reset()
	if err := g.run(ctx, &answer, "mod", "edit", "-json", downloaded.GoMod); err != nil {
		return nil, err
	}
	var file struct {
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal(answer.Bytes(), &file); err != nil {
		return nil, err
	}
	for _, r := range file.Replace {
		if r.New.Version == "" {
			out = fmt.Appendf(out, "replace %s => %s %s\n", r.Old.Path, r.Old.Path, p.LocalReplacements)
		}
	}
	return out, nil
}

// prepareSums returns the lines of the program's go.sum; nil when the checksum database confirms the modules. Without either the module proxy could
// put anything into the image.
func (b *builder) prepareSums(ctx context.Context, p recipe.Program, g goTool) (map[string]bool, error) {
	if p.Sums != "" {
		content, err := os.ReadFile(b.path(p.Sums))
		if err != nil {
			return nil, err
		}
		allowed := map[string]bool{}
		for line := range strings.Lines(string(content)) {
			allowed[strings.TrimSpace(line)] = true
		}
		return allowed, os.WriteFile(filepath.Join(g.dir, "go.sum"), content, 0o644)
	}
	var answer bytes.Buffer
	if err := g.run(ctx, &answer, "env", "GOSUMDB"); err != nil {
		return nil, err
	}
	if strings.TrimSpace(answer.String()) == "off" {
		return nil, fmt.Errorf("%s: the checksum database is switched off (GOSUMDB=off): give the modules' digests as sums of the program", p.Module)
	}
	return nil, nil
}

// checkSums refuses modules whose digests are not among the allowed ones.
func checkSums(file string, allowed map[string]bool) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !allowed[line] {
			return fmt.Errorf("the sums of the program do not have %q: add the line when you trust the module", line)
		}
	}
	return nil
}
