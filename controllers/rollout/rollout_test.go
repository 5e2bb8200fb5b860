package rollout

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// newest Rollout of the hall once it has that phase.
func (h *hall) newest(t *testing.T, number int, phase v1alpha1.RolloutPhase) v1alpha1.Rollout {
	t.Helper()
	var found v1alpha1.Rollout
	h.until(t, fmt.Sprintf("Rollout %d is %s", number, phase), func() bool {
		all := h.rollouts(t)
		if len(all) < number {
			return false
		}
		found = all[number-1]
		return found.Status.Phase == phase
	})
	return found
}

func has(revision string) func(*v1alpha1.Machine) bool {
	return func(m *v1alpha1.Machine) bool { return m.Status.Revision == revision && ready(m) }
}

func hasDesiredRevision(revision string) func(*v1alpha1.Machine) bool {
	return func(m *v1alpha1.Machine) bool { return m.Spec.Revision == revision }
}

func TestAChangedImageGoesToTheCanaryAndThenToTheOthers(t *testing.T) {
	manage(t)
	h := newHall(t, 4, policy(1, forNow))
	before := h.filled(t, 4)
	h.budget = 1
	h.use(t, "new")
	rollout := h.newest(t, 1, v1alpha1.RolloutCanary)
	target := h.nodeType(t).Status.TargetRevision
	if rollout.Spec.From != before || rollout.Spec.To != target || target == before || !metav1.IsControlledBy(&rollout, h.nodeType(t)) {
		t.Errorf("Rollout %+v, owners %v, of %s to %s", rollout.Spec, rollout.OwnerReferences, before, target)
	}
	h.until(t, "the canary bakes", func() bool { return h.rollouts(t)[0].Status.BakedSince != nil })
	marked := func(m *v1alpha1.Machine) bool {
		return m.Labels[v1alpha1.LabelRollout] == rollout.Name && m.Spec.Revision == target && ready(m)
	}
	if n, told := h.count(t, marked), h.count(t, hasDesiredRevision("")); n != 1 || told != 3 {
		t.Errorf("%d Machines were moved and %d were told nothing, want 1 and 3", n, told)
	}
	if now := h.nodeType(t).Status.StableRevision; now != before {
		t.Errorf("the stable revision is %s while the canary bakes, want %s", now, before)
	}
	h.scale(t, 5)
	h.until(t, "a new Machine gets the stable revision", func() bool { return h.count(t, has(before)) == 4 })

	h.change(t, func(s *v1alpha1.NodeTypeSpec) { s.Rollout.Canary.Bake.Duration = atOnce })
	h.newest(t, 1, v1alpha1.RolloutDone)
	h.until(t, "the target is stable and counted", func() bool {
		s := h.nodeType(t).Status
		return s.StableRevision == target && s.Machines == v1alpha1.MachineCounts{Total: 5, Ready: 5, UpToDate: 5}
	})
	h.until(t, "the pool counts the same", func() bool {
		var pool v1alpha1.NodePool
		err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: h.name, Name: "pool"}, &pool)
		return err == nil && pool.Status.UpToDateReplicas == 5 && pool.Status.ReadyReplicas == 5
	})
	if n := len(h.rollouts(t)); n != 1 || h.count(t, has(target)) != 5 {
		t.Errorf("%d Rollouts, %d Machines with the target", n, h.count(t, has(target)))
	}
}

func TestARolloutEndsAlthoughItsNodeTypeIsBeingDeleted(t *testing.T) {
	manage(t)
	h := newHall(t, 3, policy(1, forNow))
	before := h.filled(t, 3)
	h.use(t, "new")
	h.newest(t, 1, v1alpha1.RolloutCanary)
	h.until(t, "the canary bakes", func() bool { return h.rollouts(t)[0].Status.BakedSince != nil })
	target := h.nodeType(t).Status.TargetRevision
	merge := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
	if err := server.Client.Patch(t.Context(), h.nodeType(t), merge(`{"metadata":{"finalizers":["`+v1alpha1.InUseFinalizer+`"]}}`)); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), h.nodeType(t)); err != nil {
		t.Fatal(err)
	}
	// The controller inuse says why it is kept.
	inUse := merge(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"InUse","message":"","lastTransitionTime":"2026-11-20T10:00:00Z"}]}}`)
	if err := server.Client.Status().Patch(t.Context(), h.nodeType(t), inUse); err != nil {
		t.Fatal(err)
	}
	h.change(t, func(s *v1alpha1.NodeTypeSpec) { s.Rollout.Canary.Bake.Duration = atOnce })
	h.newest(t, 1, v1alpha1.RolloutDone)
	if n := h.count(t, has(target)); n != 3 || target == before {
		t.Errorf("%d Machines have the target", n)
	}
	if err := server.Client.Patch(t.Context(), h.nodeType(t), merge(`{"metadata":{"finalizers":null}}`)); err != nil {
		t.Fatal(err)
	}
}

func TestABadImageStopsAtTheCanaryAndIsUndone(t *testing.T) {
	manage(t)
	h := newHall(t, 3, policy(2, atOnce))
	before := h.filled(t, 3)
	h.use(t, "new")
	h.until(t, "there is a target", func() bool { return h.nodeType(t).Status.TargetRevision != before })
	h.bad, h.budget = h.nodeType(t).Status.TargetRevision, 2
	stopped := h.newest(t, 1, v1alpha1.RolloutStopped)
	if !strings.Contains(stopped.Status.StoppedBy, v1alpha1.ReasonJoinTimedOut) || h.count(t, hasDesiredRevision(h.bad)) != 1 {
		t.Errorf("stopped by %q, %d Machines were told to move", stopped.Status.StoppedBy, h.count(t, hasDesiredRevision(h.bad)))
	}
	h.scale(t, 4)
	h.until(t, "a new Machine gets the stable revision while the Rollout is stopped", func() bool { return h.count(t, has(before)) == 3 })

	h.use(t, "old")
	back := h.newest(t, 2, v1alpha1.RolloutDone)
	if back.Spec.To != before || back.Spec.From != h.bad {
		t.Errorf("the way back is %+v", back.Spec)
	}
	for _, entry := range back.Status.History {
		if strings.Contains(entry.Message, "canary") {
			t.Errorf("the way back to what was proven has a canary: %s", entry.Message)
		}
	}
	if first := h.rollouts(t)[0]; first.Status.Phase != v1alpha1.RolloutSuperseded {
		t.Errorf("the first Rollout is %s", first.Status.Phase)
	}
	if s := h.nodeType(t).Status; s.StableRevision != before || s.TargetRevision != before || h.count(t, has(before)) != 4 {
		t.Errorf("stable %s, target %s, %d Machines are as before", s.StableRevision, s.TargetRevision, h.count(t, has(before)))
	}
}

func TestNeitherMachinesWithoutAHostNorABrokenOneHoldUpARolloutOrItsUndo(t *testing.T) {
	manage(t)
	h := newHall(t, 3, policy(2, atOnce))
	before := h.filled(t, 3)
	h.isFull, h.dead = true, h.machines(t)[0].Name
	h.scale(t, 6)
	isDead := func(m *v1alpha1.Machine) bool { return m.Name == h.dead && !ready(m) }
	// The pool makes no more Machines than the next step needs.
	h.until(t, "one Machine is broken and one has no host", func() bool { return len(h.machines(t)) == 4 && h.count(t, isDead) == 1 })

	h.use(t, "new")
	done := h.newest(t, 1, v1alpha1.RolloutDone)
	to := done.Spec.To
	text := meta.FindStatusCondition(done.Status.Conditions, v1alpha1.ConditionReady).Message
	for _, want := range []string{"2 of 3 Machines are Ready with " + to, "broken before and broken again, which stops nothing: " + h.name + "/" + h.dead + ": JoinTimedOut", "1 Machine has no host"} {
		if !strings.Contains(text, want) {
			t.Errorf("the Rollout says %q, without %q", text, want)
		}
	}
	for _, entry := range done.Status.History {
		if strings.Contains(entry.Message, "the canary goes first") && strings.Contains(entry.Message, h.dead) {
			t.Errorf("the broken Machine is the canary: %s", entry.Message)
		}
	}
	if len(done.Status.InProgress) > 0 || done.Status.Targets.InProgress != 0 {
		t.Errorf("a Rollout that is Done has %v in progress", done.Status.InProgress)
	}

	h.use(t, "old")
	back := h.newest(t, 2, v1alpha1.RolloutDone)
	if back.Spec.To != before || h.count(t, has(before)) != 2 {
		t.Errorf("the way back goes to %s, and %d Machines are Ready with it", back.Spec.To, h.count(t, has(before)))
	}
	h.isFull = false
	h.until(t, "the others get their hosts, with the stable revision", func() bool { return h.count(t, has(before)) == 5 })
}

func TestARevisionWhoseRenderingIsRequestedIsTakenAsItWas(t *testing.T) {
	manage(t)
	h := newHall(t, 1, policy(1, atOnce))
	before := h.filled(t, 1)
	first := h.nodeType(t).Status.Stable()
	for i, image := range []string{"new", "mended"} {
		h.use(t, image)
		h.newest(t, i+1, v1alpha1.RolloutDone)
	}
	var provider v1alpha1.NodeProvider
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: h.name}, &provider); err != nil {
		t.Fatal(err)
	}
	provider.Spec.UserData = "#cloud-config\npackages: [new-in-this-hall]\n"
	if err := server.Client.Update(t.Context(), &provider); err != nil {
		t.Fatal(err)
	}
	// What ingot rollout undo --to-revision writes.
	h.change(t, func(s *v1alpha1.NodeTypeSpec) { s.OSImageRef.Name, s.Rendering = h.name+"-old", first.Rendering })
	back := h.newest(t, 3, v1alpha1.RolloutDone)
	if back.Spec.Target() != first || h.count(t, has(before)) != 1 {
		t.Errorf("the NodeProvider changed since, and it goes back to %+v, not to %+v", back.Spec.Target(), first)
	}
}

func TestAMendGoesOnFromAStoppedRollout(t *testing.T) {
	manage(t)
	h := newHall(t, 2, policy(1, atOnce))
	before := h.filled(t, 2)
	h.use(t, "new")
	h.until(t, "there is a target", func() bool { return h.nodeType(t).Status.TargetRevision != before })
	h.bad = h.nodeType(t).Status.TargetRevision
	h.newest(t, 1, v1alpha1.RolloutStopped)
	h.budget = 1
	h.use(t, "mended")
	mend := h.newest(t, 2, v1alpha1.RolloutDone)
	h.until(t, "the mended image is stable", func() bool { return h.nodeType(t).Status.StableRevision == mend.Spec.To })
	if mend.Spec.From != before || h.count(t, has(mend.Spec.To)) != 2 {
		t.Errorf("the mend comes from %s, want %s; %d Machines have it", mend.Spec.From, before, h.count(t, has(mend.Spec.To)))
	}
}

func pause(t *testing.T, rollout *v1alpha1.Rollout, paused bool) {
	t.Helper()
	after := rollout.DeepCopy()
	after.Spec.Paused = paused
	before := after.DeepCopy()
	before.Spec.Paused = !paused
	if err := server.Client.Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func TestAPausedRolloutLetsArriveWhoIsOnTheWayAndStartsNobody(t *testing.T) {
	manage(t)
	h := newHall(t, 4, policy(1, atOnce))
	h.filled(t, 4)
	h.budget = 1
	h.use(t, "new")
	rollout := h.newest(t, 1, v1alpha1.RolloutCanary)
	pause(t, &rollout, true)
	h.newest(t, 1, v1alpha1.RolloutPaused)
	h.until(t, "whoever was told to move has arrived", func() bool {
		return h.count(t, func(m *v1alpha1.Machine) bool {
			return m.Spec.Revision != "" && m.Status.Revision != m.Spec.Revision || !ready(m)
		}) == 0
	})
	// Whatever the pause interrupted, the canary is one Machine: nobody else was told to move.
	if n := h.count(t, hasDesiredRevision(rollout.Spec.To)); n > 1 {
		t.Errorf("%d Machines were told to move", n)
	}
	pause(t, &rollout, false)
	h.newest(t, 1, v1alpha1.RolloutDone)
	if n := h.count(t, has(rollout.Spec.To)); n != 4 {
		t.Errorf("%d Machines have the new revision", n)
	}
}

func TestNoMachineIsStartedWhileItsTenantIsLost(t *testing.T) {
	manage(t)
	h := newHall(t, 2, policy(1, atOnce))
	h.filled(t, 2)
	tenant := &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "research"}}
	becomes := func(is metav1.ConditionStatus, reason string) {
		before := tenant.DeepCopy()
		tenant.Status.Conditions = condition(is, reason)
		if err := server.Client.Status().Patch(t.Context(), tenant, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	becomes(metav1.ConditionFalse, v1alpha1.ReasonTenantUnreachable)
	h.use(t, "new")
	h.until(t, "the Rollout says what it waits for", func() bool {
		all := h.rollouts(t)
		if len(all) == 0 {
			return false
		}
		ready := meta.FindStatusCondition(all[0].Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && strings.Contains(ready.Message, v1alpha1.ReasonTenantUnreachable)
	})
	if n := h.count(t, hasDesiredRevision("")); n != 2 {
		t.Errorf("%d Machines were left alone, want 2", n)
	}
	becomes(metav1.ConditionTrue, v1alpha1.ReasonReady)
	h.newest(t, 1, v1alpha1.RolloutDone)
}

func TestARolloutThatAPersonMadeIsRefused(t *testing.T) {
	manage(t)
	h := newHall(t, 2, policy(1, atOnce))
	before := h.filled(t, 2)
	byHand := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-by-hand"}, Spec: v1alpha1.RolloutSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: h.name}, From: before, To: before + "-x",
	}}
	server.Create(t, byHand)
	refused := h.newest(t, 1, v1alpha1.RolloutSuperseded)
	ready := meta.FindStatusCondition(refused.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || !strings.Contains(ready.Message, "NodeType "+h.name) || h.count(t, has(before)) != 2 {
		t.Errorf("it says %+v", ready)
	}
}

// moved tells how many Machines have the target by now.
func (h *hall) moved(t *testing.T) int {
	t.Helper()
	return h.count(t, has(h.nodeType(t).Status.TargetRevision))
}

func TestTwoManagersAtOnceKeepTheBudgetAndALaterOneGoesOn(t *testing.T) {
	// The NodeType allows three at once, the pool two.
	h := newHall(t, 8, policy(3, atOnce))
	t.Run("two at once", func(t *testing.T) {
		manage(t)
		manage(t)
		before := h.filled(t, 8)
		h.budget = 2
		h.use(t, "new")
		h.until(t, "three Machines have moved", func() bool {
			target := h.nodeType(t).Status.TargetRevision
			return target != before && h.moved(t) >= 3
		})
	})
	left := h.rollouts(t)
	if len(left) != 1 || left[0].Status.Phase.IsFinal() {
		t.Fatalf("the managers left %+v", left)
	}
	t.Run("a later one", func(t *testing.T) {
		manage(t)
		done := h.newest(t, 1, v1alpha1.RolloutDone)
		h.until(t, "what was moved is stable", func() bool { return h.nodeType(t).Status.StableRevision == done.Spec.To })
		if n := h.count(t, has(done.Spec.To)); n != 8 || done.Status.Targets.Done != 8 {
			t.Errorf("%d Machines have moved, the Rollout says %+v", n, done.Status.Targets)
		}
	})
}
