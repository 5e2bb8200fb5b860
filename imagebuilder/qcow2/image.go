package qcow2

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Masks of the entries of the tables.
const (
	offsetMask     = 0x00fffffffffffe00
	flagCompressed = 1 << 62
	flagZero       = 1
)

// Image is the disk in an image. It implements io.Reader: the disk is read once, from its beginning.
type Image struct {
	file     io.ReaderAt
	fileSize uint64
	header
	l1 []byte

	at      uint64 // the next byte of the disk
	l2      []byte
	l2Index uint64
	l2Valid bool
	used    []byte // a bit for each cluster of the file that the disk or a table has
	cluster []byte // content of the current cluster
	left    []byte // what is unread of it
	decoder *zstd.Decoder
}

// Open reads the tables of an image in a file of fileSize bytes.
func Open(file io.ReaderAt, fileSize int64) (*Image, error) {
	h, err := readHeader(file)
	if err != nil {
		return nil, err
	}
	i := &Image{file: file, fileSize: uint64(fileSize), header: h}
	clusterSize := uint64(1) << h.clusterBits
	// A table of the second level has 8 bytes for each cluster.
	perL1 := clusterSize / 8 * clusterSize
	needed := h.size/perL1 + min(1, h.size%perL1)
	length := uint64(h.l1Entries) * 8
	switch {
	case h.size == 0 || h.size%sector != 0:
		return nil, fmt.Errorf("expected a disk of whole sectors, seen %d bytes", h.size)
	case uint64(h.l1Entries) < needed || length > maxL1Bytes:
		return nil, fmt.Errorf("the first table has %d entries, a disk of %d bytes needs %d: the image is damaged", h.l1Entries, h.size, needed)
	case h.l1Offset%clusterSize != 0 || !i.isInside(h.l1Offset, length):
		return nil, errors.New("the first table is not inside the file: the image is cut or damaged")
	}
	i.l1, i.l2, i.cluster = make([]byte, needed*8), make([]byte, clusterSize), make([]byte, clusterSize)
	i.used = make([]byte, i.fileSize>>h.clusterBits/8+1)
	if _, err := file.ReadAt(i.l1, int64(h.l1Offset)); err != nil {
		return nil, fmt.Errorf("read the first table: %w", err)
	}
	if h.zstd {
		if i.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<maxClusterBits*4)); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// Size returns the size of the disk in bytes.
func (i *Image) Size() int64 { return int64(i.size) }

// isInside reports whether the bytes are in the file.
func (i *Image) isInside(offset, length uint64) bool {
	return offset != 0 && length <= i.fileSize && offset <= i.fileSize-length
}

// take marks a cluster of the file as used. An error says that something else has it already: by that, a small file could hold a disk without end.
func (i *Image) take(offset uint64) error {
	n := offset >> i.clusterBits
	if i.used[n/8]&(1<<(n%8)) != 0 {
		return fmt.Errorf("two parts of the disk share the bytes at %d: the image is damaged", offset)
	}
	i.used[n/8] |= 1 << (n % 8)
	return nil
}

// Read implements io.Reader.
func (i *Image) Read(b []byte) (int, error) {
	if len(i.left) == 0 {
		if i.at >= i.size {
			return 0, io.EOF
		}
		if err := i.readCluster(); err != nil {
			return 0, fmt.Errorf("the disk at byte %d: %w", i.at, err)
		}
		i.left = i.cluster[:min(uint64(len(i.cluster)), i.size-i.at)]
		i.at += uint64(len(i.left))
	}
	n := copy(b, i.left)
	i.left = i.left[n:]
	return n, nil
}

// readCluster reads the cluster of the disk at i.at.
func (i *Image) readCluster() error {
	entry, err := i.entry()
	if err != nil {
		return err
	}
	if entry&flagCompressed != 0 {
		return i.decompress(entry)
	}
	offset := entry & offsetMask
	if offset == 0 || i.version == 3 && entry&flagZero != 0 {
		clear(i.cluster)
		return nil
	}
	if offset%uint64(len(i.cluster)) != 0 {
		return errors.New("its bytes are not where clusters are: the image is damaged")
	}
	return i.readTaken(i.cluster, offset)
}

// readTaken fills b with a cluster of the file. The last cluster of a file may be cut at the end of what the disk needs of it.
func (i *Image) readTaken(b []byte, offset uint64) error {
	need := min(uint64(len(b)), i.size-i.at)
	if !i.isInside(offset, need) {
		return errors.New("its bytes are not inside the file: the image is cut or damaged")
	}
	if err := i.take(offset); err != nil {
		return err
	}
	n, err := i.file.ReadAt(b, int64(offset))
	clear(b[n:])
	if uint64(n) >= need {
		return nil
	}
	return err
}

// entry returns the entry of the second table for the cluster at i.at; 0 when there is none.
func (i *Image) entry() (uint64, error) {
	number := i.at >> i.clusterBits
	perTable := uint64(len(i.l2) / 8)
	index := number / perTable
	if !i.l2Valid || i.l2Index != index {
		offset := be.Uint64(i.l1[index*8:]) & offsetMask
		i.l2Index, i.l2Valid = index, true
		if offset == 0 {
			clear(i.l2)
			return 0, nil
		}
		size := uint64(len(i.l2))
		if offset%size != 0 || !i.isInside(offset, size) {
			return 0, errors.New("its table is not inside the file: the image is cut or damaged")
		}
		if err := i.take(offset); err != nil {
			return 0, err
		}
		if _, err := i.file.ReadAt(i.l2, int64(offset)); err != nil {
			return 0, err
		}
	}
	return be.Uint64(i.l2[number%perTable*8:]), nil
}

// decompress reads a compressed cluster. Its entry has the offset in bytes, and above it the number of further sectors.
func (i *Image) decompress(entry uint64) error {
	shift := 62 - (i.clusterBits - 8)
	offset := entry & (1<<shift - 1)
	sectors := entry&(flagCompressed-1)>>shift + 1
	length := sectors*sector - offset%sector
	if offset >= i.fileSize || offset == 0 {
		return errors.New("its bytes are not inside the file: the image is cut or damaged")
	}
	packed := make([]byte, min(length, i.fileSize-offset))
	if _, err := i.file.ReadAt(packed, int64(offset)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := i.inflate(packed); err != nil {
		return fmt.Errorf("its compressed bytes: %w", err)
	}
	return nil
}

// inflate fills the cluster with the decompressed bytes. More may follow them, as sectors are read whole.
func (i *Image) inflate(packed []byte) error {
	if !i.zstd {
		r := flate.NewReader(bytes.NewReader(packed))
		_, err := io.ReadFull(r, i.cluster)
		return err
	}
	if err := i.decoder.Reset(bytes.NewReader(packed)); err != nil {
		return err
	}
	_, err := io.ReadFull(i.decoder, i.cluster)
	return err
}

// Close frees the memory of the decoder.
func (i *Image) Close() {
	if i.decoder != nil {
		i.decoder.Close()
	}
}
