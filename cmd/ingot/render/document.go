package render

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
)

// What can be printed.
const (
	userData       = "user-data"
	ignition       = "ignition"
	networkData    = "network-data"
	networkConfig  = "network-config"
	metaData       = "meta-data"
	operatorValues = "operator-values"

	operatorManifests = "operator-manifests"
)

var outputs = []string{userData, networkData, networkConfig, metaData, ignition, operatorValues, operatorManifests}

// NotOffered is a document that this node does not have, or that this version does not render.
type NotOffered struct {
	// Output that was asked for.
	Output string
	// Why there is none, and what to do instead.
	Why string
}

// Error says why.
func (n *NotOffered) Error() string { return n.Why }

// document renders one document. Errors are *NotOffered and those of cloudinit.
func (n *node) document(output string) (text []byte, warnings []string, err error) {
	reads := n.in.Kind
	if reads == "" {
		reads = v1alpha1.UserDataCloudInit
	}
	switch {
	case output == ignition && reads != v1alpha1.UserDataIgnition, output == userData && reads == v1alpha1.UserDataIgnition:
		other := map[string]string{ignition: userData, userData: ignition}[output]
		return nil, nil, &NotOffered{output, fmt.Sprintf("OSImage %s reads user data of kind %s: use --output %s", n.shape.Image.Name, reads, other)}
	case output == networkConfig:
		// cloudinit judges everything else with it: a network of a node that cannot be is of no use.
		if _, err := cloudinit.Render(n.in); err != nil {
			return nil, nil, err
		}
		text, err := cloudinit.NetworkConfig(n.in)
		return n.known(output, text, nil, err)
	}
	documents, err := cloudinit.Render(n.in)
	if err != nil {
		return nil, nil, err
	}
	switch output {
	case networkData:
		return n.known(output, documents.NetworkData, documents.Warnings(), nil)
	case metaData:
		return documents.MetaData, documents.Warnings(), nil
	default:
		return documents.UserData, documents.Warnings(), nil
	}
}

// known refuses to print nothing.
func (n *node) known(output string, text []byte, warnings []string, err error) ([]byte, []string, error) {
	if err == nil && len(text) == 0 {
		err = &NotOffered{output, "there is no BareMetalHost with a bootMACAddress, so that nothing is said about the network: add its file with -f, and --host"}
	}
	return text, warnings, err
}
