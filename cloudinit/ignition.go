package cloudinit

import (
	"errors"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/ignition"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/script"
	"github.com/ingot-dev/ingot/cloudinit/network"
)

// kubeletUnit is the unit that joins the node.
const kubeletUnit = "kubelet.service"

// renderIgnition renders user data for an image that reads Ignition from a config drive. That is Ignition's platform openstack.
func renderIgnition(in Input) ([]byte, error) {
	config, err := ignitionConfig(in)
	if err != nil {
		return nil, err
	}
	files, join, err := secretContents(in)
	if err != nil {
		return nil, err
	}
	config.Secret = join
	for _, f := range files {
		config.SecretData = append(config.SecretData, ignition.Data(f))
	}
	out, err := ignition.Render(config)
	return out, convertError(err)
}

// ignitionConfig returns the configuration of the node without its secrets.
func ignitionConfig(in Input) (ignition.Config, error) {
	variant, err := ignition.VariantOf(in.OS)
	if err != nil {
		return ignition.Config{}, convertError(err)
	}
	files, err := kubelet.Files(nodeOf(in))
	if err != nil {
		return ignition.Config{}, err
	}
	networkFiles, err := ignitionNetwork(in, variant)
	if err != nil {
		return ignition.Config{}, err
	}
	c := ignition.Config{
		Variant: variant, Hostname: in.Machine.Name, SSHKeys: in.SSHKeys,
		KernelArguments: in.Plan.KernelArguments, Baked: in.KernelArguments, Packages: in.Plan.Packages,
		Files:    slices.Concat(plainFiles(in.Plan), files, networkFiles),
		Units:    append(slices.Clone(in.Plan.Units), nodeUnits(in)...),
		Reserved: reservedPaths(in.Plan),
	}
	for _, l := range in.Layers {
		c.Layers = append(c.Layers, ignition.Layer(l))
	}
	return c, nil
}

// nodeUnits returns the units that join the node. The files have their content.
func nodeUnits(in Input) []v1alpha1.SystemdUnit {
	if in.Node.Method == v1alpha1.JoinScript {
		return []v1alpha1.SystemdUnit{{Name: script.Unit}}
	}
	out := []v1alpha1.SystemdUnit{{Name: kubeletUnit}}
	if in.Node.Method.IsKubeadm() {
		out = append(out, v1alpha1.SystemdUnit{Name: kubelet.JoinUnit})
	}
	return out
}

// ignitionNetwork returns the files of the network. Images that read Ignition do not read network data.
func ignitionNetwork(in Input, variant ignition.Variant) ([]v1alpha1.NodeFile, error) {
	data, ok, err := networkOf(in)
	if err != nil || !ok || isPlainDHCP(data) {
		return nil, err
	}
	if variant == ignition.Flatcar {
		return data.Networkd()
	}
	return data.NetworkManager()
}

// isPlainDHCP returns true when the network is what an image configures without any files.
func isPlainDHCP(d network.Data) bool {
	return len(d.Links) == 1 && d.Links[0].MTU == 0 && len(d.Services) == 0 && len(d.Networks) == 1 && d.Networks[0].Type == "ipv4_dhcp" && len(d.Networks[0].Routes) == 0
}

// convertError converts errors of package ignition to the types of this package.
func convertError(err error) error {
	var lacks *ignition.Unsupported
	var bad *ignition.Invalid
	var conflict *ignition.Conflict
	switch {
	case errors.As(err, &lacks):
		return &Unsupported{Kind: string(v1alpha1.UserDataIgnition), What: lacks.What}
	case errors.As(err, &bad):
		return &Invalid{Findings: findings(bad.Findings)}
	case errors.As(err, &conflict):
		return &Conflict{Findings: findings(conflict.Findings)}
	}
	return err
}

func findings(from []ignition.Finding) []Finding {
	out := make([]Finding, len(from))
	for i, f := range from {
		out[i] = Finding(f)
	}
	return out
}
