package fleet

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

// servedHost is a host of a metal3 NodeProvider in the state.
func servedHost(state metal3.ProvisioningState, change func(*metal3.BareMetalHost)) placement.HostFacts {
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "server-04", Finalizers: []string{metal3.BareMetalHostFinalizer}}}
	h.Status.Provisioning.State = state
	change(h)
	return placement.HostFacts{Host: h}
}

// claimedBy has the kind of a consumer and names its object research/one.
func claimedBy(kind string) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: kind, Namespace: "research", Name: "one", UID: "m"}
	if kind == "Machine" {
		ref.APIVersion = v1alpha1.GroupVersion.String()
	}
	return ref
}

func TestAdviceAboutTheHostOfABaremetalOperatorAsksItAndNobodyElse(t *testing.T) {
	inError := func(kind metal3.ErrorType) func(*metal3.BareMetalHost) {
		return func(h *metal3.BareMetalHost) {
			h.Status.OperationalStatus, h.Status.ErrorType, h.Status.ErrorMessage = metal3.OperationalStatusError, kind, "as it says"
		}
	}
	const describe = "kubectl describe bmh -n metal server-04"
	for _, c := range []struct {
		reason string
		host   placement.HostFacts
		next   string
	}{
		{v1alpha1.ReasonBMCUnreachable, servedHost(metal3.StateProvisioning, inError(metal3.RegistrationError)), "look at server-04's BMC: its network, its address in spec.bmc, and the Secret"},
		{v1alpha1.ReasonBMCConflict, servedHost(metal3.StateProvisioned, inError(metal3.PowerManagementError)), "look at server-04's BMC: it does not change the power"},
		{"InstallerFailed", servedHost(metal3.StateProvisioning, inError(metal3.ProvisioningError)), "see what Ironic says (" + describe + ")"},
		{v1alpha1.ReasonHostError, servedHost(metal3.StateInspecting, inError(metal3.InspectionError)), describe},
		{v1alpha1.ReasonHostError, servedHost(metal3.StateInspecting, inError("an error of tomorrow")), describe},
		{v1alpha1.ReasonProvisioningTimedOut, servedHost(metal3.StateProvisioning, func(*metal3.BareMetalHost) {}), "the node of server-04 in Ironic"},
		{v1alpha1.ReasonEraseFailed, servedHost(metal3.StateDeprovisioning, inError(metal3.ProvisioningError)), describe + " says what failed"},
		{v1alpha1.ReasonJoinTimedOut, servedHost(metal3.StateProvisioned, func(*metal3.BareMetalHost) {}), "journalctl -u kubelet"},
	} {
		m := machine("one", v1alpha1.MachineProvisioning, 5, 9, isNot(c.reason, "m"))
		m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
		next := Diagnose(&m, &c.host, nil, noon).Next
		if !strings.Contains(next, c.next) {
			t.Errorf("%s with %q: next is %q, expected %q", c.reason, c.host.Host.Status.ErrorType, next, c.next)
		}
		for _, wrong := range []string{v1alpha1.AnnotationRetry, v1alpha1.AnnotationErase, "--log", "HOST", "NAMESPACE"} {
			if strings.Contains(next, wrong) {
				t.Errorf("%s with %q: next is %q, and %s means nothing here", c.reason, c.host.Host.Status.ErrorType, next, wrong)
			}
		}
	}
}

func TestAnErrorThatABaremetalOperatorHasUndoneKeepsNobodyFromTheHost(t *testing.T) {
	facts := servedHost(metal3.StateAvailable, func(h *metal3.BareMetalHost) {
		h.Status.OperationalStatus, h.Status.ErrorType, h.Status.ErrorMessage = metal3.OperationalStatusError, metal3.ProvisioningError, "no such image"
	})
	providers := []v1alpha1.NodeProvider{{Spec: v1alpha1.NodeProviderSpec{HostNamespace: "metal", Metal3: &v1alpha1.Metal3Provider{}}}}
	row := HostRows([]placement.HostFacts{facts}, nil, providers, nil)[0]
	if line := strings.Join(hostTable([]HostRow{row}, false)[1], "|"); row.Use != "free" || !strings.HasSuffix(line, "; an installation before failed and is undone: provisioning error: no such image") {
		t.Errorf("use %q, line %q", row.Use, line)
	}
	if next := DiagnoseHost(facts, nil, noon).Next; !strings.HasPrefix(next, "nothing: the installation that failed is undone") {
		t.Errorf("next is %q", next)
	}
	facts.Host.Annotations = map[string]string{placement.AnnotationLastTenant: "rival/rival"}
	if text := DiagnoseHost(facts, &providers[0].Spec, noon).text(); !strings.Contains(text, "; is free for its last tenant only: was tenant rival/rival's") {
		t.Errorf("why it is not free for all is missing in\n%s", text)
	}
	facts.Host.Spec.Image = &metal3.Image{URL: "http://images/a.raw"}
	if row := HostRows([]placement.HostFacts{facts}, nil, providers, nil)[0]; row.Use != "error" {
		t.Errorf("a host that is asked for an image is %s, with the error of that image", row.Use)
	}
}

// TestAnAnnotationOnWhichNothingActsIsNamed has a request of each kind on a host that a baremetal-operator serves, and on one that it does not.
func TestAnAnnotationOnWhichNothingActsIsNamed(t *testing.T) {
	providers := []v1alpha1.NodeProvider{{Spec: v1alpha1.NodeProviderSpec{HostNamespace: "metal", Metal3: &v1alpha1.Metal3Provider{}}}}
	for _, name := range []string{v1alpha1.AnnotationErase, v1alpha1.AnnotationRetry, v1alpha1.AnnotationDiskGone, v1alpha1.AnnotationRootDisk} {
		facts := servedHost(metal3.StateProvisioned, func(h *metal3.BareMetalHost) {
			h.Annotations, h.Spec.ConsumerRef = map[string]string{name: "Full"}, claimedBy("Machine")
		})
		row := HostRows([]placement.HostFacts{facts}, nil, providers, MachineUIDs{"m": true})[0]
		m := machine("one", v1alpha1.MachineReady, 5, 0, isReady())
		m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
		for _, text := range []string{strings.Join(hostTable([]HostRow{row}, false)[1], "|"), Diagnose(&m, &facts, nil, noon).text(), DiagnoseHost(facts, &providers[0].Spec, noon).text()} {
			if !strings.Contains(text, "annotation "+name+" has no effect: a baremetal-operator serves this host") || !strings.Contains(text, "kubectl annotate bmh -n metal server-04 "+name+"-") {
				t.Errorf("%s is not named in\n%s", name, text)
			}
		}
		facts.Record, facts.Host.Finalizers = &v1alpha1.HostRecord{}, nil
		if row := HostRows([]placement.HostFacts{facts}, nil, nil, MachineUIDs{"m": true})[0]; len(row.IgnoredAnnotations) > 0 {
			t.Errorf("%s has an effect on a host with a HostRecord, and is called ignored: %v", name, row.IgnoredAnnotations)
		}
	}
	free := servedHost(metal3.StateAvailable, func(h *metal3.BareMetalHost) { h.Annotations = map[string]string{v1alpha1.AnnotationErase: "Full"} })
	row := HostRows([]placement.HostFacts{free}, nil, providers, nil)[0]
	if line := strings.Join(hostTable([]HostRow{row}, false)[1], "|"); row.Use != "EraseUnsupported" || strings.Count(line, v1alpha1.AnnotationErase) != 1 || !strings.Contains(line, "on which nothing acts") {
		t.Errorf("use %q, line %q", row.Use, line)
	}
}

func TestNothingKeepsADeletedHostOfABaremetalOperatorForItsMachine(t *testing.T) {
	now := metav1.NewTime(noon)
	facts := servedHost(metal3.StateDeprovisioning, func(h *metal3.BareMetalHost) {
		h.DeletionTimestamp, h.Spec.ConsumerRef = &now, claimedBy("Machine")
	})
	m := machine("one", v1alpha1.MachineReady, 5, 0, isReady())
	m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
	d := Diagnose(&m, &facts, nil, noon)
	row := HostRows([]placement.HostFacts{facts}, nil, nil, MachineUIDs{"m": true})[0]
	for _, text := range []string{d.text(), d.Next, strings.Join(hostTable([]HostRow{row}, false)[1], "|")} {
		if strings.Contains(text, "kept for") || !strings.Contains(text, "kubectl delete machine -n research one, and create the BareMetalHost again") {
			t.Errorf("it says %q", text)
		}
	}
}

func TestAHostOfAnotherConsumerIsShownWithItsKind(t *testing.T) {
	facts := servedHost(metal3.StateProvisioned, func(h *metal3.BareMetalHost) { h.Spec.ConsumerRef = claimedBy("Metal3Machine") })
	if row := HostRows([]placement.HostFacts{facts}, nil, nil, MachineUIDs{})[0]; row.Claimed != "Metal3Machine research/one" || row.Use != "claimed" || row.Release != "" {
		t.Errorf("%+v", row)
	}
	facts.Host.Spec.ConsumerRef = claimedBy("Machine")
	if row := HostRows([]placement.HostFacts{facts}, nil, nil, MachineUIDs{"m": true})[0]; row.Claimed != "research/one" {
		t.Errorf("a Machine's host: %+v", row)
	}
}

func TestAdviceAboutAHostOfIronicNamesItsNode(t *testing.T) {
	m := machine("one", v1alpha1.MachineProvisioning, 5, 0, isNot(v1alpha1.ReasonProvisioningTimedOut, "m"))
	m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
	host := placement.HostFacts{
		Host:   &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "server-04"}},
		Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Wanted: &v1alpha1.WantedAttempt{Operation: "Install", Outcome: v1alpha1.AttemptFailed}}},
	}
	d := Diagnose(&m, &host, nil, noon)
	if !strings.Contains(d.text(), "ingot why --log metal/server-04") {
		t.Errorf("without a known provider:\n%s", d.text())
	}
	d.setProvider(providerkind.Ironic)
	if !strings.Contains(d.Next, "openstack baremetal node show --instance $(kubectl get bmh -n metal server-04 -o jsonpath={.metadata.uid})") || strings.Contains(d.text(), "--log") {
		t.Errorf("with Ironic:\n%s", d.text())
	}
}
