package placement

import (
	"cmp"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/bmcaddress"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

// checkLastTenant requires that the data of another tenant is erased. A full erase without evidence for each disk counts as Metadata, and one that a neighbour can
// forge as none. On a host of a metal3 provider an annotation says which clean of its baremetal-operator ran, and the policy may accept a metadata clean as enough.
//
// Without the rule about forging: a neighbour asks for the boot document of a server that is to be erased, registers before it does, and says that all was erased.
// The host goes to the next tenant with the data of the last.
func checkLastTenant(r Request, f HostFacts) Evaluation {
	done, channel, tpm := eraseSince(f)
	policy := r.Provider.Erase
	if policy == nil {
		policy = &v1alpha1.ErasePolicy{}
	}
	last, erased := lastTenantOf(f), providerkind.Of(r.Provider).ProvenErase(done)
	if r.Tenant == "" || last.name == "" || last.isSame(r) {
		return Evaluation{}
	}
	since := fmt.Sprintf("had only this erase since: %s; %s", erased, eraseAdvice(r, f.Host, erased))
	if erased == v1alpha1.EraseFull || erased == v1alpha1.EraseMetadata && policy.AllowMetadataBetweenTenants {
		if hardware.IsProof(channel, tpm) || policy.AllowForgeableEraseBetweenTenants {
			return Evaluation{}
		}
		since = forgeryText(r, f.Host, done, channel, tpm)
	}
	switch {
	case last.name != r.Tenant:
		return rejectIf(true, OtherTenant, "was tenant %s's and %s", last.name, since)
	case last.isOtherCluster(r):
		return rejectIf(true, OtherTenant, "was tenant %s's (then cluster %s, now %s) and %s", last.name, last.cluster, r.TenantClusterUID, since)
	}
	return rejectIf(true, ClusterUnknown, "was used by a TenantCluster %s whose cluster is not known (then %s, now %s), and this TenantCluster is not known to be the same; "+
		"it %s", last.name, cmp.Or(last.cluster, UnknownCluster), cmp.Or(r.TenantClusterUID, UnknownCluster), since)
}

// forgeryText says why an erase does not count that a neighbour can forge, and what makes one count.
func forgeryText(r Request, host *metal3.BareMetalHost, done v1alpha1.EraseMode, channel hardware.Channel, tpm hardware.TPMProof) string {
	how := ""
	switch {
	case !hasRecords(r):
		how = "use a BMC address of virtual media with a certificate that is verified (redfish-virtualmedia+https), or " + eraseAdvice(r, host, v1alpha1.EraseNone)
	case r.Provider.Ironic != nil:
		how = "have Ironic boot its node by virtual media (boot_interface), by a BMC whose certificate is verified, and then annotate it " + v1alpha1.AnnotationErase + "=Full"
	default:
		how = "have spec.redfish.netboot.ways of the NodeProvider begin with VirtualMedia or PinnedHTTP, by BMCs whose certificates are verified, or list the key of its TPM (" + v1alpha1.AnnotationTPMKey + "), and then " + eraseAdvice(r, host, v1alpha1.EraseNone)
	}
	return fmt.Sprintf("its erase since (%s) does not count: it was reported through the channel %s%s, which a neighbour on the provisioning network can use in the server's place: %s; "+
		"or accept that risk with spec.erase.allowForgeableEraseBetweenTenants of the NodeProvider", done, cmp.Or(string(channel), "of an earlier version, which noted none"), tpm.Describe(), how)
}

// eraseAdvice says what makes a host fit for another tenant whose last erase is given.
func eraseAdvice(r Request, host *metal3.BareMetalHost, erased v1alpha1.EraseMode) string {
	if providerkind.Of(r.Provider).Name == providerkind.Ironic.Name {
		return "no erase by Ironic is proven disk by disk: set spec.erase.allowMetadataBetweenTenants of the NodeProvider to accept it as it is"
	}
	if hasRecords(r) {
		return fmt.Sprintf("annotate it %s=Full", v1alpha1.AnnotationErase)
	}
	advice := fmt.Sprintf("erase its disks by another way, and then remove its annotation %s", AnnotationLastTenant)
	if erased == v1alpha1.EraseMetadata {
		advice = "set spec.erase.allowMetadataBetweenTenants of the NodeProvider to accept that, or " + advice
	}
	if host.Spec.AutomatedCleaningMode == metal3.CleaningModeDisabled {
		advice += ". Its own spec.automatedCleaningMode is disabled, so that no release erases it"
	}
	return advice
}

// eraseSince returns the erase since the last installation, the channel through which it was reported, and what the TPM of the server proved of who did.
func eraseSince(f HostFacts) (v1alpha1.EraseMode, hardware.Channel, hardware.TPMProof) {
	switch {
	case f.Record == nil && f.Host.Annotations[v1alpha1.AnnotationLastErase] == string(v1alpha1.EraseMetadata):
		return v1alpha1.EraseMetadata, bmcaddress.Channel(f.Host.Spec.BMC.Address, f.Host.Spec.BMC.DisableCertificateVerification), ""
	case f.Record != nil && f.Record.Status.Erased != nil && f.Record.Status.Installed == nil:
		return f.Record.Status.Erased.Mode, hardware.Channel(f.Record.Status.Erased.Channel), hardware.TPMProof(f.Record.Status.Erased.TPM)
	}
	return v1alpha1.EraseNone, "", ""
}

// lastTenant is the TenantCluster that had the disks of a host last. The name is empty where nobody had.
type lastTenant struct {
	name string
	// cluster is empty where it was never known.
	cluster types.UID
	// uid is that of the TenantCluster. It is empty where nobody knows.
	uid types.UID
}

func lastTenantOf(f HostFacts) lastTenant {
	if f.Record == nil {
		return lastTenantByAnnotations(f.Host)
	}
	status := f.Record.Status
	return lastTenant{name: status.LastTenant, cluster: status.LastTenantClusterUID, uid: status.LastTenantUID}
}

// lastTenantByAnnotations returns the last tenant of a metal3 host.
func lastTenantByAnnotations(host *metal3.BareMetalHost) lastTenant {
	a := host.Annotations
	last := lastTenant{name: a[AnnotationLastTenant], cluster: types.UID(a[AnnotationLastTenantClusterUID]), uid: types.UID(a[AnnotationLastTenantUID])}
	if last.cluster == UnknownCluster {
		last.cluster = ""
	}
	return last
}

// NeedsClusterUID reports whether the annotations of a metal3 host say that the tenant had its disks last, and not that it was this cluster. They name
// another one where the kubeconfig was corrected between the claim and the installation.
func NeedsClusterUID(host *metal3.BareMetalHost, tenant string, cluster types.UID) bool {
	last := lastTenantOf(HostFacts{Host: host})
	return last.name == tenant && cluster != "" && last.cluster != cluster
}

// isSame reports whether a Machine of the tenant that had the disks last asks for the host: one with the same name and the same cluster. A uid alone
// proves nothing, because the tenant's own API server tells it. Without the uid: a TenantCluster is deleted, another team makes one of its name, and
// its cluster gets the disks with the data of the first one.
//
// Where the kubeconfig may not read one of the uids, the uid of the TenantCluster itself decides. Without it: no host that such a tenant has used is free for it
// any more. One that was made again, also from a backup, may be another team's. Its age proves nothing: a clock may have been wrong.
func (t lastTenant) isSame(r Request) bool {
	if t.name != r.Tenant || t.isOtherCluster(r) {
		return false
	}
	return t.isKnown(r) || r.TenantUID != "" && t.uid == r.TenantUID
}

// isKnown reports whether both clusters are known.
func (t lastTenant) isKnown(r Request) bool { return t.cluster != "" && r.TenantClusterUID != "" }

func (t lastTenant) isOtherCluster(r Request) bool {
	return t.isKnown(r) && t.cluster != r.TenantClusterUID
}
