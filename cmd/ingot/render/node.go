package render

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// Placeholders stand for what only a cluster knows. None of them can be mistaken for the real thing.
const (
	placeholderToken    = "PLACEHOLDER-BOOTSTRAP-TOKEN"
	placeholderCA       = "PLACEHOLDER: the CA certificate of the tenant's kubeconfig\n"
	placeholderEndpoint = "https://placeholder-tenant-api-server.invalid:6443"
	placeholderUID      = "00000000-0000-0000-0000-000000000000"
	unpinned            = "unpinned"
)

// node is what the documents follow from.
type node struct {
	shape        offline.Shape
	plan         v1alpha1.NodePlan
	in           cloudinit.Input
	placeholders []placeholder
}

// placeholder is a text that may be in a document, and what it stands for.
type placeholder struct{ text, what string }

func nodeOf(files offline.Files, opts options) (*node, error) {
	shape, err := files.ShapeOf(opts.flags.NodeType)
	if err != nil {
		return nil, err
	}
	if err := files.Needs(shape); err != nil {
		return nil, err
	}
	n := &node{shape: shape}
	if n.plan, err = presentation.Resolve(spec.Request{GPU: shape.NodeType.Spec.GPU, Image: shape.Image.Spec, Resources: shape.NodeType.Spec.Resources}); err != nil {
		return nil, err
	}
	machine, err := n.machine(files, opts.machine)
	if err != nil {
		return nil, err
	}
	host, err := hostOf(files, opts.host, machine)
	if err != nil {
		return nil, err
	}
	name, err := n.revision()
	if err != nil {
		return nil, err
	}
	n.in = shape.Input(n.plan)
	n.in.Machine = cloudinit.MachineInput{Name: machine.Name, Namespace: machine.Namespace, UID: string(machine.UID), Revision: name, Attempt: max(machine.Status.Attempt, 1)}
	n.in.Node = cloudinit.NodeInput{Labels: documents.NodeLabels(shape.NodeType, string(machine.UID), name), Taints: documents.NodeTaints(shape.NodeType)}
	n.in.Join = n.join(files, machine)
	n.in.Secrets = n.secrets()
	if len(machine.Spec.Properties) > 0 {
		n.in.Properties = append(n.in.Properties, properties.Level{Name: "Machine " + machine.Name, Values: machine.Spec.Properties, Tenant: true})
	}
	if host != nil {
		n.in.Host = cloudinit.HostOf(host.Name, host.Spec.BootMACAddress, host.Labels, host.Annotations)
	}
	return n, nil
}

// machine is that of the files or, when they have none of the name, one that could be.
func (n *node) machine(files offline.Files, name string) (*v1alpha1.Machine, error) {
	m, err := files.Machine(name)
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

// hostOf is the host that was asked for, else the Machine's; nil: neither is there.
func hostOf(files offline.Files, name string, machine *v1alpha1.Machine) (*metal3.BareMetalHost, error) {
	if name != "" {
		return files.Host(name)
	}
	if machine.Status.HostRef == nil {
		return nil, nil
	}
	host, err := files.Host(machine.Status.HostRef.Name)
	var missing *offline.MissingError
	if errors.As(err, &missing) {
		return nil, nil
	}
	return host, err
}

// revision is the name that the manager would give, where the OSImage pins its checksum itself.
func (n *node) revision() (string, error) {
	image := n.shape.Image.DeepCopy()
	if image.Status.Checksum == "" && !offline.IsURL(image.Spec.Checksum) {
		image.Status.Checksum = image.Spec.Checksum
	}
	spec, err := revision.Build(revision.Inputs{NodeType: n.shape.NodeType, Provider: n.shape.Provider, Image: image})
	var later *revision.UnpinnedError
	if errors.As(err, &later) {
		name := revision.Name(n.shape.NodeType.Name, unpinned)
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
	return revision.Name(n.shape.NodeType.Name, digest), nil
}

// join has the tenant's endpoint where the files have the tenant; token and CA are secret or only in the cluster.
func (n *node) join(files offline.Files, machine *v1alpha1.Machine) *cloudinit.TLSBootstrap {
	out := &cloudinit.TLSBootstrap{Endpoint: placeholderEndpoint, CA: []byte(placeholderCA), Token: placeholderToken}
	if tenant := machine.Spec.TenantClusterRef.Name; tenant != "" {
		if t, err := files.Tenant(machine.Namespace, tenant); err == nil && t.Spec.Join.TLSBootstrap != nil && t.Spec.Join.TLSBootstrap.Endpoint != "" {
			out.Endpoint = t.Spec.Join.TLSBootstrap.Endpoint
		}
	}
	n.placeholders = append(n.placeholders, placeholder{placeholderToken, "the bootstrap token, which is secret"}, placeholder{strings.TrimSpace(placeholderCA), "what its text says"})
	if out.Endpoint == placeholderEndpoint {
		n.placeholders = append(n.placeholders, placeholder{placeholderEndpoint, "the tenant's API server"})
	}
	return out
}

// secrets stand for what only Secrets hold; in the documents they are in base64.
func (n *node) secrets() cloudinit.Secrets {
	out := cloudinit.Secrets{Namespace: n.shape.Provider.Spec.HostNamespace, Contents: map[cloudinit.SecretKey][]byte{}}
	for _, f := range n.plan.SecretFiles {
		what := fmt.Sprintf("%s of Secret %s/%s", f.Key, out.Namespace, f.Secret)
		text := []byte("PLACEHOLDER: " + what + "\n")
		out.Contents[cloudinit.SecretKey{Secret: f.Secret, Key: f.Key}] = text
		n.placeholders = append(n.placeholders, placeholder{base64.StdEncoding.EncodeToString(text), what + ", which is secret"})
	}
	return out
}
