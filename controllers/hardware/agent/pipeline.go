package agent

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// blockSize is the number of bytes that are written at once.
	blockSize = 4 << 20
	// blockCount is the number of blocks between two stages.
	blockCount = 6
	// compressedBlockSize is the number of bytes of a compressed image that are fetched at once.
	compressedBlockSize = 1 << 20
	// blockAlign is the alignment of blocks in memory, so that a device can write them without copying.
	blockAlign = 4096
	// maxWindow limits the memory that a zstd image may require. It is the default limit of the zstd tool (--long=27).
	maxWindow = 128 << 20
)

// pipeline runs stages concurrently. The first stage that fails stops the others.
type pipeline struct {
	ctx   context.Context
	stop  context.CancelCauseFunc
	group sync.WaitGroup
}

// start runs the stage in a goroutine.
func (p *pipeline) start(stage func() error) {
	p.group.Go(func() {
		if err := stage(); err != nil {
			p.stop(err)
		}
	})
}

// send passes a block on, unless the pipeline was stopped.
func (p *pipeline) send(to chan<- []byte, block []byte) error {
	select {
	case to <- block:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// receive returns the next block. The error is io.EOF when the stage before has ended.
func (p *pipeline) receive(from <-chan []byte) ([]byte, error) {
	select {
	case block, ok := <-from:
		if !ok {
			return nil, io.EOF
		}
		return block, nil
	case <-p.ctx.Done():
		return nil, context.Cause(p.ctx)
	}
}

// newBlocks returns the blocks that circulate between two stages.
func newBlocks(size int) chan []byte {
	free := make(chan []byte, blockCount)
	for range blockCount {
		raw := make([]byte, size+blockAlign)
		shift := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))%blockAlign) & (blockAlign - 1)
		free <- raw[shift : shift+size : shift+size]
	}
	return free
}

// decodeError means that the stream is not valid for its format. The digest is compared first: when the image was changed on the way,
// DigestMismatch says more than a broken compression.
type decodeError struct{ error }

// transfer reads the image file to its end, adds it to sum, decodes it, and calls write with each block. All stages have ended when it
// returns. The error is a decodeError only when the file was read to its end.
func transfer(ctx context.Context, file io.Reader, format string, sum hash.Hash, count func(int), write func([]byte) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &pipeline{ctx: ctx, stop: stop}
	size := compressedBlockSize
	if format == "raw" {
		size = blockSize
	}
	free, fetched, summed := newBlocks(size), make(chan []byte, blockCount), make(chan []byte, blockCount)
	s.start(func() error { defer close(fetched); return s.readBlocks(file, free, fetched) })
	s.start(func() error {
		defer close(summed)
		return s.forEachBlock(fetched, func(block []byte) error {
			sum.Write(block)
			count(len(block))
			return s.send(summed, block)
		})
	})
	plain, plainFree := summed, free
	var damaged error
	if format != "raw" {
		plain, plainFree = make(chan []byte, blockCount), newBlocks(blockSize)
		s.start(func() error {
			defer close(plain)
			var err error
			damaged, err = s.decode(format, &blockReader{pipeline: s, from: summed, free: free}, plainFree, plain)
			return err
		})
	}
	s.start(func() error {
		return s.forEachBlock(plain, func(block []byte) error {
			if err := write(block); err != nil {
				return err
			}
			return s.send(plainFree, block[:cap(block)])
		})
	})
	s.group.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return damaged
}

// forEachBlock calls do with every block until the stage before has ended.
func (p *pipeline) forEachBlock(from <-chan []byte, do func([]byte) error) error {
	for {
		block, err := p.receive(from)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(block)
		}
		if err != nil {
			return err
		}
	}
}

// readBlocks reads r to its end into free blocks and passes them on.
func (p *pipeline) readBlocks(r io.Reader, free <-chan []byte, to chan<- []byte) error {
	for {
		block, err := p.receive(free)
		if err != nil {
			return err
		}
		n, err := io.ReadFull(r, block)
		if n > 0 {
			if sendErr := p.send(to, block[:n]); sendErr != nil {
				return sendErr
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n > 0 {
			return checkEnd(r)
		}
		if err != nil {
			return err
		}
	}
}

// checkEnd returns nil when r has ended. It is needed because io.ReadFull reports ErrUnexpectedEOF both at the end of r and when r itself
// fails with that error.
func checkEnd(r io.Reader) error {
	var one [1]byte
	if n, err := r.Read(one[:]); n > 0 || !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("bytes behind the end")
		}
		return err
	}
	return nil
}

// decode decompresses the stream. It returns damaged for an invalid stream, after it has read the rest for the digest.
func (p *pipeline) decode(format string, from *blockReader, free <-chan []byte, to chan<- []byte) (damaged, err error) {
	err = p.decompress(format, from, free, to)
	if err == nil {
		return nil, nil
	}
	if stopped := context.Cause(p.ctx); stopped != nil {
		return nil, stopped
	}
	if _, drainErr := io.Copy(io.Discard, from); drainErr != nil {
		return nil, drainErr
	}
	return decodeError{err}, nil
}

func (p *pipeline) decompress(format string, from io.Reader, free <-chan []byte, to chan<- []byte) error {
	switch format {
	case "raw.gz":
		reader, err := gzip.NewReader(from)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		return p.readBlocks(reader, free, to)
	case "raw.zst":
		reader, err := zstd.NewReader(from, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		defer reader.Close()
		return p.readBlocks(reader, free, to)
	default:
		return fmt.Errorf("format %q is not known to this agent", format)
	}
}

// blockReader is an io.Reader for the blocks of a channel.
type blockReader struct {
	pipeline *pipeline
	from     <-chan []byte
	free     chan<- []byte
	block    []byte
	rest     []byte
}

// Read implements io.Reader.
func (r *blockReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.block != nil {
			if err := r.pipeline.send(r.free, r.block[:cap(r.block)]); err != nil {
				return 0, err
			}
			r.block = nil
		}
		block, err := r.pipeline.receive(r.from)
		if err != nil {
			return 0, err
		}
		r.block, r.rest = block, block
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// checkFormat refuses an unknown image format before the disk is changed.
func checkFormat(format string) error {
	switch format {
	case "raw", "raw.gz", "raw.zst":
		return nil
	}
	return failuref(hardware.ReasonImageInvalid, nil, "image format %q: expected raw, raw.gz or raw.zst", format)
}
