package render

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// Placeholders stand for what only a cluster knows. None of them is valid, so nobody can use one by mistake.
const (
	placeholderToken    = "PLACEHOLDER-BOOTSTRAP-TOKEN"
	placeholderCA       = "PLACEHOLDER: the CA certificate of the tenant's kubeconfig\n"
	placeholderEndpoint = "https://placeholder-tenant-api-server.invalid:6443"
	placeholderHash     = "sha256:PLACEHOLDER"
	placeholderUID      = "00000000-0000-0000-0000-000000000000"
	unpinnedDigest      = "unpinned"
)

// node is what the documents of a node are rendered from.
type node struct {
	inputs       offline.NodeInputs
	plan         v1alpha1.NodePlan
	in           cloudinit.Input
	placeholders []placeholder
}

// placeholder is a text that may be in a document, and what it stands for.
type placeholder struct{ text, what string }

func newNode(files offline.Files, opts options) (*node, error) {
	inputs, err := files.FindNodeInputs(opts.flags.NodeType)
	if err != nil {
		return nil, err
	}
	if err := files.CheckProvider(inputs); err != nil {
		return nil, err
	}
	n := &node{inputs: inputs}
	if n.plan, err = presentation.Resolve(spec.Request{GPU: inputs.NodeType.Spec.GPU, Image: inputs.Image.Spec, Resources: inputs.NodeType.Spec.Resources}); err != nil {
		return nil, err
	}
	machine, err := n.findMachine(files, opts.machine)
	if err != nil {
		return nil, err
	}
	host, err := findHost(files, opts.host, machine)
	if err != nil {
		return nil, err
	}
	name, err := n.revisionName()
	if err != nil {
		return nil, err
	}
	n.in = inputs.DocumentInput(n.plan)
	n.in.Machine = cloudinit.MachineInput{Name: machine.Name, Namespace: machine.Namespace, UID: string(machine.ClaimUID()), Revision: name, Attempt: max(machine.Status.Attempt, 1)}
	n.in.Node = cloudinit.NodeInput{Labels: documents.NodeLabels(inputs.NodeType, host, string(machine.ClaimUID()), name), Taints: documents.NodeTaints(inputs.NodeType)}
	n.in.Join = n.joinInput(files, machine)
	n.in.Secrets = n.placeholderSecrets()
	if len(machine.Spec.Properties) > 0 {
		n.in.Properties = append(n.in.Properties, properties.Level{Name: "Machine " + machine.Name, Values: machine.Spec.Properties, Tenant: true})
	}
	if host != nil {
		n.in.Host = cloudinit.HostOf(host.Name, host.Spec.BootMACAddress, host.Labels, host.Annotations)
	}
	return n, nil
}

// findMachine returns the Machine of the files. When they have none of that name, it returns one with a placeholder for the uid.
func (n *node) findMachine(files offline.Files, name string) (*v1alpha1.Machine, error) {
	m, err := files.FindMachine(name)
	var missing *offline.MissingError
	if err != nil && !errors.As(err, &missing) {
		return nil, err
	}
	m.Name = name
	if m.UID == "" {
		m.UID = placeholderUID
		n.placeholders = append(n.placeholders, placeholder{placeholderUID, "the Machine's uid"})
	}
	return m, nil
}

// findHost returns the host of the given name, else the Machine's host; nil: the files have neither.
func findHost(files offline.Files, name string, machine *v1alpha1.Machine) (*metal3.BareMetalHost, error) {
	if name != "" {
		return files.FindHost(name)
	}
	if machine.Status.HostRef == nil {
		return nil, nil
	}
	host, err := files.FindHost(machine.Status.HostRef.Name)
	var missing *offline.MissingError
	if errors.As(err, &missing) {
		return nil, nil
	}
	return host, err
}

// revisionName returns the name that the manager would give to the revision, when the OSImage has its checksum in its spec.
func (n *node) revisionName() (string, error) {
	image := n.inputs.Image.DeepCopy()
	if image.Status.Checksum == "" && !offline.IsURL(image.Spec.Checksum) {
		image.Status.Checksum = image.Spec.Checksum
	}
	spec, err := revision.Build(revision.Inputs{NodeType: n.inputs.NodeType, Provider: n.inputs.Provider, Image: image})
	var later *revision.UnpinnedError
	if errors.As(err, &later) {
		name := revision.Name(n.inputs.NodeType.Name, unpinnedDigest)
		n.placeholders = append(n.placeholders, placeholder{name, "the revision, for the OSImage's checksum is a file, which is not fetched"})
		return name, nil
	}
	if err != nil {
		return "", err
	}
	digest, err := revision.Digest(spec)
	if err != nil {
		return "", err
	}
	return revision.Name(n.inputs.NodeType.Name, digest), nil
}

// joinInput returns how the node joins, with the tenant's endpoint where the files have the tenant. The token is secret and the CA is
// only in the cluster, so both are placeholders.
func (n *node) joinInput(files offline.Files, machine *v1alpha1.Machine) *kubelet.Join {
	out := &kubelet.Join{Endpoint: placeholderEndpoint, CA: []byte(placeholderCA), CAHashes: []string{placeholderHash}, Token: placeholderToken}
	if tenant := machine.Spec.TenantClusterRef.Name; tenant != "" {
		if t, err := files.FindTenant(machine.Namespace, tenant); err == nil {
			out.Endpoint = cmp.Or(t.Spec.Join.Endpoint(), out.Endpoint)
			n.addTenant(t)
		}
	}
	n.placeholders = append(n.placeholders, placeholder{placeholderToken, "the bootstrap token, which is secret"}, placeholder{strings.TrimSpace(placeholderCA), "what its text says"})
	if out.Endpoint == placeholderEndpoint {
		n.placeholders = append(n.placeholders, placeholder{placeholderEndpoint, "the tenant's API server"})
	}
	return out
}

// addTenant adds what the TenantCluster says of its nodes. What would be found in the cluster is not known here.
func (n *node) addTenant(t *v1alpha1.TenantCluster) {
	dns := t.NodeDNS()
	n.in.Node.ClusterDNS, n.in.Node.ClusterDomain, n.in.Node.Networks, n.in.Node.Method = dns.Addresses, dns.Domain, t.Spec.NodeNetworks, t.Spec.Join.Method()
	n.in.Node.ServerTLSBootstrap = t.Spec.MustApproveServingCertificates()
	if n.in.Node.Method.IsKubeadm() {
		n.placeholders = append(n.placeholders, placeholder{placeholderHash, "the pin of the tenant's certificate authority"})
	}
}

// placeholderSecrets returns placeholders for the content of Secrets. In the documents they are in base64.
func (n *node) placeholderSecrets() cloudinit.Secrets {
	out := cloudinit.Secrets{Namespace: n.inputs.Provider.Spec.HostNamespace, Contents: map[cloudinit.SecretKey][]byte{}}
	for _, f := range n.plan.SecretFiles {
		what := fmt.Sprintf("%s of Secret %s/%s", f.Key, out.Namespace, f.Secret)
		text := []byte("PLACEHOLDER: " + what + "\n")
		out.Contents[cloudinit.SecretKey{Secret: f.Secret, Key: f.Key}] = text
		n.placeholders = append(n.placeholders, placeholder{base64.StdEncoding.EncodeToString(text), what + ", which is secret"})
	}
	return out
}
