package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// ReservationTimeout is how long a Machine that has given up its claim keeps its reservation. A manager that has lost its lease ends itself long before, so
// that it cannot write a claim that it decided about earlier. Without it: such a claim is written after the place was given to another Machine.
const ReservationTimeout = 5 * time.Minute

// Machine is the part of a Machine that the decision depends on.
type Machine struct {
	Name     string
	UID      types.UID
	NodeType string
	// GPUs is the gpu.count of its NodeType.
	GPUs int32
	// Created is when the object was created.
	Created time.Time
	// HasHost is true while it has a host, from its claim until the object is gone.
	HasHost bool
	// IsClaiming is true while it may be about to write its claim.
	IsClaiming bool
	// IsWaiting is true while it waits because of the NodeQuota.
	IsWaiting bool
	// IsInLine is true while it waits because of the NodeQuota, and from then on until its place is reserved. Without the second: a raised limit lets two
	// Machines begin, the older one's phase is Claiming and it is not reserved yet, and the younger one reserves the only place.
	IsInLine bool
}

// Facts are what the namespace has.
type Facts struct {
	Now time.Time
	// Namespace is that of the NodeQuota.
	Namespace string
	// Spec and Reservations are those of the NodeQuota. They were read before the Machines.
	Spec         v1alpha1.NodeQuotaSpec
	Reservations []v1alpha1.QuotaReservation
	// Machines are all of the namespace.
	Machines []Machine
}

// Decision says whether a Machine may claim a host.
type Decision struct {
	// IsReserved is true where the Machine has its reservation already.
	IsReserved bool
	// Refusal says why it may not, with used and limit. It is empty where there is room.
	Refusal string
}

// use is what Machines take of the limits.
type use struct {
	machines map[string]int32
	gpus     int32
}

func (u *use) add(m Machine) {
	u.machines[m.NodeType]++
	u.gpus += m.GPUs
}

// Decide decides about one Machine. It may be among the Machines of the facts or not.
func Decide(f Facts, m Machine) Decision {
	reserved := f.reserved()
	if reserved[m.UID] {
		return Decision{IsReserved: true}
	}
	taken := f.used(reserved)
	if refusal := f.refusal(taken, m); refusal != "" {
		return Decision{Refusal: refusal}
	}
	ahead, isBlocked := f.takeAhead(&taken, reserved, m)
	if refusal := f.refusal(taken, m); refusal != "" || isBlocked && m.GPUs > 0 {
		return Decision{Refusal: fmt.Sprintf("%s: the room that is left is for older Machines that wait, of which %s is the next; raise the limits, or delete a Machine", f.name(), ahead)}
	}
	return Decision{}
}

// takeAhead adds the older Machines that wait and find room to taken, and returns the name of the first one. isBlocked is true where an older one waits
// for GPUs.
func (f Facts) takeAhead(taken *use, reserved map[types.UID]bool, m Machine) (first string, isBlocked bool) {
	for _, older := range f.line() {
		if byAge(older, m) >= 0 {
			break
		}
		if older.HasHost || reserved[older.UID] || f.refusal(use{}, older) != "" || f.machinesRefusal(*taken, older) != "" {
			continue
		}
		first = cmp.Or(first, older.Name)
		if f.gpusRefusal(*taken, older) != "" {
			isBlocked = true
			continue
		}
		if !isBlocked || older.GPUs == 0 {
			taken.add(older)
		}
	}
	return first, isBlocked
}

// Room returns how many more Machines of a NodeType there is room for.
func Room(f Facts, nodeType string, gpus int32) int {
	taken, room := f.used(f.reserved()), 0
	for ; room < maxRoom && f.refusal(taken, Machine{NodeType: nodeType, GPUs: gpus}) == ""; room++ {
		taken.add(Machine{NodeType: nodeType, GPUs: gpus})
	}
	return room
}

// maxRoom is the highest number of replicas of a NodePool.
const maxRoom = 10000

// Reserve returns the reservations with that of the Machine, and without those that do not count any more.
func Reserve(f Facts, m Machine) []v1alpha1.QuotaReservation {
	return append(Needed(f), v1alpha1.QuotaReservation{Machine: m.Name, UID: string(m.UID), At: metav1.NewTime(f.Now)})
}

// Needed returns the reservations that still count.
func Needed(f Facts) []v1alpha1.QuotaReservation {
	var out []v1alpha1.QuotaReservation
	for _, r := range f.Reservations {
		at := slices.IndexFunc(f.Machines, func(m Machine) bool { return string(m.UID) == r.UID })
		if at < 0 || f.Machines[at].HasHost || !f.Machines[at].IsClaiming && f.Now.Sub(r.At.Time) >= ReservationTimeout {
			continue
		}
		out = append(out, r)
	}
	return out
}

func (f Facts) reserved() map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, r := range Needed(f) {
		out[types.UID(r.UID)] = true
	}
	return out
}

func (f Facts) used(reserved map[types.UID]bool) use {
	u := use{machines: map[string]int32{}}
	for _, m := range f.Machines {
		if m.HasHost || reserved[m.UID] {
			u.add(m)
		}
	}
	return u
}

// line returns the Machines that wait or have not reserved their place yet, the oldest first.
func (f Facts) line() []Machine {
	var out []Machine
	for _, m := range f.Machines {
		if m.IsInLine {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, byAge)
	return out
}

func byAge(a, b Machine) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) }

func (f Facts) name() string { return "NodeQuota " + f.Namespace + "/" + v1alpha1.NodeQuotaName }

// refusal says which limits have no room for the Machine beside what is taken; empty: all have.
func (f Facts) refusal(taken use, m Machine) string {
	var full []string
	for _, refusal := range []string{f.machinesRefusal(taken, m), f.gpusRefusal(taken, m)} {
		if refusal != "" {
			full = append(full, refusal)
		}
	}
	if len(full) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s; raise the limit, or delete a Machine", f.name(), strings.Join(full, ", and "))
}

func (f Facts) machinesRefusal(taken use, m Machine) string {
	limit := limitOf(f.Spec, m.NodeType)
	if used := taken.machines[m.NodeType]; limit != nil && used+1 > *limit {
		return fmt.Sprintf("%d of %d Machines of NodeType %s are used", used, *limit, m.NodeType)
	}
	return ""
}

func (f Facts) gpusRefusal(taken use, m Machine) string {
	if limit := f.Spec.GPUs; limit != nil && m.GPUs > 0 && taken.gpus+m.GPUs > *limit {
		return fmt.Sprintf("%d of %d GPUs are used, and a Machine of NodeType %s has %d", taken.gpus, *limit, m.NodeType, m.GPUs)
	}
	return ""
}

// limitOf returns the limit of a NodeType; nil: it has none.
func limitOf(spec v1alpha1.NodeQuotaSpec, nodeType string) *int32 {
	for i := range spec.Machines {
		if spec.Machines[i].NodeType == nodeType {
			return &spec.Machines[i].Limit
		}
	}
	return nil
}
