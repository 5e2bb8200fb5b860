package entitlement

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// objects returns the names of the objects in the shared cluster that are the Entitlement's, by kind.
func (r *rig) objects(name string) []string {
	r.t.Helper()
	uid := string(r.read(name).UID)
	var out []string
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := server.Client.List(r.t.Context(), list, client.MatchingLabels{v1alpha1.LabelEntitlement: uid}); err != nil {
			r.t.Fatal(err)
		}
		for i := range list.Items {
			out = append(out, kind.Kind+" "+list.Items[i].GetName())
		}
	}
	return out
}

func (r *rig) deviceClass(name string) (*resourcev1.DeviceClass, error) {
	var c resourcev1.DeviceClass
	err := server.Client.Get(r.t.Context(), client.ObjectKey{Name: name}, &c)
	return &c, err
}

func TestTheObjectsAreKeptAsTheyShouldBeAndRemovedAtTheEnd(t *testing.T) {
	addNodeType(t, "h100-dra")
	addNodeType(t, "a100-mig-part")
	r := newRig(t)
	r.entitle(classes()...)
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	want := []string{
		"DeviceClass " + r.tenant + "-h100", "ResourceQuota ingot-" + r.tenant,
		"ValidatingAdmissionPolicyBinding ingot-claims-" + r.tenant, "ValidatingAdmissionPolicyBinding ingot-pods-" + r.tenant,
		"ValidatingAdmissionPolicy ingot-claims-" + r.tenant, "ValidatingAdmissionPolicy ingot-pods-" + r.tenant,
	}
	if got := r.objects("legal"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	made, err := r.deviceClass(r.tenant + "-h100")
	if err != nil || made.Labels[v1alpha1.LabelTenant] != r.tenant || made.Spec.ExtendedResourceName != nil {
		t.Errorf("%v, %v", made, err)
	}
	version := made.ResourceVersion
	r.nudge()
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	if again, err := r.deviceClass(made.Name); err != nil || again.ResourceVersion != version {
		t.Errorf("an object that is as it should be is written again: %v", err)
	}

	widened := made.DeepCopy()
	widened.Spec.Selectors[0].CEL.Expression = "true"
	if err := server.Client.Update(t.Context(), widened); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: r.tenant, Name: "ingot-" + r.tenant}}
	if err := server.Client.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	r.nudge()
	management.Eventually(t, "what somebody changed and deleted is as it should be", func() bool {
		c, err := r.deviceClass(made.Name)
		return err == nil && c.Spec.Selectors[0].CEL.Expression == made.Spec.Selectors[0].CEL.Expression &&
			server.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota) == nil
	})
	h100 := corev1.ResourceName(r.tenant + "-h100.deviceclass.resource.k8s.io/devices")
	if got := quota.Spec.Hard[h100]; got.Cmp(resource.MustParse("2")) != 0 || len(quota.Spec.Hard) != 3 {
		t.Errorf("%v", quota.Spec.Hard)
	}

	r.change(func(e *v1alpha1.Entitlement) { e.Spec.Classes = e.Spec.Classes[1:] })
	management.Eventually(t, "the DeviceClass of a class that was taken away is gone", func() bool {
		_, err := r.deviceClass(made.Name)
		return apierrors.IsNotFound(err)
	})
	uid := r.read("legal").UID
	if err := server.Client.Delete(t.Context(), r.read("legal")); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Entitlement is gone", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "legal"}, &v1alpha1.Entitlement{}))
	})
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := server.Client.List(t.Context(), list, client.MatchingLabels{v1alpha1.LabelEntitlement: string(uid)}); err != nil || len(list.Items) > 0 {
			t.Errorf("%d objects of kind %s remain: %v", len(list.Items), kind.Kind, err)
		}
	}
}

func TestAnObjectOfSomebodyElseIsNeverTouched(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	theirs := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: r.tenant + "-h100", Labels: map[string]string{"owner": "somebody"}}}
	if err := server.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), theirs) })
	r.entitle(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	r.start(server.Cluster.Kubeconfig())
	message := r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonNameTaken)
	if !strings.HasPrefix(message, "NOT ENFORCED: the shared cluster has a DeviceClass "+theirs.Name+" that is not this Entitlement's, and it is left alone") {
		t.Error(message)
	}
	if err := server.Client.Delete(t.Context(), r.read("legal")); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Entitlement is gone", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "legal"}, &v1alpha1.Entitlement{}))
	})
	if got, err := r.deviceClass(theirs.Name); err != nil || got.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the DeviceClass of somebody else was changed: %v", err)
	}
}

func TestAnEntitlementThatContradictsAnOlderOneWaitsForIt(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.entitle(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	after := r.read("legal").CreationTimestamp
	management.Eventually(t, "another second begins", func() bool { return metav1.Now().Unix() > after.Unix() })
	server.Create(t, &v1alpha1.Entitlement{ObjectMeta: r.meta("second"), Spec: v1alpha1.EntitlementSpec{
		TenantClusterRef: v1alpha1.LocalReference{Name: "shared"}, Tenant: "other-" + r.tenant, Namespaces: v1alpha1.TenantNamespaces{Names: []string{r.tenant}},
	}})
	message := r.awaitCondition("second", v1alpha1.ConditionEnforced, v1alpha1.ReasonEntitlementConflict)
	if !strings.Contains(message, "Entitlement "+r.namespace+"/legal, which is older, has namespace "+r.tenant+" too") || len(r.objects("second")) > 0 {
		t.Errorf("%s; it has %v", message, r.objects("second"))
	}
	if err := server.Client.Delete(t.Context(), r.read("legal")); err != nil {
		t.Fatal(err)
	}
	r.awaitCondition("second", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
}

func TestWhatCannotBeGivenOrWrittenSaysWhy(t *testing.T) {
	addNodeType(t, "a100-mig-part")
	r := newRig(t)
	wrong := class("mig", "a100-mig-part", v1alpha1.DeviceMIG, 1)
	wrong.Profile = "1g.10gb"
	r.entitle(wrong, class("b300", "b300", v1alpha1.DeviceGPU, 1))
	kubeconfig, subject := server.LimitedKubeconfig(t)
	stop := r.start(kubeconfig)
	message := r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEntitlementRightsMissing)
	if !strings.HasPrefix(message, "NOT ENFORCED: ") || !strings.Contains(message, "ingot tenant add --entitlements --tenant-side") {
		t.Error(message)
	}
	stop()
	rules := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "entitlements"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"deviceclasses"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"list", "watch", "create"}},
		{
			APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
			Verbs: []string{"get", "list", "create", "patch", "delete"},
		},
	}}
	server.Create(t, rules, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "entitlements"}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "entitlements"},
	})
	r.start(kubeconfig)
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	mig := r.awaitClass("mig", v1alpha1.ReasonNotPromised)
	if c := meta.FindStatusCondition(mig.Conditions, v1alpha1.ConditionAvailable); !strings.Contains(c.Message, "kind Resource with resource nvidia.com/mig-1g.5gb") || mig.DeviceClass != "" {
		t.Errorf("%+v", mig)
	}
	r.awaitClass("b300", v1alpha1.ReasonNodeTypeUnknown)
	r.checkIsolation()
	r.awaitCondition("legal", v1alpha1.ConditionReady, v1alpha1.ReasonNotPromised)
}

// TestNoClaimThatNamesAClassOutsidePasses sends claims made by chance: what names only the tenant's class must pass, and all else must not.
func TestNoClaimThatNamesAClassOutsidePasses(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.entitle(class("h100", "h100-dra", v1alpha1.DeviceGPU, 100000))
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	mine := r.tenant + "-h100"
	management.Eventually(t, "the policy is at work", func() bool { return r.try(exactly("gpu.nvidia.com")) != nil })
	names := []string{mine, mine, mine, mine, mine, mine, mine + "x", "x" + mine, r.tenant, "h100", "gpu.nvidia.com", mine[:len(mine)-1], "a." + mine}
	passed, refused := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 16))
		isOutside, mayBeOutside := false, rng.IntN(3) > 0
		pick := func() string {
			if !mayBeOutside {
				return mine
			}
			name := names[rng.IntN(len(names))]
			isOutside = isOutside || name != mine
			return name
		}
		spec := resourcev1.ResourceClaimSpec{}
		for i := range 1 + rng.IntN(5) {
			request := resourcev1.DeviceRequest{Name: "r" + string(rune('a'+i))}
			if rng.IntN(2) == 0 {
				request.Exactly = exactly(pick(), count(int64(1+rng.IntN(3)))).Devices.Requests[0].Exactly
			} else {
				var classes []string
				for range 1 + rng.IntN(8) {
					classes = append(classes, pick())
				}
				request.FirstAvailable = firstOf(classes...).Devices.Requests[0].FirstAvailable
			}
			spec.Devices.Requests = append(spec.Devices.Requests, request)
		}
		var object any = spec
		if rng.IntN(2) == 0 {
			object = resourcev1.ResourceClaimTemplateSpec{Spec: spec}
		}
		err := r.try(object)
		if (err != nil) != isOutside || err != nil && !strings.Contains(err.Error(), "may name only these DeviceClasses") {
			t.Fatalf("seed %d: %v, of %+v", seed, err, spec)
		}
		if isOutside {
			refused++
		} else {
			passed++
		}
	}
	if passed < 40 || refused < 40 {
		t.Errorf("%d passed and %d were refused: both must be tried often", passed, refused)
	}
}

// checkIsolation changes the tenancy of a NodeType that the class "mig" names.
func (r *rig) checkIsolation() {
	r.t.Helper()
	for tenancy, want := range map[v1alpha1.Tenancy]metav1.ConditionStatus{v1alpha1.TenancyDedicated: metav1.ConditionFalse, v1alpha1.TenancyShared: metav1.ConditionTrue} {
		nodeType := &v1alpha1.NodeType{}
		if err := server.Client.Get(r.t.Context(), client.ObjectKey{Name: "a100-mig-part"}, nodeType); err != nil {
			r.t.Fatal(err)
		}
		before := nodeType.DeepCopy()
		nodeType.Spec.GPU = &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "A100-SXM4-40GB", Count: 4, Tenancy: tenancy, Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough}}
		if err := server.Client.Patch(r.t.Context(), nodeType, client.MergeFrom(before)); err != nil {
			r.t.Fatal(err)
		}
		management.Eventually(r.t, "the class says whether its nodes are isolated", func() bool {
			for _, c := range r.read("legal").Status.Classes {
				if c.Name == "mig" {
					return meta.IsStatusConditionPresentAndEqual(c.Conditions, v1alpha1.ConditionIsolated, want)
				}
			}
			return false
		})
	}
}
