package hostimport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/metal3-io/baremetal-operator/pkg/hardwareutils/bmc"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// secretSuffix makes the name of the BMC's Secret of the host's.
const secretSuffix = "-bmc"

// maxPassword is far more than any BMC takes, and bounds what is read of a wrong file.
const maxPassword = 1024

// Host is a server of the table.
type Host struct {
	// Name of the BareMetalHost.
	Name string
	// Address of the BMC as Metal3 writes it.
	Address string
	// MAC of the boot NIC, lower case with colons.
	MAC string
	// User and Password of the BMC.
	User, Password string
	// Labels of its own.
	Labels map[string]string
}

// objects are the Secret and the host, in the order in which they are needed.
func (h Host) objects(namespace string, common map[string]string) []cli.Object {
	metadata := func(name string) map[string]any {
		m := map[string]any{"name": name}
		if namespace != "" {
			m["namespace"] = namespace
		}
		return m
	}
	labels := maps.Clone(common)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, h.Labels)
	host := metadata(h.Name)
	if len(labels) > 0 {
		host["labels"] = labels
	}
	return []cli.Object{
		{"apiVersion": "v1", "kind": "Secret", "metadata": metadata(h.Name + secretSuffix), "type": "Opaque",
			"data": map[string]any{"username": []byte(h.User), "password": []byte(h.Password)}},
		{"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": host, "spec": map[string]any{
			// Off until a Machine has it.
			"online": false, "bootMACAddress": h.MAC,
			"bmc": map[string]any{"address": h.Address, "credentialsName": h.Name + secretSuffix}}},
	}
}

// checker checks rows and remembers what must not come twice.
type checker struct {
	open     Open
	findings []Finding
	seen     map[string]int
}

func (c *checker) find(r row, format string, args ...any) {
	c.findings = append(c.findings, Finding{Line: r.line, Message: fmt.Sprintf(format, args...)})
}

// once refuses a value that an earlier line has.
func (c *checker) once(r row, what, key string) {
	if before, is := c.seen[what+key]; is {
		c.find(r, "the %s is that of line %d", what, before)
		return
	}
	c.seen[what+key] = r.line
}

func (c *checker) host(r row) Host {
	h := Host{Name: r.cells[columnName], User: r.cells[columnUser], Labels: r.labels}
	if problems := validation.IsDNS1123Subdomain(h.Name + secretSuffix); len(problems) > 0 || h.Name == "" {
		c.find(r, "name %q: expected a DNS name such as rack-a-01: lower case letters, digits, dashes and dots, at most %d characters", h.Name, 253-len(secretSuffix))
	} else {
		c.once(r, "name", h.Name)
	}
	address, key, problem := readAddress(r.cells[columnAddress])
	if problem != "" {
		c.find(r, "bmc address: %s", problem)
	} else {
		c.once(r, "bmc address", key)
	}
	h.Address = address
	if h.MAC, problem = readMAC(r.cells[columnMAC]); problem != "" {
		c.find(r, "boot mac %q: %s", r.cells[columnMAC], problem)
	} else {
		c.once(r, "boot mac", h.MAC)
	}
	if h.User == "" {
		c.find(r, "user: expected the name of a BMC user, found nothing")
	}
	if h.Password, problem = c.password(r.cells[columnPassword]); problem != "" {
		c.find(r, "password file %q: %s", r.cells[columnPassword], problem)
	}
	for _, key := range slices.Sorted(maps.Keys(r.labels)) {
		if problem := badLabel(key, r.labels[key]); problem != "" {
			c.find(r, "%s", problem)
		}
	}
	return h
}

// readAddress checks a BMC address with Metal3's own parser. The key is the same for two ways of writing one address: a BMC
// may serve several systems, so the path belongs to it.
func readAddress(text string) (address, key, problem string) {
	const expected = "expected one such as redfish://10.0.0.11/redfish/v1/Systems/1"
	if strings.HasPrefix(text, "https://") {
		text = "redfish+" + text
	}
	parsed, err := url.Parse(text)
	switch {
	case text == "":
		return "", "", expected + ", found nothing"
	case err != nil:
		return "", "", expected + ", found what is no URL"
	case parsed.Host == "":
		// Metal3 would take it for IPMI.
		return "", "", expected + ", found no protocol"
	case parsed.User != nil:
		return "", "", "it holds a user or a password, which everybody who may read hosts would see: remove them"
	}
	details, err := bmc.NewAccessDetails(text, false)
	if err != nil {
		return "", "", fmt.Sprintf("%s: Metal3 does not know the protocol %q, or there is no host in it", expected, parsed.Scheme)
	}
	port := parsed.Port()
	if port == "" {
		port = defaultPort(details.Type())
	}
	return text, strings.ToLower(net.JoinHostPort(parsed.Hostname(), port)) + path.Clean("/"+parsed.Path), ""
}

// defaultPort of a protocol, for telling whether two addresses are the same.
func defaultPort(scheme string) string {
	switch {
	case strings.HasSuffix(scheme, "+http"):
		return "80"
	case scheme == "ipmi" || scheme == "libvirt":
		return "623"
	}
	return "443"
}

func readMAC(text string) (mac, problem string) {
	const expected = "expected an Ethernet address such as 52:54:00:0a:00:01"
	parsed, err := net.ParseMAC(text)
	switch {
	case err != nil || len(parsed) != 6:
		return "", expected
	case parsed[0]&1 != 0 || bytes.Equal(parsed, make([]byte, 6)):
		return "", expected + ", found the address of no single NIC"
	}
	return parsed.String(), ""
}

// password reads a password file. What is in it is never told.
func (c *checker) password(name string) (password, problem string) {
	if name == "" {
		return "", "expected a file with the BMC's password, found nothing"
	}
	file, err := c.open(name)
	if err != nil {
		return "", reasonOf(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxPassword+1))
	if err != nil {
		return "", reasonOf(err)
	}
	trimmed := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case len(text) > maxPassword:
		return "", fmt.Sprintf("expected a password, found more than %d bytes", maxPassword)
	case trimmed == "":
		return "", "it is empty"
	case strings.ContainsAny(trimmed, "\r\n"):
		return "", "expected one line, found several"
	}
	return trimmed, ""
}

// reasonOf is an error without the path, which the finding names already.
func reasonOf(err error) string {
	var where *fs.PathError
	if errors.As(err, &where) {
		return where.Err.Error()
	}
	return err.Error()
}

// badLabel says what is wrong with a label; empty: nothing.
func badLabel(key, value string) string {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Sprintf("label %q: expected a key such as rack or example.com/rack", key)
	}
	if strings.HasPrefix(key, "gpu.ingot.dev/") {
		return fmt.Sprintf("label %s: Ingot sets it by what inspection finds: leave it out", key)
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return fmt.Sprintf("label %s: expected at most 63 letters, digits, dashes, dots and underscores, found %q", key, value)
	}
	return ""
}
