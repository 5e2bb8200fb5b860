package tftp

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"testing"
	"testing/fstest"
	"time"
)

// FuzzAFirstPacket: what a stranger's packet is answered with, before its address is confirmed by an answer, is one packet of the protocol that fits into a frame.
func FuzzAFirstPacket(f *testing.F) {
	f.Add([]byte("\x00\x01snponly.efi\x00octet\x00tsize\x000\x00blksize\x0065464\x00windowsize\x00100\x00"))
	f.Add([]byte("\x00\x01snponly.efi\x00octet\x00"))
	f.Add([]byte("\x00\x01../x\x00netascii\x00blksize\x00-1\x00"))
	f.Add([]byte("\x00\x02upload\x00octet\x00"))
	f.Add([]byte("\x00\x04\x00\x01"))
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	files := fstest.MapFS{"snponly.efi": {Data: make([]byte, 1<<20)}}
	go func() {
		served <- Serve(ctx, conn, Options{Files: files, Clock: time.Now, Log: slog.New(slog.DiscardHandler), Count: func(string) {}})
	}()
	f.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) > 1400 {
			return
		}
		client, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := client.WriteTo(packet, conn.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		total, buffer := 0, make([]byte, 1<<16)
		for {
			if err := client.SetReadDeadline(time.Now().Add(3 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			n, from, err := client.ReadFrom(buffer)
			if err != nil {
				break
			}
			total += n
			if kind := binary.BigEndian.Uint16(buffer); n < 4 || kind != 3 && kind != 5 && kind != 6 {
				t.Errorf("%q is answered by %q", packet, buffer[:n])
			}
			// An error ends the transfer, so that nothing is repeated.
			if _, err := client.WriteTo([]byte("\x00\x05\x00\x00\x00"), from); err != nil {
				t.Fatal(err)
			}
		}
		if total > maxBlock+4 {
			t.Errorf("%d bytes are answered by %d", len(packet), total)
		}
	})
}
