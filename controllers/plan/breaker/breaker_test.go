package breaker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// inRack is an ask of a server of that rack, first heard of so long ago.
func inRack(rack string, n int, age time.Duration) Ask {
	return Ask{Act: Reinstall, Object: fmt.Sprintf("a/%s-%d", rack, n), Domains: []Domain{{"rack", rack}, {"NodeType", "h100"}}, Since: noon.Add(-age)}
}

func granted(answers []Answer) (n int) {
	for _, a := range answers {
		if a.IsGranted {
			n++
		}
	}
	return n
}

func TestWhatFailsAloneIsGrantedAndManyAreNot(t *testing.T) {
	servers := map[Domain]Size{{"rack", "r1"}: {Servers: 18}, {"rack", "r2"}: {Servers: 72}, {"rack", "r3"}: {Servers: 72, Failing: 70}, {"NodeType", "h100"}: {Servers: 1000}}
	asks := func(rack string, n int, age time.Duration) (out []Ask) {
		for i := range n {
			out = append(out, inRack(rack, i, age))
		}
		return out
	}
	done := func(rack string, age time.Duration) Grant {
		return Grant{Act: Reinstall, Object: "a/" + rack, Domains: []Domain{{"rack", rack}, {"NodeType", "h100"}}, At: noon.Add(-age)}
	}
	for _, c := range []struct {
		about  string
		asks   []Ask
		grants []Grant
		want   int
		cause  string
	}{
		{"one", asks("r1", 1, 3*time.Minute), nil, 1, ""},
		{"one that was seen just now", asks("r1", 1, time.Minute), nil, 0, ""},
		{"two of a rack of 18", asks("r1", 2, 3*time.Minute), nil, 0, "2 of the 18 servers of rack r1"},
		{"one and another a moment ago", append(asks("r1", 1, 3*time.Minute), inRack("r1", 7, 0)), nil, 0, "2 of the 18 servers of rack r1"},
		{"one of each of two racks", append(asks("r1", 1, 3*time.Minute), asks("r2", 1, 3*time.Minute)...), nil, 2, ""},
		{"two of a rack of 72", asks("r2", 2, 3*time.Minute), nil, 2, ""},
		{"three of a rack of 72", asks("r2", 3, 3*time.Minute), nil, 0, "3 of the 72 servers of rack r2"},
		{"one of a rack whose others fail too and are nobody's business yet", asks("r3", 1, 3*time.Minute), nil, 0, "70 of the 72 servers of rack r3"},
		{"all of a rack", asks("r1", 18, 3*time.Minute), nil, 0, "18 of the 18 servers of rack r1"},
		{"one after another within the hour", asks("r1", 1, 3*time.Minute), []Grant{done("r1", 50*time.Minute)}, 0, "1 server of rack r1, after 1 within the hour before"},
		{"one after another more than an hour before", asks("r1", 1, 3*time.Minute), []Grant{done("r1", 61*time.Minute)}, 1, ""},
	} {
		answers := Decide(Facts{Clock: watched.Clock{Now: noon}, Asks: c.asks, Grants: c.grants, Domains: servers})
		cause := ""
		if first := answers[0].Cause; first != nil {
			cause = first.Message()
		}
		if granted(answers) != c.want || cause != c.cause {
			t.Errorf("%s: %d granted, expected %d; %q, expected %q", c.about, granted(answers), c.want, cause, c.cause)
		}
		for _, a := range answers {
			if !a.IsGranted && a.Wait <= 0 {
				t.Errorf("%s: nobody asks again", c.about)
			}
		}
	}
}

func TestAPersonMayConfirmMany(t *testing.T) {
	asks := []Ask{inRack("r1", 1, 0), inRack("r1", 2, 0), inRack("r1", 3, 0)}
	asks[0].IsConfirmed, asks[2].IsConfirmed = true, true
	answers := Decide(Facts{Clock: watched.Clock{Now: noon}, Asks: asks})
	if !answers[0].IsGranted || answers[1].IsGranted || !answers[2].IsGranted {
		t.Errorf("%+v", answers)
	}
}

func TestAClockThatWasSetGrantsNothing(t *testing.T) {
	f := Facts{Clock: watched.Clock{Now: noon, Since: noon.Add(-time.Minute)}, Asks: []Ask{inRack("r1", 1, 24*time.Hour)}}
	if granted(Decide(f)) != 0 {
		t.Error("the clock was set a day forward a moment ago")
	}
	f.Since = noon.Add(-time.Hour)
	f.Grants = []Grant{{Act: Reinstall, Domains: f.Asks[0].Domains, At: noon.Add(24 * time.Hour)}}
	if granted(Decide(f)) != 1 {
		t.Error("a grant of a clock that was a day ahead counts for ever")
	}
}

func TestWhatTheyHaveInCommonIsTheSmallestThatFailedAsAWhole(t *testing.T) {
	var asks []Ask
	for i := range 4 {
		a := inRack("r1", i, time.Hour)
		a.Domains = append(a.Domains, Domain{"NVLink domain", "n1"}, Domain{"TenantCluster", "a/b"})
		asks = append(asks, a)
	}
	f := Facts{Clock: watched.Clock{Now: noon}, Asks: asks, Domains: map[Domain]Size{{"rack", "r1"}: {Servers: 18}, {"NVLink domain", "n1"}: {Servers: 4}, {"TenantCluster", "a/b"}: {Servers: 4000}, {"NodeType", "h100"}: {Servers: 4}}}
	if c := Decide(f)[0].Cause; c == nil || c.Domain.Kind != "NVLink domain" && c.Domain.Kind != "NodeType" || c.Servers != 4 {
		t.Errorf("%+v", c)
	}
	f.Domains[Domain{"NodeType", "h100"}] = Size{Servers: 500}
	if c := Decide(f)[0].Cause; c == nil || c.Domain.String() != "NVLink domain n1" {
		t.Errorf("%+v", c)
	}
}

// TestNoHistoryHasMoreThanTheLimit lets faults come at random, alone and many at once, and each be asked for until it is granted or gone.
func TestNoHistoryHasMoreThanTheLimit(t *testing.T) {
	total, held := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		now, due, servers := noon, map[int]time.Time{}, map[Domain]Size{}
		var grants []Grant
		for i := range 100 {
			for _, d := range domainsOf(i) {
				servers[d] = Size{Servers: servers[d].Servers + 1}
			}
		}
		for range 400 {
			now = now.Add(time.Duration(rng.IntN(60)) * time.Second)
			switch rng.IntN(40) {
			case 0: // a rack is dark
				rack := rng.IntN(10)
				for i := range 100 {
					if i/10 == rack {
						due[i] = now
					}
				}
			case 1, 2:
				due[rng.IntN(100)] = now
			case 3:
				clear(due)
			}
			var asks []Ask
			for i := range 100 {
				if at, isDue := due[i]; isDue {
					asks = append(asks, Ask{Act: Reinstall, Object: fmt.Sprint(i), Domains: domainsOf(i), Since: at})
				}
			}
			for at, a := range Decide(Facts{Clock: watched.Clock{Now: now}, Asks: asks, Grants: grants, Domains: servers}) {
				if !a.IsGranted {
					held++
					continue
				}
				total++
				grants = append(grants, Grant{Act: Reinstall, Object: asks[at].Object, Domains: asks[at].Domains, At: now})
				var i int
				_, _ = fmt.Sscan(asks[at].Object, &i)
				delete(due, i)
			}
			for d, n := range servers {
				done := 0
				for _, g := range grants {
					if (g.Domains[0] == d || g.Domains[1] == d) && now.Sub(g.At) < Window {
						done++
					}
				}
				if done > Limit(n.Servers) {
					t.Fatalf("seed %d: %d within an hour in %s of %d", seed, done, d, n.Servers)
				}
			}
		}
	}
	if total < 300 || held < 1000 {
		t.Errorf("the histories prove little: %d granted, %d held", total, held)
	}
}

func domainsOf(i int) []Domain { return []Domain{{"rack", fmt.Sprint(i / 10)}, {"NodeType", "h100"}} }
