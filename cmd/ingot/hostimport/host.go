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
	"slices"
	"strconv"
	"strings"

	"github.com/metal3-io/baremetal-operator/pkg/hardwareutils/bmc"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/bmcaddress"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
)

// secretSuffix is appended to the name of the host to make the name of its BMC's Secret.
const secretSuffix = "-bmc"

// maxPassword limits what is read of a wrong file. It is far more than any BMC accepts.
const maxPassword = 1024

// Host is a server of the table.
type Host struct {
	// Name of the BareMetalHost.
	Name string
	// Address of the BMC as Metal3 writes it; empty, as are User and Password: Ironic has them for the node that IronicNode names.
	Address string
	// MAC of the boot NIC, lower case with colons.
	MAC string
	// User and Password of the BMC.
	User, Password string
	// IronicNode is the UUID or the name of the node that a site's Ironic has for it already; empty: none is said.
	IronicNode string
	// TPMKey is the fingerprint of its TPM's endorsement key, or hardware.NoTPM; empty: the first one that is seen is trusted.
	TPMKey string
	// Labels of its own.
	Labels map[string]string
}

// objects returns the Secret and the BareMetalHost, in the order in which they are needed.
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
	annotations := map[string]any{}
	for name, value := range map[string]string{v1alpha1.AnnotationIronicNode: h.IronicNode, v1alpha1.AnnotationTPMKey: h.TPMKey} {
		if value != "" {
			annotations[name] = value
		}
	}
	if len(annotations) > 0 {
		host["annotations"] = annotations
	}
	// The host stays off until a Machine claims it.
	spec := map[string]any{"online": false, "bootMACAddress": h.MAC}
	bareMetalHost := cli.Object{"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": host, "spec": spec}
	if h.Address == "" {
		return []cli.Object{bareMetalHost}
	}
	spec["bmc"] = map[string]any{"address": h.Address, "credentialsName": h.Name + secretSuffix}
	secret := cli.Object{"apiVersion": "v1", "kind": "Secret", "metadata": metadata(h.Name + secretSuffix), "type": "Opaque",
		"data": map[string]any{"username": []byte(h.User), "password": []byte(h.Password)}}
	return []cli.Object{secret, bareMetalHost}
}

// schemeIPMI is the scheme of the address of a BMC that speaks IPMI.
const schemeIPMI = "ipmi"

// providerRedfish is the kind of NodeProvider whose BMCs must speak Redfish.
const providerRedfish = "redfish"

// providerIronic is the kind of NodeProvider whose hosts may be nodes of Ironic already.
const providerIronic = "ironic"

// providerMetal3 is the kind of those whose hosts a baremetal-operator serves.
const providerMetal3 = "metal3"

// providers are the kinds of NodeProviders.
var providers = []string{providerRedfish, providerIronic, providerMetal3}

// tableChecker checks rows and remembers the values that must be unique.
type tableChecker struct {
	open     Open
	provider string
	findings []Finding
	seen     map[string]int
	// servers has the BMC address of each line, with the number of the line as the name.
	servers []sameserver.Host
}

func (c *tableChecker) addFinding(r row, format string, args ...any) {
	c.findings = append(c.findings, Finding{Line: r.line, Message: fmt.Sprintf(format, args...)})
}

// checkServers adds a finding for each line whose BMC is that of an earlier line, in any spelling.
func (c *tableChecker) checkServers() {
	conflicts := sameserver.ConflictsOfAll(c.servers)
	for _, server := range c.servers {
		line, before := lineOf(server.FullName()), 0
		for _, other := range conflicts[server.FullName()] {
			if at := lineOf(other.Host); at < line && (before == 0 || at < before) {
				before = at
			}
		}
		if before > 0 {
			c.findings = append(c.findings, Finding{Line: line, Message: fmt.Sprintf("the bmc address is that of line %d", before)})
		}
	}
}

// lineOf returns the number of the line that a server of checkHost has as its name.
func lineOf(fullName string) int {
	line, err := strconv.Atoi(strings.TrimPrefix(fullName, "/"))
	if err != nil {
		return 0
	}
	return line
}

// checkUnique adds a finding when an earlier line has the same value.
func (c *tableChecker) checkUnique(r row, what, key string) {
	if before, exists := c.seen[what+key]; exists {
		c.addFinding(r, "the %s is that of line %d", what, before)
		return
	}
	c.seen[what+key] = r.line
}

func (c *tableChecker) checkHost(r row) Host {
	h := Host{Name: r.cells[columnName], User: r.cells[columnUser], IronicNode: r.cells[columnIronicNode], Labels: r.labels}
	if problems := validation.IsDNS1123Subdomain(h.Name + secretSuffix); len(problems) > 0 || h.Name == "" {
		c.addFinding(r, "name %q: expected a DNS name such as rack-a-01: lower case letters, digits, dashes and dots, at most %d characters", h.Name, 253-len(secretSuffix))
	} else {
		c.checkUnique(r, "name", h.Name)
	}
	hasBMC := c.needsBMC(r)
	if hasBMC {
		h.Address = c.checkAddress(r)
	}
	var problem string
	if h.MAC, problem = readMAC(r.cells[columnMAC]); problem != "" {
		c.addFinding(r, "boot mac %q: %s", r.cells[columnMAC], problem)
	} else {
		c.checkUnique(r, "boot mac", h.MAC)
	}
	if h.IronicNode != "" && c.provider != providerIronic {
		c.addFinding(r, "ironic node %q: only NodeProviders of kind ironic have nodes: say --provider ironic, or leave it out", h.IronicNode)
	} else if h.IronicNode != "" {
		c.checkUnique(r, "ironic node", strings.ToLower(h.IronicNode))
	}
	h.TPMKey = c.checkTPMKey(r)
	if hasBMC {
		h.Password = c.checkLogin(r)
	}
	for _, key := range slices.Sorted(maps.Keys(r.labels)) {
		if problem := labelProblem(key, r.labels[key]); problem != "" {
			c.addFinding(r, "%s", problem)
		}
	}
	return h
}

// checkTPMKey returns the fingerprint of the server's TPM. Only Ingot's own agent proves one.
func (c *tableChecker) checkTPMKey(r row) string {
	cell := r.cells[columnTPMKey]
	if cell == "" {
		return ""
	}
	key, isValid := hardware.ParseTPMKey(cell)
	switch {
	case !isValid:
		c.addFinding(r, "tpm key %q: expected the SHA-256 digest of an endorsement key's SubjectPublicKeyInfo in 64 hexadecimal digits, or %s", cell, hardware.NoTPM)
	case c.provider != providerRedfish:
		c.addFinding(r, "tpm key: the agents of NodeProviders of kind %s prove no TPM: leave it out", c.provider)
	case key != hardware.NoTPM:
		c.checkUnique(r, "tpm key", key)
	}
	return key
}

// needsBMC reports whether the line must have a BMC. One that names its node in Ironic may be without: Ironic has it.
func (c *tableChecker) needsBMC(r row) bool {
	return c.provider != providerIronic || r.cells[columnIronicNode] == "" || r.cells[columnAddress]+r.cells[columnUser]+r.cells[columnPassword] != ""
}

// checkAddress returns the address of the BMC.
func (c *tableChecker) checkAddress(r row) string {
	address, problem := readAddress(r.cells[columnAddress], c.provider)
	if problem != "" {
		c.addFinding(r, "bmc address: %s", problem)
	} else {
		c.servers = append(c.servers, sameserver.Host{Name: strconv.Itoa(r.line), BMCAddress: address})
	}
	return address
}

// checkLogin checks the user of the BMC and returns the password.
func (c *tableChecker) checkLogin(r row) string {
	if r.cells[columnUser] == "" {
		c.addFinding(r, "user: expected the name of a BMC user, found nothing")
	}
	password, problem := c.readPassword(r.cells[columnPassword])
	if problem != "" {
		c.addFinding(r, "password file %q: %s", r.cells[columnPassword], problem)
	}
	return password
}

// readAddress checks a BMC address with Metal3's own parser, and that the kind of NodeProvider speaks its protocol.
func readAddress(text, provider string) (address, problem string) {
	const expected = "expected one such as redfish://10.0.0.11/redfish/v1/Systems/1"
	if strings.HasPrefix(text, "https://") {
		text = "redfish+" + text
	}
	parsed, err := url.Parse(text)
	switch {
	case text == "":
		return "", expected + ", found nothing"
	case err != nil:
		return "", expected + ", found what is no URL"
	case parsed.Host == "":
		// Metal3 would take it for IPMI.
		return "", expected + ", found no protocol"
	case parsed.Scheme == schemeIPMI && provider == providerRedfish:
		return "", "NodeProviders of kind redfish do not speak IPMI: give the address of its Redfish, or register the server with a NodeProvider that has spec.ironic or spec.metal3 and say --provider ironic or metal3"
	case parsed.User != nil:
		return "", "it holds a user or a password, which everybody who may read hosts would see: remove them"
	}
	if _, err := bmc.NewAccessDetails(text, false); err != nil {
		return "", fmt.Sprintf("%s: Metal3 does not know the protocol %q, or there is no host in it", expected, parsed.Scheme)
	}
	// A baremetal-operator has drivers for more.
	if _, err := bmcaddress.Parse(text, provider != providerRedfish); err != nil && provider != providerMetal3 {
		return "", fmt.Sprintf("%s: %v", expected, err)
	}
	return text, ""
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

// readPassword reads a password file. Its content is in no message.
func (c *tableChecker) readPassword(name string) (password, problem string) {
	if name == "" {
		return "", "expected a file with the BMC's password, found nothing"
	}
	file, err := c.open(name)
	if err != nil {
		return "", withoutPath(err)
	}
	defer file.Close()
	return ReadPassword(file)
}

// ReadPassword reads a password, which is one line, or says what is wrong with it. No message has any of its text.
func ReadPassword(file io.Reader) (password, problem string) {
	text, err := io.ReadAll(io.LimitReader(file, maxPassword+1))
	if err != nil {
		return "", withoutPath(err)
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

// withoutPath returns the error without the path, which the finding names already.
func withoutPath(err error) string {
	var where *fs.PathError
	if errors.As(err, &where) {
		return where.Err.Error()
	}
	return err.Error()
}

// labelProblem says what is wrong with a label; empty: nothing.
func labelProblem(key, value string) string {
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
