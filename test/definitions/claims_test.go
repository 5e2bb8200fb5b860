package definitions_test

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// managerUser is the service account of the manager.
const managerUser = "system:serviceaccount:ingot-system:ingot-manager"

// claimRig has a client for each kind of person: admin may do everything, operator changes Machines and hosts, and keeper has the verb
// abandon besides; collector is the garbage collector.
type claimRig struct {
	admin, manager, operator, keeper, collector client.Client
}

func newClaimRig(t *testing.T, cluster *rest.Config, admin client.Client, scheme *runtime.Scheme) claimRig {
	t.Helper()
	edit := []rbacv1.PolicyRule{
		{APIGroups: []string{"ingot.dev"}, Resources: []string{"machines"}, Verbs: []string{"get", "patch", "delete"}},
		{APIGroups: []string{"metal3.io"}, Resources: []string{"baremetalhosts"}, Verbs: []string{"get", "patch", "delete", "deletecollection"}},
	}
	abandon := rbacv1.PolicyRule{APIGroups: []string{"ingot.dev"}, Resources: []string{"machines"}, Verbs: []string{"abandon"}}
	for user, rules := range map[string][]rbacv1.PolicyRule{managerUser: edit, garbageCollector: edit, "operator": edit, "keeper": append(edit[:2:2], abandon)} {
		name := "claims-" + strings.ReplaceAll(user, ":", "-")
		for _, o := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
			},
		} {
			if err := admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	return claimRig{
		admin: admin, manager: as(t, cluster, scheme, managerUser), operator: as(t, cluster, scheme, "operator"), keeper: as(t, cluster, scheme, "keeper"),
		collector: as(t, cluster, scheme, garbageCollector),
	}
}

// heldMachine creates a Machine with the finalizer. A host that is not "" is the one that its status names.
func (r claimRig) heldMachine(t *testing.T, namespace, host string) *v1alpha1.Machine {
	t.Helper()
	m := machine("held-", "h100")
	m.Namespace, m.Finalizers = namespace, []string{v1alpha1.MachineFinalizer}
	if err := r.admin.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if host != "" {
		status := `{"status":{"hostRef":{"namespace":"default","name":"` + host + `"}}}`
		if err := r.admin.Status().Patch(t.Context(), m, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// claimedHost creates a host that the Machine has.
func (r claimRig) claimedHost(t *testing.T, name string, m *v1alpha1.Machine) *metal3.BareMetalHost {
	t.Helper()
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	host.Spec.BootMACAddress, host.Spec.BMC.Address = "52:54:00:00:00:01", "redfish://10.0.0.7/redfish/v1/Systems/1"
	host.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: m.Namespace, Name: m.Name, UID: m.UID}
	if err := r.admin.Create(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	return host
}

func merge(text string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(text))
}

// awaitClaimPolicy returns when the API server enforces the policies on claims.
func (r claimRig) awaitClaimPolicy(t *testing.T, m *v1alpha1.Machine, host *metal3.BareMetalHost) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		first := r.admin.Patch(t.Context(), m.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`), client.DryRunAll)
		second := r.admin.Patch(t.Context(), host.DeepCopy(), merge(`{"spec":{"consumerRef":null}}`), client.DryRunAll)
		third := r.operator.Patch(t.Context(), host.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`), client.DryRunAll)
		if apierrors.IsForbidden(first) && apierrors.IsForbidden(second) && apierrors.IsForbidden(third) {
			return
		}
	}
	t.Fatal("the policies on claims are not enforced a minute after they were applied")
}

// attempt is a change that somebody tries. An empty refusal means that it is allowed, else it is a part of the message.
type attempt struct {
	name    string
	who     client.Client
	change  string
	refusal string
}

func (a attempt) run(t *testing.T, o client.Object) {
	t.Helper()
	err := a.who.Patch(t.Context(), o.DeepCopyObject().(client.Object), merge(a.change), client.DryRunAll)
	if a.refusal == "" && err != nil {
		t.Errorf("%s: %v", a.name, err)
	}
	if a.refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.refusal)) {
		t.Errorf("%s: got %v, want a refusal with %q", a.name, err, a.refusal)
	}
}

func testAbandon(t *testing.T, r claimRig) {
	m, unplaced := r.heldMachine(t, "default", "rack-1"), r.heldMachine(t, "default", "")
	const free, named = `{"metadata":{"finalizers":null}}`, `{"metadata":{"finalizers":null,"annotations":{"ingot.dev/abandon":"rack-1"}}}`
	for _, a := range []attempt{
		{"the manager removes the finalizer", r.manager, free, ""},
		{"an administrator removes the finalizer", r.admin, free, "until its host rack-1 is powered off"},
		{"the annotation names another host", r.admin, strings.ReplaceAll(named, "rack-1", "rack-2"), "ingot.dev/abandon=rack-1"},
		{"the order in which nothing is released", r.admin, free, "remove the finalizer, and delete the Machine last"},
		{"the annotation names the host, without the verb", r.operator, named, "operator may not abandon Machine default/" + m.Name},
		{"the annotation names the host, with the verb", r.keeper, named, ""},
		{"the annotation alone", r.operator, `{"metadata":{"annotations":{"ingot.dev/abandon":"rack-1"}}}`, ""},
		{"another finalizer beside it", r.operator, `{"metadata":{"finalizers":["ingot.dev/machine","example.com/mine"]}}`, ""},
		{"an annotation", r.operator, `{"metadata":{"annotations":{"a":"b"}}}`, ""},
	} {
		a.run(t, m)
	}
	attempt{"a Machine without a host", r.keeper, strings.ReplaceAll(named, "rack-1", "none"), ""}.run(t, unplaced)
	attempt{"a Machine without a host, and no annotation", r.keeper, free, "ingot.dev/abandon=none"}.run(t, unplaced)
	for _, o := range []*v1alpha1.Machine{m, unplaced} {
		// What kubectl delete and the garbage collector send, and what the manager does when the host is back.
		if err := r.operator.Delete(t.Context(), o); err != nil {
			t.Errorf("delete a Machine: %v", err)
		}
		if err := r.manager.Patch(t.Context(), o, merge(free)); err != nil {
			t.Errorf("the manager finishes the deletion: %v", err)
		}
		if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("after the deletion: %v", err)
		}
	}
}

// testAbandonedHost: a claimed host that is detached and deleted goes without a power-off and an erase.
func testAbandonedHost(t *testing.T, r claimRig) {
	const (
		detach, attach = `{"metadata":{"annotations":{"baremetalhost.metal3.io/detached":""}}}`, `{"metadata":{"annotations":{"baremetalhost.metal3.io/detached":null}}}`
		free, verb     = `{"metadata":{"finalizers":null}}`, "ask who has the verb abandon on the Machine; operator has not"
	)
	m := r.heldMachine(t, "default", "rack-3")
	host := r.claimedHost(t, "rack-3", m)
	change := func(c client.Client, text string) {
		t.Helper()
		if err := c.Patch(t.Context(), host, merge(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	remove := func(name string, c client.Client, refusal string) {
		t.Helper()
		for kind, err := range map[string]error{
			"alone":            c.Delete(t.Context(), host.DeepCopy(), client.DryRunAll),
			"with its fellows": c.DeleteAllOf(t.Context(), &metal3.BareMetalHost{}, client.InNamespace("default"), client.MatchingLabels{"test": "abandon"}, client.DryRunAll),
		} {
			if refusal == "" && err != nil || refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal)) {
				t.Errorf("%s is deleted %s: got %v, want a refusal with %q", name, kind, err, refusal)
			}
		}
	}
	change(r.admin, `{"metadata":{"finalizers":["baremetalhost.metal3.io"],"labels":{"test":"abandon"}}}`)
	inUse := "host rack-3 is in use by Machine default/" + m.Name + ", and a deletion cannot be undone: delete the Machine first (kubectl delete machine -n default " + m.Name + ")"
	remove("a host in use", r.operator, inUse)
	remove("a host in use, by who may abandon its Machine", r.keeper, inUse)
	remove("a host in use, by an administrator", r.admin, inUse)
	remove("a host in use, by the manager", r.manager, "")
	for _, option := range []client.DeleteOption{client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationOrphan), client.PropagationPolicy(metav1.DeletePropagationForeground)} {
		if err := r.admin.Delete(t.Context(), host.DeepCopy(), option, client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("a host in use is deleted with %v: %v", option, err)
		}
	}
	attempt{"its finalizer is removed", r.operator, free, verb}.run(t, host)
	remove("a host in use, by the garbage collector", r.collector, "")
	change(r.operator, detach)
	remove("a detached host in use, by the garbage collector", r.collector, "system:serviceaccount:kube-system:generic-garbage-collector has not")
	remove("a detached host in use", r.operator, verb)
	remove("a detached host in use, by who has the verb", r.keeper, "")
	remove("a detached host in use, by the manager", r.manager, "")
	change(r.operator, attach)
	if err := r.collector.Delete(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	for _, a := range []attempt{
		{"a deleted host is detached", r.operator, detach, verb},
		{"a deleted host is detached with the verb", r.keeper, detach, ""},
		{"a deleted host has a label", r.operator, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		{"a deleted host's finalizer is removed", r.operator, free, verb},
		{"a deleted host's finalizer is removed with the verb", r.keeper, free, ""},
	} {
		a.run(t, host)
	}
	if err := r.admin.Status().Patch(t.Context(), host, merge(`{"status":{"operationalStatus":"OK","operationHistory":{},"errorCount":0,"errorMessage":"","hardwareProfile":"","poweredOn":false,"provisioning":{"ID":"","state":"deleting","image":{"url":""}}}}`)); err != nil {
		t.Fatal(err)
	}
	attempt{"its controller, after the state deleting", r.operator, free, ""}.run(t, host)
	change(r.manager, `{"spec":{"consumerRef":null}}`)
	attempt{"a free host is detached", r.operator, detach, ""}.run(t, host)
	change(r.operator, free)
}

func testClaimedHost(t *testing.T, r claimRig) {
	m := r.heldMachine(t, "default", "rack-1")
	host := r.claimedHost(t, "rack-1", m)
	restored := host.DeepCopy()
	restored.ObjectMeta = metav1.ObjectMeta{Namespace: host.Namespace, Name: "restored", Annotations: map[string]string{"ingot.dev/installation": "{}", "ingot.dev/registered-as": "default/restored/other"}}
	if err := r.admin.Create(t.Context(), restored, client.DryRunAll); err != nil {
		t.Errorf("a claimed host is created from a backup: %v", err)
	}
	const (
		free, other  = `{"spec":{"consumerRef":null}}`, `{"spec":{"consumerRef":{"name":"other"}}}`
		mac, address = `{"spec":{"bootMACAddress":"52:54:00:00:00:02"}}`, `{"spec":{"bmc":{"address":"redfish://10.0.0.8"}}}`
		release      = `{"metadata":{"annotations":{"ingot.dev/release":"some-uid"}}}`
		detach       = `{"metadata":{"annotations":{"baremetalhost.metal3.io/detached":""}}}`
		installed    = `{"metadata":{"annotations":{"ingot.dev/installation":"{}"}}}`
		node         = `{"metadata":{"annotations":{"ingot.dev/ironic-node":"node-9"}}}`
	)
	way := "kubectl delete machine -n default " + m.Name
	for _, a := range []attempt{
		{"the manager frees the host", r.manager, free, ""},
		{"an administrator frees the host", r.admin, free, way},
		{"somebody gives it to another Machine", r.keeper, other, way},
		{"somebody changes the boot MAC", r.keeper, mac, "spec.bootMACAddress"},
		{"an administrator changes the BMC address", r.admin, address, "spec.bmc.address"},
		{"somebody names another node of Ironic", r.keeper, node, "nobody changes its annotation ingot.dev/ironic-node meanwhile"},
		{"the BMC address is removed", r.admin, `{"spec":{"bmc":null}}`, "spec.bmc.address"},
		{"it is detached and changed in one request", r.admin, detach[:len(detach)-1] + `,"spec":{"bmc":{"address":"redfish://10.0.0.8"}}}`, "spec.bmc.address"},
		{"somebody releases it without the verb", r.operator, release, "operator may not release the host of Machine default/" + m.Name},
		{"somebody releases it with the verb", r.keeper, release, ""},
		{"somebody changes what is installed on it", r.operator, installed, "leave them as they are"},
		{"somebody changes which objects it was", r.operator, `{"metadata":{"annotations":{"ingot.dev/formerly":"default/rack-1/other"}}}`, "leave them as they are"},
		{"somebody changes which object it is", r.operator, `{"metadata":{"annotations":{"ingot.dev/registered-as":"default/rack-1/other"}}}`, "leave them as they are"},
		{"the manager says what is installed", r.manager, installed, ""},
		{"who has the verb says what is installed", r.keeper, installed, ""},
		{"the BMC has other credentials", r.operator, `{"spec":{"bmc":{"credentialsName":"new"}}}`, ""},
		{"a label", r.operator, `{"metadata":{"labels":{"rack":"1"}}}`, ""},
	} {
		a.run(t, host)
	}
	if err := r.operator.Patch(t.Context(), host, merge(detach)); err != nil {
		t.Fatal(err)
	}
	for _, a := range []attempt{
		{"a detached host, without the verb", r.operator, address, "only the manager changes spec.bmc.address"},
		{"a detached host, with the verb", r.keeper, address, ""},
		{"a detached host's boot MAC, with the verb", r.keeper, mac, ""},
		{"a detached host's node, with the verb", r.keeper, node, ""},
		{"a detached host stays its Machine's", r.keeper, free, way},
	} {
		a.run(t, host)
	}
	if err := r.manager.Patch(t.Context(), host, merge(free)); err != nil {
		t.Fatal(err)
	}
	attempt{"a free host", r.operator, address, ""}.run(t, host)
	attempt{"what is installed on a free host", r.operator, installed, ""}.run(t, host)
	attempt{"a host of another system", r.operator, `{"spec":{"consumerRef":{"kind":"Metal3Machine","name":"x"}}}`, ""}.run(t, host)
}

// testClaims expects that the policies are applied.
func testClaims(t *testing.T, cluster *rest.Config, admin client.Client, scheme *runtime.Scheme) {
	r := newClaimRig(t, cluster, admin, scheme)
	probe := r.heldMachine(t, "default", "probe")
	host := r.claimedHost(t, "probe", probe)
	if err := admin.Patch(t.Context(), host, merge(`{"metadata":{"finalizers":["baremetalhost.metal3.io"]}}`)); err != nil {
		t.Fatal(err)
	}
	r.awaitClaimPolicy(t, probe, host)
	t.Run("who may remove a Machine's finalizer", func(t *testing.T) { testAbandon(t, r) })
	t.Run("who may change a claimed host", func(t *testing.T) { testClaimedHost(t, r) })
	t.Run("who may give up a claimed host", func(t *testing.T) { testAbandonedHost(t, r) })
	t.Run("who may power off a claimed host", func(t *testing.T) { testHostInUse(t, r) })
}
