package entitlement

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// placed remembers the objects that were seen in the shared clusters as they should be. What is missing or different after that was somebody else's doing, unless
// it should be different now.
type placed struct {
	mu      sync.Mutex
	objects map[types.UID]map[identity]placedObject
}

// placedObject is what an object should be, and which object was that.
type placedObject struct {
	digest [sha256.Size]byte
	uid    types.UID
}

func (p *placed) note(entitlement types.UID, id identity, object placedObject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objects == nil {
		p.objects = map[types.UID]map[identity]placedObject{}
	}
	if p.objects[entitlement] == nil {
		p.objects[entitlement] = map[identity]placedObject{}
	}
	p.objects[entitlement][id] = object
}

// of returns what is known of an object.
func (p *placed) of(entitlement types.UID, id identity) (object placedObject, isKnown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	object, isKnown = p.objects[entitlement][id]
	return object, isKnown
}

// hasAny reports whether anything is known of the objects of an Entitlement.
func (p *placed) hasAny(entitlement types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.objects[entitlement] != nil
}

// keepOnly forgets what is not wanted any more, such as the quota of a namespace that is gone.
func (p *placed) keepOnly(entitlement types.UID, wanted map[identity]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.objects[entitlement], func(id identity, _ placedObject) bool { return !wanted[id] })
}

func (p *placed) forget(entitlement types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.objects, entitlement)
}

// digestOf identifies what an object should be.
func digestOf(object *unstructured.Unstructured) [sha256.Size]byte {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return [sha256.Size]byte{} // It was made from a typed object, and can be written.
	}
	return sha256.Sum256(text)
}

// restoration is what somebody else has done to an object that is put right.
type restoration struct {
	text string
	// mark tells two restorations of one object apart.
	mark string
}

// restorationOf returns what somebody else has done to an object that is not as it should be; nil: nothing, or it cannot be told from a change of what it should be.
func (r *Reconciler) restorationOf(obs *observation, object, existing *unstructured.Unstructured) *restoration {
	e := obs.entitlement
	known, isKnown := r.placed.of(e.UID, identityOf(object))
	what := object.GetKind() + " " + object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		what += " of namespace " + namespace
	}
	if existing == nil {
		// While no manager ran, only what every Entitlement has is known to have been there.
		isAlways := object.GetKind() != quotaKind.Kind && object.GetKind() != deviceClassKind.Kind
		if !isKnown && !(obs.isFirstLook && isAlways && meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionEnforced)) {
			return nil
		}
		return &restoration{text: what + " was deleted in the shared cluster, and Ingot makes it again: the audit log of its API server says who did it", mark: string(known.uid) + r.Clock.Now().UTC().Format(time.RFC3339)}
	}
	manager := changedBy(object, existing)
	if manager == "" && (!isKnown || known.digest != digestOf(object)) {
		return nil
	}
	by := "by somebody"
	if manager != "" {
		by = "by the field manager " + manager
	}
	return &restoration{
		text: fmt.Sprintf("%s was changed in the shared cluster %s, and Ingot puts it right: %s", what, by, differencesText(object, existing)),
		mark: string(existing.GetUID()) + existing.GetResourceVersion(),
	}
}

// changedBy returns the field manager that was the last to write something of an object that Ingot owns, and when; empty: that cannot be told. Who only removes
// something owns nothing afterwards.
func changedBy(object, existing *unstructured.Unstructured) string {
	var newest *metav1.ManagedFieldsEntry
	managed := existing.GetManagedFields()
	for i := range managed {
		m := &managed[i]
		if m.Manager == fieldManager || m.Subresource != "" || m.FieldsV1 == nil || !hasOurs(m.FieldsV1.GetRawBytes(), object) {
			continue
		}
		if newest == nil || newest.Time.Before(m.Time) {
			newest = m
		}
	}
	if newest == nil {
		return ""
	}
	out := input.Line(newest.Manager, tenantaccess.MaxQuoted)
	if newest.Time != nil {
		out += " at " + newest.Time.UTC().Format(time.RFC3339)
	}
	return out
}

// hasOurs reports whether a set of fields has something of the spec, or a label or an annotation that the object should have.
func hasOurs(fields []byte, object *unstructured.Unstructured) bool {
	var set struct {
		Spec     json.RawMessage `json:"f:spec"`
		Metadata struct {
			Labels      map[string]json.RawMessage `json:"f:labels"`
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(fields, &set) != nil {
		return false
	}
	isOurs := len(set.Spec) > 0
	for key := range object.GetLabels() {
		isOurs = isOurs || set.Metadata.Labels["f:"+key] != nil
	}
	for key := range object.GetAnnotations() {
		isOurs = isOurs || set.Metadata.Annotations["f:"+key] != nil
	}
	return isOurs
}

// The limits of what is said of one object: how many differences, and how many bytes of a value.
const maxDifferences, maxValue = 3, 64

// differencesText says what of an object is not as it should be.
func differencesText(object, existing *unstructured.Unstructured) string {
	all := differences("metadata", object.Object["metadata"], existing.Object["metadata"], false)
	all = append(all, differences("spec", object.Object["spec"], existing.Object["spec"], true)...)
	if more := len(all) - maxDifferences; more > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("%d more differences", more))
	}
	return strings.Join(all, "; ")
}

// differences returns what of a value is not as it should be, by the path. With isExact nothing may be there that is not wanted.
func differences(path string, wanted, existing any, isExact bool) []string {
	wantedMap, isMap := wanted.(map[string]any)
	existingMap, isThereMap := existing.(map[string]any)
	if isMap && (isThereMap || existing == nil) {
		return memberDifferences(path, wantedMap, existingMap, isExact)
	}
	wantedList, isList := wanted.([]any)
	existingList, isThereList := existing.([]any)
	if isList && (isThereList || existing == nil) {
		return entryDifferences(path, wantedList, existingList, isExact)
	}
	if isIn(existing, wanted) && (isIn(wanted, existing) || wanted == nil) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s and should be %s", path, valueText(existing), valueText(wanted))}
}

func memberDifferences(path string, wanted, existing map[string]any, isExact bool) []string {
	keys := slices.Collect(maps.Keys(wanted))
	for key := range existing {
		if _, isWanted := wanted[key]; !isWanted && isExact {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out []string
	for _, key := range keys {
		out = append(out, differences(path+"."+key, wanted[key], existing[key], isExact)...)
	}
	return out
}

func entryDifferences(path string, wanted, existing []any, isExact bool) []string {
	if len(existing) != len(wanted) {
		return []string{fmt.Sprintf("%s has %d entries and should have %d", path, len(existing), len(wanted))}
	}
	var out []string
	for i := range wanted {
		out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), wanted[i], existing[i], isExact)...)
	}
	return out
}

func valueText(value any) string {
	switch value.(type) {
	case nil:
		return "absent"
	case map[string]any, []any:
		return "set"
	}
	return input.Line(fmt.Sprint(value), maxValue)
}

// reportRestoration makes an Event and a log line. They are made before the write, so that a manager that ends in between leaves a trace. An Event that cannot be
// made holds nothing back.
func (r *Reconciler) reportRestoration(ctx context.Context, e *v1alpha1.Entitlement, found *restoration) {
	logger := log.FromContext(ctx)
	logger.Info(found.text, "reason", v1alpha1.ReasonFenceChanged, "tenant", e.Spec.Tenant)
	event := r.newEvent(e, corev1.EventTypeWarning, v1alpha1.ReasonFenceChanged, "Restore", found.text, found.text+found.mark)
	if err := r.Client.Create(ctx, event); err != nil && !apierrors.IsAlreadyExists(err) {
		logger.Error(err, "Making the event of an object that is put right")
	}
}
