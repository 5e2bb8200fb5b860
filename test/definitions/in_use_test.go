package definitions_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// garbageCollector is the account by which Kubernetes deletes what an owner leaves behind.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// deletion is a deletion that somebody tries. An empty refusal means that it is allowed, else it is a part of the message.
type deletion struct {
	name    string
	who     client.Client
	refusal string
}

func (d deletion) run(t *testing.T, o client.Object, options ...client.DeleteOption) {
	t.Helper()
	err := d.who.Delete(t.Context(), o.DeepCopyObject().(client.Object), append(options, client.DryRunAll)...)
	if d.refusal == "" && err != nil {
		t.Errorf("%s: %v", d.name, err)
	}
	if d.refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), d.refusal)) {
		t.Errorf("%s: got %v, want a refusal with %q", d.name, err, d.refusal)
	}
}

// dependencies are one object of each kind that Machines depend on.
func dependencies() (*v1alpha1.NodeType, *v1alpha1.NodeProvider, *v1alpha1.OSImage, *v1alpha1.NodeTypeRevision, *v1alpha1.NodeTypeRendering) {
	global, ref := metav1.ObjectMeta{Name: "kept"}, v1alpha1.LocalReference{Name: "kept"}
	kept := image()
	kept.ObjectMeta = global
	return &v1alpha1.NodeType{ObjectMeta: global, Spec: v1alpha1.NodeTypeSpec{ProviderRef: ref, OSImageRef: ref, HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
		&v1alpha1.NodeProvider{ObjectMeta: global, Spec: v1alpha1.NodeProviderSpec{HostNamespace: "kept", Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}}}},
		kept,
		&v1alpha1.NodeTypeRevision{ObjectMeta: global, Spec: v1alpha1.NodeTypeRevisionSpec{NodeTypeRef: ref, HashVersion: 1, Image: v1alpha1.RevisionImage{
			Name: "kept", Checksum: kept.Spec.Checksum, Format: v1alpha1.FormatRaw, UserData: v1alpha1.UserDataCloudInit,
		}}},
		&v1alpha1.NodeTypeRendering{ObjectMeta: global, Spec: v1alpha1.NodeTypeRenderingSpec{RevisionRef: ref, Encoding: v1alpha1.RenderingEncoding}}
}

func testInUse(t *testing.T, cluster *rest.Config, admin client.Client, scheme *runtime.Scheme) {
	collector, manager := as(t, cluster, scheme, garbageCollector), as(t, cluster, scheme, managerUser)
	remover := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "remover"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"ingot.dev", ""}, Resources: []string{"*"}, Verbs: []string{"delete", "deletecollection", "get", "patch"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "remover"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "remover"}, Subjects: []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: "User", Name: garbageCollector}, {APIGroup: rbacv1.GroupName, Kind: "User", Name: managerUser},
	}}
	nodeType, provider, osImage, revision, rendering := dependencies()
	served := &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: "kept-by-metal3"}, Spec: v1alpha1.NodeProviderSpec{HostNamespace: "kept-by-metal3", Metal3: &v1alpha1.Metal3Provider{}}}
	for _, o := range []client.Object{remover, binding, nodeType, provider, served, osImage, revision, rendering} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	used := merge(`{"status":{"usedBy":{"count":7,"byKind":[{"kind":"NodePool","count":1},{"kind":"Machine","count":6}]}}}`)
	for _, c := range []struct {
		kind   string
		object client.Object
		advice string
		list   client.Object
	}{
		{"NodeType", nodeType, "delete the NodePools and Machines that name it first", &v1alpha1.NodeType{}},
		{"NodeProvider", provider, "nobody else powers them off or erases them", &v1alpha1.NodeProvider{}},
		{"NodeProvider", served, "the BareMetalHosts stay with their baremetal-operator", &v1alpha1.NodeProvider{}},
		{"OSImage", osImage, "give the NodeTypes that name it another osImageRef", &v1alpha1.OSImage{}},
		{"NodeTypeRevision", revision, "wait until its Rollout is Done", &v1alpha1.NodeTypeRevision{}},
		{"NodeTypeRendering", rendering, "ingot rollout refresh", &v1alpha1.NodeTypeRendering{}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			deletion{"nothing uses it", admin, ""}.run(t, c.object)
			if err := admin.Status().Patch(t.Context(), c.object, used); err != nil {
				t.Fatal(err)
			}
			awaitRefusal(t, admin, c.object)
			deletion{"in use", admin, c.object.GetName() + " is in use by 1 NodePool, 6 Machines, and"}.run(t, c.object)
			deletion{"who lists them", admin, "kubectl ingot users " + strings.ToLower(c.kind) + " " + c.object.GetName() + " lists them"}.run(t, c.object)
			deletion{"the advice", admin, c.advice}.run(t, c.object)
			deletion{"by force", admin, "is in use by"}.run(t, c.object, client.GracePeriodSeconds(0))
			for _, cascade := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground} {
				deletion{"cascade " + string(cascade), admin, "is in use by"}.run(t, c.object, client.PropagationPolicy(cascade))
			}
			deletion{"by the garbage collector", collector, ""}.run(t, c.object)
			deletion{"by the manager", manager, ""}.run(t, c.object)
			if err := admin.DeleteAllOf(t.Context(), c.list, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is in use by") {
				t.Errorf("with its fellows, as kubectl delete --all does: %v", err)
			}
		})
	}
}

// awaitRefusal returns when the API server enforces the policy on the deletion of the object.
func awaitRefusal(t *testing.T, who client.Client, o client.Object) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !apierrors.IsForbidden(who.Delete(t.Context(), o.DeepCopyObject().(client.Object), client.DryRunAll)); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the policy is not enforced a minute after it was applied")
		}
	}
}

func testHostNamespace(t *testing.T, admin client.Client) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hall-1", Annotations: map[string]string{v1alpha1.AnnotationNodeProvider: "hall-1"}}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, admin, namespace)
	deletion{"hosts live in it", admin, "has the hosts of NodeProvider hall-1"}.run(t, namespace)
	deletion{"what to do", admin, "Delete the Machines, the BareMetalHosts and then the NodeProvider"}.run(t, namespace)
	deletion{"the NodeProvider is gone", admin, "kubectl annotate namespace hall-1 ingot.dev/node-provider-"}.run(t, namespace)
	if err := admin.Patch(t.Context(), namespace, merge(`{"metadata":{"annotations":null}}`)); err != nil {
		t.Fatal(err)
	}
	deletion{"it was given back", admin, ""}.run(t, namespace)
}

func testHostRecord(t *testing.T, cluster *rest.Config, admin client.Client, scheme *runtime.Scheme) {
	collector, manager := as(t, cluster, scheme, garbageCollector), as(t, cluster, scheme, managerUser)
	record := &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rack-9"}}
	if err := admin.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	deletion{"a free host's", admin, ""}.run(t, record)
	attempt{"a free host's spec", admin, `{"spec":{"erase":"None"}}`, ""}.run(t, record)
	claim := `{"spec":{"machine":{"namespace":"team-a","name":"m1","uid":"u1"},"erase":"Full"}}`
	if err := manager.Patch(t.Context(), record, merge(claim)); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, admin, record)
	deletion{"a claimed host's", admin, "Machine team-a/m1 has host rack-9"}.run(t, record)
	deletion{"what to do", admin, "kubectl delete machine -n team-a m1"}.run(t, record)
	deletion{"with its host, by the garbage collector", collector, ""}.run(t, record)
	for _, a := range []attempt{
		{"less is erased", admin, `{"spec":{"erase":"None"}}`, "change erase.onRelease of the NodeProvider"},
		{"another image", admin, `{"spec":{"image":{"url":"http://x","checksum":"sha256:0","format":"raw"}}}`, "only the manager changes"},
		{"another Machine", admin, `{"spec":{"machine":{"namespace":"team-b","name":"m1","uid":"u1"}}}`, "only the manager changes"},
		{"a label", admin, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		{"the manager empties it", manager, `{"spec":null}`, ""},
	} {
		a.run(t, record)
	}
	// The message of OlderShape asks for its deletion.
	if err := admin.Status().Patch(t.Context(), record, merge(`{"status":{"attempt":{"number":1,"state":"Succeeded"}}}`)); err != nil {
		t.Fatal(err)
	}
	deletion{"one of an earlier version", admin, ""}.run(t, record)
}
