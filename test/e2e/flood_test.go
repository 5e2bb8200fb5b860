package e2e

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

// flood is what neighbours on the provisioning network do to the boot service.
type flood struct {
	boot, secure string
	group        sync.WaitGroup
	// begun counts connections, and ended those that the boot service has ended.
	begun, ended atomic.Int64
}

// neighbours is how many addresses the flood comes from.
const neighbours = 16

// start begins n of each kind, which begin again whenever the boot service ends them.
func (f *flood) start(ctx context.Context, n int) {
	hello := []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3} // the beginning of a TLS handshake
	for i := range n {
		f.keep(ctx, i, f.boot, []byte("GET /files/initrd HTTP/1.1\r\nHost: a\r\n\r\n"))
		f.keep(ctx, i, f.secure, hello)
	}
	header := []byte("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 10<<20))
	for i := range max(n/200, 1) {
		f.keep(ctx, i, f.boot, header)
	}
}

// keep sends the bytes, reads nothing, and waits until the connection ends.
func (f *flood) keep(ctx context.Context, number int, address string, bytes []byte) {
	f.group.Go(func() {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(100+number%neighbours))}}
		for ctx.Err() == nil {
			connection, err := from.DialContext(ctx, "tcp", address)
			if err == nil {
				f.begun.Add(1)
				stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
				if tcp, isTCP := connection.(*net.TCPConn); isTCP {
					_ = tcp.SetReadBuffer(4096) // what is not read stays with the server
				}
				_, err = connection.Write(bytes)
				for err == nil {
					// It is awake once in ten seconds, to see whether it was ended.
					select {
					case <-ctx.Done():
						err = ctx.Err()
					case <-time.After(10 * time.Second):
						_, err = io.WriteString(connection, " ")
					}
				}
				f.ended.Add(1)
				stop()
				_ = connection.Close()
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
}

// TestAnInstallGoesOnWhileNeighboursDrownTheBootService installs a server in quiet and another one beside readers that read nothing, handshakes that never end
// and headers without end, against a boot service in the process of the leader.
func TestAnInstallGoesOnWhileNeighboursDrownTheBootService(t *testing.T) {
	require.OneOf(t, 3)
	t.Parallel()
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	p := startPipeline(t, []rack.ServerSpec{{Name: "quiet", Profile: profile}, {Name: "loud", Profile: profile}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	install := func(name string) time.Duration {
		t.Helper()
		machine := &faultCase{pipeline: p, name: name, server: p.env.Rack.Server(name)}
		if _, err := machine.await(ctx, "host available", func(v observation) bool { return v.host != nil && v.host.Status.Provisioning.State == "available" }); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := p.order(ctx, name, name); err != nil {
			t.Fatal(err)
		}
		if _, err := machine.ready(ctx); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	quiet, lease := install("quiet"), p.leaderLease(ctx, t)

	secure, err := p.env.SecureBootAddress()
	if err != nil {
		t.Fatal(err)
	}
	n := 200
	if all, _ := require.Sample(); all {
		n = 2000
	}
	f := &flood{boot: p.env.BootAddress, secure: secure}
	flooding, stop := context.WithCancel(ctx)
	f.start(flooding, n)
	eventually(t, takeoverLimit, "the neighbours are connected", func() bool { return f.begun.Load() >= int64(n) })
	loud := install("loud")
	after := p.leaderLease(ctx, t)
	stop()
	f.group.Wait()
	if *lease.Spec.HolderIdentity != *after.Spec.HolderIdentity || *lease.Spec.LeaseTransitions != *after.Spec.LeaseTransitions {
		t.Errorf("the leader has lost its lease: %+v, before %+v", after.Spec, lease.Spec)
	}
	t.Logf("%d readers, %d handshakes: installed in %s, in quiet %s; %d connections begun, %d ended by the boot service", n, n, loud.Round(time.Second/10), quiet.Round(time.Second/10), f.begun.Load(), f.ended.Load())
	p.judge(ctx, t)
}

// leaderLease returns the Lease of the manager that leads.
func (p *pipeline) leaderLease(ctx context.Context, t *testing.T) coordinationv1.Lease {
	t.Helper()
	var lease coordinationv1.Lease
	if err := p.env.ManagementClient.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "ingot-manager"}, &lease); err != nil {
		t.Fatal(err)
	}
	return lease
}
