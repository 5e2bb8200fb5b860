package deb

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

const (
	arMagic = "!<arch>\n"
	// headerSize is the size of the header of a member.
	headerSize = 60
	// maxUnpacked limits what one package may unpack to: a kernel with all its modules has 0.5 GiB.
	maxUnpacked = 8 << 30
)

// Unpack unpacks the files of the package below dir for which wanted is true. Paths are relative, without a leading "./". Owners and special
// files are left out, as nothing that is built from a package here needs them. Nothing is written outside of dir, but a symbolic link may lead out:
// read the tree by os.Root, which does not follow it.
func Unpack(r io.Reader, dir string, wanted func(name string) bool) error {
	data, err := openData(r)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(maxUnpacked)
	for archive := tar.NewReader(data); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading data.tar: %w", err)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if name == "" || !wanted(name) {
			continue
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("the package unpacks to more than %d bytes", int64(maxUnpacked))
		}
		if err := unpackEntry(root, h, name, archive); err != nil {
			return fmt.Errorf("unpacking %s: %w", name, err)
		}
	}
}

// unpackEntry writes one file, directory or link. root refuses paths that lead out of it.
func unpackEntry(root *os.Root, h *tar.Header, name string, content io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fs.FileMode(h.Mode)&0o755|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return root.Link(strings.TrimPrefix(path.Clean("/"+h.Linkname), "/"), name)
	}
	return nil
}

// openData finds the member data.tar and returns its decompressed content.
func openData(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	magic := make([]byte, len(arMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != arMagic {
		return nil, errors.New("expected a Debian package (an ar archive), seen something else")
	}
	for {
		header := make([]byte, headerSize)
		if _, err := io.ReadFull(in, header); err != nil {
			return nil, fmt.Errorf("the package has no data.tar: %w", err)
		}
		name := strings.TrimRight(strings.TrimSpace(string(header[:16])), "/")
		size, err := strconv.ParseInt(strings.TrimSpace(string(header[48:58])), 10, 64)
		if err != nil || size < 0 {
			return nil, fmt.Errorf("the package's member %q has no size", name)
		}
		if suffix, found := strings.CutPrefix(name, "data.tar"); found {
			return Decompress(io.LimitReader(in, size), suffix)
		}
		if _, err := in.Discard(int(size + size&1)); err != nil {
			return nil, fmt.Errorf("the package ends in its member %q: %w", name, err)
		}
	}
}

// Decompress returns the content of a file whose name ends with the suffix: "" or .xz, .zst, .gz.
func Decompress(r io.Reader, suffix string) (io.Reader, error) {
	switch suffix {
	case "":
		return r, nil
	case ".xz":
		return xz.NewReader(bufio.NewReaderSize(r, 1<<20))
	case ".zst":
		return zstd.NewReader(r)
	case ".gz":
		return gzip.NewReader(r)
	}
	return nil, fmt.Errorf("expected no compression, or .xz, .zst or .gz, seen %q", suffix)
}

// ReadCompressed returns the decompressed content of a file of the tree whose compression has the suffix, as Decompress has it. It fails when that is
// longer than limit.
func ReadCompressed(tree fs.FS, name, suffix string, limit int64) ([]byte, error) {
	f, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := Decompress(f, suffix)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("expected at most %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return content, nil
}

// UnpackFile unpacks the package at path below dir, as Unpack does.
func UnpackFile(packagePath, dir string, wanted func(name string) bool) error {
	f, err := os.Open(filepath.Clean(packagePath))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Unpack(f, dir, wanted); err != nil {
		return fmt.Errorf("%s: %w", packagePath, err)
	}
	return nil
}
