package breaker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// groups are those of a test, so that all asks of it say the same of them.
type groups map[Domain]*Group

func (g groups) of(domains ...Domain) (out []*Group) {
	for _, d := range domains {
		if g[d] == nil {
			g[d] = &Group{Domain: d}
		}
		out = append(out, g[d])
	}
	return out
}

// sized returns groups of a rack of 18, a rack of 72, a hall of 500 and a NodeType of 1,000.
func sized() groups {
	out := groups{}
	for d, n := range map[Domain]int{{"rack", "r1"}: 18, {"rack", "r2"}: 72, {"hall", "h"}: 500, {"NodeType", "h100"}: 1000} {
		out[d] = &Group{Domain: d, Servers: n}
	}
	return out
}

// in is an ask of a server of that rack, which failed, and was first heard of, so long ago.
func (g groups) in(rack string, n int, age time.Duration) Ask {
	return Ask{Act: Reinstall, Fault: Fault{Object: fmt.Sprintf("a/%s-%d", rack, n), At: noon.Add(-age)}, Groups: g.of(Domain{"rack", rack}, Domain{"NodeType", "h100"}), Since: noon.Add(-age)}
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
	g := sized()
	asks := func(rack string, n int, age time.Duration) (out []Ask) {
		for i := range n {
			out = append(out, g.in(rack, i, age))
		}
		return out
	}
	done := func(rack string, age time.Duration) Grant { return NewGrant(g.in(rack, 99, 0), noon.Add(-age)) }
	unknown := func(a Ask) Ask { a.At = time.Time{}; return a }
	failing := func(a Ask, at time.Time, n int) Ask {
		rack := *a.Groups[0]
		for i := range n {
			rack.Failing = append(rack.Failing, Fault{fmt.Sprint("a/other-", i), at})
		}
		a.Groups = []*Group{&rack, a.Groups[1]}
		return a
	}
	inHall := func(n int) Ask {
		a := g.in("r1", n, time.Hour)
		a.Groups = g.of(Domain{"hall", "h"})
		return a
	}
	for _, c := range []struct {
		about  string
		asks   []Ask
		grants []Grant
		want   int
		cause  string
		until  time.Time
	}{
		{"one", asks("r1", 1, 3*time.Minute), nil, 1, "", time.Time{}},
		{"one that was seen just now", asks("r1", 1, time.Minute), nil, 0, "", time.Time{}},
		{"two of a rack", asks("r2", 2, 3*time.Minute), nil, 0, "2 of the 72 servers of rack r2", time.Time{}},
		{"one and another a moment ago", append(asks("r1", 1, 3*time.Minute), g.in("r1", 7, 0)), nil, 0, "2 of the 18 servers of rack r1", time.Time{}},
		{"one of each of two racks", append(asks("r1", 1, 3*time.Minute), asks("r2", 1, 3*time.Minute)...), nil, 2, "", time.Time{}},
		{"one of each of four racks", []Ask{g.in("r1", 0, time.Hour), g.in("r2", 0, time.Hour), g.in("r3", 0, time.Hour), g.in("r4", 0, time.Hour)}, nil, 0, "4 of the 1000 servers of NodeType h100", time.Time{}},
		{"one of a rack whose others fail too and are nobody's business yet", []Ask{failing(g.in("r2", 0, 3*time.Minute), noon, 70)}, nil, 0, "71 of the 72 servers of rack r2", time.Time{}},
		{"one of a rack of which others fail since yesterday", []Ask{failing(g.in("r2", 0, 3*time.Minute), noon.Add(-24*time.Hour), 3)}, nil, 1, "", time.Time{}},
		{"one of a rack of which another fails, nobody knows since when", []Ask{failing(g.in("r2", 0, 3*time.Minute), time.Time{}, 1)}, nil, 0, "2 of the 72 servers of rack r2", time.Time{}},
		{"one that fails, nobody knows since when, and others since yesterday", []Ask{failing(unknown(g.in("r2", 0, 3*time.Minute)), noon.Add(-24*time.Hour), 1)}, nil, 0, "2 of the 72 servers of rack r2", time.Time{}},
		{"two that failed two hours apart", []Ask{g.in("r1", 0, 3*time.Hour), g.in("r1", 1, time.Hour)}, nil, 1, "", time.Time{}},
		{"two of a hall that may have two", []Ask{inHall(0), inHall(1)}, nil, 2, "", time.Time{}},
		{"all of a rack", asks("r1", 18, 3*time.Minute), nil, 0, "18 of the 18 servers of rack r1", time.Time{}},
		{"all of a rack for a day", asks("r1", 18, 24*time.Hour), nil, 0, "18 of the 18 servers of rack r1", time.Time{}},
		{"one after another within the hour", asks("r1", 1, 3*time.Minute), []Grant{done("r1", 50*time.Minute)}, 0, "1 server of rack r1", noon.Add(10 * time.Minute)},
		{"one after another more than an hour before", asks("r1", 1, 3*time.Minute), []Grant{done("r1", 61*time.Minute)}, 1, "", time.Time{}},
		{"one that had its grant before a restart", asks("r1", 1, 0), []Grant{NewGrant(g.in("r1", 0, 0), noon.Add(-time.Minute))}, 1, "", time.Time{}},
		{"one that had its grant, which counts once", append(asks("r2", 1, 3*time.Minute), asks("r1", 1, 3*time.Minute)...), []Grant{NewGrant(g.in("r2", 0, 0), noon.Add(-time.Minute))}, 2, "", time.Time{}},
	} {
		answers := Decide(Facts{Clock: watched.Clock{Now: noon}, Asks: c.asks, Grants: c.grants})
		cause, until := "", time.Time{}
		if first := answers[0].Cause; first != nil {
			cause, until = first.Subject(), first.Until
		}
		if granted(answers) != c.want || cause != c.cause || !until.Equal(c.until) {
			t.Errorf("%s: %d granted, expected %d; %q until %s, expected %q until %s", c.about, granted(answers), c.want, cause, until, c.cause, c.until)
		}
		for _, a := range answers {
			if !a.IsGranted && a.Wait <= 0 {
				t.Errorf("%s: nobody asks again", c.about)
			}
		}
	}
}

func TestTheLimitGrowsAsFaultsThatComeAloneDo(t *testing.T) {
	for servers, want := range map[int]int{0: 1, 1: 1, 18: 1, 72: 1, 96: 1, 97: 2, 571: 2, 1000: 3, 10_000: 8, math.MaxInt: 206} {
		if got := Limit(servers); got != want {
			t.Errorf("%d servers: %d, expected %d", servers, got, want)
		}
	}
}

func TestAPersonMayConfirmMany(t *testing.T) {
	g := sized()
	asks := []Ask{g.in("r1", 1, 0), g.in("r1", 2, 0), g.in("r1", 3, 0)}
	asks[0].IsConfirmed, asks[2].IsConfirmed = true, true
	answers := Decide(Facts{Clock: watched.Clock{Now: noon}, Asks: asks})
	if !answers[0].IsGranted || answers[1].IsGranted || !answers[2].IsGranted {
		t.Errorf("%+v", answers)
	}
}

func TestAClockThatWasSetGrantsNothing(t *testing.T) {
	g := sized()
	f := Facts{Clock: watched.Clock{Now: noon, Since: noon.Add(-time.Minute)}, Asks: []Ask{g.in("r1", 1, 24*time.Hour)}}
	if granted(Decide(f)) != 0 {
		t.Error("the clock was set a day forward a moment ago")
	}
	// One time is of before the clock was set, the other of within an hour after that.
	f.Since, f.Asks = noon.Add(-2*time.Hour), []Ask{g.in("r1", 1, 24*time.Hour), g.in("r1", 2, 90*time.Minute)}
	if granted(Decide(f)) != 0 {
		t.Error("times of two clocks are compared")
	}
	// What failed before the clock was set has nothing to do with what fails more than an hour after, for as long as it is broken.
	for _, days := range []int{1, 30, 300} {
		f.Now = noon.Add(time.Duration(days) * 24 * time.Hour)
		late := g.in("r1", 2, 0)
		late.At, late.Since = f.Now.Add(-time.Hour), f.Now.Add(-time.Hour)
		for name, at := range map[string]time.Time{"before": noon.Add(-24 * time.Hour), "in the future": f.Now.Add(24 * time.Hour)} {
			late.Groups[0].Failing = []Fault{{Object: "a/old", At: at}, {Object: late.Object, At: late.At}}
			if answer := Decide(Facts{Clock: f.Clock, Asks: []Ask{late}})[0]; !answer.IsGranted {
				t.Errorf("after %d days: one that failed %s keeps another from being mended: %+v", days, name, answer.Cause)
			}
		}
	}
	f.Now, f.Asks[0] = noon, sized().in("r1", 1, 24*time.Hour)
	f.Since, f.Asks = noon.Add(-time.Hour), f.Asks[:1]
	f.Grants = []Grant{NewGrant(g.in("r1", 9, 0), noon.Add(24*time.Hour))}
	if granted(Decide(f)) != 1 {
		t.Error("a grant of a clock that was a day ahead counts for ever")
	}
}

func TestWhatTheyHaveInCommonIsTheSmallestThatFailedAsAWhole(t *testing.T) {
	of := groups{}
	for d, n := range map[Domain]int{{"rack", "r1"}: 18, {"NVLink domain", "n1"}: 4, {"TenantCluster", "a/b"}: 4000, {"NodeType", "h100"}: 500} {
		of[d] = &Group{Domain: d, Servers: n}
	}
	var asks []Ask
	for i := range 4 {
		a := of.in("r1", i, time.Hour)
		a.Groups = append(a.Groups, of.of(Domain{"NVLink domain", "n1"}, Domain{"TenantCluster", "a/b"})...)
		asks = append(asks, a)
	}
	f := Facts{Clock: watched.Clock{Now: noon}, Asks: asks}
	if c := Decide(f)[0].Cause; c == nil || c.Domain.String() != "NVLink domain n1" {
		t.Errorf("%+v", c)
	}
}

// TestNoHistoryHasMoreThanTheLimit lets faults come at random, alone and many at once, and each be asked for until it is granted or gone.
func TestNoHistoryHasMoreThanTheLimit(t *testing.T) {
	total, held := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		now, due, of := noon, map[int]time.Time{}, groups{}
		var grants []Grant
		for i := range 100 {
			for _, group := range of.of(domainsOf(i)...) {
				group.Servers++
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
			case 1, 2: // one that fails for some time already
				due[rng.IntN(100)] = now.Add(-time.Duration(rng.IntN(300)) * time.Minute)
			case 3:
				clear(due)
			}
			var asks []Ask
			for i := range 100 {
				if at, isDue := due[i]; isDue {
					asks = append(asks, Ask{Act: Reinstall, Fault: Fault{fmt.Sprint(i), at}, Groups: of.of(domainsOf(i)...), Since: at})
				}
			}
			for at, a := range Decide(Facts{Clock: watched.Clock{Now: now}, Asks: asks, Grants: grants}) {
				if !a.IsGranted {
					held++
					continue
				}
				total++
				grants = append(grants, NewGrant(asks[at], now))
				var i int
				_, _ = fmt.Sscan(asks[at].Object, &i)
				delete(due, i)
			}
			for d, group := range of {
				done := map[string]bool{}
				for _, g := range grants {
					if slices.Contains(g.Domains, d) && now.Sub(g.At) < Window {
						done[g.Object] = true
					}
				}
				if len(done) > Limit(group.Servers) {
					t.Fatalf("seed %d: %d within an hour in %s of %d", seed, len(done), d, group.Servers)
				}
			}
		}
	}
	if total < 300 || held < 1000 {
		t.Errorf("the histories prove little: %d granted, %d held", total, held)
	}
}

func domainsOf(i int) []Domain { return []Domain{{"rack", fmt.Sprint(i / 10)}, {"NodeType", "h100"}} }
