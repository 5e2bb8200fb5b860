// Package bmcaddress reads spec.bmc.address of a BareMetalHost, as the controller of hosts and the tools that write hosts both understand it.
package bmcaddress

import (
	"errors"
	"fmt"
	"strings"

	"github.com/metal3-io/baremetal-operator/pkg/hardwareutils/bmc"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const ipmi = "ipmi"

// Parse parses an address with Metal3's parser. A plain https URL counts as redfish, and so does every protocol of a vendor for which that parser names a Redfish service, such as
// idrac-virtualmedia. IPMI is for installers that speak it. The address may contain a password, so no error quotes it.
func Parse(address string, hasIPMI bool) (hardware.Endpoint, error) {
	if strings.HasPrefix(address, "https://") {
		address = "redfish+" + address
	}
	if address == "" {
		return hardware.Endpoint{}, errors.New("it is empty")
	}
	access, err := bmc.NewAccessDetails(address, false)
	if err != nil {
		return hardware.Endpoint{}, errors.New("Metal3's parser does not know its protocol or its host")
	}
	info := access.DriverInfo(bmc.Credentials{})
	if access.Type() == ipmi {
		return ipmiEndpoint(info, hasIPMI)
	}
	base, _ := info["redfish_address"].(string)
	path, _ := info["redfish_system_id"].(string)
	switch {
	case !strings.HasPrefix(base, "https://"):
		return hardware.Endpoint{}, fmt.Errorf("%s is not Redfish over TLS", access.Type())
	case strings.HasSuffix(base, "://"):
		return hardware.Endpoint{}, errors.New("it names no host")
	}
	return hardware.Endpoint{Address: base, SystemPath: strings.TrimSuffix(path, "/")}, nil
}

// ipmiEndpoint returns the endpoint of an IPMI BMC from what Metal3's parser makes of its address.
func ipmiEndpoint(info map[string]any, hasIPMI bool) (hardware.Endpoint, error) {
	if !hasIPMI {
		return hardware.Endpoint{}, errors.New("NodeProviders of kind redfish do not speak IPMI: give the address of the BMC's Redfish, or register the server with a NodeProvider that has spec.ironic or spec.metal3")
	}
	host, _ := info["ipmi_address"].(string)
	port, _ := info["ipmi_port"].(string)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return hardware.Endpoint{Address: "ipmi://" + host + ":" + port}, nil
}

// Channel returns the channel of the agent that a baremetal-operator boots on a server with that address.
func Channel(address string, disableCertificateVerification bool) hardware.Channel {
	access, err := bmc.NewAccessDetails(address, disableCertificateVerification)
	if err != nil {
		return hardware.ChannelIronicNetwork
	}
	base, _ := access.DriverInfo(bmc.Credentials{})["redfish_address"].(string)
	return hardware.ChannelOfIronic(access.BootInterface(), strings.HasPrefix(base, "https://") && !disableCertificateVerification)
}
