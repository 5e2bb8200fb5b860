package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

// backupKinds are the kinds that a backup of objects has to have, in the order in which they are restored.
var backupKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Secret"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	v1alpha1.GroupVersion.WithKind("NodeProvider"), v1alpha1.GroupVersion.WithKind("OSImage"), v1alpha1.GroupVersion.WithKind("TenantCluster"),
	v1alpha1.GroupVersion.WithKind("NodeType"), v1alpha1.GroupVersion.WithKind("NodeTypeRevision"), v1alpha1.GroupVersion.WithKind("NodeTypeRendering"),
	metal3.GroupVersion.WithKind("BareMetalHost"), v1alpha1.GroupVersion.WithKind("HostRecord"),
	v1alpha1.GroupVersion.WithKind("NodePool"), v1alpha1.GroupVersion.WithKind("Machine"), v1alpha1.GroupVersion.WithKind("Rollout"),
}

// restoreCase is a fleet whose management cluster is restored object by object.
type restoreCase struct {
	*pipeline
	// settled are the servers whose Machines must not notice, by the name of the Machine.
	settled map[string]string
	cancel  context.CancelFunc
}

func TestARestoreWithNewUIDsTouchesNoSettledServer(t *testing.T) {
	require.Turn(t, 2)
	t.Parallel()
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	var servers []rack.ServerSpec
	for _, name := range []string{"ready", "validating", "off", "free", "joining-1", "writing-1", "leaving-1", "joining-2", "writing-2", "leaving-2", "claiming", rolled, fenced} {
		servers = append(servers, rack.ServerSpec{Name: name, Profile: profile})
	}
	p := startPipeline(t, servers)
	s := &restoreCase{pipeline: p, settled: map[string]string{"ready": "ready", "validating": "validating", "off": "off"}}
	s.cancel = func() {}
	s.settle(t)
	for i, withStatus := range []bool{false, true} {
		run := fmt.Sprint(i + 1)
		name := "without status"
		if withStatus {
			name = "with status"
		}
		t.Run(name, func(t *testing.T) { s.restoreOnce(t, run, withStatus) })
		if t.Failed() {
			return
		}
	}
	s.judge(t.Context(), t)
}

// settle brings the Machines into the phases in which they stay.
func (s *restoreCase) settle(t *testing.T) {
	// What a backup says of free hosts is old, so their disks count as an unknown tenant's, and by default ask for a full erase.
	var providers v1alpha1.NodeProviderList
	if err := s.env.ManagementClient.List(t.Context(), &providers); err != nil || len(providers.Items) == 0 {
		t.Fatalf("%d NodeProviders, %v", len(providers.Items), err)
	}
	patch := []byte(`{"spec":{"erase":{"allowMetadataBetweenTenants":true,"allowForgeableEraseBetweenTenants":true}}}`)
	for i := range providers.Items {
		if err := s.env.ManagementClient.Patch(t.Context(), &providers.Items[i], client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	s.env.Rack.Server("validating").SetFaults(rack.Faults{FallenGPUs: 1})
	for _, name := range []string{"ready", "validating", "off", "leaving-1", "leaving-2"} {
		if err := s.order(t.Context(), name, name); err != nil {
			t.Fatal(err)
		}
	}
	s.orderRolled(t)
	s.must(t, "ready", "ready", "Ready", observation.isReady)
	s.must(t, "off", "off", "Ready", observation.isReady)
	s.patchMachine(t, "off", `{"spec":{"powerOff":true}}`)
	s.must(t, "off", "off", "powered off", func(v observation) bool {
		return v.is(v1alpha1.ConditionReady, v1alpha1.ReasonPoweredOff) && s.env.Rack.Server("off").Power() == hardware.PowerOff
	})
	s.must(t, "validating", "validating", "kept behind its gate", func(v observation) bool { return v.phase() == v1alpha1.MachineValidating && isGated(v.node) })
	for _, name := range []string{"leaving-1", "leaving-2", rolled, fenced} {
		s.must(t, name, name, "Ready", observation.isReady)
	}
	absent := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: "pending"},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: tenantName}, HostName: "absent"},
	}
	if err := s.env.ManagementClient.Create(t.Context(), absent); err != nil {
		t.Fatal(err)
	}
}

func (s *restoreCase) must(t *testing.T, name, server, what string, ok func(observation) bool) observation {
	t.Helper()
	v, err := s.fleet.await(t.Context(), waitTimeout, name, server, what, ok)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (s *restoreCase) patchMachine(t *testing.T, name, patch string) {
	t.Helper()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: name}}
	if err := s.env.ManagementClient.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (s *restoreCase) delete(t *testing.T, name string) {
	t.Helper()
	if err := s.env.ManagementClient.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// restoreOnce ends the manager while Machines are in every phase, restores all objects with new uids, and starts it again.
func (s *restoreCase) restoreOnce(t *testing.T, run string, withStatus bool) {
	joining, writing, leaving, claiming := "joining-"+run, "writing-"+run, "leaving-"+run, "claiming-"+run
	server := "claiming"
	if run == "2" {
		server = "leaving-1" // it is back
	}
	s.hold(t, claiming)
	if err := s.order(t.Context(), claiming, server); err != nil {
		t.Fatal(err)
	}
	s.roll(t, run)
	s.claimed(t, claiming, server)
	s.env.Rack.Server(joining).SetFaults(stalledWrites)
	if err := s.order(t.Context(), joining, joining); err != nil {
		t.Fatal(err)
	}
	s.must(t, joining, joining, "writing", isWriting)
	for _, server := range []string{writing, leaving} {
		s.env.Rack.Server(server).SetFaults(rack.Faults{StallAfter: 1})
	}
	if err := s.order(t.Context(), writing, writing); err != nil {
		t.Fatal(err)
	}
	s.delete(t, leaving)
	s.must(t, writing, writing, "installing", func(v observation) bool { return v.phase() == v1alpha1.MachineProvisioning })
	s.must(t, leaving, leaving, "erasing", func(v observation) bool { return v.host.Status.Provisioning.State == metal3.StateDeprovisioning })
	// It goes on last: it joins in seconds.
	s.env.Rack.Server(joining).SetFaults(rack.Faults{})
	s.must(t, joining, joining, "Joining", func(v observation) bool {
		note, err := v1alpha1.InstallationOf(v.host)
		return err == nil && note != nil && note.State == v1alpha1.InstallationComplete && v.phase() == v1alpha1.MachineJoining
	})
	if err := s.env.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	before := s.machines(t)
	for name, phase := range map[string]v1alpha1.MachinePhase{
		"ready": v1alpha1.MachineReady, "validating": v1alpha1.MachineValidating, "off": v1alpha1.MachineDraining, "pending": v1alpha1.MachinePending,
		joining: v1alpha1.MachineJoining, writing: v1alpha1.MachineProvisioning, leaving: v1alpha1.MachineReleasing,
		claiming: v1alpha1.MachineClaiming, rolled: v1alpha1.MachineDraining, fenced: v1alpha1.MachineDraining,
	} {
		hasJoined := name == joining && before[name].Status.Phase == v1alpha1.MachineValidating // it was quicker than the signal
		if before[name].Status.Phase != phase && !hasJoined {
			t.Fatalf("Machine %s is %s when the manager ends, not %s", name, before[name].Status.Phase, phase)
		}
	}
	s.settled[joining] = joining
	writes, nodes := s.writes(), s.nodeUIDs(t)
	objects := s.backup(t)
	s.replace(t, run, objects, withStatus)
	if err := s.env.StartManager(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{writing, leaving} {
		s.env.Rack.Server(server).SetFaults(rack.Faults{})
	}
	s.emptiesOn(t, run, writes[rolled])
	s.hasSettled(t, joining)
	after := s.machines(t)
	for name := range s.settled {
		if before[name].UID == after[name].UID || before[name].ClaimUID() != after[name].ClaimUID() || after[name].Status.Attempt != before[name].Status.Attempt {
			t.Errorf("%s had uid %s and has %s; it was installed as %s, attempt %d, and is %s, attempt %d", name, before[name].UID, after[name].UID,
				before[name].ClaimUID(), before[name].Status.Attempt, after[name].ClaimUID(), after[name].Status.Attempt)
		}
	}
	s.eraseHeld(t, claiming)
	v := s.must(t, claiming, server, "claimed again and installed", observation.isReady)
	s.installedOnce(t, v.machine, 1)
	s.goesOn(t, writing, leaving)
	s.rollsOn(t, before)
	for name, server := range s.settled {
		if now := s.env.Rack.Server(server).BMC().Writes(); now != writes[server] {
			t.Errorf("the BMC of %s got %d writes after the restore", name, now-writes[server])
		}
	}
	for name, uid := range nodes {
		if _, isSettled := s.settled[name]; isSettled && s.nodeUIDs(t)[name] != uid {
			t.Errorf("the Node of %s is another one", name)
		}
	}
}

// eraseHeld is a person who has the hosts erased of which the backup says that they are free, as their messages advise, until the Machine has its host.
func (s *restoreCase) eraseHeld(t *testing.T, claiming string) {
	t.Helper()
	held := map[string]bool{}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationErase, v1alpha1.EraseMetadata)
	err := within(t.Context(), waitTimeout, func() error {
		var hosts metal3.BareMetalHostList
		if err := s.env.ManagementClient.List(t.Context(), &hosts); err != nil {
			return err
		}
		for i := range hosts.Items {
			h := &hosts.Items[i]
			if held[h.Name] || !strings.Contains(h.Status.ErrorMessage, v1alpha1.ReasonManyAtOnce) {
				continue
			}
			if h.Status.PoweredOn || h.Status.Provisioning.State != metal3.StateDeprovisioning {
				t.Errorf("%s is held and %s, on %t", h.Name, h.Status.Provisioning.State, h.Status.PoweredOn)
			}
			held[h.Name] = true
			if err := s.env.ManagementClient.Patch(t.Context(), h, client.RawPatch(types.MergePatchType, patch)); err != nil {
				return err
			}
		}
		if m := s.machines(t)[claiming]; m == nil || m.Status.Phase == v1alpha1.MachinePending || m.Status.Phase == "" {
			return errors.New("Machine " + claiming + " has no host")
		}
		return nil
	}, func(error) bool { return true })
	if err != nil || len(held) == 0 {
		t.Fatalf("held and erased: %v; %v", slices.Sorted(maps.Keys(held)), err)
	}
}

// hasSettled waits until every settled Machine is what it was.
func (s *restoreCase) hasSettled(t *testing.T, joining string) {
	s.must(t, "ready", "ready", "Ready after the restore", observation.isReady)
	s.must(t, joining, joining, "Ready after it joined", observation.isReady)
	s.settled[joining] = joining
	s.must(t, "validating", "validating", "kept behind its gate", func(v observation) bool { return v.phase() == v1alpha1.MachineValidating && isGated(v.node) })
	s.must(t, "off", "off", "powered off", func(v observation) bool { return v.is(v1alpha1.ConditionReady, v1alpha1.ReasonPoweredOff) })
	for name, server := range s.settled {
		s.must(t, name, server, "its host provisioned", func(v observation) bool {
			return v.host.Status.Provisioning.State == metal3.StateProvisioned && v.host.Status.ErrorMessage == "" && !v1alpha1.IsRestored(v.host) &&
				v.record != nil && v.record.Status.Installed != nil && slices.Contains(v.machine.Finalizers, v1alpha1.MachineFinalizer)
		})
	}
}

// goesOn waits until what was not settled has gone on, or says what it waits for.
func (s *restoreCase) goesOn(t *testing.T, writing, leaving string) {
	v := s.must(t, writing, writing, "installed after the restore", observation.isReady)
	s.installedOnce(t, v.machine, 1)
	s.must(t, leaving, leaving, "told to be deleted again", func(v observation) bool {
		return v.is(v1alpha1.ConditionClaimed, v1alpha1.ReasonRestoreUnmatched) && v.host.Status.ErrorMessage != ""
	})
	s.must(t, "pending", "free", "Pending, and no host taken", func(v observation) bool {
		return v.phase() == v1alpha1.MachinePending && v.host.Spec.ConsumerRef == nil && v.host.Status.Provisioning.State == metal3.StateAvailable
	})
	s.delete(t, leaving)
	s.must(t, leaving, leaving, "released", observation.isBack)
}

func (s *restoreCase) machines(t *testing.T) map[string]*v1alpha1.Machine {
	t.Helper()
	var list v1alpha1.MachineList
	if err := s.env.ManagementClient.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return byName(list.Items)
}

// writes are what the BMCs were asked to change so far.
func (s *restoreCase) writes() map[string]int64 {
	out := map[string]int64{}
	for _, server := range s.env.Rack.Servers() {
		out[server.Name()] = server.BMC().Writes()
	}
	return out
}

func (s *restoreCase) nodeUIDs(t *testing.T) map[string]types.UID {
	t.Helper()
	var list corev1.NodeList
	if err := s.env.TenantClient.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]types.UID{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].UID
	}
	return out
}

// backup reads every object as a backup tool does.
func (s *restoreCase) backup(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for _, kind := range backupKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := s.env.ManagementClient.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		out = append(out, list.Items...)
	}
	return out
}

// replace starts another control plane and creates every object there. As Velero does, it drops owner references and finalizers.
func (s *restoreCase) replace(t *testing.T, run string, objects []unstructured.Unstructured, withStatus bool) {
	t.Helper()
	s.cancel()
	if err := s.env.ReplaceManagement(t.Context(), "management-"+run); err != nil {
		t.Fatal(err)
	}
	if err := s.install(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		o := objects[i].DeepCopy()
		if o.GetKind() == "HostRecord" && o.GetName() == "ready" && !withStatus {
			continue // the garbage collector took it, or the backup has none: it is made again from the host's annotation
		}
		status := o.Object["status"]
		kept := map[string]any{"name": o.GetName(), "namespace": o.GetNamespace(), "labels": o.Object["metadata"].(map[string]any)["labels"], "annotations": o.Object["metadata"].(map[string]any)["annotations"]}
		maps.DeleteFunc(kept, func(_ string, v any) bool { return v == nil || v == "" })
		o.Object["metadata"] = kept
		delete(o.Object, "status")
		err := within(t.Context(), 30*time.Second, func() error { return s.env.ManagementClient.Create(t.Context(), o) }, func(err error) bool {
			return meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
		})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			t.Fatalf("restore %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if withStatus && status != nil && o.GroupVersionKind().Group != "" {
			o.Object["status"] = status
			if err := s.env.ManagementClient.Status().Update(t.Context(), o); err != nil && !apierrors.IsNotFound(err) {
				t.Fatalf("restore the status of %s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	t.Cleanup(func() {
		if t.Failed() {
			cancel()
		}
	})
	// The Nodes are the same, and so is what was seen of them.
	s.watch.ReplaceManagement(s.env.ManagementClient)
	s.fleet = newFleet(s.env.ManagementClient, s.env.TenantClient, s.watch)
	go s.fleet.follow(ctx)
}
