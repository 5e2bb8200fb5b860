package properties

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/cloudinit/templates"
)

// Level has the properties of one object.
type Level struct {
	// Name of the object in messages: NodeProvider hall-1.
	Name string
	// Values by key.
	Values map[string]string
	// Tenant: a tenant writes the object, so it may have neither templates, which run in the controller, nor the network.
	Tenant bool
}

// Text is a document, and the property that it was read from.
type Text struct {
	// Level is the name of the object, and Key the key of the property.
	Level, Key string
	// Text of the document; empty: no object has the property.
	Text string
	// Template that was parsed from Text; nil: the property is not a template, or Text is empty.
	Template *templates.Template
}

// Resolved has the values that result from all levels.
type Resolved struct {
	// Values by key, including the users' own keys.
	Values map[string]string
	// UserData is the last layer of user data. UserDataTemplate is its template.
	UserData, UserDataTemplate Text
	// NetworkData is a network_data document. NetworkDataTemplate is its template.
	NetworkData, NetworkDataTemplate Text
	// CIDR is the gateway with the prefix length; empty: not set.
	CIDR string
	// Ranges that the hosts' addresses must be in; empty: not set.
	Ranges string
	// Resolvers of the node; empty: not set.
	Resolvers []string
	// SSHKeys are public keys.
	SSHKeys []string
}

// Finding is a property that is refused.
type Finding struct {
	// Level is the name of the object, and Key the key of the property.
	Level, Key string
	// Message says why, and what to do instead. Of the values it quotes only addresses.
	Message string
}

// String returns the level, the key and the message.
func (f Finding) String() string { return f.Level + ": property " + f.Key + ": " + f.Message }

// Invalid is the error about properties that are refused.
type Invalid struct {
	// Findings in the order of levels and keys.
	Findings []Finding
}

// Error returns all findings.
func (i *Invalid) Error() string {
	parts := make([]string, len(i.Findings))
	for n, f := range i.Findings {
		parts[n] = f.String()
	}
	return strings.Join(parts, "; ")
}

// Resolve returns the values that result from the levels. A later level takes precedence over an earlier one. The error is an
// *Invalid.
func Resolve(levels []Level) (Resolved, error) {
	r := resolver{out: Resolved{Values: map[string]string{}}, levels: map[string]string{}}
	for _, level := range levels {
		for _, key := range slices.Sorted(maps.Keys(level.Values)) {
			if why := refusalMessage(key, level.Tenant); why != "" {
				r.addFindingAt(level.Name, key, "%s", why)
				continue
			}
			r.out.Values[key], r.levels[key] = level.Values[key], level.Name
		}
	}
	r.out.UserData, r.out.UserDataTemplate = r.textOf(UserData), r.templateOf(UserDataTemplate)
	r.out.NetworkData, r.out.NetworkDataTemplate = r.validNetworkData(), r.templateOf(NetworkDataTemplate)
	r.resolveNetwork()
	r.resolveSSHKeys()
	if len(r.findings) > 0 {
		return Resolved{}, &Invalid{Findings: r.findings}
	}
	return r.out, nil
}

// refusalMessage returns why an object may not have the key, or an empty text when it may. tenant is true for the objects of tenants.
func refusalMessage(key string, tenant bool) string {
	if why := unsupportedKeys[key]; why != "" {
		return why
	}
	template, known := knownKeys[key]
	switch {
	case template && tenant:
		return "a Machine gives values, and no templates: set it on the NodeType or the NodeProvider"
	case tenant && slices.Contains(infrastructureKeys, key):
		return "a Machine does not say what the network is, or its author could take another's address: whoever runs the hosts sets it on the NodeType or the NodeProvider; " +
			"a host's own address is the annotation ingot.dev/ip-address of its BareMetalHost"
	case known || !slices.ContainsFunc(domains, func(d string) bool { return strings.HasPrefix(key, d) }):
		return ""
	}
	return "it is not known; known are " + strings.Join(slices.Sorted(maps.Keys(knownKeys)), ", ") + ", and every key outside of " + strings.Join(domains, ", ")
}

// resolver collects the values and the findings.
type resolver struct {
	out Resolved
	// levels are the names of the levels that the values come from, by key.
	levels   map[string]string
	findings []Finding
}

// addFindingAt adds a finding about a property of the named level.
func (r *resolver) addFindingAt(level, key, format string, args ...any) {
	r.findings = append(r.findings, Finding{Level: level, Key: key, Message: fmt.Sprintf(format, args...)})
}

// addFinding adds a finding about a property, at the level that its value comes from.
func (r *resolver) addFinding(key, format string, args ...any) {
	r.addFindingAt(r.levels[key], key, format, args...)
}

// textOf returns the document of a property.
func (r *resolver) textOf(key string) Text {
	value := r.out.Values[key]
	if strings.TrimSpace(value) == "" {
		return Text{}
	}
	return Text{Level: r.levels[key], Key: key, Text: value}
}

// templateOf returns the document of a property that is a template, and parses it.
func (r *resolver) templateOf(key string) Text {
	t := r.textOf(key)
	if t.Text == "" {
		return t
	}
	var err error
	if t.Template, err = templates.Parse(t.Level+": property "+t.Key, t.Text); err != nil {
		var bad *templates.Invalid
		if errors.As(err, &bad) {
			err = errors.New("the template, " + bad.Message)
		}
		r.addFinding(key, "%s", err)
	}
	return t
}

// validNetworkData returns the network data, and validates it. Later, when it is rendered, its level would no longer be known.
func (r *resolver) validNetworkData() Text {
	t := r.textOf(NetworkData)
	if t.Text == "" {
		return t
	}
	if _, err := network.Parse("", t.Text); err != nil {
		r.addFinding(NetworkData, "%s", strings.TrimLeft(err.Error(), ": "))
	}
	return t
}

// resolveNetwork reads the CIDR, the ranges and the resolvers.
func (r *resolver) resolveNetwork() {
	var gateway netip.Prefix
	if cidr := r.trimmed(NetworkCIDR); cidr != "" {
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			r.addFinding(NetworkCIDR, "it must be the gateway's address with a prefix length, such as 10.20.4.1/22")
		}
		gateway, r.out.CIDR = p, cidr
	}
	if ranges := r.trimmed(NetworkIPRange); ranges != "" {
		parsed, err := network.ParseRanges(ranges)
		if err == nil && gateway.IsValid() {
			err = parsed.CheckWithin(gateway)
		}
		if err != nil {
			r.addFinding(NetworkIPRange, "%s", err)
		}
		r.out.Ranges = ranges
	}
	for _, s := range strings.Split(r.trimmed(DNSServers), ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		if _, err := netip.ParseAddr(s); err != nil {
			r.addFinding(DNSServers, "%q must be an IP address; separate several by commas", s)
		}
		r.out.Resolvers = append(r.out.Resolvers, s)
	}
}

func (r *resolver) trimmed(key string) string { return strings.TrimSpace(r.out.Values[key]) }

// publicKeyPrefixes are the beginnings of public keys in an authorized_keys file.
var publicKeyPrefixes = []string{"ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"}

// resolveSSHKeys reads the public keys, one from each line.
func (r *resolver) resolveSSHKeys() {
	for _, line := range strings.Split(r.out.Values[SSHKeys], "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !slices.ContainsFunc(publicKeyPrefixes, func(t string) bool { return strings.HasPrefix(line, t) }) || len(strings.Fields(line)) < 2 {
			r.addFinding(SSHKeys, "it must hold public keys themselves, one a line, such as ssh-ed25519 AAAA...: there are no SSHKey objects here")
			return
		}
		r.out.SSHKeys = append(r.out.SSHKeys, line)
	}
}

// Keys that Ingot understands.
const (
	// UserData is the last layer of user data.
	UserData = "vcluster.com/user-data"
	// UserDataTemplate is the template of that layer. It is used when UserData is not set.
	UserDataTemplate = "ingot.dev/user-data-template"
	// SSHKeys are public keys, one on each line, in addition to those of the specs.
	SSHKeys = "vcluster.com/ssh-keys"
	// NetworkData is an OpenStack network_data document. It replaces all other settings of the network.
	NetworkData = "metal3.vcluster.com/network-data"
	// NetworkDataTemplate is the template of that document. It is used when NetworkData is not set.
	NetworkDataTemplate = "ingot.dev/network-data-template"
	// NetworkCIDR is the gateway's address with the prefix length.
	NetworkCIDR = "metal3.vcluster.com/network-cidr"
	// NetworkIPRange has the ranges that the hosts' addresses must be in: IP1-IP2,IP3-IP4.
	NetworkIPRange = "metal3.vcluster.com/network-ip-range"
	// DNSServers are the resolvers, separated by commas.
	DNSServers = "metal3.vcluster.com/dns-servers"
)

// domains are the domains in which a key that Ingot does not understand is refused.
var domains = []string{"vcluster.com/", "metal3.vcluster.com/", "ingot.dev/"}

// knownKeys are the keys that Ingot understands. The value is true when the property is a template.
var knownKeys = map[string]bool{
	UserData: false, UserDataTemplate: true, SSHKeys: false, NetworkData: false, NetworkDataTemplate: true,
	NetworkCIDR: false, NetworkIPRange: false, DNSServers: false,
}

// infrastructureKeys are the keys that describe the network. The objects of tenants may not have them.
var infrastructureKeys = []string{NetworkData, NetworkCIDR, NetworkIPRange}

// unsupportedKeys are the keys of vMetal for which Ingot has another place, and what to use instead.
var unsupportedKeys = map[string]string{
	"vcluster.com/os-image":                     "set osImageRef of the NodeType",
	"vcluster.com/user-data-template-config":    "there is no MachineConfigTemplate here: put its cloudInitTemplate into the property " + UserDataTemplate,
	"vcluster.com/network-data-template-config": "there is no MachineConfigTemplate here: put its networkDataTemplate into the property " + NetworkDataTemplate,
	"vcluster.com/network-environment":          "there is no NodeEnvironment here: say what the network is with network of the NodeProvider",
	"metal3.vcluster.com/image-url":             "set url of an OSImage, and osImageRef of the NodeType",
	"metal3.vcluster.com/image-checksum":        "set checksum of an OSImage, and osImageRef of the NodeType",
	"metal3.vcluster.com/image-checksum-type":   "it is part of checksum of an OSImage: remove it",
	"metal3.vcluster.com/server-name":           "set hostName of the Machine",
}
