package entitlement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

// versions returns uid, labels, annotations and spec of each object that the Entitlement has in the shared cluster. Kubernetes' controllers write its status.
func (r *rig) versions() map[identity]string {
	r.t.Helper()
	out := map[identity]string{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := server.Client.List(r.t.Context(), list, client.MatchingLabels{v1alpha1.LabelEntitlement: string(r.read("legal").ObjectsUID())}); err != nil {
			r.t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			out[identityOf(o)] = fmt.Sprint(o.GetUID(), o.GetLabels(), o.GetAnnotations(), o.Object["spec"])
		}
	}
	return out
}

// enforced creates an Entitlement and waits until it is enforced.
func (r *rig) enforced(classes ...v1alpha1.EntitledClass) (stop func()) {
	r.t.Helper()
	r.entitle(classes...)
	stop = r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	return stop
}

// TestWhatSomebodyAddsIsRemoved: a server-side apply alone leaves fields of others as they are.
func TestWhatSomebodyAddsIsRemoved(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.enforced(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, o := range []client.Object{policy, binding} {
		if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "ingot-claims-" + r.tenant}, o); err != nil {
			t.Fatal(err)
		}
	}
	policy.Spec.MatchConstraints.ExcludeResourceRules = policy.Spec.MatchConstraints.ResourceRules
	binding.Spec.MatchResources.ExcludeResourceRules = policy.Spec.MatchConstraints.ResourceRules
	extended, err := r.deviceClass(r.tenant + "-h100")
	if err != nil {
		t.Fatal(err)
	}
	extended.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	for _, o := range []client.Object{policy, binding, extended} {
		if err := server.Client.Update(t.Context(), o, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
	r.nudge()
	management.Eventually(t, "what somebody added is gone", func() bool {
		for _, o := range []client.Object{policy, binding, extended} {
			if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
		}
		return policy.Spec.MatchConstraints.ExcludeResourceRules == nil && binding.Spec.MatchResources.ExcludeResourceRules == nil && extended.Spec.ExtendedResourceName == nil
	})
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	r.change(func(e *v1alpha1.Entitlement) { e.Spec.Schedulers = nil })
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	settled := r.versions()
	r.change(func(e *v1alpha1.Entitlement) { e.Spec.Schedulers = []string{"system:kube-scheduler"} }) // the same as none
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	for id, version := range r.versions() {
		if settled[id] != version {
			t.Errorf("%s %s was as it should be, and is another now", id.Kind, id.Name)
		}
	}
}

func TestANamespaceThatIsBeingDeletedStopsNothing(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	leaving := server.Namespace(t)
	namespace := &corev1.Namespace{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: leaving}, namespace); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: leaving}, namespace); err != nil || namespace.DeletionTimestamp == nil {
		t.Fatalf("the namespace is to be terminating: %v", err)
	}
	server.Create(t, &v1alpha1.Entitlement{ObjectMeta: r.meta("legal"), Spec: v1alpha1.EntitlementSpec{
		TenantClusterRef: v1alpha1.LocalReference{Name: "shared"}, Tenant: r.tenant, Namespaces: v1alpha1.TenantNamespaces{Names: []string{leaving, r.tenant}},
		Classes: []v1alpha1.EntitledClass{class("h100", "h100-dra", v1alpha1.DeviceGPU, 2)},
	}})
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.tenant, Name: "ingot-" + r.tenant}, &corev1.ResourceQuota{}); err != nil {
		t.Error(err)
	}
}

// TestAnEntitlementThatIsRestoredKeepsItsObjects creates it again from a backup, with another uid.
func TestAnEntitlementThatIsRestoredKeepsItsObjects(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	stop := r.enforced(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	stop()
	backup, before := r.read("legal"), r.versions()
	lost := backup.DeepCopy()
	lost.Finalizers = nil
	if err := server.Client.Update(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	copied := &v1alpha1.Entitlement{ObjectMeta: r.meta("copied"), Spec: *backup.Spec.DeepCopy()}
	copied.Annotations = backup.Annotations
	server.Create(t, &v1alpha1.Entitlement{ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: backup.Name, Annotations: backup.Annotations, Finalizers: backup.Finalizers}, Spec: backup.Spec})
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	restored := r.read("legal")
	if restored.UID == backup.UID || restored.ObjectsUID() != backup.UID {
		t.Errorf("uid %s, that of its objects %s; before both were %s", restored.UID, restored.ObjectsUID(), backup.UID)
	}
	for id, version := range r.versions() {
		if before[id] != version {
			t.Errorf("%s %s was changed", id.Kind, id.Name)
		}
	}
	if copied.ObjectsUID() == backup.UID {
		t.Error("the manifest of another Entitlement takes over the objects")
	}
	if err := server.Client.Delete(t.Context(), restored); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "its objects go with it", func() bool {
		_, err := r.deviceClass(r.tenant + "-h100")
		return apierrors.IsNotFound(err)
	})
}

// loseRendering has the NodeType name a rendering that is not there until the function is called that it returns.
func loseRendering(t *testing.T, name string) (giveBack func()) {
	t.Helper()
	set := func(rendering string) {
		nodeType := &v1alpha1.NodeType{}
		if err := server.Client.Get(context.Background(), client.ObjectKey{Name: name}, nodeType); err != nil {
			t.Fatal(err)
		}
		nodeType.Status.StableRendering = rendering
		if err := server.Client.Status().Update(context.Background(), nodeType); err != nil {
			t.Fatal(err)
		}
	}
	set("lost")
	giveBack = func() { set(name) }
	t.Cleanup(giveBack)
	return giveBack
}

// TestAClassStaysWhileItsPromiseCannotBeRead: the rendering of the NodeType is lost, or is one of a newer version.
func TestAClassStaysWhileItsPromiseCannotBeRead(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.enforced(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	before := r.versions()
	loseRendering(t, "h100-dra")
	r.awaitClass("h100", v1alpha1.ReasonNodeTypeUnknown)
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	for id, version := range r.versions() {
		if before[id] != version {
			t.Errorf("%s %s was changed", id.Kind, id.Name)
		}
		delete(before, id)
	}
	if len(before) > 0 {
		t.Errorf("gone are %v", before)
	}
	// A DeviceClass is kept only for what it was made for.
	made, err := r.deviceClass(r.tenant + "-h100")
	if err != nil {
		t.Fatal(err)
	}
	made.Spec.Selectors[0].CEL.Expression = "true"
	if err := server.Client.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	r.nudge()
	management.Eventually(t, "a DeviceClass that somebody has widened is gone", func() bool {
		_, err := r.deviceClass(made.Name)
		return apierrors.IsNotFound(err)
	})
}

// TestAClassThatIsChangedIsNotKeptForSomethingElse: the NodeType of the new class has no rendering that can be read, and the old DeviceClass gives whole GPUs.
func TestAClassThatIsChangedIsNotKeptForSomethingElse(t *testing.T) {
	addNodeType(t, "h100-dra")
	addNodeType(t, "h200-mig-dra")
	r := newRig(t)
	r.enforced(class("gpu", "h100-dra", v1alpha1.DeviceGPU, 2))
	loseRendering(t, "h200-mig-dra")
	changed := class("gpu", "h200-mig-dra", v1alpha1.DeviceMIG, 14)
	changed.Profile = "1g.18gb"
	r.change(func(e *v1alpha1.Entitlement) { e.Spec.Classes = []v1alpha1.EntitledClass{changed} })
	r.awaitClass("gpu", v1alpha1.ReasonNodeTypeUnknown)
	management.Eventually(t, "the DeviceClass of the class as it was is gone", func() bool {
		_, err := r.deviceClass(r.tenant + "-gpu")
		return apierrors.IsNotFound(err)
	})
	management.Eventually(t, "nothing may be asked for", func() bool { return r.try(exactly(r.tenant+"-gpu")) != nil })
}

// TestAManifestThatIsMadeFromAnothersLeavesItsObjects: kubectl get -o yaml, another name, another tenant, kubectl create.
func TestAManifestThatIsMadeFromAnothersLeavesItsObjects(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.enforced(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	before, theirs := r.versions(), r.read("legal")
	other := server.Namespace(t)
	copied := &v1alpha1.Entitlement{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: "research", Finalizers: theirs.Finalizers,
			Annotations: map[string]string{v1alpha1.AnnotationRegisteredAs: r.namespace + "/research/" + string(theirs.UID)},
		},
		Spec: *theirs.Spec.DeepCopy(),
	}
	copied.Spec.Tenant, copied.Spec.Namespaces.Names = other, []string{other}
	server.Create(t, copied)
	r.awaitCondition("research", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	unchanged := func(when string) {
		t.Helper()
		now := r.versions()
		for id, version := range before {
			if now[id] != version {
				t.Errorf("%s: %s %s of the first one was changed or is gone", when, id.Kind, id.Name)
			}
		}
	}
	unchanged("created")
	if err := server.Client.Delete(t.Context(), r.read("research")); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the copy is gone", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "research"}, &v1alpha1.Entitlement{}))
	})
	unchanged("deleted")
}

// TestAnErrorThatStaysIsNoEnforcement has a webhook in the shared cluster that nobody answers, so that a DeviceClass cannot be written.
func TestAnErrorThatStaysIsNoEnforcement(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.enforced()
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: r.tenant}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "nobody.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionv1.Fail),
		ClientConfig:   admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelTenant: r.tenant}},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll}, Rule: admissionv1.Rule{
			APIGroups: []string{"resource.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"deviceclasses"},
		}}},
	}}}
	server.Create(t, hook)
	remove := func() { _ = client.IgnoreNotFound(server.Client.Delete(context.Background(), hook)) }
	t.Cleanup(remove)
	management.Eventually(t, "nobody answers for a DeviceClass", func() bool {
		probe := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: r.tenant + "-probe", Labels: map[string]string{v1alpha1.LabelTenant: r.tenant}}}
		err := server.Client.Create(t.Context(), probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "nobody.example.com")
	})
	r.change(func(e *v1alpha1.Entitlement) {
		e.Spec.Classes = []v1alpha1.EntitledClass{class("h100", "h100-dra", v1alpha1.DeviceGPU, 2)}
	})
	message := r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonTenantUnreachable)
	if c := meta.FindStatusCondition(r.read("legal").Status.Conditions, v1alpha1.ConditionEnforced); c.Status != metav1.ConditionUnknown || !strings.HasPrefix(message, "NOT ENFORCED: write DeviceClass ") {
		t.Errorf("%s: %s", c.Status, message)
	}
	remove()
	r.nudge()
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
}

// TestAnEntitlementOfAnEarlierVersionIsRegistered: that version gave it the finalizer alone.
func TestAnEntitlementOfAnEarlierVersionIsRegistered(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	server.Create(t, &v1alpha1.Entitlement{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "legal", Finalizers: []string{v1alpha1.EntitlementFinalizer}},
		Spec:       v1alpha1.EntitlementSpec{TenantClusterRef: v1alpha1.LocalReference{Name: "shared"}, Tenant: r.tenant, Namespaces: v1alpha1.TenantNamespaces{Names: []string{r.tenant}}},
	})
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	if e := r.read("legal"); e.Annotations[v1alpha1.AnnotationRegisteredAs] != v1alpha1.RegisteredAs(e) {
		t.Errorf("%v", e.Annotations)
	}
}

// TestWhatRemainsOfADeletedEntitlementIsSaid: its TenantCluster was deleted before it.
func TestWhatRemainsOfADeletedEntitlementIsSaid(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.enforced(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	uid := r.read("legal").ObjectsUID()
	// Without a controller of TenantClusters it has no finalizer.
	if err := server.Client.Delete(t.Context(), &v1alpha1.TenantCluster{ObjectMeta: r.meta("shared")}); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), r.read("legal")); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "an event says what remains", func() bool {
		list := &eventsv1.EventList{}
		if err := server.Client.List(t.Context(), list, client.InNamespace(r.namespace)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == v1alpha1.ReasonObjectsRemain && strings.Contains(e.Note, "-l ingot.dev/entitlement="+string(uid))
		})
	})
	if _, err := r.deviceClass(r.tenant + "-h100"); err != nil {
		t.Errorf("the DeviceClass is nobody's any more, and was removed: %v", err)
	}
}

// TestAClusterThatIsGoneForEverKeepsNothing: both are deleted, and the kubeconfig leads nowhere.
func TestAClusterThatIsGoneForEverKeepsNothing(t *testing.T) {
	r := newRig(t)
	r.enforced()()
	cluster := &v1alpha1.TenantCluster{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "shared"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Finalizers = []string{"example.com/kept"}
	if err := server.Client.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{cluster, r.read("legal")} {
		if err := server.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakePassiveClock(cluster.DeletionTimestamp.Add(releaseTime))
	reconciler := &Reconciler{Client: server.Client, Tenants: tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard()}), Recorder: events.NewFakeRecorder(10), Clock: clock}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r.read("legal"))}
	if _, err := reconciler.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	r.read("legal") // it waits
	clock.SetTime(clock.Now().Add(time.Second))
	if _, err := reconciler.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Get(t.Context(), request.NamespacedName, &v1alpha1.Entitlement{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Entitlement is still there: %v", err)
	}
	cluster.Finalizers = nil
	if err := server.Client.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}
