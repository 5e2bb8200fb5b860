package servingcert

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/controllers/plan/servingcert"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// observation is everything that one reconcile reads of a Machine and of the requests of its kubelet.
type observation struct {
	// access to the tenant's cluster; nil: the requests cannot be seen now, and nothing else is set. observe sets it.
	access *tenantaccess.Access
	// requests are those that were created under the name of the Machine's Node. observe sets them.
	requests []servingcert.Request
	// machine is what Ingot knows of the Machine. observe sets it, and its addresses where somebody must decide about a request.
	machine servingcert.Machine
}

func (r *Reconciler) observe(ctx context.Context, m *v1alpha1.Machine) (observation, error) {
	access, err := r.Tenants.For(tenantKey(m))
	if err != nil || !access.ServingRequests.Watched {
		return observation{}, nil //nolint:nilerr // the TenantCluster says why, and this Machine is reconciled again when the requests have been read
	}
	obs := observation{access: access, machine: servingcert.Machine{Node: m.Name, Server: access.Server}}
	var list certificatesv1.CertificateSigningRequestList
	if err := access.Cache.List(ctx, &list, client.MatchingFields{tenantaccess.UsernameField: servingcert.UserPrefix + m.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return observation{}, fmt.Errorf("list CertificateSigningRequests: %w", err)
	}
	for i := range list.Items {
		obs.requests = append(obs.requests, servingcert.RequestOf(&list.Items[i]))
	}
	if len(obs.requests) == 0 {
		return obs, nil
	}
	if obs.machine.HasNode, err = hasNode(ctx, access, m); err != nil || !obs.machine.HasNode {
		return obs, err
	}
	if slices.ContainsFunc(obs.requests, func(q servingcert.Request) bool { return !q.IsDecided }) {
		err = r.observeAddresses(ctx, m, &obs.machine)
	}
	return obs, err
}

// hasNode reports whether the Machine's server runs its Node, which is still the one that joined.
func hasNode(ctx context.Context, access *tenantaccess.Access, m *v1alpha1.Machine) (bool, error) {
	switch m.Status.Phase {
	case v1alpha1.MachineValidating, v1alpha1.MachineReady, v1alpha1.MachineDraining:
	default:
		return false, nil
	}
	var node corev1.Node
	err := access.Cache.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, &node)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Node %s: %w", m.Status.NodeRef.Name, err)
	}
	return err == nil && node.UID == m.Status.NodeRef.UID, nil
}

// observeAddresses reads which addresses the Machine's host has, and which of them are recorded for the hosts of other Machines.
func (r *Reconciler) observeAddresses(ctx context.Context, m *v1alpha1.Machine, into *servingcert.Machine) error {
	if m.Status.HostRef == nil {
		return nil
	}
	var host metal3.BareMetalHost
	key := client.ObjectKey{Namespace: m.Status.HostRef.Namespace, Name: m.Status.HostRef.Name}
	if err := r.Client.Get(ctx, key, &host); err != nil {
		return client.IgnoreNotFound(err)
	}
	if of := host.Spec.ConsumerRef; !v1alpha1.IsMachineRef(of) || of.Namespace != m.Namespace || of.Name != m.Name {
		return nil // The host is another Machine's, or nobody's: its addresses are not this one's.
	}
	records, err := r.recordsOf(ctx, &host)
	if err != nil {
		return err
	}
	if records.Static, err = r.staticAddresses(ctx, &host, m); err != nil {
		return err
	}
	into.Addresses = records.Addresses()
	into.Elsewhere, err = r.addressesElsewhere(ctx, &host)
	return err
}

// recordsOf returns what BareMetalHost and HostRecord say of a host's addresses.
func (r *Reconciler) recordsOf(ctx context.Context, host *metal3.BareMetalHost) (servingcert.Records, error) {
	out := servingcert.Records{
		Boot:  cloudinit.HostOf(host.Name, host.Spec.BootMACAddress, host.Labels, host.Annotations).IPAddress,
		Named: host.Annotations[v1alpha1.AnnotationNodeAddresses],
	}
	if host.Status.HardwareDetails != nil {
		for _, nic := range host.Status.HardwareDetails.NIC {
			out.Inspected = append(out.Inspected, nic.IP)
		}
	}
	var record v1alpha1.HostRecord
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(host), &record); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	if progress := record.Status.Progress(); progress != nil && progress.Agent != nil && isInstallation(&record) {
		out.Agent = progress.Agent.Address
	}
	return out, nil
}

// isInstallation reports whether the last attempt of the host has installed the node that the host's Machine has.
func isInstallation(record *v1alpha1.HostRecord) bool {
	wanted, installed, machine := record.Status.Wanted, record.Status.Installed, record.Spec.Machine
	return machine != nil && installed != nil && installed.MachineUID == machine.UID && installed.Attempt == record.Spec.Attempt &&
		wanted.MachineUID == machine.UID && wanted.MachineAttempt == record.Spec.Attempt && wanted.Image != nil
}

// staticAddresses returns the static addresses of the network data that the node was installed with. The claim Secret keeps it after the join.
func (r *Reconciler) staticAddresses(ctx context.Context, host *metal3.BareMetalHost, m *v1alpha1.Machine) ([]netip.Addr, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: host.Namespace, Name: v1alpha1.ClaimSecretName(host.Name)}
	if ref := host.Spec.NetworkData; ref != nil {
		key.Name = ref.Name // a host of a metal3 provider has a claim Secret for each attempt
	}
	err := r.APIReader.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the network data in Secret %s: %w", key, err)
	}
	text := secret.Data[v1alpha1.KeyNetworkData]
	if len(text) == 0 || secret.Labels[v1alpha1.LabelMachine] != string(m.ClaimUID()) {
		return nil, nil
	}
	data, err := network.Parse("networkData", string(text))
	if err != nil {
		return nil, fmt.Errorf("read the network data in Secret %s: %w", key, err)
	}
	var out []netip.Addr
	for _, n := range data.Networks {
		if prefix, err := n.Prefix(); n.Address != "" && err == nil {
			out = append(out, prefix.Addr())
		}
	}
	return out, nil
}

// addressesElsewhere returns the addresses that are recorded for the hosts of other Machines, with the names of the hosts.
func (r *Reconciler) addressesElsewhere(ctx context.Context, host *metal3.BareMetalHost) (map[netip.Addr]string, error) {
	var hosts metal3.BareMetalHostList
	if err := r.Client.List(ctx, &hosts, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	out := map[netip.Addr]string{}
	for i := range hosts.Items {
		other := &hosts.Items[i]
		if client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(host) || !v1alpha1.IsMachineRef(other.Spec.ConsumerRef) {
			continue
		}
		records, err := r.recordsOf(ctx, other)
		if err != nil {
			return nil, err
		}
		for _, a := range records.Addresses() {
			out[a.Unmap()] = other.Namespace + "/" + other.Name
		}
	}
	return out, nil
}
