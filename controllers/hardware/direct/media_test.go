package direct_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/conformance"
)

// newMediaRig makes a rig whose NodeProvider prefers virtual media.
func newMediaRig(t *testing.T, faults conformance.Faults, personality bmc.Personality) *rig {
	r := newRigWith(t, faults, personality)
	r.ways = []hardware.BootSource{hardware.BootMedia, hardware.BootNetwork}
	return r
}

func TestConformanceOverVirtualMedia(t *testing.T) {
	conformance.RunSound(t, conformance.Direct(), func(t *testing.T, faults conformance.Faults) conformance.Rig {
		r := newMediaRig(t, faults, bmc.Personality{Power: bmc.PowerRules{PresentState: bmc.PSU501}})
		t.Cleanup(func() {
			if s := r.session(); s.State != hardware.AttemptRunning && s.Operation != hardware.OpInspect && r.bmc.Media() != "" {
				t.Errorf("the attempt is %s %s, and the medium is inserted", s.State, s.Reason)
			}
		})
		return r
	})
}

// TestConformanceOverTheMediaOfTheField installs a server with every BMC whose virtual media deviate.
func TestConformanceOverTheMediaOfTheField(t *testing.T) {
	personalities, err := bmc.Personalities()
	if err != nil {
		t.Fatal(err)
	}
	for name, personality := range personalities {
		if !strings.HasPrefix(name, "media-") && name != "supermicro-x13" && name != "hpe-dl380a" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			conformance.RunInstall(t, func(t *testing.T, faults conformance.Faults) conformance.Rig {
				r := newMediaRig(t, faults, personality)
				r.ways = r.ways[:1]
				if r.secureURL = "https://boot.example:8092"; len(personality.Media.Schemes) == 0 {
					r.secureURL = ""
				}
				t.Cleanup(func() {
					if s := r.session(); s.State != hardware.AttemptRunning && s.Operation != hardware.OpInspect && r.bmc.Media() != "" {
						t.Errorf("the attempt is %s %s, and the medium is inserted", s.State, s.Reason)
					}
				})
				return r
			})
		})
	}
}

func TestABMCThatCannotFetchTheMediumIsNamedAndTheNextWayUsed(t *testing.T) {
	for name, rules := range map[string]bmc.MediaRules{"at once": {}, "by its task": {Task: bmc.TaskMonitor, TaskReads: 2}} {
		t.Run(name, func(t *testing.T) {
			r := newMediaRig(t, conformance.Faults{}, bmc.Personality{Media: rules})
			r.bmc.SetFaults(bmc.Faults{LostImages: bmc.All})
			began := r.Now()
			r.installUntil(func() bool { return r.session().Step == hardware.StepBooting })
			s := r.session()
			if s.BootWay != "" || !strings.Contains(s.Findings.BootWayRefused.Message, "not booted by VirtualMedia") || !strings.Contains(s.Findings.BootWayRefused.Message, "the BMC's own network") {
				t.Errorf("way %q, finding %+v", s.BootWay, s.Findings.BootWayRefused)
			}
			if spent := r.Now().Sub(began); spent < 2*time.Minute {
				t.Errorf("the way was changed after %s: a boot service that is started again is away for so long", spent)
			}
		})
	}
	only := newMediaRig(t, conformance.Faults{}, bmc.Personality{})
	only.ways = only.ways[:1]
	only.bmc.SetFaults(bmc.Faults{LostImages: bmc.All})
	only.runAttempt(1)
	if s := only.session(); s.State != hardware.AttemptFailed || s.Reason != hardware.ReasonBootImageNotFetched || !strings.Contains(s.Message, "http://boot.example/***/ingot-agent.iso") || only.Power() != hardware.PowerOff {
		t.Errorf("the attempt is %s %s: %s", s.State, s.Reason, s.Message)
	}
}

func TestAMediumThatIsFetchedInTheEndIsUsed(t *testing.T) {
	r := newMediaRig(t, conformance.Faults{}, bmc.Personality{Media: bmc.MediaRules{Task: bmc.TaskMonitor, TaskReads: 2}})
	r.bmc.SetFaults(bmc.Faults{LostImages: 2})
	r.installUntil(func() bool { return r.session().Step == hardware.StepBooting })
	if s := r.session(); s.BootWay != hardware.BootMedia || s.Findings.BootWayRefused.Count != 0 {
		t.Errorf("way %q, finding %+v", s.BootWay, s.Findings.BootWayRefused)
	}
}

func (r *rig) session() netboot.Session {
	s, err := r.store.ByUID(context.Background(), "uid-1")
	if err != nil {
		r.t.Error(err)
	}
	return s
}

// installUntil calls Install every ten seconds until the condition holds.
func (r *rig) installUntil(isEnough func() bool) {
	r.t.Helper()
	deadline := r.Now().Add(time.Hour)
	for range 400 {
		// An error is repeated, as the controller does.
		if err := r.installer.Install(r.t.Context(), r.Host(), hardware.Attempt{Number: 1, Deadline: deadline}, conformanceImage); err != nil {
			r.t.Log(err)
		}
		if isEnough() {
			return
		}
		r.Advance(10 * time.Second)
	}
	r.t.Fatalf("not reached: %+v", r.session())
}

var conformanceImage = hardware.InstallSpec{Image: hardware.Image{URL: "https://images.example/a.raw", Checksum: "sha256:" + strings.Repeat("ab", 32), Format: "raw"}}

func TestAMediumIsTakenOutWhenTheAgentRunsAndNobodyGetsTheTokenByTheMAC(t *testing.T) {
	r := newMediaRig(t, conformance.Faults{}, bmc.Personality{})
	r.installUntil(func() bool { return r.session().Step == hardware.StepBooting })
	url := r.bmc.Media()
	if !strings.HasSuffix(url, "/"+hardware.MediaFileName) || r.session().BootWay != hardware.BootMedia || r.session().Boots != 1 {
		t.Fatalf("medium %q, session %+v", url, r.session())
	}
	if got := r.session().Channel; got != hardware.ChannelVirtualMedia {
		t.Errorf("before an agent has spoken the channel is %s", got)
	}
	if _, script := r.request(http.MethodGet, "/boot/"+bootMAC, nil); strings.Contains(string(script), "ingot.token") || !strings.Contains(string(script), "poweroff") {
		t.Errorf("who knows the MAC address gets %s", script)
	}
	path := strings.TrimPrefix(url, "http://boot.example")
	if status, _ := r.request(http.MethodGet, path, nil); status != http.StatusOK {
		t.Errorf("the BMC gets %d", status)
	}
	for _, wrong := range []string{"/media/x/" + hardware.MediaFileName, strings.Replace(path, ".", "x.", 1), "/media/" + r.tokenForTest() + "/" + hardware.MediaFileName} {
		if status, body := r.request(http.MethodGet, wrong, nil); status != http.StatusNotFound || strings.Contains(string(body), "token") {
			t.Errorf("%s: %d %s", wrong, status, body)
		}
	}
	// A power-on that is repeated is the same boot: the medium stays.
	r.installUntil(func() bool {
		return r.session().Step == hardware.StepRegistered || r.session().Step == hardware.StepWriting
	})
	r.installUntil(func() bool { return r.bmc.Media() == "" })
	r.installUntil(func() bool { return r.session().Step == hardware.StepFinishing })
	if got := r.session().Channel; got != hardware.ChannelVirtualMediaHTTP {
		t.Errorf("after an agent has spoken by HTTP the channel is %s", got)
	}
	if status, _ := r.request(http.MethodGet, path, nil); status != http.StatusNotFound {
		t.Errorf("after the attempt the medium is served with %d", status)
	}
}

// tokenForTest is a text that has the form of a secret.
func (r *rig) tokenForTest() string { return "AAAAAAAAAAEAAAAAAAAAAQAAAABqHUQAdWlkLTE.AAAA" }

func TestAnotherPersonsMediumStaysAndTheServerIsNotPoweredOn(t *testing.T) {
	r := newMediaRig(t, conformance.Faults{}, bmc.Personality{})
	other, err := r.client.OpenBMC(t.Context(), r.Host().BMC)
	if err != nil {
		t.Fatal(err)
	}
	r.bmc.InsertMedia("http://tools.example/firmware.iso")
	for range 20 {
		err = r.installer.Install(t.Context(), r.Host(), hardware.Attempt{Number: 1, Deadline: r.Now().Add(time.Hour)}, conformanceImage)
		r.Advance(10 * time.Second)
	}
	if hardware.KindOf(err) != hardware.Conflict || !strings.Contains(err.Error(), "eject") || r.bmc.Media() != "http://tools.example/firmware.iso" || r.Power() != hardware.PowerOff {
		t.Errorf("%v, medium %q, power %s", err, r.bmc.Media(), r.Power())
	}
	if err := other.SetVirtualMedia(t.Context(), ""); err != nil || r.bmc.Media() == "" {
		t.Errorf("ejected another person's medium: %v", err)
	}
}

func TestWithoutVirtualMediaTheNextWayIsUsedAndReported(t *testing.T) {
	r := newMediaRig(t, conformance.Faults{}, bmc.Personality{NoMedia: true})
	r.installUntil(func() bool { return r.session().Step == hardware.StepFinishing })
	if s := r.session(); s.BootWay != "" || s.Findings.BootWayRefused.Count != 1 || !strings.Contains(s.Findings.BootWayRefused.Message, "virtual media") {
		t.Errorf("way %q, finding %+v", s.BootWay, s.Findings.BootWayRefused)
	}
	only := newMediaRig(t, conformance.Faults{}, bmc.Personality{NoMedia: true})
	only.ways = only.ways[:1]
	var err error
	for range 20 {
		err = only.installer.Install(t.Context(), only.Host(), hardware.Attempt{Number: 1, Deadline: only.Now().Add(time.Hour)}, conformanceImage)
		only.Advance(10 * time.Second)
	}
	if hardware.KindOf(err) != hardware.Unsupported || only.Power() != hardware.PowerOff {
		t.Errorf("%v, power %s", err, only.Power())
	}
}

func TestAManagerThatIsKilledAfterTheInsertionGoesOnWithTheSameMedium(t *testing.T) {
	r := newMediaRig(t, conformance.Faults{}, bmc.Personality{})
	r.bmc.SetFaults(bmc.Faults{SilentPowerOn: 1})
	r.installUntil(func() bool { return r.bmc.Media() != "" })
	inserted := r.bmc.Media()
	r.Restart()
	r.installUntil(func() bool { return r.Power() == hardware.PowerOn })
	if r.bmc.Media() != inserted || r.session().Boots != 1 {
		t.Errorf("medium %q, expected %q; boots %d", r.bmc.Media(), inserted, r.session().Boots)
	}
	if err := r.installer.Cancel(t.Context(), r.Host(), hardware.Attempt{Number: 1}); err != nil || r.bmc.Media() != "" {
		t.Errorf("after the cancellation the medium is %q: %v", r.bmc.Media(), err)
	}
}

// TestWhereNobodyPrefersAWayTheStrongestThatTheBMCHasIsTaken: what is reported after a boot by the network proves nothing.
func TestWhereNobodyPrefersAWayTheStrongestThatTheBMCHasIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		bmc     bmc.Personality
		noMedia bool
		want    hardware.BootSource
		channel hardware.Channel
	}{
		"virtual media":                     {bmc.Personality{}, false, hardware.BootMedia, hardware.ChannelVirtualMedia},
		"a pinned URL":                      {bmc.Personality{NoMedia: true, Boot: pins.Boot}, false, hardware.BootPinned, hardware.ChannelPinnedHTTP},
		"neither":                           {bmc.Personality{NoMedia: true}, false, "", hardware.ChannelNetwork},
		"media, and there is nothing on it": {bmc.Personality{}, true, "", hardware.ChannelNetwork},
	} {
		r := newMediaRig(t, conformance.Faults{}, c.bmc)
		r.ways, r.isUndecided = nil, true
		if c.noMedia {
			r.installer = direct.New(direct.Options{BMCs: r.client, Store: r.store, Clock: r.Now})
		}
		r.installUntil(func() bool { return r.session().Step == hardware.StepBooting })
		if s := r.session(); s.BootWay != c.want || s.Channel != c.channel && !(c.channel == hardware.ChannelNetwork && s.Channel == "") || s.Findings.BootWayRefused.Count > 0 {
			t.Errorf("%s: way %q through %s, findings %+v", name, s.BootWay, s.Channel, s.Findings)
		}
	}
}
