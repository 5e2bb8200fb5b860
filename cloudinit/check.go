package cloudinit

import (
	"net/netip"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/ignition"
	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/cloudinit/properties"
)

// Check reports what is wrong whatever the machine and the host: with layers, properties, templates as such, the network,
// and with what the image's kind of user data lacks. Machine, Host, Join and Secrets are not asked for. Errors as of Render.
func Check(in Input) error {
	said, err := properties.Resolve(in.Properties)
	if err != nil {
		return err
	}
	in.Properties, in.Host = nil, HostInput{}
	in.SSHKeys = withoutRepeats(in.SSHKeys, said.SSHKeys)
	if said.UserData.Text != "" {
		in.Layers = append(slices.Clone(in.Layers), layer(said.UserData))
	}
	if said.NetworkData.Text != "" {
		in.NetworkData = layer(said.NetworkData)
	}
	if err := checkNetwork(overridden(in.Network, said), said.Ranges); err != nil {
		return err
	}
	if _, _, err := networkOf(in); err != nil {
		return err
	}
	switch in.Kind {
	case "", v1alpha1.UserDataCloudInit:
		return Validate(in.Layers, in.SSHKeys, in.Plan)
	case v1alpha1.UserDataIgnition:
		config, err := ignitionConfig(in)
		if err != nil {
			return err
		}
		return translated(ignition.Validate(config))
	}
	return &Unsupported{Kind: string(in.Kind)}
}

func checkNetwork(spec *v1alpha1.NetworkSpec, text string) error {
	if text == "" {
		return nil
	}
	ranges, err := network.ParseRanges(text)
	if err != nil {
		return err
	}
	gateway, err := netip.ParsePrefix(spec.CIDR)
	if err != nil {
		return &NetworkInvalid{Field: "network.cidr", Message: "it must be the gateway's address with a prefix length, such as 10.20.4.1/22, where address ranges are given"}
	}
	return ranges.Within(gateway)
}
