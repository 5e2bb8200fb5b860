package lifecycle

import (
	"fmt"
	"maps"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// newServedWorld returns a world without HostRecords, whose hosts a baremetal-operator serves. Its Machines are of two tenants.
func newServedWorld(seed uint64, machines, hosts int, g guards) *world {
	w := newWorld(seed, machines, hosts, g)
	w.served = &servedWorld{erase: v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata, AllowMetadataBetweenTenants: true, AllowForgeableEraseBetweenTenants: true}}
	if seed%5 == 4 {
		w.served.erase.OnRelease = v1alpha1.EraseNone
	}
	for _, h := range w.hosts {
		h.live.record, h.live.isServed, h.live.hasConditions = v1alpha1.HostRecordStatus{}, true, seed%2 == 0
		h.live.cleaning, h.live.observed = metal3.CleaningModeMetadata, 1
		h.cached = h.live
	}
	for i, m := range w.machines {
		w.setTenant(m, i)
	}
	return w
}

// servedWorld is what only such a world has.
type servedWorld struct {
	erase v1alpha1.ErasePolicy
}

// setTenant gives every second Machine another tenant. One API server stands for the clusters of both.
func (w *world) setTenant(m *machine, i int) {
	if w.served != nil && i%2 == 1 {
		m.live.Spec.TenantClusterRef.Name = "training"
		m.cached = m.live
	}
}

// clusterUID identifies the cluster of a Machine's tenant.
func (w *world) clusterUID(m Machine) types.UID {
	if w.served == nil {
		return "cluster-1"
	}
	return types.UID("cluster-" + m.Spec.TenantClusterRef.Name)
}

// readsLive: the shell asks the API server itself about the host of a Machine in that status.
func (w *world) readsLive(s v1alpha1.MachineStatus) bool {
	switch s.Phase {
	case v1alpha1.MachineClaiming, v1alpha1.MachineReleasing, v1alpha1.MachineDraining:
		return true
	case v1alpha1.MachineProvisioning:
		return w.served != nil || s.PowerOff != nil
	}
	return s.PowerOff != nil
}

// placementRequestOf is what placement is asked for the Machine.
func (w *world) placementRequestOf(m Machine) placement.Request {
	request := placementRequest
	if w.served != nil {
		request.Provider.Metal3, request.Provider.Erase = &v1alpha1.Metal3Provider{}, &w.served.erase
		request.Tenant, request.TenantClusterUID = tenantOf(m), w.clusterUID(m)
	}
	return request
}

// addServed adds to the facts what a host without a HostRecord tells.
func (n *bmh) addServed(f *Host) {
	f.CleaningChanged = n.annotations[v1alpha1.AnnotationCleaningMode] != "" && n.cleaning != metal3.CleaningModeDisabled
	f.Record, f.InstalledURL, f.OperationalStatus, f.ErrorCount = nil, n.installedURL, n.status.OperationalStatus, n.status.ErrorCount
	f.PowerOffRequested, f.RebootRequested, f.PowerOffOfRunning = n.isAskedOff, n.isRebooted, n.isAskedOff && n.isOffOfRunning
	f.SecretAttempt = n.secretAttempt
	if n.hasConditions {
		observed, manageable := n.observed, !n.isUnmanageable
		f.ObservedGeneration, f.Manageable = &observed, &manageable
	}
}

// servedPlaceable is such a host as placement sees it.
func (n *bmh) servedPlaceable(h *metal3.BareMetalHost) placement.HostFacts {
	if h.Annotations == nil {
		h.Annotations = map[string]string{}
	}
	maps.Copy(h.Annotations, n.annotations)
	h.Status.Provisioning.Image.URL = n.installedURL
	return placement.HostFacts{Host: h}
}

// changeServed is what the shell writes onto a host without a HostRecord together with the action.
func (w *world) changeServed(f Facts, h *host, kind ActionKind) {
	n := &h.live
	if !n.isServed {
		return
	}
	switch kind {
	case ClaimHost:
		n.edit(func(b *metal3.BareMetalHost) {
			PassOnErase(b, &w.served.erase)
			n.secretAttempt = f.Machine.Status.Attempt + 1
		})
	case PowerOff:
		n.isOffOfRunning = n.status.PoweredOn || !n.online && n.isAskedOff && n.isOffOfRunning
		n.isAskedOff, n.isRebooted = true, true
		if n.online {
			n.edit(carryErase)
		}
	case PowerOn:
		n.withdrawPowerOff()
	case RequestInstall:
		n.withdrawPowerOff()
		n.userData = f.Machine.Status.Attempt
		n.edit(KeepCleaningSetAside)
		n.edit(func(b *metal3.BareMetalHost) {
			BeginInstallation(b, b.Annotations[placement.AnnotationLastTenant] != "")
			if n.installation == nil {
				metav1.SetMetaDataAnnotation(&b.ObjectMeta, placement.AnnotationLastTenant, tenantOf(f.Machine))
				metav1.SetMetaDataAnnotation(&b.ObjectMeta, placement.AnnotationLastTenantClusterUID, string(f.Tenant.ClusterUID))
			}
		})
	case RecordInstallation:
		n.edit(func(b *metal3.BareMetalHost) { EndInstallation(b, &w.served.erase) })
	case Deprovision:
		if f.Machine.Status.Phase == v1alpha1.MachineDraining {
			n.secretAttempt = f.Machine.Status.Attempt + 1
			n.edit(func(b *metal3.BareMetalHost) { BeginRoll(b, &w.served.erase) })
			return
		}
		n.edit(func(b *metal3.BareMetalHost) { BeginErase(b, &w.served.erase) })
	case ReturnHost:
		n.withdrawPowerOff()
		n.edit(EndErase)
		n.secretAttempt = 0
	}
}

func (n *bmh) withdrawPowerOff() {
	if n.isAskedOff {
		n.isAskedOff, n.isRebooted = false, false
	}
}

// checkServedClaim: no tenant gets a disk with what another one left there.
func (w *world) checkServedClaim(m *machine, h *host) {
	if h.hw.leftBy != "" && h.hw.leftBy != tenantOf(m.live.Machine) || h.hw.booted || h.live.installedURL != "" || h.live.paused {
		w.violated("3: %s of %s claims %s, with %q left there by %s", m.live.Name, tenantOf(m.live.Machine), h.name, h.live.installedURL, h.hw.leftBy)
	}
}

// checkServedReturn: what goes back is off, has no image, and does not say that it is erased when it is not.
func (w *world) checkServedReturn(h *host) {
	w.checkSecrets(h)
	if h.hw.booted || h.hw.on && h.hw.ironic == "" || h.live.imageURL != "" || h.live.installedURL != "" || h.live.status.State != metal3.StateAvailable {
		w.violated("3: %s is returned to the pool as %s with image %q; on: %t", h.name, h.live.status.State, h.live.installedURL, h.hw.on)
	}
}

// claimKey names the claim Secret of the Machine on the host.
func (w *world) claimKey(h *host, f Facts) string {
	if w.served == nil {
		return h.name
	}
	return secretKey(h, f.Machine.Status.Attempt)
}

// secretKey names the claim Secret of an attempt, where each has its own.
func secretKey(h *host, attempt int64) string { return fmt.Sprintf("%s-claim-%d", h.name, attempt) }

// secretsLeft returns those of the Secrets of the attempts that exist.
func (w *world) secretsLeft(h *host, attempts []int64) []string {
	var left []string
	for _, attempt := range attempts {
		if key := secretKey(h, attempt); w.secrets[key] != nil {
			left = append(left, key)
		}
	}
	return left
}

// checkSecretAttempt: what the host says is enough to find the Secret that is written.
func (w *world) checkSecretAttempt(f Facts, h *host) {
	if w.served != nil && !w.late && h.live.consumer == f.Machine.UID && h.live.secretAttempt < f.Machine.Status.Attempt {
		w.violated("6: the Secret of attempt %d of %s is written, and the host says %d", f.Machine.Status.Attempt, h.name, h.live.secretAttempt)
	}
}

// checkSecrets: nothing with a token is left of a Machine that gives its host back, but what a request wrote that arrived late.
func (w *world) checkSecrets(h *host) {
	for key, s := range w.secrets {
		if strings.HasPrefix(key, h.name+"-claim-") && !s.late {
			w.violated("6: %s is returned, and its Secret %s is left", h.name, key)
		}
	}
}

// checkErased: a host says that it is erased only when nothing is left on its disk.
func (w *world) checkErased(h *host) {
	if h.live.hasErased() && h.hw.leftBy != "" && h.live.consumer == "" {
		w.violated("3: %s says that it is erased, and has what %s left there", h.name, h.hw.leftBy)
	}
}

// servedHistory is history in such a world.
func servedHistory(seed uint64, g guards, trace func(string, ...any)) *world {
	return live(newServedWorld(seed, 2, 2, g), seed, trace)
}

// beginRolls gives the Machines of such a world other revisions, one of which has the same image.
func (w *world) beginRolls() {
	if w.served != nil {
		w.setRevision(w.machines[0], "rev-2")
		w.setRevision(w.machines[1], "rev-3")
	}
}

// looks is how often a host's controller looks at it in one turn. A baremetal-operator changes one thing at a time.
func (w *world) looks() int {
	if w.served != nil {
		return 4
	}
	return 1
}
