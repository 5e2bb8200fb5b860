package machine_test

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// failInstallation brings a Machine to a host whose installation has failed as often as its operator tries it. The host is available then, and its
// error stays.
func (r *metal3Rig) failInstallation() {
	r.t.Helper()
	r.servers["server-00"].Fail(baremetaloperator.Deploying, -1)
	r.start()
	r.addMachine(r.namespace)
	r.until("the operator has given up", func() bool {
		s := r.bareHost("server-00").Status
		return s.Provisioning.State == metal3.StateAvailable && s.ErrorType == metal3.ProvisioningError
	})
	r.servers["server-00"].Fail(baremetaloperator.Deploying, 0)
}

func TestAHostWhoseInstallationFailedTakesTheCorrectedImage(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		next := r.addRevision(2, "1.37.0")
		r.failInstallation()
		r.want(r.namespace, next)
		r.join()
		if url := r.servers["server-00"].Disk().URL; !strings.HasSuffix(url, "image-2.raw.zst") {
			t.Errorf("the server has %s", url)
		}
	})
}

// TestAHostWhoseInstallationFailedIsReleasedAndIsAnotherTenants has the operator that gives up, and one that tries for ever. Each has cleaned the host after its
// failure, by the mode that it still has.
func TestAHostWhoseInstallationFailedIsReleasedAndIsAnotherTenants(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		r.setErase(v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata, AllowMetadataBetweenTenants: true, AllowForgeableEraseBetweenTenants: true})
		if r.options.Conditions {
			r.failInstallation()
		} else {
			r.failUntilCleaned()
		}
		r.release()
		h := r.bareHost("server-00")
		if isGivenUp := h.Status.ErrorType == metal3.ProvisioningError; h.Spec.ConsumerRef != nil || r.options.Conditions && !isGivenUp {
			t.Errorf("the host is %v's and has the error %q", h.Spec.ConsumerRef, h.Status.ErrorType)
		}
		if got := r.servers["server-00"].History(); got[len(got)-1] != "clean metadata" || h.Annotations[v1alpha1.AnnotationLastErase] != "Metadata" {
			t.Errorf("the disk went through %v, and the host says that its last erase was %q", got, h.Annotations[v1alpha1.AnnotationLastErase])
		}
		if events := r.hostEvents("server-00", v1alpha1.ReasonEraseNotProven); len(events) > 0 {
			t.Errorf("an event warns of a host that was cleaned: %v", events)
		}
		r.annotate("server-00", placement.AnnotationLastTenant, "other/other")
		r.annotate("server-00", placement.AnnotationLastTenantClusterUID, "another")
		r.addMachine(r.namespace)
		r.join()
	})
}

// failUntilCleaned brings a Machine to a host whose installation has failed and which its operator cleans to try it again, and deletes the Machine.
func (r *metal3Rig) failUntilCleaned() {
	r.t.Helper()
	r.servers["server-00"].Fail(baremetaloperator.Deploying, -1)
	r.start()
	r.addMachine(r.namespace)
	r.until("the operator cleans the host", func() bool { return r.bareHost("server-00").Status.Provisioning.State == metal3.StateDeprovisioning })
	r.deleteMachine()
	r.until("the image is removed", func() bool { return r.bareHost("server-00").Spec.Image == nil })
	r.servers["server-00"].Fail(baremetaloperator.Deploying, 0)
}
