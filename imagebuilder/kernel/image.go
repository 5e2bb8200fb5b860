package kernel

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// maxImage limits the size of a decompressed image; those of distributions have about 60 MiB.
const maxImage = 512 << 20

// readImage reads the image and its architecture. An image that is compressed as a whole, as Ubuntu's for arm64, is decompressed: firmware starts an EFI
// program, and that is none.
func (k *Kernel) readImage() error {
	content, err := fs.ReadFile(k.tree, k.ImagePath)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		if content, err = gunzip(content); err != nil {
			return fmt.Errorf("%s: %w", k.ImagePath, err)
		}
	}
	if k.Architecture, err = imageArchitecture(content); err != nil {
		return fmt.Errorf("%s: %w", k.ImagePath, err)
	}
	k.image = content
	return nil
}

func gunzip(content []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, maxImage+1))
	if err == nil && len(out) > maxImage {
		err = fmt.Errorf("expected an image of at most %d bytes", maxImage)
	}
	return out, err
}

// Image returns the image of the kernel.
func (k *Kernel) Image() []byte { return k.image }

// Fields of images: Documentation/arch/x86/boot.rst, Documentation/arch/arm64/booting.rst, and the headers of an EFI program (PE/COFF), which both have
// when they are built with an EFI stub; arm64's compressed images (drivers/firmware/efi/libstub/zboot-header.S) have only that.
const (
	x86MagicAt, x86FlagsAt, x86Is64 = 0x202, 0x236, 1
	arm64MagicAt                    = 56
	peOffsetAt                      = 0x3c
	peAMD64, peARM64                = 0x8664, 0xaa64
)

// imageArchitecture returns the architecture that the image runs on, as Go names it.
func imageArchitecture(image []byte) (string, error) {
	switch {
	case hasAt(image, x86MagicAt, "HdrS"):
		if len(image) <= x86FlagsAt || image[x86FlagsAt]&x86Is64 == 0 {
			return "", errors.New("expected a kernel of 64 bits, seen one for x86 of 32 bits")
		}
		return "amd64", nil
	case hasAt(image, arm64MagicAt, "ARM\x64"):
		return "arm64", nil
	case hasAt(image, 0, "MZ") && len(image) >= peOffsetAt+4:
		at := int(binary.LittleEndian.Uint32(image[peOffsetAt:]))
		if hasAt(image, at, "PE\x00\x00") && len(image) >= at+6 {
			switch binary.LittleEndian.Uint16(image[at+4:]) {
			case peAMD64:
				return "amd64", nil
			case peARM64:
				return "arm64", nil
			}
		}
	}
	return "", errors.New("expected the image of a Linux kernel for amd64 or arm64, seen something else")
}

func hasAt(content []byte, at int, text string) bool {
	return at >= 0 && at <= len(content) && bytes.HasPrefix(content[at:], []byte(text))
}
