package entitlement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Change is a claim that got devices, or that has them no more.
type Change struct {
	v1alpha1.DeviceHolding
	HasEnded bool
	// Mark tells two changes of one claim apart where the cluster does not say when it was allocated: Kubernetes before 1.36 does not.
	Mark string
}

// Reason of the Event.
func (c Change) Reason() string {
	if c.HasEnded {
		return v1alpha1.ReasonClaimEnded
	}
	return v1alpha1.ReasonClaimBegan
}

// Text says what the claim has or had.
func (c Change) Text() string {
	var devices []string
	for _, class := range slices.Sorted(maps.Keys(c.Devices)) {
		devices = append(devices, fmt.Sprintf("%d of %s", c.Devices[class], class))
	}
	verb := "has"
	if c.HasEnded {
		verb = "had"
	}
	text := fmt.Sprintf("claim %s/%s %s %s", c.Namespace, c.Claim, verb, strings.Join(devices, ", "))
	if c.Node != "" {
		text += " on node " + c.Node
	}
	return text
}

// HoldingOf returns what a claim has; false: it has no devices.
func HoldingOf(claim *resourcev1.ResourceClaim) (v1alpha1.DeviceHolding, bool) {
	if claim == nil || claim.Status.Allocation == nil {
		return v1alpha1.DeviceHolding{}, false
	}
	out := v1alpha1.DeviceHolding{Namespace: claim.Namespace, Claim: claim.Name, UID: claim.UID, Node: NodeOf(claim), Since: Since(claim).Rfc3339Copy(), Devices: map[string]int32{}}
	for class, u := range Count([]resourcev1.ResourceClaim{*claim}) {
		out.Devices[class] = int32(min(u.Allocated, resourcev1.AllocationResultsMaxSize))
	}
	return out, true
}

// holdingKey identifies a holding. A claim that is allocated anew is another one.
type holdingKey struct {
	uid   string
	since int64
}

func keyOf(h v1alpha1.DeviceHolding) holdingKey { return holdingKey{string(h.UID), h.Since.Unix()} }

// ChangesOf returns what a change of one claim is: nothing, a beginning, an end, or both. before is nil for a claim that is new, after for one that is gone.
func ChangesOf(before, after *resourcev1.ResourceClaim) []Change {
	had, hadAny := HoldingOf(before)
	has, hasAny := HoldingOf(after)
	var out []Change
	if hadAny && (!hasAny || keyOf(had) != keyOf(has)) {
		out = append(out, Change{DeviceHolding: had, HasEnded: true, Mark: markOf(before)})
	}
	if hasAny && (!hadAny || keyOf(had) != keyOf(has)) {
		out = append(out, Change{DeviceHolding: has, Mark: markOf(after)})
	}
	return out
}

func markOf(claim *resourcev1.ResourceClaim) string {
	if claim.Status.Allocation.AllocationTimestamp != nil {
		return ""
	}
	return claim.ResourceVersion
}

// Compare returns the holdings of now, the oldest first, and what has changed: first what was seen to happen, in its order, then what is there or gone without
// that it was seen. With isFirst and as many known holdings as are kept, what is not known may be old, and is no change.
func Compare(known []v1alpha1.DeviceHolding, seen []Change, now []v1alpha1.DeviceHolding, isFirst bool) ([]v1alpha1.DeviceHolding, []Change) {
	held := map[holdingKey]v1alpha1.DeviceHolding{}
	for _, h := range known {
		held[keyOf(h)] = h
	}
	isCut := isFirst && len(known) >= v1alpha1.MaxHoldings
	var changes []Change
	for _, c := range seen {
		_, isHeld := held[keyOf(c.DeviceHolding)]
		// What is known already was in the list before its change arrived.
		if isHeld != c.HasEnded || isCut {
			continue
		}
		changes = append(changes, c)
		if c.HasEnded {
			delete(held, keyOf(c.DeviceHolding))
		} else {
			held[keyOf(c.DeviceHolding)] = c.DeviceHolding
		}
	}
	next := slices.Clone(now)
	slices.SortFunc(next, func(a, b v1alpha1.DeviceHolding) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.UID, b.UID))
	})
	for _, h := range next {
		if _, isHeld := held[keyOf(h)]; !isHeld && !isCut {
			changes = append(changes, Change{DeviceHolding: h})
		}
		delete(held, keyOf(h))
	}
	gone := slices.Collect(maps.Values(held))
	slices.SortFunc(gone, func(a, b v1alpha1.DeviceHolding) int { return cmp.Compare(a.UID, b.UID) })
	for _, h := range gone {
		changes = append(changes, Change{DeviceHolding: h, HasEnded: true})
	}
	return next, changes
}
