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
	"time"

	"github.com/pin/tftp/v3"
)

const (
	// packetTimeout and retries bound how long a client that is gone is waited for.
	packetTimeout = 2 * time.Second
	retries       = 3
	// maxBlock keeps a packet within one Ethernet frame: firmware seldom puts fragments together.
	maxBlock = 1468
)

// Results of requests, as the function that counts them is told.
const (
	ResultSent = "sent"
	// ResultRefused is that of a name that is not in the files.
	ResultRefused = "refused"
	// ResultSizeOnly is that of a client that asked for the size and ended the transfer, as firmware does before it asks for the file.
	ResultSizeOnly = "size-only"
	// ResultFailed is that of a client that went away, or of a file that cannot be read.
	ResultFailed = "failed"
)

// Serve serves the files to whoever asks at conn until ctx ends, and returns when the transfers that are under way have ended. A name that is not in files is refused, however it is written. count is called with the
// result of each request.
func Serve(ctx context.Context, conn net.PacketConn, files fs.FS, log *slog.Logger, count func(result string)) error {
	server := tftp.NewServer(func(name string, out io.ReaderFrom) error {
		err := send(name, out, files)
		var client net.IP
		if transfer, ok := out.(tftp.OutgoingTransfer); ok {
			address := transfer.RemoteAddr()
			client = address.IP
		}
		// A name comes from the network: %q in the log shows what it is made of.
		line := log.With("file", fmt.Sprintf("%q", limit(name)), "client", client)
		switch {
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

// isSizeProbe reports whether the client ended the transfer before its first block. UEFI firmware asks for the size first, and ends that transfer with the
// error "User aborted the transfer" (EDK II, MdeModulePkg/Universal/Network/Mtftp4Dxe); then it asks for the file. The library tells it in the text alone.
func isSizeProbe(err error) bool { return strings.HasPrefix(err.Error(), "sending block 0: code=") }

// maxName limits what of a name is logged.
const maxName = 128

func limit(name string) string { return name[:min(len(name), maxName)] }

// send sends the file with the name. Firmware writes names with and without a leading slash.
func send(name string, out io.ReaderFrom, files fs.FS) error {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if !fs.ValidPath(name) {
		return fs.ErrNotExist
	}
	f, err := files.Open(name)
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
	_, err = out.ReadFrom(f)
	return err
}
