package redfish_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
)

// orderPersonalities are those whose boot order alone reaches the network.
var orderPersonalities = []string{"order-only", "order-at-settings", "order-unlisted", "order-aliases", "order-beside-override"}

func TestASourceThatOnlyTheBootOrderReachesIsSetAndPutBack(t *testing.T) {
	for _, name := range orderPersonalities {
		for _, source := range []hardware.BootSource{hardware.BootNetwork, hardware.BootMedia} {
			for _, set := range []func(hardware.BMC, context.Context, hardware.BootSource) error{hardware.BMC.SetBootOnce, hardware.BMC.SetBootAlways} {
				t.Run(name+" "+string(source), func(t *testing.T) {
					f := start(t, personalityNamed(t, name))
					before := f.Order()
					if source == hardware.BootMedia {
						must(t, f.insert(t, "a"))
					}
					for range 2 { // a boot that is repeated does not take our order for the one before
						must(t, set(f.bmc, t.Context(), source))
						if got := f.TakeBoot(); got != source {
							t.Errorf("the server boots from %q with the order %v", got, f.Order())
						}
					}
					f.Requests()
					must(t, f.bmc.ClearBoot(t.Context()))
					if got := f.TakeBoot(); got != hardware.BootDisk && got != "" || !slices.Equal(f.Order(), before) {
						t.Errorf("the server boots from %q, the order is %v, expected %v", got, f.Order(), before)
					}
					f.Requests()
					must(t, f.bmc.ClearBoot(t.Context()))
					must(t, f.bmc.ClearPinnedBoot(t.Context()))
					if got := f.changes(); len(got) != 0 {
						t.Errorf("cleared again with %q", got)
					}
				})
			}
		}
	}
}

func TestABootOrderThatIsRightIsLeftAlone(t *testing.T) {
	f := start(t, personalityNamed(t, "order-only"))
	f.SetOrder("Boot0002", "Boot0004", "Boot0000")
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	must(t, f.bmc.ClearBoot(t.Context()))
	if got := f.changes(); len(got) != 0 {
		t.Errorf("changes %q", got)
	}
}

func TestABootOrderThatIsOursInEffectIsNotTheOneToPutBack(t *testing.T) {
	f := start(t, personalityNamed(t, "order-at-settings"))
	before := f.Order()
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	f.TakeBoot()
	f.SetNextOrder(before...)
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	if source := f.TakeBoot(); source != hardware.BootNetwork {
		t.Errorf("the server boots from %q", source)
	}
	must(t, f.bmc.ClearBoot(t.Context()))
	if f.TakeBoot(); !slices.Equal(f.Order(), before) {
		t.Errorf("order %v, expected %v", f.Order(), before)
	}
}

func TestWhatHasComeIntoTheBootOrderMeanwhileStays(t *testing.T) {
	personality := personalityNamed(t, "order-only")
	rules := *personality.Boot.Order
	own := rules.Options[0]
	own.Reference = "Boot0005"
	rules.Options = append(slices.Clone(rules.Options), own)
	personality.Boot.Order = &rules
	f := start(t, personality)
	f.SetOrder("Boot0000", "Boot0002")
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	if want := []string{"Boot0002", "Boot0004", "Boot0000"}; !slices.Equal(f.Order(), want) {
		t.Errorf("order %v, expected %v", f.Order(), want)
	}
	f.SetOrder("Boot0005", "Boot0002", "Boot0004", "Boot0000") // the system that was installed adds its own
	must(t, f.bmc.ClearBoot(t.Context()))
	if want := []string{"Boot0005", "Boot0000", "Boot0002", "Boot0004"}; !slices.Equal(f.Order(), want) {
		t.Errorf("order %v, expected %v", f.Order(), want)
	}
}

// TestTheFirstBootOrderIsPutBackWhateverWasInFrontMeanwhile: a server whose order had no network, and one that was booted by another way after the first.
func TestTheFirstBootOrderIsPutBackWhateverWasInFrontMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		before  []string
		sources []hardware.BootSource
		after   []string
	}{
		"no network before":                {[]string{"Boot0000"}, []hardware.BootSource{hardware.BootNetwork}, []string{"Boot0000", "Boot0002", "Boot0004"}},
		"the network, then a medium":       {[]string{"Boot0000", "Boot0002", "Boot0003"}, []hardware.BootSource{hardware.BootNetwork, hardware.BootMedia}, []string{"Boot0000", "Boot0002", "Boot0003", "Boot0004"}},
		"a medium, then the network":       {[]string{"Boot0000", "Boot0002"}, []hardware.BootSource{hardware.BootMedia, hardware.BootNetwork}, []string{"Boot0000", "Boot0002", "Boot0004", "Boot0003"}},
		"a medium where only the disk was": {[]string{"Boot0000"}, []hardware.BootSource{hardware.BootMedia}, []string{"Boot0000", "Boot0003"}},
	} {
		f := start(t, personalityNamed(t, "order-only"))
		f.SetOrder(c.before...)
		for _, source := range c.sources {
			must(t, f.bmc.SetBootOnce(t.Context(), source))
		}
		must(t, f.bmc.ClearBoot(t.Context()))
		if !slices.Equal(f.Order(), c.after) {
			t.Errorf("%s: order %v, expected %v", name, f.Order(), c.after)
		}
	}
}

func TestABootOrderThatCannotBeSetIsUnsupportedInTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bmc.OrderRules)
		words  []string
	}{
		"it is dropped":                {func(o *bmc.OrderRules) { o.Rule = bmc.OrderDropped }, []string{"BootOrder", "Boot0000", "setup"}},
		"it is refused":                {func(o *bmc.OrderRules) { o.Rule = bmc.OrderRefused }, []string{"BootOrder", "refuses", "setup"}},
		"the network is disabled":      {func(o *bmc.OrderRules) { o.Options[2].Disabled, o.Options[4].Disabled = true, true }, []string{"Boot0002 (UEFI Mellanox (MAC:525400AA0001)) disabled"}},
		"it has nothing for it":        {func(o *bmc.OrderRules) { o.Options = o.Options[:2] }, []string{"UEFI OS"}},
		"there is nothing whatsoever":  {func(o *bmc.OrderRules) { o.Options = nil }, []string{"neither a boot override nor a boot order", bmc.PathSystem}},
		"only names that say nothing":  {func(o *bmc.OrderRules) { o.Unlisted = true }, []string{"Boot0000, Boot0001"}},
		"a boot option without a link": {func(o *bmc.OrderRules) { o.Options[2].Set, o.Options[4].Set = nil, map[string]any{"Alias": 7} }, []string{"Boot0004"}},
	} {
		t.Run(name, func(t *testing.T) {
			personality := personalityNamed(t, "order-only")
			rules := *personality.Boot.Order
			rules.Options = slices.Clone(rules.Options)
			personality.Boot.Order = &rules
			c.change(&rules)
			f := start(t, personality)
			f.patient(t)
			before, began := f.Order(), f.clock.Now()
			err := f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork)
			for n := 0; hardware.KindOf(err) != hardware.Unsupported && n < 100; n++ {
				f.clock.Advance(5 * time.Second)
				err = f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork)
			}
			expect(t, err, hardware.Unsupported, c.words...)
			if spent := f.clock.Now().Sub(began); spent > 3*time.Minute {
				t.Errorf("after %s", spent)
			}
			f.clock.Advance(time.Hour)
			if err := f.bmc.ClearBoot(t.Context()); err != nil && hardware.KindOf(err) != hardware.Unsupported {
				t.Errorf("clearing: %v", err)
			}
			if !slices.Equal(f.Order(), before) {
				t.Errorf("order %v, expected %v", f.Order(), before)
			}
			expect(t, f.bmc.SetPinnedBootOnce(t.Context(), "http://h/secret/ingot-agent.efi"), hardware.Unsupported)
		})
	}
}

// orderMemory is what a process stores of a boot order.
type orderMemory struct {
	order []string
	fails error
}

func (m *orderMemory) Kept() []string { return m.order }

func (m *orderMemory) Keep(_ context.Context, order []string) error {
	if m.fails == nil {
		m.order = order
	}
	return m.fails
}

func TestABootOrderIsPutBackByTheNextProcess(t *testing.T) {
	f := start(t, personalityNamed(t, "order-only"))
	before, memory := f.Order(), &orderMemory{}
	e := f.Endpoint()
	e.BootOrder = memory
	for range 2 {
		f.client = redfish.New(redfish.Options{Clock: f.clock.Now})
		must(t, f.open(t, e).SetBootOnce(t.Context(), hardware.BootNetwork))
		must(t, f.client.Close(t.Context()))
	}
	if !slices.Equal(memory.order, before) {
		t.Errorf("%v is kept, expected %v", memory.order, before)
	}
	f.client = redfish.New(redfish.Options{Clock: f.clock.Now})
	must(t, f.open(t, e).ClearBoot(t.Context()))
	must(t, f.client.Close(t.Context()))
	if !slices.Equal(f.Order(), before) || memory.order != nil {
		t.Errorf("order %v, expected %v; kept %v", f.Order(), before, memory.order)
	}
	// What cannot be kept is not changed.
	memory.fails = hardware.Errorf(hardware.Busy, "store", "", "the API server does not answer")
	f.client = redfish.New(redfish.Options{Clock: f.clock.Now})
	expect(t, f.open(t, e).SetBootOnce(t.Context(), hardware.BootNetwork), hardware.Busy, "API server")
	must(t, f.client.Close(t.Context()))
	if !slices.Equal(f.Order(), before) {
		t.Errorf("order %v, expected %v", f.Order(), before)
	}
}

func TestAnOrdinaryBMCIsNotAskedForItsBootOrder(t *testing.T) {
	f := start(t, bmc.Personality{Boot: bmc.BootRules{Order: personalityNamed(t, "order-beside-override").Boot.Order}})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	f.Requests()
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	must(t, f.bmc.ClearBoot(t.Context()))
	want := []string{"GET " + bmc.PathSystem, "PATCH " + bmc.PathSystem, "GET " + bmc.PathSystem, "GET " + bmc.PathSystem, "PATCH " + bmc.PathSystem, "GET " + bmc.PathSystem}
	if got := f.Requests(); !slices.Equal(got, want) {
		t.Errorf("requests %q, expected %q", got, want)
	}
	// An override that is refused is one that does not reach the network.
	f.refuseBodies("BootSourceOverride")
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	f.Intercept(nil)
	if source := f.TakeBoot(); source != hardware.BootNetwork {
		t.Errorf("the server boots from %q", source)
	}
	// And so is one that is dropped.
	f = start(t, bmc.Personality{Boot: bmc.BootRules{Order: personalityNamed(t, "order-beside-override").Boot.Order}})
	f.SetFaults(bmc.Faults{NullBootTarget: true})
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	if source := f.TakeBoot(); source != hardware.BootNetwork {
		t.Errorf("the server boots from %q", source)
	}
}
