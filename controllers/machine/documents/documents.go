package documents

import (
	"context"
	"fmt"
	"strconv"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/containerd"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/script"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/controllers/plan/join"
)

// layerNames are those of NodeTypeRevision.spec.userData and properties, in their order.
var layerNames = []string{"NodeProvider", "NodeType"}

// Node is what a node's documents follow from.
type Node struct {
	// Machine that the node is.
	Machine *v1alpha1.Machine
	// NodeType of the Machine; of it only what no revision holds is asked for.
	NodeType *v1alpha1.NodeType
	// Revision that is installed, and its Image.
	Revision *v1alpha1.NodeTypeRevision
	// Plan of the rendering that is installed.
	Plan v1alpha1.NodePlan
	// Image of the Revision.
	Image *v1alpha1.OSImage
	// Host that the Machine has; nil: none yet.
	Host *metal3.BareMetalHost
	// SecretAttempt is the attempt in the name of the claim Secret; 0: the name has none.
	SecretAttempt int64
	// Tenant is the TenantCluster that the node joins; nil: it is gone.
	Tenant *v1alpha1.TenantCluster
}

// Render makes the documents; without how it joins it leaves out what is secret, and needs no secrets. Errors quote no user data.
func (n Node) Render(how *kubelet.Join, secrets cloudinit.Secrets) (cloudinit.Documents, error) {
	spec := n.Revision.Spec
	in := cloudinit.Input{
		Kind: spec.Image.UserData, OS: n.Image.Spec.OS.ID, KernelArguments: n.Image.Spec.KernelArguments,
		SSHKeys: spec.SSHKeys, Plan: n.Plan, Network: spec.Network, Join: how, Secrets: secrets, Properties: n.properties(),
		Machine:    cloudinit.MachineInput{Name: n.Machine.Name, Namespace: n.Machine.Namespace, UID: string(n.Machine.ClaimUID()), Revision: n.Revision.Name, Attempt: n.Machine.Status.Attempt},
		Node:       cloudinit.NodeInput{Labels: NodeLabels(n.NodeType, n.Host, string(n.Machine.ClaimUID()), n.Revision.Name), Taints: NodeTaints(n.NodeType), ProviderID: n.Machine.Status.ProviderID},
		Gate:       n.NodeType.Spec.Gate.Key(),
		Kubelet:    cloudinit.KubeletInput{Version: n.Image.Spec.Software.Kubelet, Members: v1alpha1.KubeletMembers(spec.Kubelet)},
		Containerd: containerd.NodeOf(n.Image.Spec.Software, spec.GPU, spec.Containerd),
	}
	for i, text := range spec.UserData {
		in.Layers = append(in.Layers, cloudinit.Layer{Name: layerName("layer ", i), Text: text})
	}
	if n.Tenant != nil {
		dns := n.Tenant.NodeDNS()
		in.Node.ClusterDNS, in.Node.ClusterDomain, in.Node.Networks = dns.Addresses, dns.Domain, n.Tenant.Spec.NodeNetworks
		in.Node.Method, in.Node.ServerTLSBootstrap = n.Tenant.Spec.Join.Method(), n.Tenant.Spec.MustApproveServingCertificates()
	}
	if n.Host != nil {
		in.Host = cloudinit.HostOf(n.Host.Name, n.Host.Spec.BootMACAddress, n.Host.Labels, n.Host.Annotations)
	}
	return cloudinit.Render(in)
}

// properties are those of the revision and the Machine's own, whose author is a tenant.
func (n Node) properties() []properties.Level {
	var out []properties.Level
	for i, values := range n.Revision.Spec.Properties {
		out = append(out, properties.Level{Name: layerName("level ", i), Values: values})
	}
	if len(n.Machine.Spec.Properties) > 0 {
		out = append(out, properties.Level{Name: "Machine " + n.Machine.Name, Values: n.Machine.Spec.Properties, Tenant: true})
	}
	return out
}

func layerName(kind string, i int) string {
	if i < len(layerNames) {
		return layerNames[i]
	}
	return kind + strconv.Itoa(i+1)
}

// Warnings are what people must know of documents that were made and of the presentation that they carry out.
func Warnings(plan v1alpha1.NodePlan, d cloudinit.Documents) []string {
	out := d.Warnings()
	for _, w := range plan.Warnings {
		out = append(out, w.Message+" (rule "+w.Rule+")")
	}
	return out
}

// Unreadable is a Secret that the node needs and that only a person can mend.
type Unreadable struct {
	// Message says which Secret and key, for which file, and who must do what. It quotes no content.
	Message string
}

// Error is the message.
func (u *Unreadable) Error() string { return u.Message }

// Secrets reads what the plan's files are from the Secrets of the host namespace. The reader must be the API server itself:
// Secrets are never cached. The error is an *Unreadable where a person must do something.
func Secrets(ctx context.Context, reader client.Reader, namespace string, plan v1alpha1.NodePlan) (cloudinit.Secrets, error) {
	out := cloudinit.Secrets{Namespace: namespace, Contents: map[cloudinit.SecretKey][]byte{}}
	for _, f := range plan.SecretFiles {
		lacks := func(what, do string) error {
			return &Unreadable{Message: fmt.Sprintf("Secret %s/%s %s; the node's %s is its key %s: %s", namespace, f.Secret, what, f.Path, f.Key, do)}
		}
		var secret corev1.Secret
		switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: f.Secret}, &secret); {
		case apierrors.IsNotFound(err):
			return cloudinit.Secrets{}, lacks("does not exist", "whoever runs the hosts creates it with that key")
		case apierrors.IsForbidden(err):
			return cloudinit.Secrets{}, lacks("must not be read", "whoever runs the hosts binds ClusterRole ingot-manager-hosts to Ingot's service account by a RoleBinding in that namespace")
		case err != nil:
			return cloudinit.Secrets{}, fmt.Errorf("read Secret %s/%s: %w", namespace, f.Secret, err)
		case len(secret.Data[f.Key]) == 0:
			return cloudinit.Secrets{}, lacks("lacks the key, or it is empty", "whoever runs the hosts puts the content there")
		}
		out.Contents[cloudinit.SecretKey{Secret: f.Secret, Key: f.Key}] = secret.Data[f.Key]
	}
	return out, nil
}

// Script reads the script of a TenantCluster's join; nil: it joins in another way. The reader must be the API server itself. The error is an *Unreadable
// where a person must do something, and quotes nothing of the script.
func Script(ctx context.Context, reader client.Reader, tenant *v1alpha1.TenantCluster) ([]byte, error) {
	if tenant == nil || tenant.Spec.Join.Script == nil {
		return nil, nil
	}
	var secret corev1.Secret
	err := reader.Get(ctx, client.ObjectKey{Namespace: tenant.Namespace, Name: tenant.Spec.Join.Script.SecretRef.Name}, &secret)
	found := join.Script{IsDenied: apierrors.IsForbidden(err), Text: secret.Data[v1alpha1.JoinScriptKey]}
	if err != nil && !apierrors.IsNotFound(err) && !found.IsDenied {
		return nil, fmt.Errorf("read the Secret of the join's script: %w", err)
	}
	found.Problem = script.Problem(found.Text)
	if _, why := join.ScriptProblem(tenant, found); why != "" {
		return nil, &Unreadable{Message: "TenantCluster " + tenant.Name + ": " + why}
	}
	return found.Text, nil
}

// Keys of the claim Secret. The token is kept beside the user data that holds it, so that one that ran out can be made again.
const (
	KeyUserData    = "userData"
	KeyNetworkData = v1alpha1.KeyNetworkData
	KeyMetaData    = "metaData"
	KeyToken       = "bootstrapToken"
)

// ClaimKey names the claim Secret of a host. A host that a baremetal-operator serves has one for each attempt, because the operator may read it at any
// time; elsewhere the attempt is 0.
func ClaimKey(host *metal3.BareMetalHost, attempt int64) types.NamespacedName {
	key := types.NamespacedName{Namespace: host.Namespace, Name: v1alpha1.ClaimSecretName(host.Name)}
	if attempt > 0 {
		key.Name += "-" + strconv.FormatInt(attempt, 10)
	}
	return key
}

// Claim is the claim Secret, with the bootstrap token that the documents hold; an empty token: they hold nothing that is secret.
// hostAttempt is the number of the installation in the HostRecord; 0: the host has none.
func (n Node) Claim(d cloudinit.Documents, hostAttempt int64, tokenID, token string) *corev1.Secret {
	key := ClaimKey(n.Host, n.SecretAttempt)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name,
		Labels:      map[string]string{v1alpha1.LabelMachine: string(n.Machine.ClaimUID())},
		Annotations: map[string]string{v1alpha1.AnnotationClaimAttempt: strconv.FormatInt(n.Machine.Status.Attempt, 10), v1alpha1.AnnotationClaimTokenID: tokenID},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: metal3.GroupVersion.String(), Kind: "BareMetalHost", Name: n.Host.Name, UID: n.Host.UID,
		}},
	}, Data: map[string][]byte{KeyUserData: d.UserData, KeyMetaData: d.MetaData}}
	if hostAttempt > 0 {
		secret.Annotations[v1alpha1.AnnotationClaimHostAttempt] = strconv.FormatInt(hostAttempt, 10)
	}
	if len(d.NetworkData) > 0 {
		secret.Data[KeyNetworkData] = d.NetworkData
	}
	if token != "" {
		secret.Data[KeyToken] = []byte(token)
	}
	return secret
}

// Claim is what the annotations of a claim Secret say of its data.
type Claim struct {
	// Attempt is the attempt of the Machine, and HostAttempt the installation of the host, for which it was written; 0: it does not say.
	Attempt, HostAttempt int64
	// TokenID is the public part of the bootstrap token that it holds; empty: it holds none.
	TokenID string
}

// ClaimOf returns what the annotations of a claim Secret say. An annotation that is no number gives 0, so the Secret is written again.
func ClaimOf(secret *corev1.Secret) Claim {
	number := func(annotation string) int64 {
		n, err := strconv.ParseInt(secret.Annotations[annotation], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return Claim{
		Attempt: number(v1alpha1.AnnotationClaimAttempt), HostAttempt: number(v1alpha1.AnnotationClaimHostAttempt),
		TokenID: secret.Annotations[v1alpha1.AnnotationClaimTokenID],
	}
}
