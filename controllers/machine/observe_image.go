package machine

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

// observeImage sets which image the revision installs, and whether it can be used now. What the manager sees of an image does not count where a
// baremetal-operator installs it, because its Ironic reads the image on networks of its own.
func (obs *observation) observeImage(objects *revisionObjects, f *lifecycle.Revision) {
	f.Image = exactImage(objects.image.Spec, objects.revision.Spec.Image)
	reason, problem := imageProblem(objects.image)
	if obs.provider != nil && obs.provider.Spec.Metal3 != nil {
		objects.imageWarning = problem
		return
	}
	f.ImageReason, f.ImageProblem = reason, problem
}

// exactImage returns the file that the revision pinned. amd64 is left out, as in a HostRecord that was written before it had an architecture: an image
// that differs would be written again.
func exactImage(image v1alpha1.OSImageSpec, pinned v1alpha1.RevisionImage) v1alpha1.ExactImage {
	exact := v1alpha1.ExactImage{URL: image.URL, Checksum: pinned.Checksum, Format: pinned.Format}
	if image.Architecture != v1alpha1.ArchitectureAMD64 {
		exact.Architecture = image.Architecture
	}
	return exact
}

// imageProblem returns why an OSImage cannot be installed now: its server answers, and not as it must.
func imageProblem(image *v1alpha1.OSImage) (reason, message string) {
	c := meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionImageReachable)
	if c == nil || c.Status != metav1.ConditionFalse {
		return "", ""
	}
	return c.Reason, "OSImage " + image.Name + ": " + c.Message
}
