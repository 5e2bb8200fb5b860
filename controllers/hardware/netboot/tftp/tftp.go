package tftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pin/tftp/v3"
)

const (
	// packetTimeout and retries bound how long a client that is gone is waited for.
	packetTimeout = 2 * time.Second
	retries       = 3
	// maxBlock keeps a packet within one Ethernet frame: firmware seldom puts fragments together. The library takes less where the network of the client does.
	maxBlock = 1468
	// maxTransfers are at a time, and maxOfClient of them to one address, which anybody can name as its own, and which a router may give to many. Firmware has one at
	// a time. The others are refused.
	maxTransfers, maxOfClient = 1024, 512
	// transferLimit is how long a transfer may take. The largest program has a megabyte, in 700 blocks.
	transferLimit = 10 * time.Minute
)

// Results of requests, as the function that counts them is told.
const (
	ResultSent = "sent"
	// ResultRefused is that of a name that is not in the files.
	ResultRefused = "refused"
	// ResultSizeOnly is that of a client that asked for the size and ended the transfer, as firmware does before it asks for the file.
	ResultSizeOnly = "size-only"
	// ResultBusy is that of a client for which there is no room.
	ResultBusy = "busy"
	// ResultFailed is that of a client that went away, or of a file that cannot be read.
	ResultFailed = "failed"
)

// Options of Serve. All are required.
type Options struct {
	// Files are those that are served. A name that is not in them is refused, however it is written.
	Files fs.FS
	Clock func() time.Time
	Log   *slog.Logger
	// Count is called with the result of each request.
	Count func(result string)
}

// Serve serves files to whoever asks at conn until ctx ends, and returns when the transfers that are under way have ended. A client that has options, as all
// firmware has, is sent nothing but their acknowledgement (RFC 2347) before it has answered from its address.
func Serve(ctx context.Context, conn net.PacketConn, o Options) error {
	return serve(ctx, conn, o, &transfers{most: maxTransfers, mostOfOne: maxOfClient, of: map[string]int{}})
}

func serve(ctx context.Context, conn net.PacketConn, o Options, transfers *transfers) error {
	log, count := o.Log, o.Count
	server := tftp.NewServer(func(name string, out io.ReaderFrom) error {
		var client net.IP
		if transfer, ok := out.(tftp.OutgoingTransfer); ok {
			address := transfer.RemoteAddr()
			client = address.IP
		}
		err := transfers.begin(client.String())
		if err == nil {
			err = send(name, out, o)
			transfers.end(client.String())
		}
		// A name comes from the network: %q in the log shows what it is made of.
		line := log.With("file", fmt.Sprintf("%q", limit(name)), "client", client)
		switch {
		case errors.Is(err, errBusy):
			count(ResultBusy)
			line.Warn("TFTP: refused, because there are too many transfers", "most", transfers.most, "mostOfOneClient", transfers.mostOfOne)
		case err == nil:
			count(ResultSent)
			line.Info("TFTP")
		case errors.Is(err, fs.ErrNotExist):
			count(ResultRefused)
			line.Debug("TFTP: refused, because there is no such file") // Anybody may ask for names without end.
		case isSizeProbe(err):
			count(ResultSizeOnly)
			line.Debug("TFTP: the client asked for the size")
		default:
			count(ResultFailed)
			line.Info("TFTP", "error", err)
		}
		return err
	}, nil)
	server.SetTimeout(packetTimeout)
	server.SetRetries(retries)
	server.SetBlockSize(maxBlock)
	stop := context.AfterFunc(ctx, server.Shutdown)
	defer stop()
	if err := server.Serve(conn); err != nil {
		return fmt.Errorf("TFTP: %w", err)
	}
	server.Shutdown() // Serve returns when the socket is closed; transfers, which have sockets of their own, are waited for here.
	return nil
}

// errBusy is the error of a request for which there is no room, errSlow that of a transfer that takes too long.
var (
	errBusy = errors.New("too many transfers")
	errSlow = errors.New("the transfer takes too long")
)

// transfers counts those that are under way.
type transfers struct {
	most, mostOfOne int

	mu    sync.Mutex
	total int
	of    map[string]int
}

// begin takes a place for the client, or returns errBusy.
func (t *transfers) begin(client string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total >= t.most || t.of[client] >= t.mostOfOne {
		return errBusy
	}
	t.total++
	t.of[client]++
	return nil
}

// end gives the place back.
func (t *transfers) end(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total--
	if t.of[client]--; t.of[client] == 0 {
		delete(t.of, client)
	}
}

// timedReader ends a transfer that takes too long.
type timedReader struct {
	io.Reader
	clock func() time.Time
	until time.Time
}

// Read implements io.Reader.
func (r timedReader) Read(p []byte) (int, error) {
	if r.clock().After(r.until) {
		return 0, errSlow
	}
	return r.Reader.Read(p)
}

// isSizeProbe reports whether the client ended the transfer before its first block. UEFI firmware asks for the size first, and ends that transfer with the
// error "User aborted the transfer" (EDK II, MdeModulePkg/Universal/Network/Mtftp4Dxe); then it asks for the file. The library tells it in the text alone.
func isSizeProbe(err error) bool { return strings.HasPrefix(err.Error(), "sending block 0: code=") }

// maxName limits what of a name is logged.
const maxName = 128

func limit(name string) string { return name[:min(len(name), maxName)] }

// send sends the file with the name. Firmware writes names with and without a leading slash.
func send(name string, out io.ReaderFrom, o Options) error {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if !fs.ValidPath(name) {
		return fs.ErrNotExist
	}
	f, err := o.Files.Open(name)
	if err != nil {
		return fs.ErrNotExist // The path of the folder is of no interest to a client.
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	if transfer, ok := out.(tftp.OutgoingTransfer); ok {
		transfer.SetSize(info.Size())
	}
	_, err = out.ReadFrom(timedReader{f, o.Clock, o.Clock().Add(transferLimit)})
	return err
}
