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

// Level is the properties of one object.
type Level struct {
	// Name for messages: NodeProvider hall-1.
	Name string
	// Values by key.
	Values map[string]string
	// Tenant: a tenant writes this object, who gives neither templates, which run in the controller, nor the network.
	Tenant bool
}

// Text is a document and where it comes from.
type Text struct {
	// Level that has it, and the key of the property.
	Level, Key string
	// Text of the document; empty: none.
	Text string
	// Template that the Text is; nil: it is none, or there is no Text.
	Template *templates.Template
}

// Resolved is what the properties say together.
type Resolved struct {
	// Values by key, people's own included.
	Values map[string]string
	// UserData is the last layer of user data, or the template of it.
	UserData, UserDataTemplate Text
	// NetworkData is a network_data document, or the template of it.
	NetworkData, NetworkDataTemplate Text
	// CIDR is the gateway with the prefix length; empty: not said.
	CIDR string
	// Ranges that the hosts' addresses lie in; empty: not said.
	Ranges string
	// Resolvers of the node; empty: not said.
	Resolvers []string
	// SSHKeys are public keys.
	SSHKeys []string
}

// Finding is a property that cannot stand.
type Finding struct {
	// Level that it is of, and its key.
	Level, Key string
	// Message says why, and what to do instead. It quotes no value but addresses.
	Message string
}

// String is the level, the key and the message.
func (f Finding) String() string { return f.Level + ": property " + f.Key + ": " + f.Message }

// Invalid is properties that cannot stand.
type Invalid struct {
	// Findings in the order of levels and keys.
	Findings []Finding
}

// Error names every finding.
func (i *Invalid) Error() string {
	parts := make([]string, len(i.Findings))
	for n, f := range i.Findings {
		parts[n] = f.String()
	}
	return strings.Join(parts, "; ")
}

// Resolve reads the levels, of which a later one wins over an earlier one. The error is an *Invalid.
func Resolve(levels []Level) (Resolved, error) {
	r := reader{out: Resolved{Values: map[string]string{}}, from: map[string]string{}}
	for _, level := range levels {
		for _, key := range slices.Sorted(maps.Keys(level.Values)) {
			if why := refusalMessage(key, level.Tenant); why != "" {
				r.find(level.Name, key, "%s", why)
				continue
			}
			r.out.Values[key], r.from[key] = level.Values[key], level.Name
		}
	}
	r.out.UserData, r.out.UserDataTemplate = r.text(UserData), r.template(UserDataTemplate)
	r.out.NetworkData, r.out.NetworkDataTemplate = r.networkData(), r.template(NetworkDataTemplate)
	r.network()
	r.sshKeys()
	if len(r.findings) > 0 {
		return Resolved{}, &Invalid{Findings: r.findings}
	}
	return r.out, nil
}

func refusalMessage(key string, tenant bool) string {
	if why := unsupportedKeys[key]; why != "" {
		return why
	}
	template, known := keys[key]
	switch {
	case template && tenant:
		return "a Machine gives values, and no templates: set it on the NodeType or the NodeProvider"
	case tenant && slices.Contains(infrastructureKeys, key):
		return "a Machine does not say what the network is, or its author could take another's address: whoever runs the hosts sets it on the NodeType or the NodeProvider; " +
			"a host's own address is the annotation ingot.dev/ip-address of its BareMetalHost"
	case known || !slices.ContainsFunc(domains, func(d string) bool { return strings.HasPrefix(key, d) }):
		return ""
	}
	return "it is not known; known are " + strings.Join(slices.Sorted(maps.Keys(keys)), ", ") + ", and every key outside of " + strings.Join(domains, ", ")
}

type reader struct {
	out      Resolved
	from     map[string]string
	findings []Finding
}

func (r *reader) find(level, key, format string, args ...any) {
	r.findings = append(r.findings, Finding{Level: level, Key: key, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) addFinding(key, format string, args ...any) {
	r.find(r.from[key], key, format, args...)
}

func (r *reader) text(key string) Text {
	value := r.out.Values[key]
	if strings.TrimSpace(value) == "" {
		return Text{}
	}
	return Text{Level: r.from[key], Key: key, Text: value}
}

func (r *reader) template(key string) Text {
	t := r.text(key)
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

// networkData is judged here, because here is known who wrote it.
func (r *reader) networkData() Text {
	t := r.text(NetworkData)
	if t.Text == "" {
		return t
	}
	if _, err := network.Parse("", t.Text); err != nil {
		r.addFinding(NetworkData, "%s", strings.TrimLeft(err.Error(), ": "))
	}
	return t
}

func (r *reader) network() {
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

func (r *reader) trimmed(key string) string { return strings.TrimSpace(r.out.Values[key]) }

// keyTypes begin a line of an authorized_keys file.
var keyTypes = []string{"ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"}

func (r *reader) sshKeys() {
	for _, line := range strings.Split(r.out.Values[SSHKeys], "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !slices.ContainsFunc(keyTypes, func(t string) bool { return strings.HasPrefix(line, t) }) || len(strings.Fields(line)) < 2 {
			r.addFinding(SSHKeys, "it must hold public keys themselves, one a line, such as ssh-ed25519 AAAA...: there are no SSHKey objects here")
			return
		}
		r.out.SSHKeys = append(r.out.SSHKeys, line)
	}
}

// Keys that mean something.
const (
	// UserData is the last layer of user data.
	UserData = "vcluster.com/user-data"
	// UserDataTemplate renders to that layer, where UserData is not set.
	UserDataTemplate = "ingot.dev/user-data-template"
	// SSHKeys are public keys, one a line, beside those of the specs.
	SSHKeys = "vcluster.com/ssh-keys"
	// NetworkData is an OpenStack network_data document, in place of everything else that is said of the network.
	NetworkData = "metal3.vcluster.com/network-data"
	// NetworkDataTemplate renders to it, where NetworkData is not set.
	NetworkDataTemplate = "ingot.dev/network-data-template"
	// NetworkCIDR is the gateway's address with the prefix length.
	NetworkCIDR = "metal3.vcluster.com/network-cidr"
	// NetworkIPRange is where the hosts' addresses must lie: IP1-IP2,IP3-IP4.
	NetworkIPRange = "metal3.vcluster.com/network-ip-range"
	// DNSServers are the resolvers, separated by commas.
	DNSServers = "metal3.vcluster.com/dns-servers"
)

// domains whose keys are Ingot's to understand.
var domains = []string{"vcluster.com/", "metal3.vcluster.com/", "ingot.dev/"}

// keys that are understood, and which of them are templates.
var keys = map[string]bool{
	UserData: false, UserDataTemplate: true, SSHKeys: false, NetworkData: false, NetworkDataTemplate: true,
	NetworkCIDR: false, NetworkIPRange: false, DNSServers: false,
}

// infrastructureKeys are keys that say what the network is, which a tenant may not.
var infrastructureKeys = []string{NetworkData, NetworkCIDR, NetworkIPRange}

// unsupportedKeys are vMetal's keys for which Ingot has a field, and where it is.
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
