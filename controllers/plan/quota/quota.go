package quota

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// ReservationTimeout is how long a Machine that has given up its claim keeps its reservation. A manager that has lost its lease ends itself long before, so
// that it cannot write a claim that it decided about earlier. Without it: such a claim is written after the place was given to another Machine.
const ReservationTimeout = 5 * time.Minute

// maxReservations is how many reservations a status may have.
const maxReservations = 1024

// Decision is the next status of a NodeQuota.
type Decision struct {
	// Reservations are those that still count, and then the new ones.
	Reservations []v1alpha1.QuotaReservation
	// MachinesResourceVersion is what a cache must have reached for the next decision; empty: the next one is by the API server.
	MachinesResourceVersion string
	// Report is what is used and what is waited for.
	Report Report
}

// IsCurrent reports whether the Machines may be decided by: they show the hosts of all Machines whose reservations were removed.
func (f Facts) IsCurrent() bool {
	reached, err := strconv.ParseUint(f.MachinesResourceVersion, 10, 64)
	return f.IsLive || err == nil && reached <= f.newest()
}

// newest returns the highest resourceVersion of the Machines. What shows it shows all changes before it.
func (f Facts) newest() uint64 {
	var out uint64
	for _, m := range f.Machines {
		out = max(out, m.ResourceVersion)
	}
	return out
}

// Ending returns the reservations that Decide would remove although their Machines have no host: these are gone, or have long given up. A cache may not
// show a new Machine yet, or show a claim that was given up and made again as given up.
func (f Facts) Ending() []v1alpha1.QuotaReservation {
	var out []v1alpha1.QuotaReservation
	machines := f.byUID()
	for _, r := range f.Reservations {
		if m, isThere := machines[r.UID]; !isThere || !m.HasHost && f.hasGivenUp(r, m) {
			out = append(out, r)
		}
	}
	return out
}

// hasGivenUp reports whether a Machine without a host has made no use of its reservation for long.
func (f Facts) hasGivenUp(r v1alpha1.QuotaReservation, m Machine) bool {
	return !m.MayHaveHost && !m.IsInLine && f.Ago(r.At.Time) >= ReservationTimeout && f.Ago(m.Since) >= ReservationTimeout
}

// Decide gives a place to every Machine in line for which there is room, the oldest first. The facts must be current. A reservation that ends because its
// Machine has given up counts once more: a claim that was decided about before may be written still, and shows in the Machines of the next decision.
func Decide(f Facts) Decision {
	reserved := map[types.UID]bool{}
	for _, r := range f.Reservations {
		reserved[types.UID(r.UID)] = true
	}
	taken, line := use{machines: map[string]int32{}}, []Machine{}
	for _, m := range f.Machines {
		switch {
		case m.HasHost || m.MayHaveHost || reserved[m.UID]:
			taken.add(m)
		case m.IsInLine:
			line = append(line, m)
		}
	}
	slices.SortFunc(line, byAge)
	var d Decision
	d.keepReservations(f)
	waiting := d.reserve(f, &taken, line)
	d.Report.describe(f, taken, waiting)
	return d
}

// keepReservations takes over the reservations that still count.
func (d *Decision) keepReservations(f Facts) {
	reached, _ := strconv.ParseUint(f.MachinesResourceVersion, 10, 64)
	if f.IsLive {
		reached = f.newest()
	}
	machines, mustReadLive := f.byUID(), false
	for _, r := range f.Reservations {
		switch m, isThere := machines[r.UID]; {
		case !isThere:
		case m.HasHost:
			reached = max(reached, m.ResourceVersion)
		case f.hasGivenUp(r, m):
			mustReadLive = true
		default:
			d.Reservations = append(d.Reservations, r)
		}
	}
	if !mustReadLive {
		d.MachinesResourceVersion = strconv.FormatUint(reached, 10)
	}
}

// reserve adds reservations for the Machines in line that find room, and returns the others.
func (d *Decision) reserve(f Facts, taken *use, line []Machine) []Machine {
	var waiting []Machine
	for _, m := range line {
		switch {
		case refusal(f.Spec, use{}, m) != "": // it is larger than a limit, and holds back nobody
		case machinesRefusal(f.Spec, *taken, m) != "":
			d.Report.setNext(m)
		case gpusRefusal(f.Spec, *taken, m) != "" || d.Report.Next != "" && m.GPUs > 0:
			d.Report.Next = cmp.Or(d.Report.Next, m.Name)
			d.Report.setNext(m)
		case len(d.Reservations) >= maxReservations:
			d.Report.setNext(m)
		default:
			taken.add(m)
			d.Reservations = append(d.Reservations, v1alpha1.QuotaReservation{Machine: m.Name, UID: string(m.UID), At: metav1.NewTime(f.Now)})
			continue
		}
		waiting = append(waiting, m)
	}
	return waiting
}

func (f Facts) byUID() map[string]Machine {
	out := make(map[string]Machine, len(f.Machines))
	for _, m := range f.Machines {
		out[string(m.UID)] = m
	}
	return out
}

func byAge(a, b Machine) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) }

// use is what Machines take of the limits.
type use struct {
	machines map[string]int32
	gpus     int32
}

func (u *use) add(m Machine) {
	u.machines[m.NodeType]++
	u.gpus += m.GPUs
}
