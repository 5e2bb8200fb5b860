package dhcp

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// limited is a server of which host 1 is known, and its clock.
func limited(t *testing.T) (s *Server, now *time.Time) {
	t.Helper()
	clock := time.Unix(1e9, 0)
	return newServer(t.Context(), Options{
		Network: Network{Server: netip.MustParseAddr("10.20.0.2"), BootURL: "http://10.20.0.2:8090", Lease: &LeaseSettings{Prefix: netip.MustParsePrefix("10.20.0.0/16"), Time: time.Hour}},
		Relays:  []netip.Addr{netip.MustParseAddr("10.30.0.1")}, Clock: func() time.Time { return clock }, Log: slog.New(slog.DiscardHandler),
		Find: func(_ context.Context, mac string, _ netip.Addr) (Host, bool, error) {
			return Host{Address: addressOfNumber(1)}, mac == numbered(1).String(), nil
		},
	}), &clock
}

func discovery(t *testing.T, relay string) *dhcpv4.DHCPv4 {
	t.Helper()
	request, err := dhcpv4.NewDiscovery(numbered(1))
	if err != nil {
		t.Fatal(err)
	}
	request.GatewayIPAddr = net.ParseIP(relay)
	return request
}

func TestOnlyRelaysThatAreConfiguredAreAnswered(t *testing.T) {
	s, _ := limited(t)
	for relay, want := range map[string]string{"0.0.0.0": AnswerOffer, "10.30.0.1": AnswerOffer, "10.30.0.2": AnswerRelay, "10.20.0.9": AnswerRelay} {
		if reply, name := s.answer(discovery(t, relay), false); name != want || (reply != nil) != (want == AnswerOffer) {
			t.Errorf("by relay %s: %s, want %s", relay, name, want)
		}
	}
}

func TestAHostThatAsksWithoutEndIsAnsweredOnceASecond(t *testing.T) {
	s, now := limited(t)
	count := func(requests int) (answered int) {
		for range requests {
			if _, name := s.answer(discovery(t, "0.0.0.0"), false); name == AnswerOffer {
				answered++
			}
		}
		return answered
	}
	if got := count(1000); got != requestBurst {
		t.Errorf("%d of 1,000 at once are answered, want %d", got, requestBurst)
	}
	*now = now.Add(10 * requestInterval)
	if got := count(1000); got != 10 {
		t.Errorf("%d of 1,000 ten seconds later, want 10", got)
	}
}
