package tenantaccess

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/loopback"
)

func TestOnlyPublicAddressesAndThoseThatTheOperatorAllowsMayBeReached(t *testing.T) {
	allowed := parsePrefixes("10.40.0.0/16", "fd00:40::/32")
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "172.32.0.1": true, "100.128.0.1": true,
		"10.40.3.4": true, "::ffff:10.40.3.4": true, "64:ff9b::a28:304": true, "fd00:40::1": true,
		"10.41.0.1": false, "::ffff:10.41.0.1": false, "64:ff9b::a29:1": false, "172.31.255.255": false, "192.168.1.1": false, "100.64.0.1": false,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::a9fe:a9fe": false, "fd00:ec2::254": false, "fe80::1%eth0": false,
		"127.0.0.1": false, "::1": false, "::": false, "0.0.0.0": false, "::7f00:1": false, "224.0.0.1": false, "ff02::1": false, "255.255.255.255": false,
		"2002:7f00:1::": false, "2001::1": false, "fd00:41::1": false, "fec0::1": false,
	} {
		if got := canReach(netip.MustParseAddr(address), allowed); got != want {
			t.Errorf("%s: got %t, want %t", address, got, want)
		}
	}
	if canReach(netip.Addr{}, allowed) {
		t.Error("no address at all")
	}
}

// FuzzAnAddressIsJudgedInEveryFormAlike: IPv4 addresses have several forms in IPv6, and none of them leads where another may not.
func FuzzAnAddressIsJudgedInEveryFormAlike(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1})
	f.Add([]byte{169, 254, 169, 254})
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) != 4 {
			return
		}
		v4 := netip.AddrFrom4([4]byte(text))
		translatedForm := translated.Addr().As16()
		copy(translatedForm[12:], text)
		want := canReach(v4, nil)
		for _, form := range []netip.Addr{netip.AddrFrom16(v4.As16()), netip.AddrFrom16(translatedForm)} {
			if canReach(form, nil) != want {
				t.Errorf("%s: %t, %s: %t", v4, want, form, !want)
			}
		}
		if want && (v4.IsPrivate() || v4.IsLoopback() || v4.IsLinkLocalUnicast() || v4.IsMulticast() || v4.IsUnspecified()) {
			t.Errorf("%s may be reached", v4)
		}
	})
}

// countingListener accepts connections and counts them; what it does with them is handle.
func countingListener(t *testing.T, handle func(net.Conn)) (address string, accepted *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	accepted = &atomic.Int64{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			handle(conn)
		}
	}()
	return listener.Addr().String(), accepted
}

func TestNoPacketGoesToAnAddressThatIsNotAllowed(t *testing.T) {
	address, accepted := countingListener(t, func(c net.Conn) { _ = c.Close() })
	_, port, _ := net.SplitHostPort(address)
	_, ca := newTLSServer(t, http.NotFoundHandler())
	dial := func(server, address string, allowed []netip.Prefix, proxy string) error {
		t.Helper()
		dialer, err := newDialer(server, allowed, func(*http.Request) (*url.URL, error) {
			if proxy == "" {
				return nil, nil
			}
			return url.Parse(proxy)
		}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := dialer.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		target := net.JoinHostPort(host, port)
		if err := dial("https://"+target, target, nil, ""); !errors.Is(err, errNotAllowed) {
			t.Errorf("%s: %v", host, err)
		}
		if err := dial("https://10.0.0.1", address, nil, "http://"+address); !errors.Is(err, errNotAllowed) {
			t.Errorf("by the operator's proxy, to an address that is not allowed: %v", err)
		}
	}
	r := newRegistry(t, Options{PrivateNetworks: []netip.Prefix{}, ProbeInterval: 20 * time.Millisecond})
	if err := r.Set(t.Context(), tenantKey, configOf("https://localhost:"+port, ca, "", "token: a")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the registry has tried", func() bool { _, err := r.For(tenantKey); return errors.Is(err, errNotAllowed) })
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if err := errors.Join(dial("https://"+address, address, loopback.Networks(), ""), dial("https://tenant.example.com", address, nil, "http://"+address)); err != nil {
		t.Errorf("what is allowed: %v", err)
	}
	eventually(t, "the two that are allowed arrive", func() bool { return accepted.Load() == 2 })
}

// TestAKubeconfigTellsNothingOfWhatAnswersAtAnAddress: what the editor of a TenantCluster reads is the same text for everything that is no API server of the
// kubeconfig's authority, and it is there from the beginning, so that nor the time tells.
func TestAKubeconfigTellsNothingOfWhatAnswersAtAnAddress(t *testing.T) {
	config, err := Vet(server.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	otherCA := config.CAData
	const secret = "the page of another service"
	answer := func(status int, mediaType, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	free, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	silent, _ := countingListener(t, func(net.Conn) {})
	closes, _ := countingListener(t, func(c net.Conn) { _ = c.Close() })
	speaks, _ := countingListener(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH\r\n") })
	plainHTTP := httptest.NewServer(answer(http.StatusOK, "application/json", `{"gitVersion":"v1.37.0"}`))
	t.Cleanup(plainHTTP.Close)
	servers := map[string]string{
		"nothing": "https://" + free, "silence": "https://" + silent, "an end": "https://" + closes, "another protocol": "https://" + speaks,
		"no TLS": "https://" + plainHTTP.Listener.Addr().String(), "no name": "https://nowhere.invalid:6443", "not allowed": "https://10.255.255.1:6443", "metadata": "https://169.254.169.254",
	}
	authorities := map[string][]byte{}
	for name, handler := range map[string]http.HandlerFunc{
		"a page": answer(http.StatusNotFound, "text/html", secret), "a kubelet": answer(http.StatusUnauthorized, "text/plain", "Unauthorized "+secret),
		"an API of another kind": answer(http.StatusOK, "application/json", `{"status":"`+secret+`"}`), "a denial": answer(http.StatusForbidden, "application/json", `{"error":"`+secret+`"}`),
		"an error": answer(http.StatusBadGateway, "text/html", secret), "a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://"+free, http.StatusFound) },
		"an abort": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		s, ca := newTLSServer(t, handler)
		servers[name], authorities[name] = s.URL, ca
	}
	s, _ := newTLSServer(t, answer(http.StatusOK, "application/json", `{"gitVersion":"v1.37.0"}`))
	servers["another authority"] = s.URL
	var mu sync.Mutex
	var logged bytes.Buffer
	log := funcr.New(func(_, text string) { mu.Lock(); defer mu.Unlock(); fmt.Fprintln(&logged, text) }, funcr.Options{})
	for name, serverURL := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := authorities[name]
			if ca == nil {
				ca = otherCA
			}
			r := newRegistry(t, Options{Timeout: 300 * time.Millisecond, ProbeInterval: 20 * time.Millisecond, Log: log})
			if err := r.Set(t.Context(), tenantKey, configOf(serverURL, ca, "", "token: a")); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("TenantCluster %s: %s: %v", tenantKey, v1alpha1.ReasonTenantUnreachable, &unreachedError{server: serverURL})
			// Until it was asked twice, because a first failure may be said otherwise than those that follow.
			for asked := 0; asked < 2; asked = r.failuresOf(tenantKey) {
				if _, err := r.For(tenantKey); err == nil || err.Error() != want || strings.Contains(err.Error(), secret) {
					t.Fatalf("got  %v\nwant %s", err, want)
				}
				time.Sleep(5 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			if !strings.Contains(logged.String(), fmt.Sprintf("%q", serverURL)) {
				t.Errorf("the manager's log does not say what failed: %s", logged.String())
			}
		})
	}
}

// failuresOf returns how many probes of a tenant have failed in a row.
func (r *Registry) failuresOf(key any) int {
	for _, s := range r.clientSets() {
		if any(s.key) == key {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.failures
		}
	}
	return 0
}
