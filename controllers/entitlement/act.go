package entitlement

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	"github.com/ingot-dev/ingot/controllers/step"
)

// fieldManager owns the fields of the objects in the shared cluster.
const fieldManager = "ingot-entitlement"

// deviceClassKind is that of DeviceClasses.
var deviceClassKind = resourcev1.SchemeGroupVersion.WithKind("DeviceClass")

// quotaKind is that of the quotas.
var quotaKind = corev1.SchemeGroupVersion.WithKind("ResourceQuota")

// kinds are those of the objects, in the order in which they are removed: a DeviceClass goes before what fences it.
var kinds = []schema.GroupVersionKind{
	deviceClassKind,
	quotaKind,
	admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
	admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
}

// identity of an object in the shared cluster.
type identity struct {
	schema.GroupVersionKind
	client.ObjectKey
}

func identityOf(o *unstructured.Unstructured) identity {
	return identity{o.GroupVersionKind(), client.ObjectKeyFromObject(o)}
}

// enforce writes the objects that differ, removes those that are not wanted any more, and reads what the classes select.
func (r *Reconciler) enforce(ctx context.Context, obs *observation) *problem {
	obs.isFirstLook = !r.placed.hasAny(obs.entitlement.UID)
	wanted := map[identity]bool{}
	for _, c := range obs.plan.Classes {
		if c.IsKept {
			wanted[identity{deviceClassKind, client.ObjectKey{Name: c.DeviceClass}}] = true
		}
	}
	for _, typed := range obs.plan.Objects {
		object, err := toUnstructured(typed)
		if err != nil {
			return &problem{status: metav1.ConditionFalse, reason: v1alpha1.ReasonObjectRefused, message: err.Error()}
		}
		wanted[identityOf(object)] = true
		if p := r.apply(ctx, obs, object, obs.ours[identityOf(object)]); p != nil {
			return p
		}
	}
	if p := r.remove(ctx, obs, wanted); p != nil {
		return p
	}
	r.placed.keepOnly(obs.entitlement.UID, wanted)
	p := r.probe(ctx, obs)
	if p == nil || p.isReachable {
		r.observeUse(ctx, obs)
	}
	return p
}

// apply writes an object unless the one that is there has all of it. existing is ours; nil: there is none.
func (r *Reconciler) apply(ctx context.Context, obs *observation, object, existing *unstructured.Unstructured) *problem {
	isExtended := existing != nil && !isIn(existing.Object["spec"], object.Object["spec"])
	if existing != nil && !isExtended && isIn(object.Object, existing.Object) {
		r.placed.note(obs.entitlement.UID, identityOf(object), placedObject{digest: digestOf(object), uid: existing.GetUID()})
		return nil
	}
	if existing == nil {
		if p := checkNameIsFree(ctx, obs, object); p != nil {
			return p
		}
	}
	if found := r.restorationOf(obs, object, existing); found != nil {
		r.reportRestoration(ctx, obs.entitlement, found)
	}
	// What was refused before says nothing of what is written now.
	r.probes.expire(obs.entitlement.UID)
	defer r.lists.noteWrite(obs.access.Client)
	options := []client.ApplyOption{client.FieldOwner(fieldManager)}
	if existing != nil {
		// An object that was deleted and made again by somebody else has another uid, and is not changed.
		object.SetUID(existing.GetUID())
		options = append(options, client.ForceOwnership)
	}
	spec := object.Object["spec"]
	err := obs.access.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	if err == nil && isExtended {
		err = replaceSpec(ctx, obs.access.Client, existing, spec)
	}
	return problemOf(writing(object), err)
}

func writing(object *unstructured.Unstructured) string {
	return fmt.Sprintf("write %s %s in the shared cluster", object.GetKind(), object.GetName())
}

// checkNameIsFree returns why an object cannot be made: the shared cluster has another one of its name.
func checkNameIsFree(ctx context.Context, obs *observation, object *unstructured.Unstructured) *problem {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	err := obs.access.Client.Get(ctx, client.ObjectKeyFromObject(object), found)
	if err == nil {
		return &problem{status: metav1.ConditionFalse, reason: v1alpha1.ReasonNameTaken, message: fmt.Sprintf("the shared cluster has a %s %s that is not this Entitlement's, and it is left alone: "+
			"delete or rename it there, or use another name for the tenant or the class", object.GetKind(), object.GetName())}
	}
	return problemOf(writing(object), client.IgnoreNotFound(err))
}

// replaceSpec removes what somebody else has added to the spec, which a server-side apply leaves there. Without it: a rule that excludes a resource from a
// policy stays, and the policy refuses nothing.
func replaceSpec(ctx context.Context, c client.Client, existing *unstructured.Unstructured, spec any) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": existing.GetUID()},
		{"op": "add", "path": "/spec", "value": spec},
	})
	if err != nil {
		return fmt.Errorf("write the spec: %w", err)
	}
	return c.Patch(ctx, existing.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(fieldManager))
}

// remove deletes the objects that are ours and not wanted.
func (r *Reconciler) remove(ctx context.Context, obs *observation, wanted map[identity]bool) *problem {
	for _, kind := range kinds {
		for id, object := range obs.ours {
			if id.GroupVersionKind != kind || wanted[id] {
				continue
			}
			err := obs.access.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())})
			r.lists.noteWrite(obs.access.Client)
			if p := problemOf(fmt.Sprintf("delete %s %s in the shared cluster", id.Kind, id.Name), client.IgnoreNotFound(err)); p != nil {
				return p
			}
		}
	}
	return nil
}

// release removes the objects of an Entitlement that is being deleted, and then its finalizer. Where the TenantCluster is gone, nobody can reach them.
func (r *Reconciler) release(ctx context.Context, obs observation) (reconcile.Result, error) {
	e := obs.entitlement
	if obs.isClusterGone {
		r.reportRelease(ctx, e, corev1.EventTypeWarning, v1alpha1.ReasonObjectsRemain, fmt.Sprintf("TenantCluster %s is gone or out of reach, so what this Entitlement has in the shared cluster remains: "+
			"its policies go on refusing. Remove it there: kubectl delete deviceclasses,validatingadmissionpolicies,validatingadmissionpolicybindings,resourcequotas -A -l %s=%s",
			e.Spec.TenantClusterRef.Name, v1alpha1.LabelEntitlement, e.ObjectsUID()))
	} else {
		p := obs.problem
		if p == nil {
			p = r.remove(ctx, &obs, nil)
		}
		if p != nil {
			return r.finish(ctx, obs, p)
		}
		r.reportRelease(ctx, e, corev1.EventTypeNormal, v1alpha1.ReasonFenceRemoved, entitlement.RemovalText(e))
	}
	r.journal.forget(e.UID)
	r.probes.forget(e.UID)
	r.placed.forget(e.UID)
	return step.Retry(r.setFinalizer(ctx, e, false)).Result()
}

// reportRelease says what became of the objects of an Entitlement, if there may be any.
func (r *Reconciler) reportRelease(ctx context.Context, e *v1alpha1.Entitlement, typ, reason, text string) {
	// One that was restored from a backup may have no status, and had objects under its earlier uid.
	if !e.Status.Written && e.ObjectsUID() == e.UID {
		return
	}
	log.FromContext(ctx).Info(text, "reason", reason, "tenant", e.Spec.Tenant)
	r.Recorder.Eventf(e, nil, typ, reason, "Release", "%s", text)
}

// noteWritten records that something of the Entitlement may be in the shared cluster, before the first object is.
func (r *Reconciler) noteWritten(ctx context.Context, obs *observation) error {
	before := obs.entitlement
	if before.Status.Written {
		return nil
	}
	after := before.DeepCopy()
	after.Status.Written = true
	if err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("record that the shared cluster is written to: %w", err)
	}
	obs.entitlement, obs.input.Entitlement = after, after
	return nil
}

func (r *Reconciler) setFinalizer(ctx context.Context, e *v1alpha1.Entitlement, wanted bool) error {
	after := e.DeepCopy()
	if wanted {
		controllerutil.AddFinalizer(after, v1alpha1.EntitlementFinalizer)
		if !v1alpha1.IsRestored(after) {
			v1alpha1.Register(after)
		}
	} else {
		controllerutil.RemoveFinalizer(after, v1alpha1.EntitlementFinalizer)
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, after, client.MergeFromWithOptions(e, client.MergeFromWithOptimisticLock{})))
}

func toUnstructured(typed any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("convert an object of the shared cluster: %w", err)
	}
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return object, nil
}

// isIn reports whether an object has every member of what is wanted. Lists must be equal in length.
func isIn(wanted, existing any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		e, ok := existing.(map[string]any)
		if !ok {
			return len(w) == 0 && existing == nil
		}
		for key, value := range w {
			if !isIn(value, e[key]) {
				return false
			}
		}
		return true
	case []any:
		e, ok := existing.([]any)
		if !ok || len(e) != len(w) {
			return false
		}
		for i := range w {
			if !isIn(w[i], e[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(wanted, existing)
}
