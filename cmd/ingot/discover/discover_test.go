package discover

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/hostimport"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/bmc/bmctest"
)

const (
	user     = "ingot-operator"
	password = "calvin-7"
	root     = `{"@odata.type": "#ServiceRoot.v1_16_0.ServiceRoot", "RedfishVersion": "1.18.0", "Vendor": "%s", "UUID": "%s"}`
)

// run runs `ingot host ARGS`.
func ingot(ctx context.Context, stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	c := cli.NewGroup("ingot", "", cli.NewGroup("host", "", Command(), hostimport.Command()))
	c.SetIn(stdin)
	status = cli.Run(ctx, c, append([]string{"host"}, args...), &out, &err)
	return status, out.String(), err.String()
}

// rack has a port that is free on the addresses of 127.0.0.0/8 that the test uses.
type rack struct{ port string }

func newRack(t *testing.T) rack {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return rack{port}
}

func (r rack) at(host int) string { return fmt.Sprintf("127.0.0.%d:%s", host, r.port) }

func (r rack) bmc(t *testing.T, host int) *bmctest.Server {
	t.Helper()
	s := bmctest.StartAt(t, bmc.Personality{}, r.at(host))
	s.SetPassword(password)
	return s
}

// serve serves what is no simulated BMC.
func (r rack) serve(t *testing.T, host int, hasTLS bool, handle http.HandlerFunc) {
	t.Helper()
	listener, err := net.Listen("tcp", r.at(host))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handle}}
	if hasTLS {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
}

// discover asks 127.0.0.11 to 127.0.0.29.
func (r rack) discover(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	return ingot(ctx, strings.NewReader(""), append([]string{"discover", "--address", "127.0.0.11-127.0.0.29", "--port", r.port}, args...)...)
}

// write writes a file for a flag.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hosts returns the lines of the table that are hosts.
func hosts(t *testing.T, table string) []string {
	t.Helper()
	header, rest, _ := strings.Cut(table, "\n")
	if header != "name,bmc address,boot mac,user,password file" {
		t.Errorf("the table begins with %q", header)
	}
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(rest), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

func expectWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in\n%s", w, text)
		}
	}
}

func TestWhatIsFoundWithALoginIsATableForImport(t *testing.T) {
	r := newRack(t)
	var authorities []byte
	var servers []*bmctest.Server
	for _, host := range []int{11, 12} {
		s := r.bmc(t, host)
		authorities = append(authorities, s.Endpoint().CABundle...)
		servers = append(servers, s)
	}
	file := write(t, "password", password+"\n")
	status, table, stderr := r.discover(t.Context(), "--username", user, "--password-file", file, "--ca-file", write(t, "ca.crt", string(authorities)), "--boot-nic", "*.0")
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	expectWords(t, table, "serial number SN0001", "Example GX-8", "2 x H100-SXM5", "Redfish 1.18.0")
	expectWords(t, stderr, "19 of 19 addresses asked: 2 BMCs")
	// The servers of the tests have the same NICs, which import refuses.
	table = strings.Replace(table, "52:54:00:aa:00:02", "52:54:00:aa:01:02", 1)
	status, objects, stderr := ingot(t.Context(), strings.NewReader(table), "import", "-", "-n", "metal")
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s in\n%s", status, stderr, table)
	}
	expectWords(t, objects, "name: host-127-0-0-11-"+r.port, "address: redfish://"+r.at(12), "bootMACAddress: 52:54:00:aa:00:02")
	for _, s := range servers {
		if n := s.Sessions(); n > 0 {
			t.Errorf("%d sessions are left", n)
		}
	}
	if strings.Contains(table+stderr, password) {
		t.Error("the password is printed")
	}
}

func TestWithoutALoginNothingSecretIsSent(t *testing.T) {
	r := newRack(t)
	s := r.bmc(t, 12)
	status, table, stderr := r.discover(t.Context())
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if lines := hosts(t, table); len(lines) != 1 || lines[0] != "host-127-0-0-12-"+r.port+",redfish://"+r.at(12)+",,," {
		t.Errorf("%q", lines)
	}
	expectWords(t, table, "boot mac: not known without a login: give --username")
	if requests := s.Requests(); len(requests) != 1 || requests[0] != "GET /redfish/v1/" {
		t.Errorf("the BMC was asked %q", requests)
	}
	if status, _, stderr := ingot(t.Context(), strings.NewReader(table), "import", "-"); status != cli.ExitFailed || !strings.Contains(stderr, "standard input:4: boot mac") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestWhatIsNoBMCIsLeftOutAndWhatCannotBeReadIsListed(t *testing.T) {
	r := newRack(t)
	outside := 0
	stranger := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { outside++; fmt.Fprintf(w, root, "Trap", "") }))
	defer stranger.Close()
	hang := make(chan struct{})
	defer close(hang)
	for host, handle := range map[int]http.HandlerFunc{
		11: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Printer</html>") },
		12: func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, stranger.URL+q.URL.Path, http.StatusTemporaryRedirect)
		},
		13: func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, q.URL.Path+"x/", http.StatusTemporaryRedirect)
		},
		14: func(_ http.ResponseWriter, q *http.Request) { <-hang },
		15: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("OData-Version", "4.0")
			_, _ = w.Write(make([]byte, 10<<20))
		},
		16: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 10<<20)) },
		17: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error": {"@Message.ExtendedInfo": []}}`)
		},
		18: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("OData-Version", "4.0")
			fmt.Fprint(w, `{"RedfishVersion": `)
		},
		19: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"name": "some other API"}`) },
		20: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("OData-Version", "4.0")
			w.WriteHeader(http.StatusUnauthorized)
		},
		21: func(w http.ResponseWriter, q *http.Request) {
			if strings.HasSuffix(q.URL.Path, "/") {
				http.Redirect(w, q, strings.TrimSuffix(q.URL.Path, "/"), http.StatusMovedPermanently)
				return
			}
			fmt.Fprint(w, `{"RedfishVersion": "1.6.0", "Vendor": 7, "Product": "Slashless"}`)
		},
	} {
		r.serve(t, host, true, handle)
	}
	r.serve(t, 22, false, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, root, "Plain", "") })
	status, table, stderr := r.discover(t.Context(), "--timeout", "3s")
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if lines := hosts(t, table); len(lines) != 3 {
		t.Errorf("%q", lines)
	}
	expectWords(t, table, r.at(20), "Slashless, Redfish 1.6.0", "redfish+http://"+r.at(22))
	expectWords(t, stderr,
		r.at(12)+": it redirects to "+stranger.URL+", which is not asked",
		r.at(13)+": it accepts connections and gives no answer: redirected more than 5 times",
		r.at(14)+": it accepts connections and does not answer in time",
		r.at(15)+": its service root is larger than 1048576 bytes",
		r.at(17)+": it answers 503 Service Unavailable",
		r.at(18)+": its service root is no JSON object",
		"19 of 19 addresses asked: 3 BMCs, 4 Redfish services that cannot be read, 2 without an answer to a connection, 3 others")
	for _, host := range []int{11, 16, 19} {
		if strings.Contains(table+stderr, r.at(host)+":") {
			t.Errorf("%s is no BMC, and is listed in\n%s\n%s", r.at(host), table, stderr)
		}
	}
	if outside > 0 {
		t.Errorf("a server outside of the range was asked %d times", outside)
	}
}

func TestOneBMCWithTwoAddressesIsOneHost(t *testing.T) {
	r := newRack(t)
	for host, uuid := range map[int]string{11: "6f1f1a2c-3b5d-4e7f-8091-a2b3c4d5e6f7", 12: "6F1F1A2C-3B5D-4E7F-8091-A2B3C4D5E6F7", 13: "03000200-0400-0500-0006-000700080009", 14: "03000200-0400-0500-0006-000700080009"} {
		r.serve(t, host, true, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, root, "Example", uuid) })
	}
	_, table, stderr := r.discover(t.Context())
	if lines := hosts(t, table); len(lines) != 3 {
		t.Errorf("expected one line for the first two services and one for each with a UUID that means nothing, found %q", lines)
	}
	expectWords(t, stderr, r.at(11)+": the same BMC, by its UUID, is at "+r.at(12))
	if strings.Contains(stderr, r.at(13)+":") {
		t.Error(stderr)
	}
}

func TestAServiceCannotWriteIntoTheTableOrTheTerminal(t *testing.T) {
	r := newRack(t)
	r.serve(t, 11, true, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, root, `X\nevil,redfish://10.9.9.9,52:54:00:00:00:01,root,/etc/shadow\n\u001b[2J\u202e`+strings.Repeat("long", 1000), "")
	})
	_, table, stderr := r.discover(t.Context())
	if lines := hosts(t, table); len(lines) != 1 || !strings.HasPrefix(lines[0], "host-127-0-0-11") {
		t.Errorf("%q", lines)
	}
	if strings.ContainsAny(table+stderr, "\x1b\u202e") || len(table) > 1000 {
		t.Errorf("%q", table)
	}
}

func TestWrongCredentialsAreTriedAtFewBMCsAndOnceAtEach(t *testing.T) {
	r := newRack(t)
	var authorities []byte
	var servers []*bmctest.Server
	for host := 11; host < 17; host++ {
		s := r.bmc(t, host)
		authorities = append(authorities, s.Endpoint().CABundle...)
		servers = append(servers, s)
	}
	ca := write(t, "ca.crt", string(authorities))
	for _, c := range []struct {
		args []string
		want int
	}{{nil, 3}, {[]string{"--max-refusals", "1"}, 1}, {[]string{"--max-refusals", "0"}, 6}} {
		t.Setenv(passwordVariable, "wrong-one")
		status, table, stderr := r.discover(t.Context(), append([]string{"--username", user, "--ca-file", ca}, c.args...)...)
		logins := 0
		for _, s := range servers {
			for _, request := range s.Requests() {
				if strings.HasPrefix(request, "POST ") {
					logins++
				}
			}
		}
		if logins != c.want || status != cli.ExitOK || len(hosts(t, table)) != 6 || strings.Contains(table+stderr, "wrong-one") {
			t.Errorf("%v: %d logins, expected %d; status %d\n%s\n%s", c.args, logins, c.want, status, table, stderr)
		}
		expectWords(t, stderr, "open session: Unauthorized")
		if c.want < 6 {
			expectWords(t, stderr, fmt.Sprintf("no login was tried, because %d BMCs refused the account", c.want))
		}
	}
}

func TestAPasswordGoesToNoServiceThatCannotProveItself(t *testing.T) {
	r := newRack(t)
	s := r.bmc(t, 11)
	received := ""
	r.serve(t, 12, false, func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		received += string(body) + q.Header.Get("Authorization")
		fmt.Fprintf(w, root, "Plain", "")
	})
	t.Setenv(passwordVariable, password)
	_, table, stderr := r.discover(t.Context(), "--username", user)
	expectWords(t, stderr, r.at(11)+": open session: Unreachable", r.at(12)+": it has no TLS here: no password is sent")
	for _, request := range s.Requests() {
		if strings.HasPrefix(request, "POST ") {
			t.Error(request)
		}
	}
	if received != "" || len(hosts(t, table)) != 2 {
		t.Errorf("received %q\n%s", received, table)
	}
}

func TestAnInterruptPrintsWhatWasFoundSoFar(t *testing.T) {
	r := newRack(t)
	ctx, cancel := context.WithCancel(t.Context())
	hang := make(chan struct{})
	defer close(hang)
	r.serve(t, 11, true, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, root, "Example", "") })
	r.serve(t, 12, true, func(http.ResponseWriter, *http.Request) { cancel(); <-hang })
	status, table, stderr := r.discover(ctx, "--parallel", "1", "--timeout", "1m")
	if lines := hosts(t, table); status != cli.ExitFailed || len(lines) != 1 {
		t.Errorf("status %d, %q", status, lines)
	}
	expectWords(t, stderr, "interrupted: the table has what was found at 1 of 19 addresses")
}

func TestWhatTheCommandLineGetsWrongIsUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "--address: expected the range"},
		{"--address rack-1", "expected an address, a network or two addresses"},
		{"--address 10.0.0.0/15", "more than 65536 addresses, as many as a /16"},
		{"--address 10.0.0.0/16,10.0.0.0/16,10.1.0.0", "more than 65536 addresses"},
		{"--address fd00::/64", "more than 65536 addresses"},
		{"--address 10.0.0.9-10.0.0.1", "the last address is before the first"},
		{"--address 10.0.0.9-fd00::1", "the first address is of IPv4"},
		{"--address fe80::1%eth0", "valid on one link only"},
		{"--address 224.0.0.1", "addresses of no single server"},
		{"--address 127.0.0.1 --port 70000", "--port 70000: expected a number"},
		{"--address 127.0.0.1 --parallel 0", "--parallel 0"},
		{"--address 127.0.0.1 --timeout 0s", "--timeout 0s"},
		{"--address 127.0.0.1 --insecure", "give --username too"},
		{"--address 127.0.0.1 --username root", "--username needs --password-file"},
		{"--address 127.0.0.1 --username root --boot-nic [", "--boot-nic [: expected a name"},
		{"--address 127.0.0.1 --password secret", "unknown flag: --password"},
		{"--address 127.0.0.1 more", "expected no argument"},
	} {
		status, stdout, stderr := ingot(t.Context(), strings.NewReader(""), append([]string{"discover"}, strings.Fields(c.args)...)...)
		if status != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "usage: ingot host discover --address RANGE") {
			t.Errorf("%s: status %d, %q, %q", c.args, status, stdout, stderr)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--username root --password-file none", "--password-file"},
		{"--username root --password-file -", "--password-file -: it is empty"},
		{"--username root --password-file - --ca-file " + write(t, "ca.crt", "text"), "found none"},
	} {
		status, _, stderr := ingot(t.Context(), strings.NewReader("\n"), append([]string{"discover", "--address", "127.0.0.1"}, strings.Fields(c.args)...)...)
		if status != cli.ExitFailed || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %q", c.args, status, stderr)
		}
	}
}

func TestRangesAreReadInEverySpelling(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.7":                      "[10.0.0.7]",
		"10.0.0.9/30":                   "[10.0.0.8 10.0.0.9 10.0.0.10 10.0.0.11]",
		"10.0.0.255 - 10.0.1.1":         "[10.0.0.255 10.0.1.0 10.0.1.1]",
		"fd00::fffe-fd00::1:0":          "[fd00::fffe fd00::ffff fd00::1:0]",
		"fd00::4/127":                   "[fd00::4 fd00::5]",
		"::ffff:10.0.0.7":               "[10.0.0.7]",
		"255.255.255.254/31,10.0.0.1":   "[10.0.0.1 255.255.255.254 255.255.255.255]",
		"10.0.0.2,10.0.0.1-10.0.0.2":    "[10.0.0.1 10.0.0.2]",
		"10.0.0.0/16,10.0.3.0-10.0.4.9": "",
	} {
		addresses, err := parseAddresses(strings.Split(text, ","))
		if err != nil || want != "" && fmt.Sprint(addresses) != want || want == "" && len(addresses) != maxAddresses {
			t.Errorf("%s: %d addresses, error %v", text, len(addresses), err)
		}
	}
}
