package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// NetworkManager renders its keyfiles. It reads only those that nobody else may read.
func (d Data) NetworkManager() ([]v1alpha1.NodeFile, error) {
	names := d.Names()
	var out []v1alpha1.NodeFile
	for _, l := range d.Links {
		text, err := d.keyfile(l, names)
		if err != nil {
			return nil, err
		}
		out = append(out, v1alpha1.NodeFile{Path: "/etc/NetworkManager/system-connections/ingot-" + names[l.ID] + ".nmconnection", Mode: "0600", Content: text})
	}
	return out, nil
}

func (d Data) keyfile(l Link, names map[string]string) (string, error) {
	connection, wire, kind := section{name: "connection"}, section{name: "ethernet"}, section{}
	connection.set("id", "ingot-"+names[l.ID])
	connection.set("autoconnect-priority", "100")
	switch l.Type {
	case LinkBond:
		connection.set("type", "bond")
		connection.set("interface-name", names[l.ID])
		kind.name = "bond"
		kind.set("mode", l.BondMode)
		kind.set("miimon", fmt.Sprint(l.BondMIIMon))
		kind.set("xmit_hash_policy", l.BondHash)
		wire.set("cloned-mac-address", l.MAC)
	case LinkVLAN:
		connection.set("type", "vlan")
		connection.set("interface-name", names[l.ID])
		kind.name = "vlan"
		kind.set("id", fmt.Sprint(l.VLANID))
		if nic := d.nic(l.VLANLink); nic != "" {
			// Ignition names no NIC, so NetworkManager finds it by its MAC.
			wire.set("mac-address", nic)
		} else {
			kind.set("parent", names[l.VLANLink])
		}
		wire.set("cloned-mac-address", l.VLANMAC)
	default:
		connection.set("type", "ethernet")
		wire.set("mac-address", strings.ToUpper(l.MAC))
	}
	wire.set("mtu", fmt.Sprint(l.MTU))
	for _, o := range d.Links {
		if o.Type == LinkBond && slices.Contains(o.BondLinks, l.ID) {
			connection.set("master", names[o.ID])
			connection.set("slave-type", "bond")
			return ini(connection, wire), nil
		}
	}
	four, err := d.method(l, true)
	if err != nil {
		return "", err
	}
	six, err := d.method(l, false)
	return ini(connection, wire, kind, four, six), err
}

// nic is the MAC of a link that is a NIC; empty: it is none.
func (d Data) nic(id string) string {
	for _, l := range d.Links {
		if l.ID == id && l.Type == LinkPhysical {
			return strings.ToUpper(l.MAC)
		}
	}
	return ""
}

// method is how a link gets its addresses of one IP version.
func (d Data) method(l Link, four bool) (section, error) {
	out := section{name: "ipv6"}
	how, none := "link-local", "link-local"
	if four {
		out.name, how, none = "ipv4", "disabled", "disabled"
	}
	var lines section
	addresses, routes := 0, 0
	for _, n := range d.on(l.ID) {
		if strings.HasPrefix(n.Type, "ipv4") != four {
			continue
		}
		switch n.Type {
		case "ipv4", "ipv6":
			p, err := n.Prefix()
			if err != nil {
				return out, err
			}
			addresses++
			how = "manual"
			lines.set(fmt.Sprintf("address%d", addresses), p.String())
		default:
			how = "auto"
		}
		for _, r := range n.Routes {
			to, err := join(r.Network, r.Netmask)
			if err != nil {
				return out, err
			}
			routes++
			lines.set(fmt.Sprintf("route%d", routes), to.String()+","+r.Gateway)
		}
	}
	out.set("method", how)
	out.lines = append(out.lines, lines.lines...)
	if how == none {
		return out, nil
	}
	var resolvers string
	for _, s := range d.Services {
		if strings.Contains(s.Address, ":") != four {
			resolvers += s.Address + ";"
		}
	}
	out.set("dns", resolvers)
	return out, nil
}
