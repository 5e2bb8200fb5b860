package host

import (
	"encoding/json"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// readDiskAnnotations reads the annotations about the parts of the server.
func readDiskAnnotations(host *metal3.BareMetalHost, facts *plan.Host) {
	facts.TPMKey = host.Annotations[v1alpha1.AnnotationTPMKey]
	facts.RootDisk = strings.TrimSpace(host.Annotations[v1alpha1.AnnotationRootDisk])
	for name := range strings.SplitSeq(host.Annotations[v1alpha1.AnnotationDiskGone], ",") {
		if name = strings.TrimSpace(name); name != "" {
			facts.DisksGone = append(facts.DisksGone, name)
		}
	}
	if len(facts.DisksGone) > 0 {
		facts.DisksGoneBy, facts.DisksGoneAt = annotationAuthor(host, v1alpha1.AnnotationDiskGone)
	}
}

// annotationAuthor returns the field manager that wrote the annotation last, and when. Both are empty when the API server has not recorded
// it. The manager is the program that wrote, such as kubectl-annotate: an object does not tell the user, the audit log does.
func annotationAuthor(host *metal3.BareMetalHost, name string) (manager string, at time.Time) {
	for _, entry := range host.ManagedFields {
		var fields struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil || entry.Time == nil {
			continue // an entry of another format says nothing about annotations
		}
		if _, isOwner := fields.Metadata.Annotations["f:"+name]; isOwner && !entry.Time.Time.Before(at) {
			manager, at = entry.Manager, entry.Time.Time
		}
	}
	return manager, at
}
