package qcow2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Magic are the first bytes of an image.
const Magic = "QFI\xfb"

// Limits of QEMU itself.
const (
	minClusterBits, maxClusterBits = 9, 21
	maxL1Bytes                     = 32 << 20
	sector                         = 512
)

// Incompatible features: an image that has one cannot be read by who does not know it.
const (
	featureDirty = 1 << iota
	featureCorrupt
	featureExternalData
	featureCompressionType
	featureExtendedL2
)

// refusals are the features that are refused, with what to do.
var refusals = []struct {
	feature uint64
	message string
}{
	{featureDirty, "the image was not closed (dirty): run qemu-img check -r all on a copy"},
	{featureCorrupt, "the image is marked as corrupt: run qemu-img check, or fetch it again"},
	{featureExternalData, "the disk's data is in another file: convert the image with qemu-img where that file is"},
	{featureExtendedL2, "the image has subclusters (extended_l2=on): convert it with qemu-img convert -O qcow2"},
}

// header are the fields that matter to a reader.
type header struct {
	version     uint32
	clusterBits uint32
	size        uint64
	l1Entries   uint32
	l1Offset    uint64
	zstd        bool
}

var be = binary.BigEndian

// readHeader reads the header and refuses what cannot be read.
func readHeader(r io.ReaderAt) (header, error) {
	var h header
	b := make([]byte, 112)
	n, err := r.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return h, err
	}
	if n < 72 || string(b[:4]) != Magic {
		return h, errors.New("expected an image in the format qcow2, seen something else")
	}
	h = header{version: be.Uint32(b[4:]), clusterBits: be.Uint32(b[20:]), size: be.Uint64(b[24:]), l1Entries: be.Uint32(b[36:]), l1Offset: be.Uint64(b[40:])}
	if h.version == 3 {
		if err := h.readFeatures(b[:n]); err != nil {
			return h, err
		}
	}
	return h, h.check(b)
}

// check refuses what cannot be read in any version. b is the header.
func (h header) check(b []byte) error {
	switch {
	case h.version != 2 && h.version != 3:
		return fmt.Errorf("expected version 2 or 3 of qcow2, seen %d", h.version)
	case be.Uint64(b[8:]) != 0 || be.Uint32(b[16:]) != 0:
		return errors.New("the image needs a backing file: make it whole with qemu-img convert where that file is")
	case be.Uint32(b[32:]) != 0:
		return errors.New("the image is encrypted: decrypt it with qemu-img convert")
	case h.clusterBits < minClusterBits || h.clusterBits > maxClusterBits:
		return fmt.Errorf("expected clusters of 512 bytes to 2 MiB, seen 2^%d bytes: the image is damaged", h.clusterBits)
	}
	return nil
}

// readFeatures reads what only version 3 has.
func (h *header) readFeatures(b []byte) error {
	if len(b) < 104 {
		return errors.New("the image ends in its header")
	}
	features := be.Uint64(b[72:])
	for _, r := range refusals {
		if features&r.feature != 0 {
			return errors.New(r.message)
		}
	}
	if unknown := features &^ featureCompressionType; unknown != 0 {
		return fmt.Errorf("the image has features that are not known here (%#x): convert it with qemu-img convert -O qcow2", unknown)
	}
	if features&featureCompressionType == 0 {
		return nil
	}
	if be.Uint32(b[100:]) < 105 || len(b) < 105 {
		return errors.New("the image's header has no room for its compression: it is damaged")
	}
	switch b[104] {
	case 0:
	case 1:
		h.zstd = true
	default:
		return fmt.Errorf("expected compression zlib or zstd, seen number %d", b[104])
	}
	return nil
}
