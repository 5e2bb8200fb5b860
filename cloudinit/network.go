package cloudinit

import (
	"github.com/ingot-dev/ingot/cloudinit/network"
)

// NetworkInvalid is a network that the node cannot have.
type NetworkInvalid = network.Invalid

// NetworkConfig renders cloud-init's network-config version 2 of the same network that Render gives as network_data.json,
// for a NoCloud seed; nil: none, the image's default holds. A config drive's reader would take it for an empty network.
// Errors as of Render.
func NetworkConfig(in Input) ([]byte, error) {
	in, err := resolve(in)
	if err != nil {
		return nil, err
	}
	data, ok, err := networkOf(in)
	if err != nil || !ok {
		return nil, err
	}
	return data.Config()
}

func renderNetworkData(in Input) ([]byte, error) {
	data, ok, err := networkOf(in)
	if err != nil || !ok {
		return nil, err
	}
	return data.JSON()
}

// networkOf is the network that people wrote, else that of the NIC from which the host boots. ok is false where nothing
// is to be configured.
func networkOf(in Input) (data network.Data, ok bool, err error) {
	if in.NetworkData.Text != "" {
		data, err := network.Parse(in.NetworkData.String(), in.NetworkData.Text)
		return data, err == nil, err
	}
	return boot(in).Data()
}

func boot(in Input) network.Boot {
	b := network.Boot{MAC: in.Host.BootMAC, Address: in.Host.IPAddress, Gateway: in.Host.Gateway, Ranges: in.Ranges}
	if in.Network != nil {
		b.CIDR, b.Resolvers = in.Network.CIDR, in.Network.DNSServers
	}
	if len(in.Host.Resolvers) > 0 {
		b.Resolvers = in.Host.Resolvers
	}
	return b
}
