package tenant

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// run starts the controller and makes a TenantCluster named research, with its Secret unless kubeconfig is nil.
func run(t *testing.T, join v1alpha1.JoinSpec, kubeconfig []byte) (*tenantaccess.Registry, types.NamespacedName) {
	t.Helper()
	return runWith(t, tenantaccess.Options{PrivateNetworks: loopback.Networks()}, join, kubeconfig)
}

// runWith is run with a registry of other limits.
func runWith(t *testing.T, options tenantaccess.Options, join v1alpha1.JoinSpec, kubeconfig []byte) (*tenantaccess.Registry, types.NamespacedName) {
	t.Helper()
	options.Scheme = server.Scheme
	registry := tenantaccess.New(options)
	server.Run(t, func(mgr ctrl.Manager) error {
		if err := mgr.Add(registry); err != nil {
			return err
		}
		r := &Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Tenants: registry, Recorder: mgr.GetEventRecorder("tenant"), Clock: clock.RealClock{}}
		return r.SetupWithManager(mgr)
	})
	key := types.NamespacedName{Namespace: server.Namespace(t), Name: "research"}
	if kubeconfig != nil {
		server.Create(t, secret(key.Namespace, kubeconfig))
	}
	server.Create(t, &v1alpha1.TenantCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       v1alpha1.TenantClusterSpec{KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: join},
	})
	return registry, key
}

func secret(namespace string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "admin"}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
}

// nudge makes the controller look at once: in real life it looks again after some seconds.
func nudge(t *testing.T, key types.NamespacedName, endpoint string) {
	t.Helper()
	var tenant v1alpha1.TenantCluster
	if err := server.Client.Get(t.Context(), key, &tenant); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(tenant.DeepCopy())
	tenant.Spec.Join.TLSBootstrap = &v1alpha1.EndpointJoin{Endpoint: endpoint}
	if err := server.Client.Patch(t.Context(), &tenant, patch); err != nil {
		t.Fatal(err)
	}
}

func awaitReady(t *testing.T, key types.NamespacedName, reason, says string) v1alpha1.TenantCluster {
	t.Helper()
	var tenant v1alpha1.TenantCluster
	management.Eventually(t, "Ready has the reason "+reason, func() bool {
		if err := server.Client.Get(t.Context(), key, &tenant); err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == reason && strings.Contains(ready.Message, says)
	})
	return tenant
}

func TestATenantBecomesReadyWhenItsKubeconfigIsThereAndSafe(t *testing.T) {
	registry, key := run(t, v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, nil)
	awaitReady(t, key, v1alpha1.ReasonKubeconfigMissing, "Secret "+key.Namespace+"/admin")

	unsafe := strings.Replace(string(server.Cluster.Kubeconfig()), "user:\n    client-certificate-data:", "user:\n    tokenFile: /etc/passwd\n    client-certificate-data:", 1)
	stored := secret(key.Namespace, []byte(unsafe))
	server.Create(t, stored)
	nudge(t, key, "https://a.example.com")
	awaitReady(t, key, v1alpha1.ReasonKubeconfigUnsafe, "tokenFile")

	stored.Data["kubeconfig"] = server.Cluster.Kubeconfig()
	if err := server.Client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	server.Create(t, &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "training-1"},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: key.Name}},
	})
	nudge(t, key, "https://b.example.com")
	tenant := awaitReady(t, key, v1alpha1.ReasonReady, "")
	if tenant.Status.Version != "v1.37.0" {
		t.Errorf("version %q", tenant.Status.Version)
	}
	management.Eventually(t, "the Machine is counted", func() bool {
		return server.Client.Get(t.Context(), key, &tenant) == nil && tenant.Status.Machines == 1
	})
	if _, err := registry.For(key); err != nil {
		t.Error(err)
	}
}

func TestATenantThatIsTooLargeSaysWhatIsTooLargeAndWhatToDo(t *testing.T) {
	labels := map[string]string{}
	for i := range 100 {
		labels[fmt.Sprintf("feature-%d", i)] = strings.Repeat("x", 60)
	}
	for i := range 60 {
		server.Create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("of-a-large-cluster-%d", i), Labels: labels}})
	}
	// There is room for the TenantClusters of other tests, which may be there still: the budget of one is what is exceeded.
	_, key := runWith(t, tenantaccess.Options{PrivateNetworks: loopback.Networks(), Memory: 512 << 10, TotalMemory: 64 << 20}, v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, server.Cluster.Kubeconfig())
	tenant := awaitReady(t, key, v1alpha1.ReasonTenantTooLarge, "tried again after 1m0s")
	ready := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
	for _, says := range []string{"Nodes", "of memory", "its budget is 0.5 MiB (tenants.memory", "reduce what the cluster has of it, or raise tenants.memory"} {
		if ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, says) {
			t.Errorf("%s does not say %q: %s", ready.Status, says, ready.Message)
		}
	}
}

func machine(key types.NamespacedName, name, pool string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelNodePool: pool}},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: key.Name}},
	}
}

func TestADeletedTenantStaysUsableForTheObjectsOfItsEntitlements(t *testing.T) {
	registry, key := run(t, v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, server.Cluster.Kubeconfig())
	tenant := awaitReady(t, key, v1alpha1.ReasonReady, "")
	entitlement := func(name, cluster string) *v1alpha1.Entitlement {
		return &v1alpha1.Entitlement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Spec: v1alpha1.EntitlementSpec{
			TenantClusterRef: v1alpha1.LocalReference{Name: cluster}, Tenant: name, Namespaces: v1alpha1.TenantNamespaces{Names: []string{name}},
		}}
	}
	legal := entitlement("legal", key.Name)
	server.Create(t, legal, entitlement("research", "another"))
	if err := server.Client.Delete(t.Context(), &tenant); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, key, v1alpha1.ReasonEntitlementsRemain, "the Entitlements that have objects in it: legal; delete them")
	if _, err := registry.For(key); err != nil {
		t.Error("the tenant cannot be used while an Entitlement has objects in it: ", err)
	}
	if err := server.Client.Delete(t.Context(), legal); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "it goes with the last Entitlement", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), key, &tenant))
	})
}

func TestADeletedTenantStaysUsableWhileMachinesReferToIt(t *testing.T) {
	registry, key := run(t, v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, server.Cluster.Kubeconfig())
	tenant := awaitReady(t, key, v1alpha1.ReasonReady, "")
	if !slices.Contains(tenant.Finalizers, v1alpha1.TenantFinalizer) {
		t.Errorf("finalizers %v", tenant.Finalizers)
	}
	first, second := machine(key, "training-1", "training"), machine(key, "training-2", "training")
	server.Create(t, first, second, machine(types.NamespacedName{Namespace: key.Namespace, Name: "other"}, "other-1", ""))
	management.Eventually(t, "the Machines are counted", func() bool {
		return server.Client.Get(t.Context(), key, &tenant) == nil && tenant.Status.Machines == 2
	})
	if err := server.Client.Delete(t.Context(), &tenant); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, key, v1alpha1.ReasonMachinesRemain, "refer to it: training-1, training-2; delete NodePool training")

	// As when a directory of manifests is deleted: the Secret goes at once, and the Machines must still be drained.
	if err := server.Client.Delete(t.Context(), secret(key.Namespace, nil)); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, key, v1alpha1.ReasonMachinesRemain, "refer to it: training-2; ")
	access, err := registry.For(key)
	if err != nil {
		t.Fatal("the tenant cannot be used while a Machine refers to it: ", err)
	}
	if err := access.Client.List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Error(err)
	}

	if err := server.Client.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "it goes with the last Machine", func() bool {
		_, err := registry.For(key)
		return err != nil && apierrors.IsNotFound(server.Client.Get(t.Context(), key, &tenant))
	})
}

func TestManyMachinesThatHoldATenantAreCounted(t *testing.T) {
	var machines []v1alpha1.Machine
	for i := range 10 {
		machines = append(machines, *machine(types.NamespacedName{}, fmt.Sprintf("m-%d", i), ""))
	}
	said := remaining(machines, &tenantaccess.Error{Reason: v1alpha1.ReasonTenantUnreachable, Err: errors.New("no answer")})
	for _, want := range []string{"m-0, m-1", "m-7 and 2 more; delete them", "cannot be drained: TenantUnreachable: no answer"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}

func TestAScriptThatNodesCannotRunIsTold(t *testing.T) {
	_, key := run(t, v1alpha1.JoinSpec{Script: &v1alpha1.ScriptJoin{SecretRef: v1alpha1.LocalReference{Name: "s"}}}, server.Cluster.Kubeconfig())
	awaitReady(t, key, v1alpha1.ReasonJoinScriptMissing, "spec.join.script: the key script of Secret "+key.Namespace+"/s is expected and not there: whoever owns")
	stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "s"}, StringData: map[string]string{"script": "hush\n"}}
	server.Create(t, stored)
	poke(t, key, "1")
	tenant := awaitReady(t, key, v1alpha1.ReasonJoinScriptInvalid, "begin it with #!/bin/sh")
	if ready := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionFalse || strings.Contains(ready.Message, "hush") {
		t.Errorf("the condition is %+v", ready)
	}
	stored.Data = map[string][]byte{"script": []byte("#!/bin/sh\nhush\n")}
	if err := server.Client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	poke(t, key, "2")
	awaitReady(t, key, v1alpha1.ReasonReady, "")
}

// poke makes the controller look at once: in real life it looks again after some seconds.
func poke(t *testing.T, key types.NamespacedName, value string) {
	t.Helper()
	var tenant v1alpha1.TenantCluster
	if err := server.Client.Get(t.Context(), key, &tenant); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(tenant.DeepCopy())
	tenant.Spec.ClusterDomain = "poke-" + value + ".example"
	if err := server.Client.Patch(t.Context(), &tenant, patch); err != nil {
		t.Fatal(err)
	}
}

func TestAnEndpointThatKubeadmCannotUseIsTold(t *testing.T) {
	_, kubeadm := run(t, v1alpha1.JoinSpec{Kubeadm: &v1alpha1.EndpointJoin{}}, server.Cluster.Kubeconfig())
	awaitReady(t, kubeadm, v1alpha1.ReasonReady, "")
	_, path := run(t, v1alpha1.JoinSpec{VCluster: &v1alpha1.EndpointJoin{Endpoint: "https://platform.example.com/kubernetes/a"}}, server.Cluster.Kubeconfig())
	awaitReady(t, path, v1alpha1.ReasonJoinUnsupported, "spec.join.vcluster.endpoint: kubeadm joins at https://HOST:PORT")
}
