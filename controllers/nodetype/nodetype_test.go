package nodetype

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

func image(name string) *v1alpha1.OSImage {
	return &v1alpha1.OSImage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.OSImageSpec{
			URL: "https://images.example.com/debian.raw.zst", Checksum: "sha256:" + strings.Repeat("9b", 32), Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit,
			OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"}, Software: v1alpha1.OSImageSoftware{Kubelet: "1.37.0"},
		},
		Status: v1alpha1.OSImageStatus{
			Checksum:   "sha256:" + strings.Repeat("9b", 32),
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, LastTransitionTime: metav1.Now()}},
		},
	}
}

func provider(name, namespace string) *v1alpha1.NodeProvider {
	return &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: namespace, Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}},
	}}
}

func nodeType(name, provider, image string) *v1alpha1.NodeType {
	return &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "nt"}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: provider}, OSImageRef: v1alpha1.LocalReference{Name: image},
		HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}},
	}}
}

// readyProvider is a NodeProvider with that condition Ready.
func readyProvider(status metav1.ConditionStatus, reason, message string) *v1alpha1.NodeProvider {
	p := provider("hall-1", "metal")
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
	return p
}

// possible is an observation without any obstacle.
func possible() observation {
	return observation{
		nodeType: nodeType("h100", "hall-1", "debian"), provider: readyProvider(metav1.ConditionTrue, v1alpha1.ReasonReady, ""), image: image("debian"),
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metal", Annotations: map[string]string{v1alpha1.AnnotationNodeProvider: "hall-1"}}},
	}
}

func TestEveryObstacleIsNamedBeforeAMachineIsTouched(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*observation)
		reason string
		says   string
	}{
		{"no provider", func(o *observation) { o.provider = nil }, v1alpha1.ReasonProviderNotFound, "hall-1"},
		{"an ironic provider", func(o *observation) {
			o.provider.Spec.Redfish, o.provider.Spec.Ironic = nil, &v1alpha1.IronicProvider{}
		}, v1alpha1.ReasonFormatUnsupported, "redfish can"},
		{"no host namespace", func(o *observation) { o.namespace = nil }, v1alpha1.ReasonHostNamespaceUnclaimed, "metal"},
		{"a namespace that is not claimed yet", func(o *observation) { o.namespace.Annotations = nil }, v1alpha1.ReasonHostNamespaceUnclaimed, "metal"},
		{"another provider's namespace", func(o *observation) {
			o.provider = readyProvider(metav1.ConditionFalse, v1alpha1.ReasonHostNamespaceTaken, "namespace metal belongs to NodeProvider hall-2")
		}, v1alpha1.ReasonHostNamespaceTaken, "hall-2"},
		{"no image", func(o *observation) { o.image = nil }, v1alpha1.ReasonOSImageNotFound, "debian"},
		{"an image that nobody has checked", func(o *observation) { o.image.Status = v1alpha1.OSImageStatus{} }, v1alpha1.ReasonOSImageNotReady, "checked"},
		{"an image that is not there", func(o *observation) {
			o.image.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonImageUnreachable, Message: "404"}
		}, v1alpha1.ReasonOSImageNotReady, "ImageUnreachable: 404"},
		{"a format that the provider cannot write", func(o *observation) { o.image.Spec.Format = v1alpha1.FormatQCOW2 }, v1alpha1.ReasonFormatUnsupported, "ironic, metal3 can"},
		{"a format that metal3 cannot write", func(o *observation) {
			o.provider.Spec.Redfish, o.provider.Spec.Metal3 = nil, &v1alpha1.Metal3Provider{}
		}, v1alpha1.ReasonFormatUnsupported, "redfish can"},
		{"GPUs without a driver", func(o *observation) {
			o.nodeType.Spec.GPU = &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8, Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough}}
		}, v1alpha1.ReasonDriverMissing, ""},
		{"user data that is none", func(o *observation) { o.nodeType.Spec.UserData = "packages: []\n" }, v1alpha1.ReasonUserDataInvalid, "spec.userData: "},
		{"a property that is misspelt", func(o *observation) { o.nodeType.Spec.Properties = map[string]string{"ingot.dev/user-data": "x"} }, v1alpha1.ReasonUserDataInvalid, "ingot.dev/user-data"},
		{"user data of another kind", func(o *observation) { o.image.Spec.UserData = v1alpha1.UserDataIgnition }, v1alpha1.ReasonUserDataInvalid, "Ignition"},
	} {
		seen := possible()
		c.change(&seen)
		assessed := decide(seen, presentation.Resolve)
		if assessed.problem == nil || assessed.problem.reason != c.reason || !strings.Contains(assessed.problem.message, c.says) || assessed.revision != nil {
			t.Errorf("%s: %+v", c.name, assessed.problem)
		}
	}
	// Machines of all tenants repeat the message of the NodeType.
	held := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInUse, Message: "it is used by Machine rival/training-1"}
	for name, conditions := range map[string]func(*observation) []metav1.Condition{
		"NodeProvider hall-1": func(o *observation) []metav1.Condition { return o.provider.Status.Conditions },
		"OSImage debian":      func(o *observation) []metav1.Condition { return o.image.Status.Conditions },
	} {
		seen := possible()
		conditions(&seen)[0] = held
		if p := decide(seen, presentation.Resolve).problem; p == nil || strings.Contains(p.message, "rival") || !strings.Contains(p.message, name+" is being deleted") {
			t.Errorf("a deleted %s: %+v", name, p)
		}
	}
	if assessed := decide(possible(), presentation.Resolve); assessed.problem != nil || assessed.revision == nil {
		t.Errorf("without an obstacle: %+v", assessed)
	}
}

func TestWhatIsUncertainIsSaidInTheConditionAndOnceForARevision(t *testing.T) {
	seen := possible()
	seen.nodeType.Spec.UserData = "#cloud-config\nfinal_message: " + strings.Repeat("x", 20<<10) + "\n"
	assessed := decide(seen, presentation.Resolve)
	if assessed.revision == nil || len(assessed.warnings) != 1 {
		t.Fatalf("found %+v", assessed)
	}
	after := seen.nodeType.DeepCopy()
	report(after, seen, assessed, revisionrollout.Decision{Target: v1alpha1.RenderedRevision{Revision: "h100-1", Rendering: "h100-1-a"}}, time.Time{})
	ready := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != v1alpha1.ReasonReady || !strings.Contains(ready.Message, "nodes can be made; not certain: spec.userData: the user data has ") {
		t.Errorf("the condition is %+v", ready)
	}
	told := revisionEvents(seen.nodeType.Status, after.Status, assessed.warnings)
	if len(told) != 2 || told[1].Type != corev1.EventTypeWarning || told[1].Reason != reasonUncertain || !strings.HasSuffix(told[1].Message, "(user-data/large)") {
		t.Errorf("of a new revision is told %+v", told)
	}
	if told := revisionEvents(after.Status, after.Status, assessed.warnings); len(told) != 0 {
		t.Errorf("of a revision that is not new is told %+v", told)
	}
}

func run(t *testing.T) {
	t.Helper()
	runWith(t, presentation.Resolve)
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	server.Create(t, objects...)
	t.Cleanup(func() {
		for _, object := range objects {
			_ = server.Client.Delete(context.Background(), object)
		}
	})
}

func await(t *testing.T, name, what string, is func(*v1alpha1.NodeType) bool) *v1alpha1.NodeType {
	t.Helper()
	var stored v1alpha1.NodeType
	management.Eventually(t, what, func() bool {
		if err := server.Client.Get(t.Context(), client.ObjectKey{Name: name}, &stored); err != nil {
			t.Fatal(err)
		}
		return is(&stored)
	})
	return &stored
}

func hasReason(reason string) func(*v1alpha1.NodeType) bool {
	return func(stored *v1alpha1.NodeType) bool {
		ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == reason
	}
}

func TestANodeTypeBecomesReadyInAnyOrderAndMakesRevisions(t *testing.T) {
	run(t)
	namespace := server.Namespace(t)
	create(t, nodeType("h100", "hall-1", "debian"))
	await(t, "h100", "the provider is missed", hasReason(v1alpha1.ReasonProviderNotFound))
	create(t, provider("hall-1", namespace), image("debian"))
	first := await(t, "h100", "it is Ready", hasReason(v1alpha1.ReasonReady))

	var made v1alpha1.NodeTypeRevision
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: first.Status.StableRevision}, &made); err != nil || !metav1.IsControlledBy(&made, first) {
		t.Fatalf("revision %q, owners %v, error %v", first.Status.StableRevision, made.OwnerReferences, err)
	}
	var claimed corev1.Namespace
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, &claimed); err != nil || claimed.Annotations[v1alpha1.AnnotationNodeProvider] != "hall-1" {
		t.Errorf("namespace annotations %v, error %v", claimed.Annotations, err)
	}
	create(t, provider("hall-2", namespace), nodeType("late", "hall-2", "debian"))
	await(t, "late", "the second provider of a namespace is refused", hasReason(v1alpha1.ReasonHostNamespaceTaken))

	patch := client.MergeFrom(first.DeepCopy())
	first.Spec.UserData = "#cloud-config\npackages: [lldpd]\n"
	if err := server.Client.Patch(t.Context(), first, patch); err != nil {
		t.Fatal(err)
	}
	second := await(t, "h100", "there is a second revision", func(n *v1alpha1.NodeType) bool { return n.Status.TargetRevision != made.Name })
	patch = client.MergeFrom(second.DeepCopy())
	second.Spec.UserData = ""
	if err := server.Client.Patch(t.Context(), second, patch); err != nil {
		t.Fatal(err)
	}
	await(t, "h100", "setting it back gives the first revision again", func(n *v1alpha1.NodeType) bool { return n.Status.TargetRevision == made.Name })
}

func TestWhatIsUncertainIsToldToWhoeverLooks(t *testing.T) {
	run(t)
	namespace := server.Namespace(t)
	large := nodeType("large", "hall-4", "debian-4")
	large.Spec.UserData = "#cloud-config\nfinal_message: " + strings.Repeat("x", 20<<10) + "\n"
	create(t, provider("hall-4", namespace), image("debian-4"), large)
	stored := await(t, "large", "it is Ready", hasReason(v1alpha1.ReasonReady))
	if ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(ready.Message, "not certain: spec.userData: ") {
		t.Errorf("the condition says %q", ready.Message)
	}
	management.Eventually(t, "a warning is told", func() bool {
		var told eventsv1.EventList
		if err := server.Client.List(t.Context(), &told); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(told.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "large" && e.Reason == reasonUncertain && e.Type == corev1.EventTypeWarning
		})
	})
}

func TestCapacityFollowsHostsAndMachines(t *testing.T) {
	run(t)
	namespace := server.Namespace(t)
	create(t, provider("hall-3", namespace), image("debian-3"), nodeType("counted", "hall-3", "debian-3"))
	ready := await(t, "counted", "it is Ready", hasReason(v1alpha1.ReasonReady))
	labels := map[string]string{"gpu-model": "h100"}
	create(t,
		&metal3.BareMetalHost{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "free", Labels: labels},
			Status: metal3.BareMetalHostStatus{OperationalStatus: metal3.OperationalStatusOK, ErrorMessage: "", HardwareProfile: "",
				Provisioning: metal3.ProvisionStatus{State: metal3.StateAvailable, ID: ""}},
		},
		&v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "free"}},
		&metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new", Labels: labels}},
		&v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"},
			Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "counted"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
			Status:     v1alpha1.MachineStatus{Revision: ready.Status.TargetRevision, Rendering: ready.Status.TargetRendering},
		})
	await(t, "counted", "hosts and Machines are counted", func(n *v1alpha1.NodeType) bool {
		return n.Status.Hosts == v1alpha1.HostCounts{Matching: 2, Available: 1} && n.Status.Machines == v1alpha1.MachineCounts{Total: 1, UpToDate: 1}
	})
}

func TestACountThatContradictsTheSelectedHostsIsACondition(t *testing.T) {
	run(t)
	namespace, elsewhere := server.Namespace(t), server.Namespace(t)
	promised := nodeType("seven", "hall-8", "debian-8")
	promised.Spec.GPU = &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8, Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough}}
	host := func(namespace, name, address string) *metal3.BareMetalHost {
		h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"gpu-model": "h100"}}}
		h.Spec.BMC.Address = address
		h.Status = metal3.BareMetalHostStatus{OperationalStatus: metal3.OperationalStatusOK, Provisioning: metal3.ProvisionStatus{State: metal3.StateAvailable}}
		return h
	}
	record := &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s1"}}
	create(t, provider("hall-8", namespace), image("debian-8"), promised)
	hasHardware := func(status metav1.ConditionStatus, reason, says string) func(*v1alpha1.NodeType) bool {
		return func(n *v1alpha1.NodeType) bool {
			c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionHardwareMatches)
			return c != nil && c.Status == status && c.Reason == reason && strings.Contains(c.Message, says)
		}
	}
	await(t, "seven", "nothing is known", hasHardware(metav1.ConditionUnknown, v1alpha1.ReasonHardwareUnknown, ""))
	create(t, host(namespace, "s1", "redfish://10.7.0.1"), record)
	setGPUs := func(count int32) {
		before := record.DeepCopy()
		record.Status.Inventory = &v1alpha1.HostInventory{GPUSource: v1alpha1.SourceBMC, GPUs: []v1alpha1.GPUInventory{{VendorID: "10de", DeviceID: "2330", Model: "H100-SXM5-80GB", Count: count}}}
		if err := server.Client.Status().Patch(t.Context(), record, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	setGPUs(7)
	differs := hasHardware(metav1.ConditionFalse, v1alpha1.ReasonHardwareDiffers, "s1 is selected by its labels but has 7 H100-SXM5-80GB, and 8 H100-SXM5-80GB are promised")
	await(t, "seven", "the host has seven GPUs and is not available", func(n *v1alpha1.NodeType) bool {
		return differs(n) && n.Status.Hosts == v1alpha1.HostCounts{Matching: 1}
	})
	setGPUs(8)
	matches := hasHardware(metav1.ConditionTrue, v1alpha1.ReasonHardwareMatches, "1 host")
	await(t, "seven", "the host has eight GPUs and is available", func(n *v1alpha1.NodeType) bool {
		return matches(n) && n.Status.Hosts == v1alpha1.HostCounts{Matching: 1, Available: 1}
	})
	before := record.DeepCopy()
	record.Status.Inventory.GPUs[0].LinkWidth, record.Status.Inventory.GPUs[0].MaxLinkWidth = 8, 16
	if err := server.Client.Status().Patch(t.Context(), record, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(promised), promised); err != nil {
		t.Fatal(err)
	}
	required := promised.DeepCopy()
	required.Spec.Hardware = &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
	if err := server.Client.Patch(t.Context(), required, client.MergeFrom(promised)); err != nil {
		t.Fatal(err)
	}
	lacks := hasHardware(metav1.ConditionFalse, v1alpha1.ReasonHardwareInsufficient, "s1 lacks hardware that the NodeType requires: expected that GPU 10de:2330 has its 16 PCIe lanes, seen 8")
	await(t, "seven", "a GPU has half of its lanes, and the host is not available", func(n *v1alpha1.NodeType) bool {
		return lacks(n) && n.Status.Hosts == v1alpha1.HostCounts{Matching: 1}
	})
	create(t, host(elsewhere, "copy", "ipmi://10.7.0.1"))
	await(t, "seven", "a server that two hosts have is not available", func(n *v1alpha1.NodeType) bool {
		return n.Status.Hosts == v1alpha1.HostCounts{Matching: 1, Error: 1}
	})
}
