// Package extent puts large files together out of bytes and parts of other files, without copying them.
package extent

import (
	"io"
	"sort"
)

// Content is a file that is put together of parts. It can be read at any offset, and by many readers at once. The zero value is an empty file.
type Content struct {
	parts []part
	size  int64
}

// part is one piece of a Content. Its source is nil where the file has zeros.
type part struct {
	start, size int64
	source      io.ReaderAt
}

// Size returns the size of the file.
func (c *Content) Size() int64 { return c.size }

// Append adds size bytes of the source, from its beginning.
func (c *Content) Append(source io.ReaderAt, size int64) {
	if size <= 0 {
		return
	}
	c.parts = append(c.parts, part{start: c.size, size: size, source: source})
	c.size += size
}

// AppendBytes adds the bytes.
func (c *Content) AppendBytes(data []byte) { c.Append(bytesAt(data), int64(len(data))) }

// PadTo adds zeros until the file has the size.
func (c *Content) PadTo(size int64) { c.Append(nil, size-c.size) }

// Reader returns a new reader at the beginning of the file.
func (c *Content) Reader() *io.SectionReader { return io.NewSectionReader(c, 0, c.size) }

// ReadAt implements io.ReaderAt.
func (c *Content) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset >= c.size {
		return 0, io.EOF
	}
	read := 0
	for i := sort.Search(len(c.parts), func(i int) bool { return c.parts[i].start+c.parts[i].size > offset }); i < len(c.parts) && read < len(p); i++ {
		at := c.parts[i]
		within := offset + int64(read) - at.start
		want := min(int64(len(p)-read), at.size-within)
		n, err := at.read(p[read:read+int(want)], within)
		read += n
		if int64(n) < want {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF // a file has become shorter than it was
			}
			return read, err
		}
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

func (p part) read(into []byte, offset int64) (int, error) {
	if p.source == nil {
		clear(into)
		return len(into), nil
	}
	return p.source.ReadAt(into, offset)
}

// bytesAt reads from memory.
type bytesAt []byte

// ReadAt implements io.ReaderAt.
func (b bytesAt) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
