package redfish_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

func TestAByteOrderMarkIsNoPartOfAnAnswer(t *testing.T) {
	f := start(t, bmc.Personality{Wire: bmc.WireRules{ByteOrderMark: true}, ETag: bmc.ETagWeak, Boot: bmc.BootRules{Mode: bmc.BootModeReadOnly}, Login: bmc.LoginRules{NoLocation: true}})
	f.SetPower(hardware.PowerOn)
	got, err := f.bmc.Inventory(t.Context())
	must(t, err)
	if diff := cmp.Diff(reportedInventory(), got); diff != "" {
		t.Errorf("inventory (-expected +seen):\n%s", diff)
	}
	// The mode is left out because of a message, which is read in a refusal.
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	must(t, f.bmc.SetPower(t.Context(), hardware.TurnOff))
	must(t, f.insert(t, "a"))
}

// TestAnEmptyAnswerNamesItsResource lets each resource in turn, of those that the calls read, be answered with 200 and nothing.
func TestAnEmptyAnswerNamesItsResource(t *testing.T) {
	personality := bmc.Personality{Power: bmc.PowerRules{ActionInfo: true}, Boot: bmc.BootRules{Settings: &bmc.SettingsRules{Name: "SD", Members: bmc.SettingsOverride}}}
	calls := []func(*fixture) error{
		func(f *fixture) error { _, err := f.bmc.PowerState(t.Context()); return err },
		func(f *fixture) error { return f.bmc.SetPower(t.Context(), hardware.TurnOn) },
		func(f *fixture) error { return f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork) },
		func(f *fixture) error { _, err := f.bmc.Inventory(t.Context()); return err },
	}
	for path, at := range map[string]int{
		"/redfish/v1": 0, "/redfish/v1/Systems": 0, bmc.PathSystem: 0, bmc.PathSystem + "/ResetActionInfo": 1, bmc.PathSystem + "/SD": 2,
		bmc.PathSystem + "/Processors": 3, bmc.PathSystem + "/Processors/CPU0": 3, "/redfish/v1/Chassis/1": 3,
	} {
		t.Run(path, func(t *testing.T) {
			personality.Wire.Empty = path
			f := start(t, personality)
			expect(t, calls[at](f), hardware.Invalid, "GET "+path, "empty body")
			// White space and a mark are no more.
			f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				isIt := r.Method == http.MethodGet && strings.TrimRight(r.URL.Path, "/") == path
				if isIt {
					_, _ = w.Write([]byte("\xef\xbb\xbf \r\n"))
				}
				return isIt
			})
			expect(t, calls[at](f), hardware.Invalid, "GET "+path, "empty body")
		})
	}
}

func TestATLSThatIsTooOldIsNamed(t *testing.T) {
	for rule, name := range map[bmc.TLSRule]string{bmc.TLS10: "TLS 1.0", bmc.TLS11: "TLS 1.1"} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Wire: bmc.WireRules{TLS: rule}})
			_, err := f.bmc.PowerState(t.Context())
			expect(t, err, hardware.Unreachable, name, "expected TLS 1.2", "update its firmware")
			// Verification that is turned off is no permission for an old version.
			e := f.Endpoint()
			e.InsecureSkipVerify = true
			_, err = f.open(t, e).PowerState(t.Context())
			expect(t, err, hardware.Unreachable, name)
			if got := f.Requests(); len(got) != 0 {
				t.Errorf("requests %q went over it", got)
			}
		})
	}
}

// TestAnOldTLSThatSaysNothingIsNamedToo has services that end the connection in place of an alert.
func TestAnOldTLSThatSaysNothingIsNamedToo(t *testing.T) {
	f := start(t, bmc.Personality{Wire: bmc.WireRules{TLS: bmc.TLS11}})
	e := f.Endpoint()
	e.Address = "https://" + withoutAlerts(t, e.Address)
	_, err := f.open(t, e).PowerState(t.Context())
	expect(t, err, hardware.Unreachable, "TLS 1.1")
}

// withoutAlerts is a way to the BMC on which a client that offers TLS 1.2 or later finds the connection closed. It returns its address.
func withoutAlerts(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go forwardOld(client, strings.TrimPrefix(address, "https://"))
		}
	}()
	return listener.Addr().String()
}

// forwardOld forwards a connection whose ClientHello has the version of TLS 1.1 or earlier, and closes any other.
func forwardOld(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	hello := make([]byte, 11) // a record's header, a handshake's header, and the client's version
	if _, err := io.ReadFull(client, hello); err != nil || hello[10] >= 3 {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if _, err := server.Write(hello); err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, client) }()
	_, _ = io.Copy(client, server)
}
