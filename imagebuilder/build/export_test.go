package build

import (
	"context"
	"errors"
	"io"
	"os"
)

// Program builds one program of the recipe.
func Program(ctx context.Context, opts Options, i int, log io.Writer) (err error) {
	b := &builder{Options: opts, work: opts.Output}
	if b.scratch, err = os.MkdirTemp("", "program-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.scratch)) }()
	return b.buildProgram(ctx, i, log)
}
