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

// Files are what scripts see. Errors of files that are not there are fs.ErrNotExist's.
type Files interface {
	ReadFile(path string) ([]byte, error)
	WriteFile(path string, content []byte) error
	// List are the names in a directory.
	List(path string) ([]string, error)
	// Readlink is where a link leads to.
	Readlink(path string) (string, bool)
}

// Call is a program that is called.
type Call struct {
	// Arguments are the words behind its name.
	Arguments   []string
	Environment map[string]string
	Stdin       io.Reader
	Stdout      io.Writer
	Stderr      io.Writer
}

// Program is what a program does. Its error is told on the standard error, and is a failure.
type Program func(Call) error

// Machine is what a script finds around it.
type Machine struct {
	Files Files
	// Programs by name; nil stands for one that is not installed.
	Programs map[string]Program
}

// maxCalls bounds the programs that one script calls: a script that waits for ever ends.
const maxCalls = 10000

var errTooManyCalls = errors.New("the script calls programs without an end")

// Run runs the text. The error of a script that fails has what it said last.
func (m Machine) Run(text string, environment map[string]string) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "script")
	if err != nil {
		return err
	}
	r := &run{machine: m}
	runner, err := interp.New(
		interp.Env(expand.ListEnviron(environmentList(environment)...)), interp.Dir("/"), interp.StdIO(nil, io.Discard, &r.stderr),
		interp.CallHandler(replaceEcho), interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return r.exec }),
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

// echo is the name under which echo is a program here: the shell's own does not look whether its line was taken, and sysfs
// tells by that of what cannot be.
const echoProgram = "echo "

func replaceEcho(_ context.Context, words []string) ([]string, error) {
	if words[0] == "echo" {
		words = append([]string{echoProgram}, words[1:]...)
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

// run is one run of a script.
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

// open opens for a redirection: what is written arrives when the file is closed, as scripts write a line to sysfs.
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

// asPathError makes an error one that fails the command, and not the shell.
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

// Read reads on.
func (h *handle) Read(into []byte) (int, error) { return h.content.Read(into) }

// Write writes at once: a shell's builtin does not look at the error of closing.
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

// info is what stat tells.
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
