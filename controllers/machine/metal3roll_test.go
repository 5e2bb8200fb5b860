package machine_test

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// course is what happened to a host and a Node, in the order of the API server's versions.
type course struct {
	mu     sync.Mutex
	events []courseEvent
}

type courseEvent struct {
	version uint64
	text    string
}

func (c *course) add(version, format string, args ...any) {
	n, _ := strconv.ParseUint(version, 10, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, courseEvent{n, fmt.Sprintf(format, args...)})
}

func (c *course) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := slices.SortedFunc(slices.Values(c.events), func(a, b courseEvent) int { return int(a.version) - int(b.version) })
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = e.text
	}
	return lines
}

// follow records the course of the host and of the Node until the test ends.
func (r *metal3Rig) follow(host, node string) *course {
	r.t.Helper()
	c := &course{}
	watcher, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Scheme})
	if err != nil {
		r.t.Fatal(err)
	}
	last, lastNode := r.bareHost(host), &corev1.Node{}
	if err := server.Client.Get(r.t.Context(), client.ObjectKey{Name: node}, lastNode); err != nil {
		r.t.Fatal(err)
	}
	hosts, err := watcher.Watch(r.t.Context(), &metal3.BareMetalHostList{}, client.InNamespace(r.namespace), &client.ListOptions{Raw: listFrom(last)})
	if err != nil {
		r.t.Fatal(err)
	}
	nodes, err := watcher.Watch(r.t.Context(), &corev1.NodeList{}, &client.ListOptions{Raw: listFrom(lastNode)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { hosts.Stop(); nodes.Stop() })
	go func() {
		for e := range hosts.ResultChan() {
			if h, isHost := e.Object.(*metal3.BareMetalHost); isHost && h.Name == host {
				c.addHost(last, h)
				last = h
			}
		}
	}()
	go func() {
		for e := range nodes.ResultChan() {
			n, isNode := e.Object.(*corev1.Node)
			switch {
			case !isNode || n.Name != node:
			case e.Type == watch.Deleted:
				c.add(n.ResourceVersion, "Node deleted")
			case e.Type == watch.Modified && n.Spec.Unschedulable != lastNode.Spec.Unschedulable:
				c.add(n.ResourceVersion, "Node cordoned: %t", n.Spec.Unschedulable)
			}
			if isNode && n.Name == node {
				lastNode = n
			}
		}
	}()
	return c
}

// addHost records what changed of what the contract is about.
func (c *course) addHost(before, after *metal3.BareMetalHost) {
	asked := func(h *metal3.BareMetalHost) string {
		text := fmt.Sprintf("online %t, cleaning %s", h.Spec.Online, h.Spec.AutomatedCleaningMode)
		if h.Spec.Image != nil {
			text += ", " + path.Base(h.Spec.Image.URL)
		}
		if documents := []*corev1.SecretReference{h.Spec.UserData, h.Spec.MetaData, h.Spec.NetworkData}; slices.Contains(documents, nil) {
			return text
		}
		return fmt.Sprintf("%s, documents %s %s %s", text, h.Spec.UserData.Name, h.Spec.MetaData.Name, h.Spec.NetworkData.Name)
	}
	is := func(h *metal3.BareMetalHost) string {
		return fmt.Sprintf("%s %s", h.Status.Provisioning.State, path.Base(h.Status.Provisioning.Image.URL))
	}
	if asked(before) != asked(after) {
		c.add(after.ResourceVersion, "asked: %s", asked(after))
	}
	if before.Status.PoweredOn && !after.Status.PoweredOn {
		c.add(after.ResourceVersion, "is off")
	}
	switch s := after.Status.Provisioning.State; {
	case is(before) != is(after) && (s == metal3.StateAvailable || s == metal3.StateProvisioned):
		c.add(after.ResourceVersion, "is %s", is(after))
	}
}

// TestARollOnAHostOfABaremetalOperatorHasOneOrder rolls to a revision that has the same image, so that only the removal of the image leads to another
// installation. Every write of the host counts: the server is off before its Node goes, the Node is gone before the image is removed, nothing is cleaned,
// what is installed next comes in one write, and the cleaning mode comes back when that is done.
func TestARollOnAHostOfABaremetalOperatorHasOneOrder(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		next := r.addRevision(2, "1.37.0", func(image *v1alpha1.OSImage, revision *v1alpha1.NodeTypeRevision) {
			image.Spec.URL = "http://127.0.0.1/image-1.raw.zst"
			revision.Spec.Properties[0] = map[string]string{"message": "of the second revision"}
		})
		r.ready()
		c := r.follow("server-00", r.namespace)
		r.want(r.namespace, next)
		r.untilPhase(v1alpha1.MachineDraining)
		r.join()
		want := []string{
			"Node cordoned: true",
			"asked: online false, cleaning metadata, image-1.raw.zst, documents server-00-claim-1 server-00-claim-1 server-00-claim-1",
			"is off",
			"Node deleted",
			"asked: online false, cleaning disabled",
			"is available .",
			"asked: online true, cleaning disabled, image-1.raw.zst, documents server-00-claim-2 server-00-claim-2 server-00-claim-2",
			"is provisioned image-1.raw.zst",
			"asked: online true, cleaning metadata, image-1.raw.zst, documents server-00-claim-2 server-00-claim-2 server-00-claim-2",
		}
		management.Eventually(t, "the watch has all of the roll", func() bool { return len(c.lines()) >= len(want) })
		if got := c.lines(); !slices.Equal(got, want) {
			t.Errorf("the roll went\n  %s\nexpected\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	})
}

// TestWhatOthersAskOfAHostIsLeftAlone has settings of a site in the host, and annotations that people set while a Machine has it.
func TestWhatOthersAskOfAHostIsLeftAlone(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		yes := true
		r.editBareHost("server-00", func(h *metal3.BareMetalHost) {
			h.Spec.BootMode, h.Spec.Architecture, h.Spec.Description = metal3.UEFISecureBoot, "x86_64", "row 4"
			h.Spec.RootDeviceHints = &metal3.RootDeviceHints{DeviceName: "/dev/nvme0n1"}
			h.Spec.Firmware = &metal3.FirmwareConfig{SriovEnabled: &yes}
			h.Spec.RAID = &metal3.RAIDConfig{SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{{Level: "1"}}}
			h.Spec.PreprovisioningNetworkDataName = "site"
		})
		before := r.bareHost("server-00").Spec
		next := r.addRevision(2, "1.37.0")
		r.ready()

		// Somebody keeps the server off. A roll goes on, and leaves that as it is. Without conditions nothing shows that it is still off.
		const maintenance = metal3.RebootAnnotationPrefix + "/maintenance"
		r.annotate("server-00", maintenance, "")
		r.until("the operator has powered the server off", func() bool { return !r.servers["server-00"].IsRunning() })
		r.want(r.namespace, next)
		if !r.options.Conditions {
			r.until("the Machine says what it waits for", func() bool {
				c := r.condition(r.namespace, v1alpha1.ConditionReady)
				return c.Reason == v1alpha1.ReasonPoweringOff && strings.Contains(c.Message, "remove each annotation reboot.metal3.io/NAME that keeps it off")
			})
			r.annotate("server-00", maintenance, nil)
			r.until("the operator is asked for the power-off", func() bool { return !r.bareHost("server-00").Spec.Online })
			r.annotate("server-00", maintenance, "")
		}
		r.until("the second revision is provisioned", func() bool {
			s := r.bareHost("server-00").Status.Provisioning
			return s.State == metal3.StateProvisioned && strings.HasSuffix(s.Image.URL, "image-2.raw.zst")
		})
		if _, isSet := r.bareHost("server-00").Annotations[maintenance]; !isSet {
			t.Error("the annotation with which somebody keeps the server off was removed")
		}
		r.annotate("server-00", maintenance, nil)
		r.until("the server runs", r.servers["server-00"].IsRunning)
		r.join()

		r.annotate("server-00", metal3.PausedAnnotation, "")
		r.deleteMachine()
		r.awaitUntouched(v1alpha1.ReasonHostPaused)
		r.annotate("server-00", metal3.DetachedAnnotation, "")
		r.annotate("server-00", metal3.PausedAnnotation, nil)
		r.awaitUntouched(v1alpha1.ReasonHostDetached)
		r.annotate("server-00", metal3.DetachedAnnotation, nil)
		r.until("the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
		after := r.bareHost("server-00").Spec
		if after.Online = before.Online; !equality.Semantic.DeepEqual(before, after) {
			t.Errorf("the host was given back with\n%+v, it was taken with\n%+v", after, before)
		}
		if got := r.servers["server-00"].History(); got[len(got)-1] != "clean metadata" {
			t.Errorf("the disk went through %v", got)
		}
	})
}

// awaitUntouched waits until the Machine, which is deleted, says why nothing is done with its host, and checks that nothing was.
func (r *metal3Rig) awaitUntouched(reason string) {
	r.t.Helper()
	r.until("the Machine says "+reason, func() bool {
		r.poke(r.namespace)
		return r.condition(r.namespace, v1alpha1.ConditionReady).Reason == reason
	})
	if !r.servers["server-00"].IsRunning() || r.bareHost("server-00").Spec.Image == nil {
		r.t.Errorf("%s: the server is off, or has no image any more", reason)
	}
}

// editBareHost changes a host that has no HostRecord.
func (r *metal3Rig) editBareHost(name string, change func(*metal3.BareMetalHost)) {
	r.t.Helper()
	h := r.bareHost(name)
	before := h.DeepCopy()
	change(h)
	if err := server.Client.Patch(r.t.Context(), h, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// annotate sets the annotation; nil removes it.
func (r *metal3Rig) annotate(name, key string, value any) {
	r.t.Helper()
	r.editBareHost(name, func(h *metal3.BareMetalHost) {
		delete(h.Annotations, key)
		if text, isText := value.(string); isText {
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, key, text)
		}
	})
}

// listFrom makes a watch begin after what was read.
func listFrom(o client.Object) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: o.GetResourceVersion()}
}

func TestAServerThatAPersonRebootsIsInstalledOnAsBefore(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.ready()
	r.annotate("server-00", metal3.RebootAnnotationPrefix, `{"mode":"hard"}`)
	r.until("the server was rebooted", func() bool {
		_, isAsked := r.bareHost("server-00").Annotations[metal3.RebootAnnotationPrefix]
		return !isAsked && r.servers["server-00"].IsRunning()
	})
	if phase := r.phase(); phase != v1alpha1.MachineReady && phase != v1alpha1.MachineValidating {
		t.Errorf("the Machine is %s", phase)
	}
	if got := r.servers["server-00"].History(); len(got) != 1 {
		t.Errorf("the disk went through %v", got)
	}
}

// TestAPersonsRebootIsNotTakenForThePowerOff releases a host whose operator has not looked at the power yet, so that its status says off while the server
// runs. A person has asked for a reboot before, and takes that back before the operator sees it: that confirms nothing.
func TestAPersonsRebootIsNotTakenForThePowerOff(t *testing.T) {
	const hard = `{"mode":"hard"}`
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		r.provisionUnseen()
		r.annotate("server-00", metal3.RebootAnnotationPrefix, hard)
		r.deleteMachine()
		if r.options.Conditions {
			management.Eventually(t, "the host is to be powered off", func() bool { return !r.bareHost("server-00").Spec.Online })
		} else {
			r.awaitPowerOff()
		}
		if value := r.bareHost("server-00").Annotations[metal3.RebootAnnotationPrefix]; value != hard {
			t.Errorf("the annotation with which a person asks for a hard reboot is %q", value)
		}
		r.annotate("server-00", metal3.RebootAnnotationPrefix, nil)
		r.awaitPowerOff()
		if h := r.bareHost("server-00"); h.Spec.Image == nil || !r.servers["server-00"].IsRunning() {
			t.Error("the host is deprovisioned while its server runs")
		}
		r.until("the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
	})
}
