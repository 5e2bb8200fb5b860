package ipxe

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// errNoInit is what a kernel panics with.
var errNoInit = errors.New("no working init found in the initrd")

const (
	// cpioHeader is the length of a header of the "new" format, six octets of magic and 13 numbers of eight hex digits
	// (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).
	cpioHeader = 110
	// maxName bounds a name in the archive.
	maxName = 4096
)

// findInit reads an initrd as the kernel does, cpio archives one behind the other, compressed or not, until it has found /init.
func findInit(r io.Reader) error {
	buffered := bufio.NewReaderSize(r, 1<<16)
	magic, err := buffered.Peek(6)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoInit, err)
	}
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("%w: %w", errNoInit, err)
		}
		return findInit(unpacked)
	case string(magic[:4]) == "\x28\xb5\x2f\xfd":
		unpacked, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRamdisk))
		if err != nil {
			return fmt.Errorf("%w: %w", errNoInit, err)
		}
		defer unpacked.Close()
		return findInit(unpacked)
	case string(magic[:5]) != "07070":
		return fmt.Errorf("%w: neither a cpio archive nor gzip or zstd", errNoInit)
	}
	return findInCPIO(buffered)
}

func findInCPIO(r *bufio.Reader) error {
	for {
		if magic, err := r.Peek(1); err == nil && magic[0] == 0 { // padding between archives
			_, _ = r.Discard(1) // it was just peeked at
			continue
		}
		if magic, err := r.Peek(6); err == nil && !bytes.HasPrefix(magic, []byte("07070")) {
			return findInit(r) // a further archive, compressed
		}
		header := make([]byte, cpioHeader)
		if _, err := io.ReadFull(r, header); err != nil {
			return fmt.Errorf("%w: the archive ends", errNoInit)
		}
		name, size, err := readEntry(r, header)
		if err != nil {
			return err
		}
		if size > 0 && strings.TrimPrefix(strings.TrimPrefix(name, "."), "/") == "init" {
			return nil
		}
		if _, err := io.CopyN(io.Discard, r, int64(align4(size))); err != nil {
			return fmt.Errorf("%w: the archive ends", errNoInit)
		}
	}
}

// readEntry reads the name behind a header, up to the content.
func readEntry(r io.Reader, header []byte) (name string, size uint64, err error) {
	if magic := string(header[:6]); magic != "070701" && magic != "070702" {
		return "", 0, fmt.Errorf("%w: a cpio format that the kernel does not know", errNoInit)
	}
	size, sizeErr := strconv.ParseUint(string(header[54:62]), 16, 32)
	length, lengthErr := strconv.ParseUint(string(header[94:102]), 16, 32)
	if sizeErr != nil || lengthErr != nil || length == 0 || length > maxName {
		return "", 0, fmt.Errorf("%w: a damaged cpio header", errNoInit)
	}
	padded := make([]byte, align4(cpioHeader+length)-cpioHeader)
	if _, err := io.ReadFull(r, padded); err != nil {
		return "", 0, fmt.Errorf("%w: the archive ends", errNoInit)
	}
	return string(padded[:length-1]), size, nil
}

func align4(n uint64) uint64 { return (n + 3) / 4 * 4 }
