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
	vclusterValues    = "vcluster-values"
)

var outputs = []string{userData, networkData, networkConfig, metaData, ignition, operatorValues, operatorManifests, vclusterValues}

// NotAvailableError says that this node does not have a document, or that this version does not render it.
type NotAvailableError struct {
	// Output is the value of --output.
	Output string
	// Why says why there is none, and what to do instead.
	Why string
}

// Error says why.
func (n *NotAvailableError) Error() string { return n.Why }

// renderDocument renders one document. Errors are *NotAvailableError and those of cloudinit.
func (n *node) renderDocument(output string) (text []byte, warnings []string, err error) {
	reads := n.in.Kind
	if reads == "" {
		reads = v1alpha1.UserDataCloudInit
	}
	switch {
	case output == ignition && reads != v1alpha1.UserDataIgnition, output == userData && reads == v1alpha1.UserDataIgnition:
		other := map[string]string{ignition: userData, userData: ignition}[output]
		return nil, nil, &NotAvailableError{output, fmt.Sprintf("OSImage %s reads user data of kind %s: use --output %s", n.inputs.Image.Name, reads, other)}
	case output == networkConfig:
		// cloudinit also checks everything else: the network of a node that cannot exist is of no use.
		if _, err := cloudinit.Render(n.in); err != nil {
			return nil, nil, err
		}
		text, err := cloudinit.NetworkConfig(n.in)
		return n.refuseEmpty(output, text, nil, err)
	}
	documents, err := cloudinit.Render(n.in)
	if err != nil {
		return nil, nil, err
	}
	switch output {
	case networkData:
		return n.refuseEmpty(output, documents.NetworkData, documents.Warnings(), nil)
	case metaData:
		return documents.MetaData, documents.Warnings(), nil
	default:
		return documents.UserData, documents.Warnings(), nil
	}
}

// refuseEmpty returns an error in place of an empty document.
func (n *node) refuseEmpty(output string, text []byte, warnings []string, err error) ([]byte, []string, error) {
	if err == nil && len(text) == 0 {
		err = &NotAvailableError{output, "there is no BareMetalHost with a bootMACAddress, so that nothing is said about the network: add its file with -f, and --host"}
	}
	return text, warnings, err
}
