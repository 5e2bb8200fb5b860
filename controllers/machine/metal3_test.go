package machine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
	"github.com/ingot-dev/ingot/test/management"
)

// metal3Rig is a rig whose hosts a baremetal-operator serves. They have no HostRecord.
type metal3Rig struct {
	*rig
	operator *baremetaloperator.Operator
	options  baremetaloperator.Options
	servers  map[string]*baremetaloperator.SimulatedServer
}

// forEachRelease runs the test with an operator that writes conditions, and with one that does not.
func forEachRelease(t *testing.T, run func(*testing.T, *metal3Rig)) {
	for _, conditions := range []bool{false, true} {
		t.Run(fmt.Sprintf("conditions=%t", conditions), func(t *testing.T) { run(t, newMetal3Rig(t, conditions)) })
	}
}

// newMetal3Rig has one host, server-00, which is available. The operator looks at a host only when look is called.
func newMetal3Rig(t *testing.T, conditions bool) *metal3Rig {
	t.Helper()
	r := &metal3Rig{rig: newRig(t, 0), servers: map[string]*baremetaloperator.SimulatedServer{}}
	r.serveMetal3()
	t.Cleanup(r.describe)
	if conditions {
		if err := baremetaloperator.AddConditions(t.Context(), server.Client); err != nil {
			t.Fatal(err)
		}
	}
	r.options = baremetaloperator.Options{
		Client: server.Client, Conditions: conditions, Retries: 1,
		Server: func(key types.NamespacedName) baremetaloperator.Server {
			if s := r.servers[key.Name]; s != nil {
				return s
			}
			return nil
		},
	}
	r.operator = baremetaloperator.New(r.options)
	r.addServed("server-00")
	return r
}

// describe logs what the Machine and the hosts say when the test has failed.
func (r *metal3Rig) describe() {
	if !r.t.Failed() {
		return
	}
	m, hosts := &v1alpha1.Machine{}, &metal3.BareMetalHostList{}
	_ = server.Client.Get(context.Background(), r.key(r.namespace), m)
	_ = server.Client.List(context.Background(), hosts, client.InNamespace(r.namespace))
	r.t.Logf("the Machine is %s: %+v", m.Status.Phase, m.Status.Conditions)
	for _, h := range hosts.Items {
		r.t.Logf("host %s: annotations %v, spec %+v, status %+v", h.Name, h.Annotations, h.Spec, h.Status)
	}
}

// addServed adds a host and lets the operator make it available.
func (r *metal3Rig) addServed(name string, changes ...func(*metal3.BareMetalHost)) {
	r.t.Helper()
	r.servers[name] = &baremetaloperator.SimulatedServer{}
	object := r.meta(name)
	object.Labels = map[string]string{"rack": r.namespace}
	h := &metal3.BareMetalHost{ObjectMeta: object, Spec: metal3.BareMetalHostSpec{
		BootMACAddress: "52:54:00:00:00:01",
		BMC:            metal3.BMCDetails{Address: "redfish://10.0.0.1/" + r.namespace + "/" + name, CredentialsName: name + "-bmc"},
	}}
	for _, change := range changes {
		change(h)
	}
	for _, o := range []client.Object{&corev1.Secret{ObjectMeta: r.meta(name + "-bmc"), Data: map[string][]byte{"username": []byte("root"), "password": []byte("calvin")}}, h} {
		if err := server.Client.Create(r.t.Context(), o); err != nil {
			r.t.Fatal(err)
		}
	}
	r.until("host "+name+" is available", func() bool { return r.bareHost(name).Status.Provisioning.State == metal3.StateAvailable })
	r.look(name) // its power
	r.look(name)
	r.t.Cleanup(func() { r.remove(name) })
}

// remove removes the host when the test has ended.
func (r *metal3Rig) remove(name string) {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	h := &metal3.BareMetalHost{ObjectMeta: r.meta(name)}
	_ = server.Client.Patch(context.Background(), h, patch)
	if err := client.IgnoreNotFound(server.Client.Delete(context.Background(), h)); err != nil {
		r.t.Error(err)
	}
}

// look lets the operator look at the host once.
func (r *metal3Rig) look(name string) {
	r.t.Helper()
	// A conflict with the controller's write is retried by the next look.
	if _, err := r.operator.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: r.key(name)}); err != nil && !strings.Contains(err.Error(), "the object has been modified") {
		r.t.Logf("the operator: %v", err)
	}
}

// until lets the operator look at every host until the condition holds.
func (r *metal3Rig) until(what string, holds func() bool) {
	r.t.Helper()
	management.Eventually(r.t, what, func() bool {
		for name := range r.servers {
			h := r.bareHost(name)
			if h.Spec.Image == nil && h.Spec.ConsumerRef != nil && r.servers[name].IsRunning() {
				r.t.Errorf("host %s has no image any more, and its server runs", name)
			}
			r.look(name)
		}
		return holds()
	})
}

func (r *metal3Rig) phase() v1alpha1.MachinePhase { return r.machine(r.namespace).Status.Phase }

// untilPhase lets the operator look until the Machine is in the phase.
func (r *metal3Rig) untilPhase(want v1alpha1.MachinePhase) {
	r.t.Helper()
	r.until("the Machine is "+string(want), func() bool { return r.phase() == want })
}

// join registers the node of the attempt that is installed, and passes its verdict.
func (r *metal3Rig) join() {
	r.t.Helper()
	r.untilPhase(v1alpha1.MachineJoining)
	m := r.machine(r.namespace)
	if !r.servers[m.Status.HostRef.Name].IsRunning() {
		r.t.Error("the Machine is Joining, and its server does not run")
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: corev1.NodeSpec{ProviderID: v1alpha1.ProviderID(m.UID, m.Status.Attempt),
		Taints: []corev1.Taint{{Key: v1alpha1.DefaultGateTaintKey, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: fmt.Sprint("boot-", m.Status.Attempt)}}}
	server.Create(r.t, node)
	r.t.Cleanup(func() { _ = server.Client.Delete(context.Background(), node) })
	r.untilPhase(v1alpha1.MachineValidating)
	r.judge(m.Name, v1alpha1.Verdict{Result: v1alpha1.CheckPass, Admitted: true, NodeUID: node.UID, BootID: node.Status.NodeInfo.BootID, Revision: m.Status.Revision, Rendering: m.Status.Rendering})
	r.untilPhase(v1alpha1.MachineReady)
}

// ready starts the controller and brings one Machine to Ready.
func (r *metal3Rig) ready() {
	r.t.Helper()
	r.start()
	r.addMachine(r.namespace)
	r.join()
}

// deleteMachine deletes the Machine of the namespace's name.
func (r *metal3Rig) deleteMachine() {
	r.t.Helper()
	if err := server.Client.Delete(r.t.Context(), r.machine(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
}

// release deletes the Machine, unless it is deleted already, and waits until it is gone.
func (r *metal3Rig) release() {
	r.t.Helper()
	if r.machine(r.namespace).DeletionTimestamp == nil {
		r.deleteMachine()
	}
	r.until("the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
}

// provisionUnseen has a Machine whose host is provisioned and runs, while the operator has not looked at its power yet.
func (r *metal3Rig) provisionUnseen() {
	r.t.Helper()
	r.start()
	r.addMachine(r.namespace)
	r.until("the host is provisioned", func() bool { return r.bareHost("server-00").Status.Provisioning.State == metal3.StateProvisioned })
	if h := r.bareHost("server-00"); h.Status.PoweredOn || !r.servers["server-00"].IsRunning() {
		r.t.Fatal("the operator of the tests is to write provisioned before it looks at the power")
	}
}

// TestAMachineLivesOnAHostOfABaremetalOperator claims, installs, joins, rolls to a revision of the same image and releases.
func TestAMachineLivesOnAHostOfABaremetalOperator(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		next := r.addRevision(2, "1.37.0", func(image *v1alpha1.OSImage, revision *v1alpha1.NodeTypeRevision) {
			image.Spec.URL = "http://127.0.0.1/image-1.raw.zst"
			revision.Spec.Properties[0] = map[string]string{"message": "of the second revision"}
		})
		r.ready()
		disk := r.servers["server-00"]
		first := disk.Disk()
		if !strings.Contains(string(first.UserData), "of the hall") || !strings.Contains(string(first.MetaData), r.namespace) {
			t.Errorf("the server has the user data %q and the meta data %q", first.UserData, first.MetaData)
		}
		r.want(r.namespace, next)
		r.untilPhase(v1alpha1.MachineDraining)
		r.join()
		r.until("the host has its cleaning mode again", func() bool {
			return r.bareHost("server-00").Spec.AutomatedCleaningMode == metal3.CleaningModeMetadata
		})
		if second := disk.Disk(); second.URL != first.URL || !strings.Contains(string(second.UserData), "of the second revision") {
			t.Errorf("after the roll to a revision of the same image the server has %s with the user data %q", second.URL, second.UserData)
		}
		claim := &corev1.Secret{}
		r.until("the Secret of the second attempt has the operator's label and no token", func() bool {
			err := server.Client.Get(t.Context(), r.key("server-00-claim-2"), claim)
			return err == nil && claim.Labels[baremetaloperator.SecretLabel] == baremetaloperator.SecretLabelValue && claim.Annotations[v1alpha1.AnnotationClaimTokenID] == "" && len(claim.Data["bootstrapToken"]) == 0
		})
		if err := server.Client.Get(t.Context(), r.key("server-00-claim-1"), claim); !apierrors.IsNotFound(err) {
			t.Errorf("the Secret of the first attempt is still there: %v", err)
		}
		r.release()
		if h := r.bareHost("server-00"); h.Spec.ConsumerRef != nil || h.Spec.Image != nil || h.Status.Provisioning.State != metal3.StateAvailable || disk.IsRunning() {
			t.Errorf("after the release the host is %+v, %s", h.Spec, h.Status.Provisioning.State)
		}
		// The operator cleans twice where it removes the annotation for a reboot in between.
		if got, want := strings.Join(slices.Compact(disk.History()), "; "), "deploy "+first.URL+"; clean disabled; deploy "+first.URL+"; clean metadata"; got != want {
			t.Errorf("the disk went through %s, expected %s", got, want)
		}
		if erased := r.bareHost("server-00").Annotations[v1alpha1.AnnotationLastErase]; erased != "Metadata" {
			t.Errorf("the host says that its last erase was %q", erased)
		}
	})
}

// awaitPowerOff waits until the Machine waits for the power-off of a host whose status says off already. An operator without conditions is asked when it
// has seen the server on, because only that shows that it sees it off later.
func (r *metal3Rig) awaitPowerOff() {
	r.t.Helper()
	says := "has been seen on"
	if r.options.Conditions {
		says = "has not confirmed"
		management.Eventually(r.t, "the host is to be powered off", func() bool { return !r.bareHost("server-00").Spec.Online })
	}
	management.Eventually(r.t, "the Machine waits for the power-off", func() bool {
		c := r.condition(r.namespace, v1alpha1.ConditionReady)
		return c.Reason == v1alpha1.ReasonPoweringOff && strings.Contains(c.Message, says)
	})
}

// TestAPowerOffIsConfirmedOnlyByAStatusThatIsNewer deletes a Machine when its host is provisioned and the operator has not looked at the power yet.
func TestAPowerOffIsConfirmedOnlyByAStatusThatIsNewer(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		r.provisionUnseen()
		r.deleteMachine()
		r.awaitPowerOff()
		if r.bareHost("server-00").Spec.Image == nil {
			t.Error("the host is deprovisioned while its server runs")
		}
		r.until("the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
	})
}

// TestAnAvailableHostThatIsOnIsClaimed takes a host of a site that keeps its hosts online, and not one that is never powered off.
func TestAnAvailableHostThatIsOnIsClaimed(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.remove("server-00")
	delete(r.servers, "server-00")
	r.addServed("server-01", func(h *metal3.BareMetalHost) { h.Spec.Online, h.Spec.DisablePowerOff = true, true })
	r.start()
	r.addMachine(r.namespace)
	management.Eventually(t, "the host that is never powered off is passed over", func() bool {
		return strings.Contains(r.condition(r.namespace, v1alpha1.ConditionClaimed).Message, "1 never powered off (spec.disablePowerOff)")
	})
	r.addServed("server-02", func(h *metal3.BareMetalHost) { h.Spec.Online = true })
	if !r.bareHost("server-02").Status.PoweredOn {
		r.until("the operator has powered the host on", func() bool { return r.bareHost("server-02").Status.PoweredOn })
	}
	r.join()
	if host := r.machine(r.namespace).Status.HostRef.Name; host != "server-02" {
		t.Errorf("the Machine has %s", host)
	}
}

// TestAHostThatIsDeletedUnderItsMachineIsReported says so before the operator has done anything, and tells the way back.
func TestAHostThatIsDeletedUnderItsMachineIsReported(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.ready()
	if err := server.Client.Delete(t.Context(), r.bareHost("server-00")); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Machine says that its host is being deleted", func() bool {
		c := r.condition(r.namespace, v1alpha1.ConditionClaimed)
		return c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonHostDeleting && strings.Contains(c.Message, "create the BareMetalHost again")
	})
	if s := r.servers["server-00"]; !s.IsRunning() {
		t.Error("the operator was not to look yet")
	}
	// The way back that it tells.
	management.Eventually(t, "the host is gone", func() bool {
		r.look("server-00")
		return apierrors.IsNotFound(server.Client.Get(t.Context(), r.key("server-00"), &metal3.BareMetalHost{}))
	})
	if r.servers["server-00"].IsRunning() {
		t.Error("the host is gone, and its server runs")
	}
	delete(r.servers, "server-00")
	r.release()
	// Nobody can confirm the power-off of a host that is gone, so its Node is left to a person.
	if err := server.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: r.global()}); err != nil {
		t.Fatal(err)
	}
	// The operator owns the Secret, so Kubernetes collects it with the host, sooner or later.
	if err := server.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: r.meta("server-00-bmc")}); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	r.addServed("server-00")
	r.addMachine(r.namespace)
	r.join()
}

// TestTwoSitesOfBaremetalOperatorsAreServedAtOnce has a NodeProvider with hosts in each of two namespaces, and one manager.
func TestTwoSitesOfBaremetalOperatorsAreServedAtOnce(t *testing.T) {
	first, second := newMetal3Rig(t, true), newMetal3Rig(t, true)
	first.neighbour = second.rig
	first.start()
	for _, r := range []*metal3Rig{first, second} {
		r.addMachine(r.namespace)
	}
	for _, r := range []*metal3Rig{first, second} {
		r.join()
		if host := r.machine(r.namespace).Status.HostRef; host.Namespace != r.namespace {
			t.Errorf("the Machine of %s has host %s/%s", r.namespace, host.Namespace, host.Name)
		}
	}
	first.release()
	if second.phase() != v1alpha1.MachineReady || !second.servers["server-00"].IsRunning() {
		t.Errorf("when the other site's Machine was released, this one's became %s", second.phase())
	}
}

// TestAMachineLivesThroughFaultsOfItsHost lets everything that is done with the server fail at first and take its time then. The operator is started
// again in every phase, and the Secret of the BMC is missing for a while. No host is without image while its server runs: see until.
func TestAMachineLivesThroughFaultsOfItsHost(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		next := r.addRevision(2, "1.37.0")
		r.options.Retries = 3
		disturb := func() {
			r.operator = baremetaloperator.New(r.options)
			for _, op := range []baremetaloperator.Operation{baremetaloperator.Registering, baremetaloperator.Looking, baremetaloperator.Powering, baremetaloperator.Deploying, baremetaloperator.Cleaning} {
				r.servers["server-00"].Fail(op, 1)
				r.servers["server-00"].Delay(op, 2)
			}
		}
		disturb()
		r.ready()
		disturb()
		r.want(r.namespace, next)
		r.untilPhase(v1alpha1.MachineDraining)
		disturb()
		giveBack, err := baremetaloperator.TakeSecret(t.Context(), server.Client, r.key("server-00-bmc"))
		if err != nil {
			t.Fatal(err)
		}
		r.until("the Machine says that the BMC cannot be used", func() bool {
			return r.condition(r.namespace, v1alpha1.ConditionReady).Reason == v1alpha1.ReasonBMCUnreachable
		})
		if err := giveBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.join()
		disturb()
		r.release()
		if h := r.bareHost("server-00"); h.Spec.ConsumerRef != nil || h.Annotations[v1alpha1.AnnotationLastErase] != "Metadata" {
			t.Errorf("the host is %v's, and its last erase was %q", h.Spec.ConsumerRef, h.Annotations[v1alpha1.AnnotationLastErase])
		}
	})
}

func TestAnImageThatOnlyIronicReachesIsInstalled(t *testing.T) {
	r := newMetal3Rig(t, true)
	image := &v1alpha1.OSImage{}
	if err := server.Client.Get(t.Context(), types.NamespacedName{Name: r.namespace + "-1"}, image); err != nil {
		t.Fatal(err)
	}
	image.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionImageReachable, Status: metav1.ConditionFalse, Reason: "ImageMissing", Message: "the server answers 404", LastTransitionTime: metav1.Now()}}
	if err := server.Client.Status().Update(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	r.ready()
	management.Eventually(t, "an event warns", func() bool {
		events := &eventsv1.EventList{}
		if err := server.Client.List(t.Context(), events, client.InNamespace(r.namespace)); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Reason == v1alpha1.ReasonAcceptedWithWarnings && strings.Contains(e.Note, "the server answers 404; it is installed all the same") {
				return true
			}
		}
		return false
	})
}
