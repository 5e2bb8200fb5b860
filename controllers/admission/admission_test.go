package admission

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/controllers/admission/certificate"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// clock is told the time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func image(name string) *v1alpha1.OSImage {
	return &v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.OSImageSpec{
		URL: "https://images.example.com/debian.raw.zst", Checksum: "sha256:" + strings.Repeat("9b", 32), Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit,
		OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"}, KernelArguments: []string{"modprobe.blacklist=nouveau"},
		Software: v1alpha1.OSImageSoftware{
			Kubelet: "1.37.0", Containerd: "2.1.4", ContainerToolkit: "1.17.8", MIGParted: "0.12.1", FabricManager: "580.126.09",
			GPUDriver: &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "580.126.09", KernelModule: "Open"},
		},
	}}
}

func provider(name, userData string) *v1alpha1.NodeProvider {
	return &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: name, UserData: userData, Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}},
	}}
}

// nodeType of eight H100, whole or in those profiles.
func nodeType(name, provider, image string, profiles map[string]int32) *v1alpha1.NodeType {
	shown := v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough}
	if profiles != nil {
		shown = v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: "mixed", Layout: []v1alpha1.MIGLayout{{Profiles: profiles}}}}
	}
	return &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: provider}, OSImageRef: v1alpha1.LocalReference{Name: image},
		HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}},
		GPU:          &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8, Presentation: shown},
	}}
}

// impossible is 3g.40gb twice and one more slice, which an H100 does not have.
var impossible = map[string]int32{"3g.40gb": 2, "1g.10gb": 1}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := server.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), o) })
	}
}

// configuration is config/webhook's, with a URL in place of the Service.
func configuration(t *testing.T, url string, bundle []byte) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	text, err := config.Files.ReadFile("webhook/nodetype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c admissionv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	if path := *c.Webhooks[0].ClientConfig.Service.Path; path != PathNodeType {
		t.Errorf("API servers ask at %s, the manager answers at %s", path, PathNodeType)
	}
	c.Webhooks[0].ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: bundle}
	// A busy machine is no reason to fail.
	patience := int32(30)
	c.Webhooks[0].TimeoutSeconds = &patience
	return &c
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// times let a certificate be renewed several times within the hour for which it holds already when it is made: the API
// server has a clock of its own.
var times = certificate.Times{Life: 24 * time.Hour, Renew: 10 * time.Minute, Spread: 5 * time.Minute}

func keeper(secret client.ObjectKey, now *clock) *certificate.Rotator {
	return &certificate.Rotator{
		Reader: server.Client, Writer: server.Client, Secret: secret, Configuration: "ingot-nodetype", Clock: now.Now, Random: rand.Reader, Times: times, Log: logr.Discard(),
	}
}

// settle steps until nothing has to be done, and says what was.
func settle(t *testing.T, k *certificate.Rotator) []certificate.Action {
	t.Helper()
	var done []certificate.Action
	for range 20 {
		d, err := k.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d.Action == certificate.Rest {
			return done
		}
		done = append(done, d.Action)
	}
	t.Fatalf("it never rests: %v", done)
	return nil
}

// answering runs a manager that answers, and has the API server ask it.
func answering(t *testing.T) (*certificate.Rotator, *clock) {
	t.Helper()
	secret := client.ObjectKey{Namespace: server.Namespace(t), Name: "certificate"}
	now := &clock{now: time.Now()}
	source := &certificate.Source{Reader: server.Client, Secret: secret, Clock: now.Now, Log: logr.Discard()}
	address := freeAddress(t)
	server.Run(t, func(mgr ctrl.Manager) error {
		handler, err := NewHandler(mgr)
		if err != nil {
			return err
		}
		listener, err := tls.Listen("tcp", address, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: source.GetCertificate})
		if err != nil {
			return err
		}
		return mgr.Add(&manager.Server{Server: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}, Listener: listener})
	})
	create(t, configuration(t, "https://"+address+PathNodeType, nil))
	k := keeper(secret, now)
	settle(t, k)
	management.Eventually(t, "the API server asks", func() bool {
		err := server.Client.Create(t.Context(), nodeType("probe", "none", "none", nil), client.DryRunAll)
		// Until it sees the configuration it lets everything pass; until the manager listens, nothing.
		return err == nil && len(warned(t, nodeType("probe", "none", "none", nil))) > 0
	})
	return k, now
}

// recorder takes the warnings of answers.
type recorder struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (r *recorder) HandleWarningHeader(_ int, _ string, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, text)
}

// warned creates an object for the sake of the warnings.
func warned(t *testing.T, o client.Object) []string {
	t.Helper()
	told := &recorder{}
	c := rest.CopyConfig(server.Config)
	c.WarningHandler = told
	warning, err := client.New(c, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := warning.Create(t.Context(), o, client.DryRunAll); err != nil {
		t.Fatalf("create %s: %v", o.GetName(), err)
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	return told.texts
}

func TestWhatCanMakeNoNodesIsRefused(t *testing.T) {
	answering(t)
	old := image("old")
	old.Spec.Software.GPUDriver.Version, old.Spec.Software.FabricManager = "450.80.02", "450.80.02"
	create(t, image("debian"), old, provider("hall-1", ""), provider("hall-2", "#cloud-config\nruncmd: no\n"))
	err := server.Client.Create(t.Context(), nodeType("h100-mig", "hall-1", "debian", impossible))
	var status *apierrors.StatusError
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || len(status.ErrStatus.Details.Causes) != 1 {
		t.Fatalf("an impossible layout: got %v, want it refused as invalid, with one cause", err)
	}
	if field := status.ErrStatus.Details.Causes[0].Field; field != "spec.gpu.presentation.mig.layout[0].profiles" {
		t.Errorf("the field is %s", field)
	}
	for _, says := range []string{"NodeType h100-mig can make no nodes: spec.gpu.presentation.mig.layout[0].profiles: ", "Of these fits {3g.40gb: 2}; near it are {", "(rule mig/memory-slices)"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the refusal does not say %q: %v", says, err)
		}
	}
	if got := warned(t, nodeType("h100", "hall-1", "debian", map[string]int32{"3g.40gb": 2})); len(got) != 0 {
		t.Errorf("a good one is warned of: %q", got)
	}
	uncertain := nodeType("h100-dra", "hall-1", "debian", nil)
	uncertain.Spec.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeDRA, DRA: &v1alpha1.DRASpec{Devices: "MIG", FeatureGates: []string{"DynamicMIG"}}}
	for name, c := range map[string]struct {
		nodeType *v1alpha1.NodeType
		says     string
	}{
		"what a vendor calls experimental":      {uncertain, "(rule experimental/dynamic-mig)"},
		"an OSImage that does not exist yet":    {nodeType("h100", "hall-1", "later", impossible), "spec.osImageRef: the OSImage later does not exist: create it"},
		"a provider that does not exist yet":    {nodeType("h100", "later", "debian", nil), "spec.providerRef: the NodeProvider later does not exist: create it"},
		"an OSImage with too old a driver":      {nodeType("h100", "hall-1", "old", nil), "; no node can be made until that is mended (rule image/driver-version)"},
		"a provider that must be mended itself": {nodeType("h100", "hall-2", "debian", nil), "NodeProvider hall-2: spec.userData: runcmd: it must be a list"},
	} {
		if got := strings.Join(warned(t, c.nodeType), "\n"); !strings.Contains(got, c.says) {
			t.Errorf("%s: the warnings are %q, want %q", name, got, c.says)
		}
	}
}

func TestWhatIsImpossibleAlreadyMayBeKeptAndDeleted(t *testing.T) {
	answering(t)
	kept := nodeType("kept", "hall-3", "debian-3", impossible)
	kept.Finalizers = []string{"example.com/keep"}
	create(t, kept)
	create(t, image("debian-3"), provider("hall-3", ""))
	change := func(o *v1alpha1.NodeType) func(func()) error {
		return func(edit func()) error {
			patch := client.MergeFrom(o.DeepCopy())
			edit()
			return server.Client.Patch(t.Context(), o, patch)
		}
	}(kept)
	if err := change(func() { kept.Spec.DisplayName = "x" }); !apierrors.IsInvalid(err) {
		t.Errorf("a changed spec that is still impossible: %v", err)
	}
	if err := change(func() { kept.Labels = map[string]string{"a": "b"} }); err != nil {
		t.Errorf("a label: %v", err)
	}
	if err := change(func() { kept.Spec.GPU.Presentation.MIG.Layout[0].Profiles = map[string]int32{"3g.40gb": 2} }); err != nil {
		t.Errorf("the correction: %v", err)
	}
	if err := server.Client.Delete(t.Context(), kept); err != nil {
		t.Errorf("the deletion: %v", err)
	}
	if err := change(func() { kept.Finalizers = nil }); err != nil {
		t.Errorf("the finalizer: %v", err)
	}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// secretOf reads the certificate's Secret.
func secretOf(t *testing.T, k *certificate.Rotator) *corev1.Secret {
	t.Helper()
	var s corev1.Secret
	if err := server.Client.Get(t.Context(), k.Secret, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// TestWhatAnEarlierVersionRenderedMayBeKept: this version refuses the layout, and nodes are made of it all the same.
func TestWhatAnEarlierVersionRenderedMayBeKept(t *testing.T) {
	answering(t)
	accepted := nodeType("accepted", "hall-pinned", "debian-pinned", impossible)
	pinned := image("debian-pinned")
	pinned.Status.Checksum = pinned.Spec.Checksum
	own, err := revision.OwnDigest(revision.Inputs{NodeType: accepted, Image: pinned})
	if err != nil {
		t.Fatal(err)
	}
	kept := &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: "accepted-1", Annotations: map[string]string{v1alpha1.AnnotationInputs: own}}, Spec: v1alpha1.NodeTypeRevisionSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: "accepted"}, HashVersion: 1, GPU: accepted.Spec.GPU.DeepCopy(),
		Image: v1alpha1.RevisionImage{Name: "debian-pinned", Checksum: "sha256:" + strings.Repeat("9b", 32), Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit},
	}}
	create(t, accepted, kept, &v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: "accepted-1-a"}, Spec: v1alpha1.NodeTypeRenderingSpec{
		RevisionRef: v1alpha1.LocalReference{Name: "accepted-1"}, Encoding: v1alpha1.RenderingEncoding,
	}})
	before := accepted.DeepCopy()
	accepted.Status.TargetRevision, accepted.Status.TargetRendering = "accepted-1", "accepted-1-a"
	if err := server.Client.Status().Patch(t.Context(), accepted, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	server.Create(t, pinned)
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), pinned) })
	create(t, provider("hall-pinned", ""))
	edit := func(change func(*v1alpha1.NodeTypeSpec)) error {
		patch := client.MergeFrom(accepted.DeepCopy())
		change(&accepted.Spec)
		return server.Client.Patch(t.Context(), accepted, patch)
	}
	if err := edit(func(s *v1alpha1.NodeTypeSpec) { s.DisplayName = "x" }); err != nil {
		t.Errorf("something else is changed: %v", err)
	}
	if err := edit(func(s *v1alpha1.NodeTypeSpec) { s.UserData = "#cloud-config\npackages: [x]\n" }); !apierrors.IsInvalid(err) {
		t.Errorf("what makes another revision, which could not be rendered: %v", err)
	}
	accepted.Spec.UserData = ""
	if err := edit(func(s *v1alpha1.NodeTypeSpec) {
		s.GPU.Presentation.MIG.Layout[0].Profiles = map[string]int32{"7g.80gb": 2}
	}); !apierrors.IsInvalid(err) {
		t.Errorf("another impossible layout: %v", err)
	}
	if err := edit(func(s *v1alpha1.NodeTypeSpec) {
		s.GPU.Presentation.MIG.Layout[0].Profiles = map[string]int32{"3g.40gb": 2}
	}); err != nil {
		t.Fatalf("a possible one: %v", err)
	}
	if err := edit(func(s *v1alpha1.NodeTypeSpec) {
		s.GPU, s.Rendering = kept.Spec.GPU.DeepCopy(), "accepted-1-a"
	}); err != nil {
		t.Errorf("it is set back to what has a rendering: %v", err)
	}
}
