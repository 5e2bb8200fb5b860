package uki

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/extent"
)

// MaxCommandLine is the longest command line: the kernel's COMMAND_LINE_SIZE on x86-64 and arm64 is 2048, with the final zero.
const MaxCommandLine = 2047

// commandLineSpace is the space that an image has for its command line.
const commandLineSpace = 4096

// Template makes images of one stub, kernel and initrd.
type Template struct {
	// header is the header of the image; commandLineAt is where the size of the command line is in it.
	header        []byte
	commandLineAt int
	// before is what is between the header and the command line, after what follows the command line.
	before, after extent.Content
}

// New returns a template. The stub is systemd's linuxx64.efi.stub or linuxaa64.efi.stub. release is the content of the section .osrel, in the format
// of os-release(5). kernel and initrd are read when an image is read and must not change.
func New(stub []byte, release string, kernel, initrd *io.SectionReader) (*Template, error) {
	program, err := parse(stub)
	if err != nil {
		return nil, fmt.Errorf("the EFI stub: %w", err)
	}
	kernelMemory, err := memoryOf(kernel, program.machine)
	if err != nil {
		return nil, fmt.Errorf("the kernel: %w", err)
	}
	t := &Template{}
	t.before.AppendBytes(program.content)
	program.add(&t.before, ".osrel", []byte(release))
	t.commandLineAt = program.nextHeader + 8
	program.addSection(".cmdline", commandLineSpace, commandLineSpace)
	initrdSize, kernelSize := initrd.Size(), kernel.Size()
	program.addSection(".initrd", initrdSize, initrdSize)
	t.after.Append(initrd, initrdSize)
	t.after.PadTo(program.aligned(t.after.Size()))
	program.addSection(".linux", max(kernelMemory, kernelSize), kernelSize)
	t.after.Append(kernel, kernelSize)
	t.after.PadTo(program.aligned(t.after.Size()))
	if t.header, err = program.finish(); err != nil {
		return nil, fmt.Errorf("the EFI stub: %w", err)
	}
	return t, nil
}

// Size returns the size of every image of the template.
func (t *Template) Size() int64 {
	return int64(len(t.header)) + t.before.Size() + commandLineSpace + t.after.Size()
}

// Image returns the image that starts the kernel with the command line.
func (t *Template) Image(commandLine string) (*extent.Content, error) {
	if len(commandLine) > MaxCommandLine {
		return nil, fmt.Errorf("a kernel command line of %d bytes: the kernel accepts %d", len(commandLine), MaxCommandLine)
	}
	if strings.ContainsFunc(commandLine, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, errors.New("a kernel command line with characters other than printable ASCII")
	}
	header := bytes.Clone(t.header)
	binary.LittleEndian.PutUint32(header[t.commandLineAt:], uint32(len(commandLine)))
	image := &extent.Content{}
	image.AppendBytes(header)
	image.Append(&t.before, t.before.Size())
	image.AppendBytes([]byte(commandLine))
	image.PadTo(int64(len(header)) + t.before.Size() + commandLineSpace)
	image.Append(&t.after, t.after.Size())
	return image, nil
}
