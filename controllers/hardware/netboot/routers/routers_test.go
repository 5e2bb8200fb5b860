package routers

import (
	"net"
	"testing"

	"github.com/mdlayher/ndp"
)

func solicitation(t testing.TB, options ...ndp.Option) []byte {
	t.Helper()
	packet, err := ndp.MarshalMessage(&ndp.RouterSolicitation{Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

func TestASolicitationSaysWhoAsks(t *testing.T) {
	mac := net.HardwareAddr{0x52, 0x54, 0, 0, 0, 1}
	for name, c := range map[string]struct {
		packet []byte
		want   string
	}{
		"with its address":         {solicitation(t, &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac}), mac.String()},
		"without an address":       {solicitation(t), ""},
		"with another's address":   {solicitation(t, &ndp.LinkLayerAddress{Direction: ndp.Target, Addr: mac}), ""},
		"no solicitation at all":   {mustMarshal(t, &ndp.RouterAdvertisement{}), ""},
		"a neighbour's, not yours": {mustMarshal(t, &ndp.RouterAdvertisement{Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac}}}), ""},
	} {
		message, err := ndp.ParseMessage(c.packet)
		if err != nil {
			t.Fatal(err)
		}
		if got := sourceOf(message); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func mustMarshal(t *testing.T, m ndp.Message) []byte {
	t.Helper()
	packet, err := ndp.MarshalMessage(m)
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

func FuzzASolicitation(f *testing.F) {
	f.Add(solicitation(f))
	f.Add(solicitation(f, &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: net.HardwareAddr{0x52, 0x54, 0, 0, 0, 1}}))
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, packet []byte) {
		message, err := ndp.ParseMessage(packet)
		if err != nil {
			return
		}
		if mac := sourceOf(message); mac != "" {
			if _, err := net.ParseMAC(mac); err != nil {
				t.Errorf("%x names %q", packet, mac)
			}
		}
	})
}
