package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// section is a section of an ini file.
type section struct {
	name  string
	lines []string
}

// set adds a line to the section, unless the value is empty or 0.
func (s *section) set(key, value string) {
	if value != "" && value != "0" {
		s.lines = append(s.lines, key+"="+value)
	}
}

// iniFile returns the text of the sections that have lines.
func iniFile(sections ...section) string {
	var parts []string
	for _, s := range sections {
		if len(s.lines) > 0 {
			parts = append(parts, "["+s.name+"]\n"+strings.Join(s.lines, "\n")+"\n")
		}
	}
	return strings.Join(parts, "\n")
}

// Networkd returns the files of systemd-networkd.
func (d Data) Networkd() ([]v1alpha1.NodeFile, error) {
	const directory = "/etc/systemd/network/"
	names := d.InterfaceNames()
	var out []v1alpha1.NodeFile
	for i, l := range d.Links {
		base := fmt.Sprintf("%s%02d-ingot-%s", directory, 10+i, names[l.ID])
		if dev := l.netdev(names[l.ID]); dev != "" {
			out = append(out, v1alpha1.NodeFile{Path: base + ".netdev", Mode: "0644", Content: dev})
		}
		text, err := d.networkdFile(l, names)
		if err != nil {
			return nil, err
		}
		out = append(out, v1alpha1.NodeFile{Path: base + ".network", Mode: "0644", Content: text})
	}
	return out, nil
}

// netdev returns the .netdev file of a bond or a VLAN, and an empty text for a NIC.
func (l Link) netdev(name string) string {
	dev, kind := section{name: "NetDev"}, section{name: "Bond"}
	dev.set("Name", name)
	switch l.Type {
	case LinkBond:
		dev.set("Kind", "bond")
		dev.set("MACAddress", l.MAC)
		kind.set("Mode", l.BondMode)
		if l.BondMIIMon > 0 {
			kind.set("MIIMonitorSec", fmt.Sprintf("%dms", l.BondMIIMon))
		}
		kind.set("TransmitHashPolicy", l.BondHash)
	case LinkVLAN:
		kind.name = "VLAN"
		dev.set("Kind", "vlan")
		dev.set("MACAddress", l.VLANMAC)
		kind.set("Id", fmt.Sprint(l.VLANID))
	default:
		return ""
	}
	return iniFile(dev, kind)
}

// networkdFile returns the .network file of a link.
func (d Data) networkdFile(l Link, names map[string]string) (string, error) {
	match, device, network := section{name: "Match"}, section{name: "Link"}, section{name: "Network"}
	if l.Type == LinkPhysical {
		match.set("PermanentMACAddress", strings.ToLower(l.MAC))
	} else {
		match.set("Name", names[l.ID])
	}
	device.set("MTUBytes", fmt.Sprint(l.MTU))
	for _, o := range d.Links {
		switch {
		case o.Type == LinkBond && slices.Contains(o.BondLinks, l.ID):
			network.set("Bond", names[o.ID])
		case o.Type == LinkVLAN && o.VLANLink == l.ID:
			network.set("VLAN", names[o.ID])
		}
	}
	routes, err := d.addAddresses(&network, l.ID)
	return iniFile(append([]section{match, device, network}, routes...)...), err
}

// addAddresses adds the link's addresses and resolvers to the section Network, and returns the sections of its routes.
func (d Data) addAddresses(network *section, link string) ([]section, error) {
	var routes []section
	dhcp, configured := dhcpSetting(d.networksOf(link))
	network.set("DHCP", dhcp)
	for _, n := range d.networksOf(link) {
		if n.Type == "ipv4" || n.Type == "ipv6" {
			p, err := n.Prefix()
			if err != nil {
				return nil, err
			}
			network.set("Address", p.String())
		}
		for _, r := range n.Routes {
			to, err := parsePrefix(r.Network, r.Netmask)
			if err != nil {
				return nil, err
			}
			routes = append(routes, section{name: "Route", lines: []string{"Destination=" + to.String(), "Gateway=" + r.Gateway}})
		}
	}
	if configured {
		for _, s := range d.Services {
			network.set("DNS", s.Address)
		}
	}
	return routes, nil
}

// dhcpSetting returns networkd's setting DHCP for the networks of a link. configured is true when the link has a network.
func dhcpSetting(networks []Network) (word string, configured bool) {
	four, six := false, false
	for _, n := range networks {
		four = four || n.Type == "ipv4_dhcp"
		six = six || n.Type == "ipv6_dhcp" || strings.HasPrefix(n.Type, "ipv6_dhcpv6")
	}
	switch {
	case four && six:
		word = "yes"
	case four:
		word = "ipv4"
	case six:
		word = "ipv6"
	}
	return word, len(networks) > 0
}

// networksOf returns the networks of a link.
func (d Data) networksOf(link string) []Network {
	var out []Network
	for _, n := range d.Networks {
		if n.Link == link {
			out = append(out, n)
		}
	}
	return out
}

// NetworkManager returns the keyfiles of NetworkManager. Their mode is 0600, because it ignores keyfiles that other users can read.
func (d Data) NetworkManager() ([]v1alpha1.NodeFile, error) {
	names := d.InterfaceNames()
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

// keyfile returns the keyfile of a link.
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
		if nic := d.nicMAC(l.VLANLink); nic != "" {
			// Ignition renames no NIC, so NetworkManager must find it by its MAC.
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
			return iniFile(connection, wire), nil
		}
	}
	four, err := d.ipSection(l, true)
	if err != nil {
		return "", err
	}
	six, err := d.ipSection(l, false)
	return iniFile(connection, wire, kind, four, six), err
}

// nicMAC returns the MAC of the link when it is a NIC, and an empty text otherwise.
func (d Data) nicMAC(id string) string {
	for _, l := range d.Links {
		if l.ID == id && l.Type == LinkPhysical {
			return strings.ToUpper(l.MAC)
		}
	}
	return ""
}

// ipSection returns the section of a link's keyfile for one IP version.
func (d Data) ipSection(l Link, four bool) (section, error) {
	out := section{name: "ipv6"}
	how, none := "link-local", "link-local"
	if four {
		out.name, how, none = "ipv4", "disabled", "disabled"
	}
	var lines section
	addresses, routes := 0, 0
	for _, n := range d.networksOf(l.ID) {
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
			to, err := parsePrefix(r.Network, r.Netmask)
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
