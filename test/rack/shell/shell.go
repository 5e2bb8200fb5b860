package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Files is the file system that scripts use. The error of a missing file is fs.ErrNotExist.
type Files interface {
	ReadFile(path string) ([]byte, error)
	WriteFile(path string, content []byte) error
	// Remove removes a file.
	Remove(path string)
	// List returns the names in a directory.
	List(path string) ([]string, error)
	// Readlink returns the target of a link.
	Readlink(path string) (string, bool)
}

// Call is one call of a program.
type Call struct {
	// Arguments are the words after the program's name.
	Arguments   []string
	Environment map[string]string
	Stdin       io.Reader
	Stdout      io.Writer
	Stderr      io.Writer
}

// Program is the effect of a program. Its error is written to standard error and makes the exit status 1.
type Program func(Call) error

// Machine is the environment of a script.
type Machine struct {
	Files Files
	// Programs are the machine's programs by name; nil stands for one that is not installed.
	Programs map[string]Program
}

// maxCalls limits the programs that one script calls, so that a script that loops without end fails.
const maxCalls = 10000

var errTooManyCalls = errors.New("the script calls programs without an end")

// Run runs the script with these arguments. The error of a script that fails includes its standard error.
func (m Machine) Run(text string, environment map[string]string, arguments ...string) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "script")
	if err != nil {
		return err
	}
	r := &run{machine: m}
	runner, err := interp.New(
		interp.Env(expand.ListEnviron(environmentList(environment)...)), interp.Params(append([]string{"--"}, arguments...)...), interp.Dir("/"), interp.StdIO(nil, io.Discard, &r.stderr),
		interp.CallHandler(replaceBuiltins), interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return r.exec }),
		interp.OpenHandler(r.open), interp.StatHandler(r.stat), interp.ReadDirHandler2(r.list),
	)
	if err != nil {
		return err
	}
	if err := runner.Run(context.Background(), file); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(r.stderr.String()))
	}
	return nil
}

// echoProgram is the name of the program that replaces the shell's own echo. The builtin ignores write errors, but sysfs
// reports by them that a value is refused.
const echoProgram = "echo "

// lookProgram is the name of the program that replaces the shell's own command -v. The builtin looks at the files of the computer that the test runs on.
const lookProgram = "command -v "

func replaceBuiltins(_ context.Context, words []string) ([]string, error) {
	switch {
	case words[0] == "umask": // Files have no owner here.
		words = []string{"true"}
	case words[0] == "echo":
		words = append([]string{echoProgram}, words[1:]...)
	case len(words) > 2 && words[0] == "command" && words[1] == "-v":
		words = append([]string{lookProgram}, words[2:]...)
	}
	return words, nil
}

func environmentList(environment map[string]string) []string {
	out := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	for name, value := range environment {
		out = append(out, name+"="+value)
	}
	return out
}

// run is one execution of a script.
type run struct {
	machine Machine
	stderr  bytes.Buffer
	calls   int
}

func (r *run) exec(ctx context.Context, words []string) error {
	if r.calls++; r.calls > maxCalls {
		return errTooManyCalls
	}
	shell := interp.HandlerCtx(ctx)
	call := Call{Arguments: words[1:], Environment: map[string]string{}, Stdin: shell.Stdin, Stdout: shell.Stdout, Stderr: shell.Stderr}
	if call.Stdin == nil {
		call.Stdin = strings.NewReader("")
	}
	for name, variable := range shell.Env.Each {
		call.Environment[name] = variable.String()
	}
	name := path.Base(words[0])
	program, known := r.machine.Programs[name]
	if known && program == nil {
		fmt.Fprintf(shell.Stderr, "%s: command not found\n", name)
		return interp.ExitStatus(127)
	}
	if !known {
		program, known = r.tools()[name]
	}
	if !known {
		return nil
	}
	switch err := program(call); {
	case errors.Is(err, errNoMatch):
		return interp.ExitStatus(1)
	case err != nil:
		fmt.Fprintf(shell.Stderr, "%s: %v\n", name, err)
		return interp.ExitStatus(1)
	}
	return nil
}

// open opens a file for a redirection.
func (r *run) open(_ context.Context, name string, flag int, _ os.FileMode) (io.ReadWriteCloser, error) {
	if name == "/dev/null" {
		return &handle{}, nil
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		content, err := r.machine.Files.ReadFile(name)
		if err != nil {
			return nil, asPathError(name, err)
		}
		return &handle{content: *bytes.NewBuffer(content)}, nil
	}
	opened := &handle{}
	if flag&os.O_APPEND != 0 {
		content, err := r.machine.Files.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, asPathError(name, err)
		}
		opened.content.Write(content)
	}
	opened.write = func(content []byte) error { return r.machine.Files.WriteFile(name, content) }
	return opened, nil
}

// asPathError returns an error that makes the command fail and not the shell.
func asPathError(name string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return err
	}
	return &fs.PathError{Op: "open", Path: name, Err: err}
}

// handle is an open file.
type handle struct {
	content bytes.Buffer
	write   func([]byte) error
	wrote   bool
}

// Read reads from the content.
func (h *handle) Read(into []byte) (int, error) { return h.content.Read(into) }

// Write writes to the file at once, because the shell's builtins ignore errors of Close.
func (h *handle) Write(content []byte) (int, error) {
	n, err := h.content.Write(content)
	if err == nil && h.write != nil {
		err = h.write(h.content.Bytes())
		h.wrote = true
	}
	return n, err
}

// Close implements io.Closer.
func (h *handle) Close() error {
	if h.write != nil && !h.wrote {
		return h.write(nil)
	}
	return nil
}

func (r *run) stat(_ context.Context, name string, _ bool) (fs.FileInfo, error) {
	name = path.Clean(name)
	if content, err := r.machine.Files.ReadFile(name); err == nil {
		return info{name: path.Base(name), size: int64(len(content))}, nil
	}
	if _, ok := r.machine.Files.Readlink(name); ok {
		return info{name: path.Base(name), directory: true}, nil
	}
	if _, err := r.machine.Files.List(name); err == nil || name == "/" {
		return info{name: path.Base(name), directory: true}, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func (r *run) list(ctx context.Context, name string) ([]fs.DirEntry, error) {
	names, err := r.machine.Files.List(path.Clean(name))
	if err != nil {
		if _, isFile := r.machine.Files.ReadFile(name); isFile == nil {
			return nil, fmt.Errorf("%s: not a directory", name)
		}
		return nil, err
	}
	var out []fs.DirEntry
	for _, n := range names {
		entry, err := r.stat(ctx, path.Join(name, n), true)
		if err == nil {
			out = append(out, fs.FileInfoToDirEntry(entry))
		}
	}
	return out, nil
}

// info is the result of stat.
type info struct {
	name      string
	size      int64
	directory bool
}

// Name implements fs.FileInfo.
func (i info) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i info) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i info) Mode() fs.FileMode {
	if i.directory {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// ModTime implements fs.FileInfo.
func (info) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return i.directory }

// Sys implements fs.FileInfo.
func (info) Sys() any { return nil }
