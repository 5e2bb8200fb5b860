package hardware

import (
	"slices"
	"strings"
)

// Channel is how an agent was booted on a server and how it spoke. What an agent reports is a proof only against those who cannot stand in for it there.
type Channel string

// Channels, the strongest first. Their strength is in the table below.
const (
	// ChannelVirtualMedia is a CD image for one boot with a secret and the authority that the agent trusts in it, inserted by a BMC whose certificate was verified.
	// The agent spoke by HTTPS.
	ChannelVirtualMedia Channel = "VirtualMedia"
	// ChannelPinnedHTTPS is a URL for one boot with a secret in it, given to the firmware by a BMC whose certificate was verified, with the authority that the firmware
	// trusts. Firmware and agent spoke by HTTPS.
	ChannelPinnedHTTPS Channel = "PinnedHTTPS"
	// ChannelVirtualMediaHTTP is ChannelVirtualMedia with an agent that spoke by HTTP.
	ChannelVirtualMediaHTTP Channel = "VirtualMediaHTTP"
	// ChannelPinnedHTTP is ChannelPinnedHTTPS where the firmware or the agent spoke by HTTP.
	ChannelPinnedHTTP Channel = "PinnedHTTP"
	// ChannelIronicVirtualMedia is a CD image with the token of Ironic's agent in it, inserted by a BMC whose certificate Ironic verifies.
	ChannelIronicVirtualMedia Channel = "IronicVirtualMedia"
	// ChannelUnverifiedBMC is one of those by a BMC whose certificate was not verified: who answers in its place has the secrets.
	ChannelUnverifiedBMC Channel = "UnverifiedBMC"
	// ChannelIronicNetwork is Ironic's agent after a boot over the network, or after one of which Ironic does not tell enough.
	ChannelIronicNetwork Channel = "IronicNetwork"
	// ChannelNetwork is PXE or HTTP boot: whoever asks with the MAC address of a server gets the token of its boot.
	ChannelNetwork Channel = "Network"
)

// Adversary is who may want that an erase counts which was not done.
type Adversary string

// Adversaries.
const (
	// Neighbour asks and answers on the provisioning network, such as another server there.
	Neighbour Adversary = "a neighbour on the provisioning network"
	// InPath reads and changes what is sent on the provisioning network, such as by ARP, as a DHCP server or as a router.
	InPath Adversary = "one in the path there"
	// BMCNeighbour asks and answers on the network of the BMCs, and is in the path there.
	BMCNeighbour Adversary = "one in the path on the BMCs' network"
	// FormerSystem is what was installed on the server: it may start in place of the agent, read the medium, and say what it likes.
	FormerSystem Adversary = "the system that was on the server"
)

// adversaries are all of them, in the order of the table.
var adversaries = []Adversary{Neighbour, InPath, BMCNeighbour, FormerSystem}

type strength struct {
	channel Channel
	holds   []Adversary
}

// strengths are against whom what an agent reports through a channel is a proof. FormerSystem is in none: only a measured boot, or firmware that starts nothing but
// the agent, is a proof against it.
var strengths = []strength{
	{ChannelVirtualMedia, []Adversary{Neighbour, InPath}}, // the BMC may fetch the image by HTTP
	{ChannelPinnedHTTPS, []Adversary{Neighbour, InPath, BMCNeighbour}},
	{ChannelVirtualMediaHTTP, []Adversary{Neighbour}},
	{ChannelPinnedHTTP, []Adversary{Neighbour, BMCNeighbour}},
	{ChannelIronicVirtualMedia, []Adversary{Neighbour}},
	{ChannelUnverifiedBMC, nil},
	{ChannelIronicNetwork, nil},
	{ChannelNetwork, nil},
}

// IsProofAgainst reports whether what an agent reports through the channel is a proof against the adversary. A channel that is not known is none.
func (c Channel) IsProofAgainst(a Adversary) bool {
	return slices.ContainsFunc(strengths, func(s strength) bool { return s.channel == c && slices.Contains(s.holds, a) })
}

// IsProof reports whether an erase that was reported through the channel by such an agent lets a host go to another tenant: no neighbour can forge it.
func IsProof(c Channel, p TPMProof) bool {
	return c.IsProofAgainst(Neighbour) || p.IsProofAgainst(Neighbour)
}

// ChannelOf returns the channel of a boot whose agent speaks by HTTPS. isVerified says that the BMC's certificate is verified, and isEncrypted that the firmware
// loads the agent by HTTPS.
func ChannelOf(way BootSource, isVerified, isEncrypted bool) Channel {
	switch {
	case !way.HasOwnImage():
		return ChannelNetwork
	case !isVerified:
		return ChannelUnverifiedBMC
	case way == BootMedia:
		return ChannelVirtualMedia
	case isEncrypted:
		return ChannelPinnedHTTPS
	default:
		return ChannelPinnedHTTP
	}
}

// ByHTTP returns the channel where the agent speaks by HTTP.
func (c Channel) ByHTTP() Channel {
	switch c {
	case ChannelVirtualMedia:
		return ChannelVirtualMediaHTTP
	case ChannelPinnedHTTPS:
		return ChannelPinnedHTTP
	}
	return c
}

// ChannelOfIronic returns the channel of Ironic's agent on a node with that boot interface (redfish-virtual-media, ilo-virtual-media, ipxe). With virtual media
// Ironic makes the agent's token before the boot and puts it into the image alone (drivers/modules/redfish/boot.py, add_secret_token with pregenerated); with PXE it
// stands in a file that whoever asks with the MAC address gets.
func ChannelOfIronic(bootInterface string, isVerified bool) Channel {
	if strings.HasSuffix(bootInterface, "-virtual-media") && isVerified {
		return ChannelIronicVirtualMedia
	}
	return ChannelIronicNetwork
}

// ChannelTable returns the strengths as a table in Markdown. A TPM adds to what a channel holds.
func ChannelTable() string {
	var out strings.Builder
	out.WriteString("| channel |")
	for _, a := range adversaries {
		out.WriteString(" " + string(a) + " |")
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(adversaries)) + "\n")
	for _, s := range strengths {
		writeRow(&out, string(s.channel), s.channel.IsProofAgainst)
	}
	writeRow(&out, "beside one of them, a TPM that is "+string(TPMListed)+" or "+string(TPMKnown), TPMKnown.IsProofAgainst)
	return out.String()
}

func writeRow(out *strings.Builder, name string, isProofAgainst func(Adversary) bool) {
	out.WriteString("| " + name + " |")
	for _, a := range adversaries {
		if isProofAgainst(a) {
			out.WriteString(" holds |")
		} else {
			out.WriteString(" not held |")
		}
	}
	out.WriteString("\n")
}
