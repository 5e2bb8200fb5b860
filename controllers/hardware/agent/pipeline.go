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
	// blockSize is what is written at once; blocks are how many there are between two stages.
	blockSize, blocks = 4 << 20, 6
	// fetchSize is what is fetched at once of a compressed image.
	fetchSize = 1 << 20
	// blockAlign is the alignment that lets a device take a block without copying it.
	blockAlign = 4096
	// maxWindow bounds the memory a zstd image may ask for: what the zstd tool itself accepts unasked (--long=27).
	maxWindow = 128 << 20
)

// stages runs the stages of a pipeline. The first one to fail stops the others.
type stages struct {
	ctx   context.Context
	stop  context.CancelCauseFunc
	group sync.WaitGroup
}

func (s *stages) run(stage func() error) {
	s.group.Go(func() {
		if err := stage(); err != nil {
			s.stop(err)
		}
	})
}

// send and receive pass a block on, unless the pipeline was stopped.
func (s *stages) send(to chan<- []byte, block []byte) error {
	select {
	case to <- block:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

func (s *stages) receive(from <-chan []byte) ([]byte, error) {
	select {
	case block, ok := <-from:
		if !ok {
			return nil, io.EOF
		}
		return block, nil
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

// pool makes the blocks that go round between two stages.
func pool(size int) chan []byte {
	free := make(chan []byte, blocks)
	for range blocks {
		raw := make([]byte, size+blockAlign)
		shift := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))%blockAlign) & (blockAlign - 1)
		free <- raw[shift : shift+size : shift+size]
	}
	return free
}

// decodeError is a stream that is no valid image of its format. It is judged after the digest: of an image that was
// changed on the way, the digest is the better news.
type decodeError struct{ error }

// transfer reads the image file to its end through sum, decodes it, and hands it to write block by block. Every stage
// has ended when it returns. The error is a decodeError only when the file was read to its end.
func transfer(ctx context.Context, file io.Reader, format string, sum hash.Hash, count func(int), write func([]byte) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &stages{ctx: ctx, stop: stop}
	size := fetchSize
	if format == "raw" {
		size = blockSize
	}
	free, fetched, summed := pool(size), make(chan []byte, blocks), make(chan []byte, blocks)
	s.run(func() error { defer close(fetched); return s.fill(file, free, fetched) })
	s.run(func() error {
		defer close(summed)
		return s.each(fetched, func(block []byte) error {
			sum.Write(block)
			count(len(block))
			return s.send(summed, block)
		})
	})
	plain, plainFree := summed, free
	var damaged error
	if format != "raw" {
		plain, plainFree = make(chan []byte, blocks), pool(blockSize)
		s.run(func() error {
			defer close(plain)
			var err error
			damaged, err = s.decode(format, &blockReader{stages: s, from: summed, free: free}, plainFree, plain)
			return err
		})
	}
	s.run(func() error {
		return s.each(plain, func(block []byte) error {
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

// each calls do with every block until the stage before has ended.
func (s *stages) each(from <-chan []byte, do func([]byte) error) error {
	for {
		block, err := s.receive(from)
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

// fill reads r to its end into free blocks and passes them on.
func (s *stages) fill(r io.Reader, free <-chan []byte, to chan<- []byte) error {
	for {
		block, err := s.receive(free)
		if err != nil {
			return err
		}
		n, err := io.ReadFull(r, block)
		if n > 0 {
			if sendErr := s.send(to, block[:n]); sendErr != nil {
				return sendErr
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n > 0 {
			return endOf(r)
		}
		if err != nil {
			return err
		}
	}
}

// endOf tells a reader's end, which io.ReadFull reports in two ways, from a reader's own unexpected end.
func endOf(r io.Reader) error {
	var one [1]byte
	if n, err := r.Read(one[:]); n > 0 || !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("bytes behind the end")
		}
		return err
	}
	return nil
}

// decode decompresses the stream. What is wrong with the stream comes back as damaged, after the rest was read for its digest.
func (s *stages) decode(format string, from *blockReader, free <-chan []byte, to chan<- []byte) (damaged, err error) {
	err = s.decompress(format, from, free, to)
	if err == nil {
		return nil, nil
	}
	if stopped := context.Cause(s.ctx); stopped != nil {
		return nil, stopped
	}
	if _, drainErr := io.Copy(io.Discard, from); drainErr != nil {
		return nil, drainErr
	}
	return decodeError{err}, nil
}

func (s *stages) decompress(format string, from io.Reader, free <-chan []byte, to chan<- []byte) error {
	switch format {
	case "raw.gz":
		reader, err := gzip.NewReader(from)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		return s.fill(reader, free, to)
	case "raw.zst":
		reader, err := zstd.NewReader(from, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		defer reader.Close()
		return s.fill(reader, free, to)
	default:
		return fmt.Errorf("format %q is not known to this agent", format)
	}
}

// blockReader reads the blocks of a channel as one stream.
type blockReader struct {
	stages *stages
	from   <-chan []byte
	free   chan<- []byte
	block  []byte
	rest   []byte
}

// Read implements io.Reader.
func (r *blockReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.block != nil {
			if err := r.stages.send(r.free, r.block[:cap(r.block)]); err != nil {
				return 0, err
			}
			r.block = nil
		}
		block, err := r.stages.receive(r.from)
		if err != nil {
			return 0, err
		}
		r.block, r.rest = block, block
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// checkFormat refuses an image before anything is touched.
func checkFormat(format string) error {
	switch format {
	case "raw", "raw.gz", "raw.zst":
		return nil
	}
	return failf(hardware.ReasonImageInvalid, nil, "image format %q: expected raw, raw.gz or raw.zst", format)
}
