package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
)

// static refuses what cannot run as the only file of a ramdisk: the kernel would panic with "no working init found",
// which nobody sees on a server without a screen.
func static(program io.ReaderAt) error {
	f, err := elf.NewFile(program)
	if err != nil {
		return fmt.Errorf("expected a Linux program, seen something else (%w): give the ingot-agent that `make build` makes", err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("expected a statically linked program, seen one that needs a loader: build it with CGO_ENABLED=0")
		}
	}
	return nil
}
