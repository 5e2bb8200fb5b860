package machine_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

const licenceKey = "client_configuration_token.tok"

// licence is the rig's own token: another's in the same API server is none of it.
func (r *rig) licence() string {
	return "LICENCE-eyJhbGciOiJSUzI1NiJ9-nobody-sees-that-of-" + r.namespace + "-or-it-leaks"
}

func (r *rig) encodedLicence() string { return base64.StdEncoding.EncodeToString([]byte(r.licence())) }

// licensed makes a revision one of a vGPU guest, which needs a licence token.
func licensed(image *v1alpha1.OSImage, revision *v1alpha1.NodeTypeRevision) {
	image.Spec.KernelArguments = []string{"modprobe.blacklist=nouveau"}
	image.Spec.Software.Containerd, image.Spec.Software.ContainerToolkit = "2.2.0", "1.18.0"
	image.Spec.Software.GPUDriver = &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "550.163.01", Kind: "VGPUGuest"}
	revision.Spec.GPU = &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "A40-48GB", Count: 1, Presentation: v1alpha1.Presentation{
		Mode: v1alpha1.ModeVGPU, VGPU: &v1alpha1.VGPUSpec{Role: "Guest", Licence: &v1alpha1.VGPULicence{TokenSecretRef: v1alpha1.LocalReference{Name: "licence"}}},
	}}
}

func TestALicenceTokenReachesItsNodeAndIsNowhereElse(t *testing.T) {
	r := newRig(t, 1)
	revision := r.addRevision(2, "1.37.0", licensed)
	var log transcript
	r.log = funcr.New(log.add, funcr.Options{Verbosity: 100})
	grant := r.restrict()
	r.start()
	server.Create(t, &v1alpha1.Machine{ObjectMeta: r.meta(r.namespace), Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: r.namespace}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Revision: revision,
	}})

	r.lacks("must not be read", "binds ClusterRole ingot-manager-hosts")
	grant()
	r.lacks("does not exist", "creates it with that key")
	secret := &corev1.Secret{ObjectMeta: r.meta("licence"), Data: map[string][]byte{"another": []byte(r.licence())}}
	server.Create(t, secret)
	r.lacks("lacks the key", "puts the content there")
	r.looksAgain()
	if h, _ := r.host("server-00"); h.Spec.Image != nil {
		t.Error("an installation was asked for that cannot have a licence")
	}
	secret.Data = map[string][]byte{licenceKey: []byte(r.licence())}
	if err := server.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	r.poke(r.namespace)
	r.awaitInstallation(1)
	r.play("server-00")
	if claim := r.claim(); !bytes.Contains(claim.Data["userData"], []byte(`content: "`+r.encodedLicence()+`"`)) {
		t.Errorf("the node gets\n%s", claim.Data["userData"])
	}
	r.seenNowhere(&log, "server-00-claim")
	want := v1alpha1.ExpectedGPUs{Vendor: v1alpha1.VendorNVIDIA, Model: "A40-48GB", Count: 1}
	if _, record := r.host("server-00"); record.Spec.GPUs == nil || *record.Spec.GPUs != want {
		t.Errorf("the host must have %+v, expected %+v", record.Spec.GPUs, want)
	}
	r.finishInstallation(r.namespace, 1)
	management.Eventually(t, "the claim Secret has no token of any kind", func() bool {
		claim := r.claim()
		return claim.Data["bootstrapToken"] == nil && len(claim.Data["userData"]) > 0 && !bytes.Contains(claim.Data["userData"], []byte(r.encodedLicence()))
	})
	r.seenNowhere(&log)
	if events := r.events(v1alpha1.ReasonNodeSecretMissing); len(events) != 1 || events[0].Series != nil {
		t.Errorf("what is missing was told %d times: %+v", len(events), events)
	}
}

func TestARollBeginsNoSoonerThanItsLicenceTokenIsThere(t *testing.T) {
	r, _ := readyRig(t)
	next := r.addRevision(3, "1.37.0", licensed)
	r.want(r.namespace, next)
	management.Eventually(t, "the Machine says which Secret the roll needs", func() bool {
		c := r.condition(r.namespace, v1alpha1.ConditionUpToDate)
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "Secret "+r.namespace+"/licence does not exist")
	})
	if s := r.machine(r.namespace).Status; s.Phase != v1alpha1.MachineReady || r.node(r.namespace).Spec.Unschedulable {
		t.Errorf("the Machine is %s, its Node cordoned: %v", s.Phase, r.node(r.namespace).Spec.Unschedulable)
	}
	server.Create(t, &corev1.Secret{ObjectMeta: r.meta("licence"), Data: map[string][]byte{licenceKey: []byte(r.licence())}})
	r.poke(r.namespace)
	management.Eventually(t, "the roll begins", func() bool { return r.machine(r.namespace).Status.Phase == v1alpha1.MachineDraining })
}

func TestWarningsOfDocumentsAreToldOnce(t *testing.T) {
	r := newRig(t, 1)
	revision := r.addRevision(2, "1.37.0", func(_ *v1alpha1.OSImage, revision *v1alpha1.NodeTypeRevision) {
		revision.Spec.UserData = []string{"", "#cloud-config\nbootcmd: [echo " + strings.Repeat("long ", 4000) + "]" + "\n"}
	})
	r.start()
	server.Create(t, &v1alpha1.Machine{ObjectMeta: r.meta(r.namespace), Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: r.namespace}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Revision: revision,
	}})
	r.awaitInstallation(1)
	r.install(r.namespace, 1)
	management.Eventually(t, "the warning is told", func() bool { return len(r.events(v1alpha1.ReasonAcceptedWithWarnings)) > 0 })
	events := r.events(v1alpha1.ReasonAcceptedWithWarnings)
	if len(events) != 1 || events[0].Series != nil || events[0].Type != corev1.EventTypeWarning || !strings.Contains(events[0].Note, "fetch large files at the first boot") {
		t.Errorf("told %d times: %+v", len(events), events)
	}
}

// transcript keeps what is logged.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *transcript) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(prefix + " " + args + "\n")
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// restrict makes the controller read past its cache as somebody who may read but one Secret, the claim's. The function that it
// returns grants what the manager ships for a host namespace.
func (r *rig) restrict() (grant func()) {
	r.t.Helper()
	r.direct = rest.CopyConfig(server.Config)
	r.direct.Impersonate = rest.ImpersonationConfig{UserName: "manager-of-" + r.namespace}
	r.bind("most", []rbacv1.PolicyRule{
		{APIGroups: []string{"ingot.dev", "metal3.io"}, Resources: []string{"*"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"server-00-claim"}, Verbs: []string{"get"}},
	})
	text, err := os.ReadFile("../../config/rbac/role.yaml")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(part), &role); err != nil {
			r.t.Fatal(err)
		}
		if role.Name == "ingot-manager-hosts" {
			return func() { r.bind(role.Name, role.Rules) }
		}
	}
	r.t.Fatal("config/rbac/role.yaml has no ClusterRole ingot-manager-hosts")
	return nil
}

func (r *rig) bind(name string, rules []rbacv1.PolicyRule) {
	r.t.Helper()
	server.Create(r.t, &rbacv1.Role{ObjectMeta: r.meta(name), Rules: rules}, &rbacv1.RoleBinding{ObjectMeta: r.meta(name),
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: r.direct.Impersonate.UserName}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}})
}

// lacks waits until the Machine says what is the matter with its Secret, and who must do what.
func (r *rig) lacks(what, do string) {
	r.t.Helper()
	management.Eventually(r.t, "the Machine says that the Secret "+what, func() bool {
		if r.machine(r.namespace).Status.Phase != v1alpha1.MachineProvisioning {
			return false
		}
		r.poke(r.namespace)
		provisioned, ready := r.condition(r.namespace, v1alpha1.ConditionProvisioned), r.condition(r.namespace, v1alpha1.ConditionReady)
		says := "Secret " + r.namespace + "/licence " + what
		return provisioned.Reason == v1alpha1.ReasonNodeSecretMissing && ready.Reason == v1alpha1.ReasonNodeSecretMissing &&
			strings.Contains(ready.Message, says) && strings.Contains(ready.Message, licenceKey) && strings.Contains(ready.Message, "whoever runs the hosts "+do) &&
			provisioned.Message == ready.Message && strings.HasPrefix(r.machine(r.namespace).Status.WaitingFor, says)
	})
}

// looksAgain waits until a look at the Machine ends with the time of the next one.
func (r *rig) looksAgain() {
	r.t.Helper()
	management.Eventually(r.t, "the Secret is looked for again", func() bool {
		result, err := r.controller.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: r.key(r.namespace)})
		return err == nil && result.RequeueAfter > time.Second && result.RequeueAfter <= time.Minute
	})
}

func (r *rig) claim() *corev1.Secret {
	r.t.Helper()
	claim := &corev1.Secret{}
	if err := server.Client.Get(r.t.Context(), r.key("server-00-claim"), claim); err != nil {
		r.t.Fatal(err)
	}
	return claim
}

// events of a reason about the Machine.
func (r *rig) events(reason string) []eventsv1.Event {
	r.t.Helper()
	list, out := &eventsv1.EventList{}, []eventsv1.Event(nil)
	if err := server.Client.List(r.t.Context(), list, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Reason == reason && e.Regarding.Name == r.namespace {
			out = append(out, e)
		}
	}
	return out
}

// seenNowhere reads every object of the API server, the log and the metrics, and looks for the licence token.
func (r *rig) seenNowhere(log *transcript, but ...string) {
	r.t.Helper()
	ctx := r.t.Context()
	for _, resource := range everything(r.t) {
		list, err := dynamic.NewForConfigOrDie(server.Config).Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, o := range list.Items {
			if resource.Resource == "secrets" && o.GetNamespace() == r.namespace && (o.GetName() == "licence" || strings.Contains(strings.Join(but, " "), o.GetName())) {
				continue
			}
			text, err := json.Marshal(o.Object)
			if err != nil {
				r.t.Fatal(err)
			}
			r.unseen(resource.Resource+" "+o.GetNamespace()+"/"+o.GetName(), string(text))
		}
	}
	r.secretsUnseen(ctx, but)
	r.unseen("the log", log.String())
	if !strings.Contains(log.String(), v1alpha1.ReasonNodeSecretMissing) {
		r.t.Error("the log was not kept: nothing was looked for")
	}
	gathered, err := metrics.Registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	r.unseen("the metrics", fmt.Sprint(gathered))
}

// secretsUnseen looks into what Secrets hold.
func (r *rig) secretsUnseen(ctx context.Context, but []string) {
	r.t.Helper()
	list := &corev1.SecretList{}
	if err := server.Client.List(ctx, list); err != nil {
		r.t.Fatal(err)
	}
	for _, s := range list.Items {
		if s.Namespace == r.namespace && (s.Name == "licence" || strings.Contains(strings.Join(but, " "), s.Name)) {
			continue
		}
		for key, value := range s.Data {
			r.unseen("Secret "+s.Namespace+"/"+s.Name+" "+key, string(value))
		}
	}
}

func (r *rig) unseen(where, text string) {
	r.t.Helper()
	if strings.Contains(text, r.licence()) || strings.Contains(text, r.encodedLicence()) {
		r.t.Errorf("%s shows the licence token", where)
	}
}

// everything that can be listed.
func everything(t *testing.T) []schema.GroupVersionResource {
	t.Helper()
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(server.Config).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var out []schema.GroupVersionResource
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			out = append(out, version.WithResource(resource.Name))
		}
	}
	return out
}
