package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/host/sessions"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/plan/bootnetwork"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
	"github.com/ingot-dev/ingot/controllers/serverclock"
)

// provider returns the redfish or ironic NodeProvider that the namespace belongs to; nil: there is none.
func (r *Reconciler) provider(ctx context.Context, namespace string) (*v1alpha1.NodeProvider, error) {
	var ns corev1.Namespace
	if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	name := ns.Annotations[v1alpha1.AnnotationNodeProvider]
	if name == "" {
		return nil, nil
	}
	var provider v1alpha1.NodeProvider
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &provider); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if provider.Spec.HostNamespace != namespace || provider.Spec.Redfish == nil && provider.Spec.Ironic == nil {
		return nil, nil
	}
	return &provider, nil
}

// indexForeign is the index of the BareMetalHosts that carry the baremetal-operator's finalizer.
const indexForeign = "ingot.foreign"

func foreignIndex(o client.Object) []string {
	if slices.Contains(o.GetFinalizers(), metal3.BareMetalHostFinalizer) {
		return []string{metal3.BareMetalHostFinalizer}
	}
	return nil
}

// foreignHost returns the name of a host of the namespace that carries the baremetal-operator's finalizer; empty: there is
// none.
func (r *Reconciler) foreignHost(ctx context.Context, host *metal3.BareMetalHost) (string, error) {
	if len(foreignIndex(host)) > 0 {
		return host.Name, nil
	}
	var hosts metal3.BareMetalHostList
	err := r.Client.List(ctx, &hosts, client.InNamespace(host.Namespace), client.MatchingFields{indexForeign: metal3.BareMetalHostFinalizer}, client.Limit(1))
	if err != nil {
		return "", fmt.Errorf("list the namespace's hosts: %w", err)
	}
	if len(hosts.Items) > 0 {
		return hosts.Items[0].Name, nil
	}
	return "", nil
}

func isManaged(host *metal3.BareMetalHost) bool {
	return slices.Contains(host.Finalizers, v1alpha1.HostFinalizer)
}

// record reads the host's HostRecord and creates it where there is none. Its finalizer keeps it as long as the host exists,
// because it is the only information about what is on the disks.
func (r *Reconciler) record(ctx context.Context, host *metal3.BareMetalHost) (*v1alpha1.HostRecord, error) {
	record := &v1alpha1.HostRecord{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(host), record)
	switch {
	case err == nil && mustTakeOver(record, host):
		return record, r.takeOverRecord(ctx, record, host)
	case err == nil && !isOwned(record, host):
		return nil, fmt.Errorf("HostRecord %s/%s belongs to an earlier host of that name: delete it, and remove its finalizer if nothing else does", record.Namespace, record.Name)
	case err == nil:
		return record, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read HostRecord: %w", err)
	case !host.DeletionTimestamp.IsZero() && host.Status.Provisioning.State == metal3.StateDeleting:
		return record, nil // the record was removed before its host
	}
	record.Name, record.Namespace, record.Finalizers = host.Name, host.Namespace, []string{v1alpha1.HostFinalizer}
	if err := controllerutil.SetControllerReference(host, record, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("own HostRecord: %w", err)
	}
	if err := r.Client.Create(ctx, record); err != nil {
		return nil, fmt.Errorf("create HostRecord: %w", err)
	}
	return record, nil
}

func isOwned(record *v1alpha1.HostRecord, host *metal3.BareMetalHost) bool {
	for _, o := range record.OwnerReferences {
		if o.UID == host.UID {
			return true
		}
	}
	return false
}

// observation is everything that one reconcile of a host reads. observe sets all of it.
type observation struct {
	// facts are what plan.Plan decides by.
	facts plan.Facts
	// target names the server and its BMC to the Installer. Its BMC is empty where facts.Problem says why it cannot be reached, and where Ironic knows it alone.
	target hardware.Host
	// installer is that of the NodeProvider.
	installer hardware.Installer
	// secretVersion is the resource version of the credentials that the BMC was read with; empty: it was not read.
	secretVersion string
}

// bootWays returns the ways in which the NodeProvider's servers may boot the agent.
func bootWays(provider *v1alpha1.NodeProvider) (ways []hardware.BootSource) {
	if provider.Spec.Redfish == nil {
		return nil
	}
	for _, way := range provider.Spec.Redfish.Netboot.Ways {
		ways = append(ways, hardware.BootSource(way))
	}
	return ways
}

// inspector returns who looks at the hardware of the NodeProvider's hosts.
func inspector(provider *v1alpha1.NodeProvider) v1alpha1.InventorySource {
	if provider.Spec.Redfish == nil {
		return ""
	}
	return provider.Spec.Redfish.Inspect
}

// hasSignedBoot reports whether servers whose Secure Boot is on are booted.
func hasSignedBoot(provider *v1alpha1.NodeProvider) bool {
	return provider.Spec.Redfish != nil && provider.Spec.Redfish.Netboot.SecureBoot == v1alpha1.SecureBootSigned
}

// erasePolicy returns how much of the disks of a released host is erased.
func erasePolicy(provider *v1alpha1.NodeProvider) v1alpha1.EraseMode {
	if e := provider.Spec.Erase; e != nil && e.OnRelease != "" {
		return e.OnRelease
	}
	return v1alpha1.EraseMetadata
}

// observe gathers the facts. An error means that the API server did not answer; a problem of the host or its BMC is a fact.
func (r *Reconciler) observe(ctx context.Context, provider *v1alpha1.NodeProvider, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (observation, error) {
	installer := r.Installers(provider)
	obs := observation{
		installer: installer,
		facts: plan.Facts{
			Clock: serverclock.Of(r.Clock), Random: r.Jitter(), Timeouts: r.Timeouts, Host: hostFacts(host), Spec: record.Spec, Record: record.Status,
			ErasePolicy: erasePolicy(provider), Inspector: inspector(provider),
			NeedsConfigDrive: installer.Capabilities().NeedsConfigDrive, NeedsRelease: installer.Capabilities().NeedsRelease,
			BootsToInspect:       installer.Capabilities().BootsToInspect,
			GenerationObservedAt: r.generations.observedSince(client.ObjectKeyFromObject(host), host.Generation, r.Clock.Now()),
		},
		target: target(provider, host),
	}
	supported := installer.Capabilities().RootDeviceHints
	obs.facts.SupportedHints, obs.facts.Host.UnsupportedHints = supported, sessions.RootDevice(host.Spec.RootDeviceHints).HintsBeyond(supported)
	var err error
	if obs.facts.Places, err = r.places(ctx, provider, record); err != nil {
		return obs, err
	}
	obs.facts.BootProblem, obs.facts.BootReason = bootProblem(provider, host)
	if !obs.facts.Host.CanBeObserved() {
		return obs, nil
	}
	if obs.facts.Problem, err = r.sameServerProblem(ctx, host, record); err != nil || obs.facts.Problem != nil {
		return obs, err
	}
	if obs.facts.Joined, err = r.isJoined(ctx, host); err != nil {
		return obs, err
	}
	if obs.target.BMC, obs.secretVersion, obs.facts.Problem, err = r.bmcEndpoint(ctx, provider, host); err != nil || obs.facts.Problem != nil {
		return obs, err
	}
	if obs.facts.Problem = r.recentRefusal(host, record, obs.secretVersion); obs.facts.Problem != nil {
		obs.secretVersion = ""
		return obs, nil
	}
	observed, err := installer.Observe(ctx, obs.target)
	obs.facts.Observed = &observed
	if err != nil {
		obs.facts.Problem = bmcProblem(host, err)
	}
	if plan.ErrorReasonText(err) == v1alpha1.ReasonBMCUnauthorized {
		r.secrets.forget(client.ObjectKey{Namespace: host.Namespace, Name: host.Spec.BMC.CredentialsName}, r.Clock.Now())
	}
	obs.facts.Clock = serverclock.Of(r.Clock)
	return obs, nil
}

// target returns the host as its Installer knows it, without its BMC.
func target(provider *v1alpha1.NodeProvider, host *metal3.BareMetalHost) hardware.Host {
	return hardware.Host{
		UID: string(host.UID), FormerUIDs: v1alpha1.FormerUIDs(host), Namespace: host.Namespace, Name: host.Name,
		IsLeaving: !host.DeletionTimestamp.IsZero() && host.Status.Provisioning.State == metal3.StateDeleting,
		BootMAC:   strings.ToLower(host.Spec.BootMACAddress), BootWays: bootWays(provider), HasSignedBoot: hasSignedBoot(provider),
		InstallerNode: ironicNode(host),
	}
}

// ironicNode returns the UUID or the name of the node of Ironic that people say the host is; empty: they say none.
func ironicNode(host *metal3.BareMetalHost) string {
	return strings.TrimSpace(host.Annotations[v1alpha1.AnnotationIronicNode])
}

// bootProblem returns why the host's server must not be booted, with its reason; empty: it may. Without the check of the network: a host with an
// address of another network is powered on, its agent reaches nobody, and the attempt ends after its time with no word of the address.
func bootProblem(provider *v1alpha1.NodeProvider, host *metal3.BareMetalHost) (problem, reason string) {
	if problem := provider.BootProblem(); problem != "" || provider.Spec.Redfish == nil {
		return problem, ""
	}
	if _, err := bootnetwork.Of(provider.Spec.Redfish.Netboot.Network, host.Annotations); err != nil {
		return err.Error(), v1alpha1.ReasonBootNetworkInvalid
	}
	return "", ""
}

// sameServerProblem returns the problem of a host whose server is that of another host too; nil: there is no other one. The installer stores
// an inventory in the record before it reports the end of the inspection, so the comparison has it before the host can become available.
func (r *Reconciler) sameServerProblem(ctx context.Context, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (*plan.Problem, error) {
	conflicts, err := hostindex.Conflicts(ctx, r.Client, sameserver.HostOf(host, record))
	if err != nil || len(conflicts) == 0 {
		return nil, err
	}
	return &plan.Problem{Reason: v1alpha1.ReasonSameServer, Message: sameserver.Message(conflicts), HasData: sameserver.HasData(conflicts)}, nil
}

// isJoined tells whether the Machine that has the host is known to have joined.
func (r *Reconciler) isJoined(ctx context.Context, host *metal3.BareMetalHost) (bool, error) {
	ref := host.Spec.ConsumerRef
	if !v1alpha1.IsMachineRef(ref) || host.Status.Provisioning.State != metal3.StateProvisioned {
		return false, nil
	}
	var machine v1alpha1.Machine
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &machine); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return machine.ClaimUID() == ref.UID && meta.IsStatusConditionTrue(machine.Status.Conditions, v1alpha1.ConditionJoined), nil
}

// recentRefusal returns the problem of credentials that the BMC has just refused. BMCs lock an account after a few failed
// logins, so the same version of the Secret is tried again only after Timeouts.IdleInterval.
func (r *Reconciler) recentRefusal(host *metal3.BareMetalHost, record *v1alpha1.HostRecord, secretVersion string) *plan.Problem {
	tried, failed := host.Status.TriedCredentials, record.Status.Error
	if failed == nil || failed.Reason != v1alpha1.ReasonBMCUnauthorized || tried.Version != secretVersion || tried.Reference == nil || tried.Reference.Name != host.Spec.BMC.CredentialsName ||
		host.Status.LastUpdated == nil || !r.Clock.Now().Before(host.Status.LastUpdated.Add(r.Timeouts.IdleInterval)) {
		return nil
	}
	return &plan.Problem{Reason: failed.Reason, Message: failed.Message}
}

// bmcProblem returns what an operator has to do about a failure of the BMC.
func bmcProblem(host *metal3.BareMetalHost, err error) *plan.Problem {
	message := err.Error()
	if plan.ErrorReasonText(err) == v1alpha1.ReasonBMCUnauthorized {
		message = fmt.Sprintf("the BMC refuses username and password of Secret %s: correct them, they are read again at every step (%v)", host.Spec.BMC.CredentialsName, err)
	}
	problem := plan.NewProblem(err, message)
	return &problem
}

// hostFacts returns the facts of the BareMetalHost that the planner decides by.
func hostFacts(h *metal3.BareMetalHost) plan.Host {
	inspect, inspectAsked := h.Annotations[metal3.InspectAnnotationPrefix]
	_, paused := h.Annotations[metal3.PausedAnnotation]
	_, detached := h.Annotations[metal3.DetachedAnnotation]
	facts := plan.Host{
		Generation: h.Generation, Deleting: !h.DeletionTimestamp.IsZero(), Paused: paused, Detached: detached,
		Online: h.Spec.Online, ExternallyProvisioned: h.Spec.ExternallyProvisioned,
		InspectionDisabled: h.InspectionDisabled(), InspectionRequested: inspectAsked && inspect == "",
		Claimed: h.Spec.ConsumerRef != nil, HasImage: h.Spec.Image != nil && h.Spec.Image.URL != "",
		Erase: h.Annotations[v1alpha1.AnnotationErase], Retry: h.Annotations[v1alpha1.AnnotationRetry], Release: h.Annotations[v1alpha1.AnnotationRelease],
		Status: plan.Status{
			State: h.Status.Provisioning.State, OperationalStatus: h.Status.OperationalStatus,
			ErrorType: h.Status.ErrorType, ErrorMessage: h.Status.ErrorMessage, ErrorCount: h.Status.ErrorCount,
			PoweredOn: h.Status.PoweredOn,
		},
	}
	if facts.Claimed {
		if v1alpha1.IsMachineRef(h.Spec.ConsumerRef) {
			facts.MachineNamespace, facts.MachineName = h.Spec.ConsumerRef.Namespace, h.Spec.ConsumerRef.Name
		}
		facts.ConsumerUID, facts.ConsumerName = string(h.Spec.ConsumerRef.UID), h.Spec.ConsumerRef.Namespace+"/"+h.Spec.ConsumerRef.Name
	}
	facts.Restored, facts.MustRegister = v1alpha1.IsRestored(h), v1alpha1.RegisteredAs(h) != h.Annotations[v1alpha1.AnnotationRegisteredAs]
	facts.Installation, _ = v1alpha1.InstallationOf(h) // its Machine reports one that cannot be read
	readReboots(h.Annotations, &facts)
	readDiskAnnotations(h, &facts)
	return facts
}

// readReboots reads Metal3's reboot annotations. Without a suffix the host is powered on again at once, with one when the
// annotation is removed. If one of them asks for mode hard, the reboot is hard.
func readReboots(annotations map[string]string, facts *plan.Host) {
	for name, value := range annotations {
		if name != metal3.RebootAnnotationPrefix && !strings.HasPrefix(name, metal3.RebootAnnotationPrefix+"/") {
			continue
		}
		facts.Reboot = true
		facts.RebootOnce = facts.RebootOnce || name == metal3.RebootAnnotationPrefix
		var arguments metal3.RebootAnnotationArguments
		if err := json.Unmarshal([]byte(value), &arguments); err == nil {
			facts.RebootHard = facts.RebootHard || arguments.Mode == metal3.RebootModeHard
		}
	}
}

// generations remembers since when each host is known to have its generation. It is kept in memory only: after a restart the
// generation of every host counts as new.
type generations struct {
	mu    sync.Mutex
	known map[types.NamespacedName]firstObserved
}

type firstObserved struct {
	generation int64
	at         time.Time
}

// observedSince returns since when the host is known to have the generation.
func (g *generations) observedSince(host types.NamespacedName, generation int64, now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	first, known := g.known[host]
	if known && first.generation == generation {
		return first.at
	}
	if g.known == nil {
		g.known = map[types.NamespacedName]firstObserved{}
	}
	g.known[host] = firstObserved{generation: generation, at: now}
	return now
}

// forget removes a host that does not exist any more.
func (g *generations) forget(host types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, host)
}
