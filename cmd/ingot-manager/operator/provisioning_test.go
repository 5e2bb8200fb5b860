package operator

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
)

func TestAPortThatIsTakenMakesTheProcessNotReadyAndSaysWhy(t *testing.T) {
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p := &provisioning{settings: settings.Network{Interface: "lo", Address: "127.0.0.1"}, log: slog.New(slog.DiscardHandler)}
	if err := p.checkReady(nil); err != nil {
		t.Errorf("before it began: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		p.keepServing(ctx, "TFTP", func(ctx context.Context, _ netip.Addr) error {
			conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", taken.LocalAddr().String())
			if err == nil {
				err = conn.Close()
			}
			return err
		})
		close(ended)
	}()
	for deadline := time.Now().Add(time.Minute); p.checkReady(nil) == nil && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if err := p.checkReady(nil); err == nil || !strings.Contains(err.Error(), "boot.network: TFTP") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("%v", err)
	}
	cancel()
	<-ended
}

func TestAnInterfaceThatIsMissingIsNamed(t *testing.T) {
	p := &provisioning{settings: settings.Network{Interface: "no-such-nic"}, log: slog.New(slog.DiscardHandler)}
	if _, err := p.ownAddress(); err == nil || !strings.Contains(err.Error(), "no-such-nic") {
		t.Errorf("%v", err)
	}
}
