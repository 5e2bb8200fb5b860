package quota

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

var now = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

// limits are 2 Machines of h100, 1 of a100 and 24 GPUs.
var limits = v1alpha1.NodeQuotaSpec{
	Machines: []v1alpha1.NodeTypeLimit{{NodeType: "h100", Limit: 2}, {NodeType: "a100", Limit: 1}}, GPUs: ptr.To(int32(24)),
}

// aged returns a Machine of a NodeType that was made so many minutes after the first, and changed last in that order.
func aged(minute int, nodeType string, gpus int32, change ...func(*Machine)) Machine {
	name := fmt.Sprintf("m%02d", minute)
	m := Machine{
		Name: name, UID: types.UID(name), NodeType: nodeType, GPUs: gpus, ResourceVersion: uint64(100 + minute),
		Created: now.Add(time.Duration(minute) * time.Minute), Since: now.Add(-time.Hour),
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

func placed(m *Machine)   { m.HasHost = true }
func asks(m *Machine)     { m.IsInLine = true }
func claiming(m *Machine) { m.MayHaveHost = true }

// factsWith returns the facts of a namespace with the limits, in which those Machines had their places reserved an hour ago.
func factsWith(machines []Machine, reserved ...string) Facts {
	f := Facts{Clock: watched.Clock{Now: now}, Namespace: "research", Spec: limits, Machines: machines, MachinesResourceVersion: "100"}
	for _, uid := range reserved {
		f.Reservations = append(f.Reservations, v1alpha1.QuotaReservation{Machine: uid, UID: uid, At: metav1.NewTime(now.Add(-time.Hour))})
	}
	return f
}

func reservedNames(d Decision) string {
	var out []string
	for _, r := range d.Reservations {
		out = append(out, r.Machine)
	}
	return strings.Join(out, " ")
}

// quotaAfter returns the NodeQuota with the status of the decision.
func quotaAfter(f Facts, d Decision) *v1alpha1.NodeQuota {
	return &v1alpha1.NodeQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: v1alpha1.NodeQuotaName}, Spec: f.Spec, Status: v1alpha1.NodeQuotaStatus{
		Machines: d.Report.Machines, GPUs: d.Report.GPUs, Waiting: d.Report.Waiting, Next: d.Report.Next,
		Reservations: d.Reservations, MachinesResourceVersion: d.MachinesResourceVersion,
	}}
}

// refusalOf returns what a Machine says after the decision.
func refusalOf(f Facts, d Decision, m Machine) string {
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: m.NodeType}}}
	return Refusal(quotaAfter(f, d), machine, m.GPUs)
}

// TestPlacesGoToTheOldestForWhichThereIsRoom has the Machine m09 ask.
func TestPlacesGoToTheOldestForWhichThereIsRoom(t *testing.T) {
	for _, c := range []struct {
		name     string
		machines []Machine
		reserved []string
		asks     Machine
		// says is a part of the refusal; empty: it gets a place.
		says string
	}{
		{"an empty namespace", nil, nil, aged(9, "h100", 8), ""},
		{"the last place", []Machine{aged(1, "h100", 8, placed)}, nil, aged(9, "h100", 8), ""},
		{"no place of its NodeType", []Machine{aged(1, "h100", 8, placed), aged(2, "h100", 8, placed)}, nil, aged(9, "h100", 8),
			"NodeQuota research/default: 2 of 2 Machines of NodeType h100 are used; this Machine is the next; raise the limit, or delete a Machine"},
		{"GPUs of another NodeType", []Machine{aged(1, "mi300x", 8, placed), aged(2, "mi300x", 8, placed), aged(3, "mi300x", 8, placed)}, nil, aged(9, "h100", 8),
			"24 of 24 GPUs are used, and a Machine of NodeType h100 has 8; this Machine is the next"},
		{"a NodeType without a limit of its own", []Machine{aged(1, "mi300x", 8, placed)}, nil, aged(9, "mi300x", 8), ""},
		{"a NodeType without GPUs", []Machine{aged(1, "mi300x", 24, placed)}, nil, aged(9, "storage", 0), ""},
		{"a reservation counts as a host", []Machine{aged(1, "h100", 8, claiming), aged(2, "h100", 8, placed)}, []string{"m01"}, aged(9, "h100", 8), "2 of 2"},
		{"a claim counts that may be under way", []Machine{aged(1, "h100", 8, claiming), aged(2, "h100", 8, placed)}, nil, aged(9, "h100", 8), "2 of 2"},
		{"a reservation that ends counts once more", []Machine{aged(1, "h100", 8), aged(2, "h100", 8, placed)}, []string{"m01"}, aged(9, "h100", 8), "2 of 2"},
		{"a Machine that waits for something else does not count", []Machine{aged(1, "h100", 8), aged(2, "h100", 8, placed)}, nil, aged(9, "h100", 8), ""},
		{"an older one asks", []Machine{aged(1, "h100", 8, asks), aged(2, "h100", 8, placed)}, nil, aged(9, "h100", 8), "this Machine is the next"},
		{"two older ones ask", []Machine{aged(1, "h100", 8, asks), aged(2, "h100", 8, placed), aged(3, "h100", 8, asks)}, nil, aged(9, "h100", 8), "of those that wait, m03 is the next"},
		{"a host counts once", []Machine{aged(1, "h100", 8, placed)}, []string{"m01"}, aged(9, "h100", 8), ""},
		{"a reservation of a Machine that is gone", nil, []string{"m01", "m02"}, aged(9, "h100", 8), ""},
		{"a younger one asks", []Machine{aged(1, "h100", 8, placed), aged(10, "h100", 8, asks)}, nil, aged(9, "h100", 8), ""},
		{"an older one waits for its own NodeType", []Machine{aged(1, "a100", 8, placed), aged(2, "a100", 8, asks)}, nil, aged(9, "h100", 8), ""},
		{"an older one waits for GPUs", []Machine{aged(1, "mi300x", 8, placed), aged(2, "mi300x", 24, asks)}, nil, aged(9, "h100", 8),
			"the GPUs that are left are for older Machines that wait, of which m02 is the next"},
		{"an older one is larger than the limit", []Machine{aged(2, "mi300x", 32, asks)}, nil, aged(9, "h100", 8), ""},
		{"an older one waits for GPUs, and this one needs none", []Machine{aged(1, "mi300x", 8, placed), aged(2, "mi300x", 24, asks)}, nil, aged(9, "storage", 0), ""},
		{"the limit was lowered", []Machine{aged(1, "a100", 8, placed), aged(2, "a100", 8, placed), aged(3, "a100", 8, claiming)}, []string{"m03"}, aged(9, "a100", 8), "3 of 1 Machines"},
	} {
		m := c.asks
		m.IsInLine = true
		f := factsWith(append(c.machines, m), c.reserved...)
		d := Decide(f)
		if hasPlace := HasPlace(quotaAfter(f, d), m.UID); hasPlace != (c.says == "") {
			t.Errorf("%s: has a place: %v", c.name, hasPlace)
		} else if says := refusalOf(f, d, m); !hasPlace && !strings.Contains(says, c.says) {
			t.Errorf("%s: %q, want %q", c.name, says, c.says)
		}
	}
	if !HasPlace(nil, "m") {
		t.Error("a namespace without a NodeQuota is limited")
	}
}

func TestAReservationLastsUntilTheMachineHasItsHostOrHasLongGivenUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Machine)
		age    time.Duration
		// want is the reservation, and then the resourceVersion that a cache must have reached.
		want string
	}{
		{"it claims", claiming, time.Hour, "m01 100"},
		{"it is about to claim", asks, time.Hour, "m01 100"},
		{"it has its host", placed, 0, " 101"},
		{"it has just given up", func(m *Machine) { m.Since = now.Add(time.Second - ReservationTimeout) }, time.Hour, "m01 100"},
		{"it has its place for a moment only", func(*Machine) {}, ReservationTimeout - time.Second, "m01 100"},
		{"it has given up long ago", func(m *Machine) { m.Since = now.Add(-ReservationTimeout) }, ReservationTimeout, " "},
	} {
		f := factsWith([]Machine{aged(1, "h100", 8, c.change)}, "m01")
		f.Reservations[0].At = metav1.NewTime(now.Add(-c.age))
		d := Decide(f)
		if got := reservedNames(d) + " " + d.MachinesResourceVersion; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if mustVerify := len(f.Ending()) == 1; mustVerify != (c.want == " ") {
			t.Errorf("%s: the API server is asked: %v", c.name, mustVerify)
		}
	}
	if f := factsWith(nil, "m01"); len(f.Ending()) != 1 {
		t.Error("a cache that does not show a Machine ends its reservation")
	}
}

func TestADecisionIsMadeByMachinesThatShowEveryHost(t *testing.T) {
	for reached, want := range map[string]bool{"": false, "none": false, "0": true, "101": true, "109": true, "110": false} {
		f := Facts{MachinesResourceVersion: reached, Machines: []Machine{aged(9, "h100", 8), aged(1, "h100", 8)}}
		if f.IsCurrent() != want {
			t.Errorf("a cache up to 109 is used where %q was reached: %v", reached, !want)
		}
		// What the API server lists is always new enough, and says what was reached: the number may be of the etcd before a restore.
		f.IsLive = true
		if d := Decide(f); !f.IsCurrent() || d.MachinesResourceVersion != "109" {
			t.Errorf("%q: the list of the API server is current: %v, and has reached %s", reached, f.IsCurrent(), d.MachinesResourceVersion)
		}
	}
}

func TestTheReportCountsByNodeTypeAndNamesWhatIsBeyondALimit(t *testing.T) {
	d := Decide(factsWith([]Machine{
		aged(1, "h100", 8, placed), aged(2, "h100", 8, placed), aged(3, "h100", 8, claiming), aged(4, "h100", 8, asks), aged(5, "mi300x", 8, placed), aged(6, "mi300x", 8, asks),
	}, "m03"))
	r := d.Report
	if got, want := fmt.Sprint(uses(r)), "[a100:0 h100:3+1,m04 mi300x:1+1,m06]"; got != want || r.GPUs != 32 || r.Waiting != 2 || r.Next != "m06" {
		t.Errorf("%s, %d GPUs, %d waiting, of which %s for GPUs; want %s", got, r.GPUs, r.Waiting, r.Next, want)
	}
	if want := "3 Machines of NodeType h100 have a host, and the limit is 2; 32 GPUs are used, and the limit is 24"; r.Excess != want {
		t.Errorf("excess %q, want %q", r.Excess, want)
	}
}

func uses(r Report) (out []string) {
	for _, u := range r.Machines {
		text := fmt.Sprintf("%s:%d", u.NodeType, u.Used)
		if u.Waiting > 0 {
			text += fmt.Sprintf("+%d,%s", u.Waiting, u.Next)
		}
		out = append(out, text)
	}
	return out
}

func TestRoomIsWhatEveryLimitLeaves(t *testing.T) {
	q := &v1alpha1.NodeQuota{Spec: limits, Status: v1alpha1.NodeQuotaStatus{GPUs: 8, Machines: []v1alpha1.NodeTypeUse{{NodeType: "h100", Used: 1}, {NodeType: "a100", Used: 3}}}}
	for _, c := range []struct {
		nodeType string
		gpus     int32
		want     int
	}{{"h100", 8, 1}, {"h100", 12, 1}, {"mi300x", 8, 2}, {"mi300x", 32, 0}, {"a100", 8, 0}, {"storage", 0, maxRoom}} {
		if got := Room(q, c.nodeType, c.gpus); got != c.want {
			t.Errorf("%s with %d GPUs: room for %d, want %d", c.nodeType, c.gpus, got, c.want)
		}
	}
}

// TestWhatWaitsGoesOnOldestFirstAndNeverBeyondALimit plays a thousand namespaces: each has a limit that is raised step by step, and Machines that begin to ask in
// a random order.
func TestWhatWaitsGoesOnOldestFirstAndNeverBeyondALimit(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := Facts{Clock: watched.Clock{Now: now}, Namespace: "research", IsLive: true}
		for i := range 12 {
			f.Machines = append(f.Machines, aged(i, []string{"h100", "a100"}[rng.IntN(2)], []int32{4, 8}[rng.IntN(2)], asks))
		}
		rng.Shuffle(12, func(i, j int) { f.Machines[i], f.Machines[j] = f.Machines[j], f.Machines[i] })
		for limit := int32(0); limit <= 96; limit += 8 {
			f.Spec = v1alpha1.NodeQuotaSpec{GPUs: ptr.To(limit)}
			d := Decide(f)
			if used := d.Report.GPUs; used > limit {
				t.Fatalf("seed %d: %d of %d GPUs are used", seed, used, limit)
			}
			has, oldestWaiting := map[string]bool{}, aged(99, "", 0)
			for _, r := range d.Reservations {
				has[r.UID] = true
			}
			for i := range f.Machines {
				if m := &f.Machines[i]; !m.HasHost && !has[string(m.UID)] && byAge(*m, oldestWaiting) < 0 {
					oldestWaiting = *m
				}
			}
			for i := range f.Machines {
				m := &f.Machines[i]
				if m.HasHost = m.HasHost || has[string(m.UID)]; m.HasHost && byAge(oldestWaiting, *m) < 0 {
					t.Fatalf("seed %d, limit %d: %s has a place, and the older %s waits", seed, limit, m.Name, oldestWaiting.Name)
				}
			}
			if waits := d.Report.Next; waits != "" && waits != oldestWaiting.Name {
				t.Fatalf("seed %d, limit %d: %s is the next, and the older %s waits", seed, limit, waits, oldestWaiting.Name)
			}
		}
		if d := Decide(f); d.Report.Waiting != 0 {
			t.Fatalf("seed %d: with room for all, %d wait", seed, d.Report.Waiting)
		}
	}
}

// TestOneDecisionIsAboutAllMachinesThatAsk has more than a status may reserve places for.
func TestOneDecisionIsAboutAllMachinesThatAsk(t *testing.T) {
	f := Facts{Clock: watched.Clock{Now: now}, IsLive: true}
	for i := range 3000 {
		f.Machines = append(f.Machines, aged(i, "h100", 8, asks))
	}
	for round, want := range []int{maxReservations, maxReservations, 3000 - 2*maxReservations, 0} {
		d := Decide(f)
		if len(d.Reservations) != want || int(d.Report.Waiting) != max(3000-(round+1)*maxReservations, 0) {
			t.Fatalf("decision %d: %d reservations, %d wait", round, len(d.Reservations), d.Report.Waiting)
		}
		for i := range d.Reservations {
			f.Machines[round*maxReservations+i].HasHost = true
		}
	}
}

func TestAChangeStartsOnlyWhomItConcerns(t *testing.T) {
	at := func(next string, names ...string) *v1alpha1.NodeQuota {
		q := &v1alpha1.NodeQuota{Status: v1alpha1.NodeQuotaStatus{Next: next, Machines: []v1alpha1.NodeTypeUse{{NodeType: "h100", Next: next}, {NodeType: "a100"}}}}
		for _, name := range names {
			q.Status.Reservations = append(q.Status.Reservations, v1alpha1.QuotaReservation{Machine: name, UID: name})
		}
		return q
	}
	for _, c := range []struct {
		before, after *v1alpha1.NodeQuota
		want          string
	}{
		{at(""), at(""), ""},
		{at("c", "a"), at("c", "a", "b"), "b"},
		{at("c", "a", "b"), at("c", "b"), ""},
		{at("b", "a"), at("c", "b"), "b c"},
		{at("c"), at(""), ""},
	} {
		if got := strings.Join(Concerned(c.before, c.after), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestOnlyAChangeThatGivesRoomStartsANodePool(t *testing.T) {
	base := v1alpha1.NodeQuota{Status: v1alpha1.NodeQuotaStatus{
		GPUs: 16, Waiting: 1, Machines: []v1alpha1.NodeTypeUse{{NodeType: "h100", Used: 2, Waiting: 1}}, Reservations: []v1alpha1.QuotaReservation{{UID: "a"}},
	}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.NodeQuota)
		want   bool
	}{
		"nothing":           {func(*v1alpha1.NodeQuota) {}, false},
		"more is used":      {func(q *v1alpha1.NodeQuota) { q.Status.GPUs = 24 }, false},
		"a claim is made":   {func(q *v1alpha1.NodeQuota) { q.Status.Reservations = nil }, false},
		"the spec":          {func(q *v1alpha1.NodeQuota) { q.Generation++ }, true},
		"fewer GPUs":        {func(q *v1alpha1.NodeQuota) { q.Status.GPUs = 8 }, true},
		"fewer Machines":    {func(q *v1alpha1.NodeQuota) { q.Status.Machines[0].Used = 1 }, true},
		"no Machine":        {func(q *v1alpha1.NodeQuota) { q.Status.Machines = nil }, true},
		"an older one left": {func(q *v1alpha1.NodeQuota) { q.Status.Waiting = 0 }, true},
	} {
		after := base.DeepCopy()
		c.change(after)
		if got := HasMoreRoom(&base, after); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestANodeTypeThatIsNotThereIsSaid(t *testing.T) {
	spec := v1alpha1.NodeQuotaSpec{Machines: []v1alpha1.NodeTypeLimit{{NodeType: "h100"}, {NodeType: "a100"}}}
	there := func(names ...string) (out []v1alpha1.NodeType) {
		for _, name := range names {
			out = append(out, v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return out
	}
	for _, c := range []struct {
		nodeTypes []v1alpha1.NodeType
		want      string
	}{
		{there("h100", "a100", "b200"), ""},
		{there("h100", "b200"), "there is no NodeType a100, so that its limit limits nothing: there are b200, h100"},
		{nil, "there is no NodeType a100, h100, so that its limit limits nothing: there is none at all"},
	} {
		if got := UnknownNodeTypes(spec, c.nodeTypes); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
