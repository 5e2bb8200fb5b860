package main

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/fleet"
)

func TestRequestsThatFollowEachOtherAreOneRead(t *testing.T) {
	var r readStatistics
	for _, look := range []struct {
		second int64
		a, b   int64
	}{{0, 5, 5}, {10, 8, 5}, {11, 9, 5}, {100, 12, 5}, {101, 12, 5}} {
		r.add(time.Duration(look.second)*time.Second, map[string]int64{"a": look.a, "b": look.b})
	}
	r.finish(130 * time.Second)
	if r.requests != 7 || r.count != 2 || !slices.Equal(r.gaps, []time.Duration{89 * time.Second}) || !slices.Equal(r.perMinute, []int{1, 1}) {
		t.Errorf("got %+v", r)
	}
	if r.unreadBMCs() != 1 || r.open != 130*time.Second {
		t.Errorf("b was never read: got %d, %s", r.unreadBMCs(), r.open)
	}
}

func TestGrowthIsASlope(t *testing.T) {
	if got := growthPerHour([]int64{10, 20, 30, 40}, time.Minute); math.Abs(got-600) > 1e-6 {
		t.Errorf("10 bytes each minute: got %f per hour", got)
	}
	for _, flat := range [][]int64{nil, {7}, {7, 7, 7}} {
		if got := growthPerHour(flat, time.Minute); got != 0 {
			t.Errorf("%v: got %f", flat, got)
		}
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-machines", "2"}, {"-timeout", "0s"}, {"-steady", "-1s"}, {"-profile"}, {"-provider", "nobody"}, {"more"}} {
		if _, err := parseFlags(args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	if o, err := parseFlags([]string{"-provider", "ironic"}); err != nil || o.machines != 200 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := parseFlags(nil); err != nil || o.machines != 1000 || o.steady != 10*time.Minute {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestTheReportCountsWhatIsInEachPartOfTheRun(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	at := func(s int) sample {
		return sample{at: begin.Add(time.Duration(s) * time.Second), usage: map[string]fleet.Usage{manager: {CPU: time.Duration(s) * time.Second / 10, Peak: 64 * mib}}}
	}
	f := &fleetRun{options: options{machines: 2}, Fleet: fleet.New(fleet.Options{Dir: t.TempDir()})}
	f.Image = pack.Result{DiskBytes: imageBytes, SizeBytes: imageBytes / 2}
	f.started, f.registered, f.ordered, f.admitted = at(0), at(10), at(20), at(60)
	f.steady = &steadyState{from: at(100), to: at(200), resident: []int64{mib, mib}}
	var log bytes.Buffer
	for _, w := range []struct {
		second         int
		resource, code string
	}{{5, "secrets", "200"}, {30, "machines", "200"}, {31, "machines", "409"}, {32, "events", "201"}, {150, "machines", "200"}} {
		log.WriteString(`{"stage":"ResponseComplete","verb":"patch","user":{"username":"` + f.Env.ManagerUser() + `"},"objectRef":{"resource":"` + w.resource +
			`","subresource":"status"},"responseStatus":{"code":` + w.code + `},"requestReceivedTimestamp":"` + begin.Add(time.Duration(w.second)*time.Second).Format(time.RFC3339Nano) + "\"}\n")
	}
	for name, text := range map[string][]byte{"management": log.Bytes(), tenantName: nil} {
		if err := os.WriteFile(f.Env.AuditLog(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := f.writeReport(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"last Ready: 40.0 s; before it, from the manager's start to the last host available: 10.0 s",
		"| manager | 1.0 | 4.0 | 2000 | 64 |",
		"| patch machines/status | 0.00 | 1.00 | 0.50 |",
		"| patch secrets/status | 0.50 | 0.00 | 0.00 |",
		"To admit a Machine: 1.00 mutating requests beside Events, 0.50 Events; 0.00 reads",
		"| manager | 10.00 |",
		"beside its lease: 1, 0.010 per second",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
}
