package agent

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// FuzzTransfer: an image is summed to its last byte also where it cannot be decoded, and no block is longer than the memory that was made for it. A few bytes
// that become many end when the disk is full.
func FuzzTransfer(f *testing.F) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(bytes.Repeat([]byte("image "), 1000))
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(0), []byte("raw"))
	f.Add(uint8(1), zipped.Bytes())
	f.Add(uint8(2), encoder.EncodeAll(make([]byte, 5<<20), nil))
	f.Add(uint8(2), append(encoder.EncodeAll([]byte("image"), nil), "behind the end"...))
	full := errors.New("the disk is full")
	f.Fuzz(func(t *testing.T, kind uint8, file []byte) {
		format := []string{"raw", "raw.gz", "raw.zst"}[kind%3]
		sum, counted := sha256.New(), 0
		var written bytes.Buffer
		err := transfer(t.Context(), bytes.NewReader(file), format, sum, func(n int) { counted += n }, func(block []byte) error {
			if len(block) > blockSize || len(block) == 0 {
				t.Errorf("a block of %d bytes", len(block))
			}
			if written.Len()+len(block) > 16<<20 {
				return full
			}
			written.Write(block)
			return nil
		})
		if errors.Is(err, full) {
			return
		}
		var damaged decodeError
		if err != nil && !errors.As(err, &damaged) {
			t.Errorf("reading memory failed: %v", err)
		}
		if counted != len(file) || [32]byte(sum.Sum(nil)) != sha256.Sum256(file) {
			t.Errorf("%d of %d bytes were summed: %v", counted, len(file), err)
		}
		if format == "raw" && (err != nil || !bytes.Equal(written.Bytes(), file)) {
			t.Errorf("%d of %d bytes were written: %v", written.Len(), len(file), err)
		}
	})
}
