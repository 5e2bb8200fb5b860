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
)

var now = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

// limits are 2 Machines of h100, 1 of a100 and 24 GPUs.
var limits = v1alpha1.NodeQuotaSpec{
	Machines: []v1alpha1.NodeTypeLimit{{NodeType: "h100", Limit: 2}, {NodeType: "a100", Limit: 1}}, GPUs: ptr.To(int32(24)),
}

// aged returns a Machine of a NodeType that was made so many minutes after the first.
func aged(minute int, nodeType string, gpus int32, change ...func(*Machine)) Machine {
	name := fmt.Sprintf("m%02d", minute)
	m := Machine{Name: name, UID: types.UID(name), NodeType: nodeType, GPUs: gpus, Created: now.Add(time.Duration(minute) * time.Minute)}
	for _, c := range change {
		c(&m)
	}
	return m
}

func placed(m *Machine)   { m.HasHost = true }
func waits(m *Machine)    { m.IsWaiting, m.IsInLine = true, true }
func begins(m *Machine)   { m.IsClaiming, m.IsInLine = true, true }
func claiming(m *Machine) { m.IsClaiming = true }

func TestAClaimNeedsRoomInEveryLimitAndGoesAfterOlderOnes(t *testing.T) {
	for _, c := range []struct {
		name     string
		machines []Machine
		reserved []string
		asks     Machine
		// says is a part of the refusal; empty: there is room.
		says string
	}{
		{"an empty namespace", nil, nil, aged(9, "h100", 8), ""},
		{"the last place", []Machine{aged(1, "h100", 8, placed)}, nil, aged(9, "h100", 8), ""},
		{"no place of its NodeType", []Machine{aged(1, "h100", 8, placed), aged(2, "h100", 8, placed)}, nil, aged(9, "h100", 8), "2 of 2 Machines of NodeType h100 are used"},
		{"GPUs of another NodeType", []Machine{aged(1, "mi300x", 8, placed), aged(2, "mi300x", 8, placed), aged(3, "mi300x", 8, placed)}, nil, aged(9, "h100", 8), "24 of 24 GPUs are used, and a Machine of NodeType h100 has 8"},
		{"a NodeType without a limit of its own", []Machine{aged(1, "mi300x", 8, placed)}, nil, aged(9, "mi300x", 8), ""},
		{"a NodeType without GPUs", []Machine{aged(1, "mi300x", 24, placed)}, nil, aged(9, "storage", 0), ""},
		{"a reservation counts as a host", []Machine{aged(1, "h100", 8, claiming), aged(2, "h100", 8, placed)}, []string{"m01"}, aged(9, "h100", 8), "2 of 2"},
		{"a Machine whose claim waits for something else does not count", []Machine{aged(1, "h100", 8, claiming), aged(2, "h100", 8, placed)}, nil, aged(9, "h100", 8), ""},
		{"an older one that claims goes first, before it has its reservation", []Machine{aged(1, "h100", 8, begins), aged(2, "h100", 8, placed)}, nil, aged(9, "h100", 8), "m01 is the next"},
		{"a host counts once", []Machine{aged(1, "h100", 8, placed)}, []string{"m01"}, aged(9, "h100", 8), ""},
		{"a reservation of a Machine that is gone", nil, []string{"m01", "m02"}, aged(9, "h100", 8), ""},
		{"an older one waits", []Machine{aged(1, "h100", 8, placed), aged(2, "h100", 8, waits)}, nil, aged(9, "h100", 8), "older Machines that wait, of which m02 is the next"},
		{"it is the oldest that waits", []Machine{aged(1, "h100", 8, placed), aged(9, "h100", 8, waits), aged(10, "h100", 8, waits)}, nil, aged(9, "h100", 8), ""},
		{"an older one waits for its own NodeType", []Machine{aged(1, "a100", 8, placed), aged(2, "a100", 8, waits)}, nil, aged(9, "h100", 8), ""},
		{"an older one waits for GPUs", []Machine{aged(1, "mi300x", 8, placed), aged(2, "mi300x", 24, waits)}, nil, aged(9, "h100", 8), "m02 is the next"},
		{"an older one is larger than the limit", []Machine{aged(2, "mi300x", 32, waits)}, nil, aged(9, "h100", 8), ""},
		{"an older one waits for GPUs, and this one needs none", []Machine{aged(1, "mi300x", 8, placed), aged(2, "mi300x", 24, waits)}, nil, aged(9, "storage", 0), ""},
	} {
		f := facts(c.machines, c.reserved...)
		d := Decide(f, c.asks)
		if (d.Refusal == "") != (c.says == "") || !strings.Contains(d.Refusal, c.says) || d.IsReserved {
			t.Errorf("%s: %+v, want %q", c.name, d, c.says)
		}
		if c.says != "" && !strings.HasPrefix(d.Refusal, "NodeQuota research/default: ") {
			t.Errorf("%s: %q does not begin with the name of the NodeQuota", c.name, d.Refusal)
		}
	}
}

func facts(machines []Machine, reserved ...string) Facts {
	f := Facts{Now: now, Namespace: "research", Spec: limits, Machines: machines}
	for _, uid := range reserved {
		f.Reservations = append(f.Reservations, v1alpha1.QuotaReservation{Machine: uid, UID: uid, At: metav1.NewTime(now.Add(-time.Hour))})
	}
	return f
}

func TestAReservationLastsUntilTheMachineCountsByItsHostOrHasLongGivenUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Machine)
		age    time.Duration
		want   int
	}{
		{"it claims", claiming, time.Hour, 1},
		{"it has its host", placed, 0, 0},
		{"it has just given up", func(*Machine) {}, ReservationTimeout - time.Second, 1},
		{"it has given up long ago", func(*Machine) {}, ReservationTimeout, 0},
	} {
		f := facts([]Machine{aged(1, "h100", 8, c.change)}, "m01")
		f.Reservations[0].At = metav1.NewTime(now.Add(-c.age))
		if got := Needed(f); len(got) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := Decide(f, aged(1, "h100", 8, c.change)); got.IsReserved != (c.want == 1) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestTheReportCountsByNodeTypeAndNamesWhatIsBeyondALimit(t *testing.T) {
	f := facts([]Machine{
		aged(1, "h100", 8, placed), aged(2, "h100", 8, placed), aged(3, "h100", 8, claiming), aged(4, "h100", 8, waits), aged(5, "mi300x", 8, placed),
	}, "m03")
	r := Summarize(f)
	if got, want := fmt.Sprint(uses(r)), "[a100:0 h100:3+1 mi300x:1]"; got != want || r.GPUs != 32 || r.Waiting != 1 {
		t.Errorf("%s, %d GPUs, %d waiting; want %s", got, r.GPUs, r.Waiting, want)
	}
	if want := "3 Machines of NodeType h100 have a host, and the limit is 2; 32 GPUs are used, and the limit is 24"; r.Excess != want {
		t.Errorf("excess %q, want %q", r.Excess, want)
	}
	if room := Room(facts(f.Machines[:1]), "h100", 8); room != 1 {
		t.Errorf("room for %d more, want 1", room)
	}
	if room := Room(Facts{}, "h100", 8); room != maxRoom {
		t.Errorf("room for %d without a limit", room)
	}
}

func uses(r Report) (out []string) {
	for _, u := range r.Machines {
		text := fmt.Sprintf("%s:%d", u.NodeType, u.Used)
		if u.Waiting > 0 {
			text += fmt.Sprintf("+%d", u.Waiting)
		}
		out = append(out, text)
	}
	return out
}

// TestWhatWaitsGoesOnOldestFirstAndNeverBeyondALimit plays a thousand namespaces: each has a limit that is raised step by step, and asks Machines in a
// random order until nothing changes any more.
func TestWhatWaitsGoesOnOldestFirstAndNeverBeyondALimit(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := Facts{Now: now, Namespace: "research"}
		for i := range 12 {
			f.Machines = append(f.Machines, aged(i, []string{"h100", "a100"}[rng.IntN(2)], []int32{4, 8}[rng.IntN(2)]))
		}
		for limit := int32(0); limit <= 96; limit += 8 {
			f.Spec = v1alpha1.NodeQuotaSpec{GPUs: ptr.To(limit)}
			for isChanged := true; isChanged; {
				isChanged = false
				for _, i := range rng.Perm(len(f.Machines)) {
					m := &f.Machines[i]
					if m.HasHost {
						continue
					}
					isWaiting := Decide(f, *m).Refusal != ""
					isChanged = isChanged || isWaiting != m.IsWaiting || !isWaiting
					m.IsWaiting, m.IsInLine, m.HasHost = isWaiting, isWaiting, !isWaiting
				}
			}
			if used := f.used(nil).gpus; used > limit {
				t.Fatalf("seed %d: %d of %d GPUs are used", seed, used, limit)
			}
			for i := 1; i < len(f.Machines); i++ {
				if f.Machines[i].HasHost && !f.Machines[i-1].HasHost {
					t.Fatalf("seed %d, limit %d: %s has a host, and the older %s waits", seed, limit, f.Machines[i].Name, f.Machines[i-1].Name)
				}
			}
		}
		if used := f.used(nil); used.machines["h100"]+used.machines["a100"] != 12 {
			t.Fatalf("seed %d: with room for all, only %v have a host", seed, used.machines)
		}
	}
}

func TestOnlyAChangeThatGivesRoomStartsAnotherLook(t *testing.T) {
	base := v1alpha1.NodeQuota{Status: v1alpha1.NodeQuotaStatus{
		GPUs: 16, Waiting: 1, Machines: []v1alpha1.NodeTypeUse{{NodeType: "h100", Used: 2, Waiting: 1}}, Reservations: []v1alpha1.QuotaReservation{{UID: "a"}},
	}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.NodeQuota)
		want   bool
	}{
		"nothing": {func(*v1alpha1.NodeQuota) {}, false},
		"another reservation": {func(q *v1alpha1.NodeQuota) {
			q.Status.Reservations = append(q.Status.Reservations, v1alpha1.QuotaReservation{UID: "b"})
		}, false},
		"more is used":       {func(q *v1alpha1.NodeQuota) { q.Status.GPUs = 24 }, false},
		"the spec":           {func(q *v1alpha1.NodeQuota) { q.Generation++ }, true},
		"fewer GPUs":         {func(q *v1alpha1.NodeQuota) { q.Status.GPUs = 8 }, true},
		"fewer Machines":     {func(q *v1alpha1.NodeQuota) { q.Status.Machines[0].Used = 1 }, true},
		"an older one left":  {func(q *v1alpha1.NodeQuota) { q.Status.Waiting = 0 }, true},
		"a reservation less": {func(q *v1alpha1.NodeQuota) { q.Status.Reservations = nil }, true},
	} {
		after := base.DeepCopy()
		c.change(after)
		if got := MustLookAgain(&base, after); got != c.want {
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
