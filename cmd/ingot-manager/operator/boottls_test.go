package operator

import (
	"crypto/rand"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/plan/bootca"
)

// TestFirmwareWithoutEllipticCurvesIsServed offers what OVMF 2022.11 does and Go knows, and what an agent does.
func TestFirmwareWithoutEllipticCurvesIsServed(t *testing.T) {
	f := bootca.Facts{Now: time.Now(), Names: []string{"10.20.0.2"}, Times: bootca.DefaultTimes(time.Hour)}
	for _, action := range []bootca.Action{bootca.Replace, bootca.Serve} {
		var err error
		if f.Authorities, f.Served, err = bootca.Do(action, f, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := f.Served.TLS()
	if err != nil {
		t.Fatal(err)
	}
	server := bootTLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil })
	curveless := []uint16{tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_128_CBC_SHA}
	for name, c := range map[string]struct {
		suites  []uint16
		version uint16
		want    string
	}{
		"OVMF":               {curveless, tls.VersionTLS12, "TLS_RSA_WITH_AES_"},
		"firmware with both": {append(curveless, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), tls.VersionTLS12, "TLS_ECDHE_RSA_"},
		"an agent":           {nil, tls.VersionTLS13, "TLS_AES_"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			defer far.Close()
			go func() { _ = tls.Server(far, server).Handshake() }() // its error is the client's too
			client := tls.Client(near, &tls.Config{InsecureSkipVerify: true, MaxVersion: c.version, CipherSuites: c.suites})
			if err := client.Handshake(); err != nil {
				t.Fatal(err)
			}
			if got := tls.CipherSuiteName(client.ConnectionState().CipherSuite); !strings.HasPrefix(got, c.want) {
				t.Errorf("the suite is %s, expected one of %s", got, c.want)
			}
		})
	}
}
