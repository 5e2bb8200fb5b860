package direct_test

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/bootca"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/conformance"
)

// newPinnedRig makes a rig whose NodeProvider prefers a pinned URL, then virtual media.
func newPinnedRig(t *testing.T, faults conformance.Faults, personality bmc.Personality) *rig {
	r := newRigWith(t, faults, personality)
	r.ways = []hardware.BootSource{hardware.BootPinned, hardware.BootMedia, hardware.BootNetwork}
	t.Cleanup(func() {
		if found := secretPattern.FindString(r.log.String()); found != "" {
			t.Errorf("the log has the URL of an image: %s", found)
		}
	})
	return r
}

// countBoots returns a function that returns the sources of the boots since.
func (r *rig) countBoots() func() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.booted)
	return func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return strings.Join(r.booted[before:], " ")
	}
}

// runAttempt calls Install until the attempt has ended, with time for one silent boot, and returns the boots.
func (r *rig) runAttempt(number int64) string {
	r.t.Helper()
	boots, deadline := r.countBoots(), r.Now().Add(25*time.Minute)
	for range 200 {
		// An error is repeated, as the controller does.
		if err := r.installer.Install(r.t.Context(), r.Host(), hardware.Attempt{Number: number, Deadline: deadline}, conformanceImage); err != nil {
			r.t.Log(err)
		}
		if s := r.session(); s.Number == number && (s.State != hardware.AttemptRunning || s.Step == hardware.StepFinishing) {
			break
		}
		r.Advance(10 * time.Second)
	}
	return boots()
}

// secretPattern finds the secret of an image.
var secretPattern = regexp.MustCompile(`media/[A-Za-z0-9_-]{20,}`)

// pins is a personality that takes a URL and keeps it after the boot.
var pins = bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URIKept}}

func TestConformanceOverPinnedHTTP(t *testing.T) {
	conformance.RunSound(t, conformance.Direct(), func(t *testing.T, faults conformance.Faults) conformance.Rig {
		r := newPinnedRig(t, faults, pins)
		r.ways = []hardware.BootSource{hardware.BootPinned}
		t.Cleanup(func() {
			if s := r.session(); s.State != hardware.AttemptRunning && s.Operation != hardware.OpInspect && r.bmc.PinnedURI() != "" {
				t.Errorf("the attempt is %s %s, and the URL is pinned", s.State, s.Reason)
			}
		})
		return r
	})
}

func TestAPinnedURLIsOfOneBootAndTakenOutWhenTheAgentRuns(t *testing.T) {
	r := newPinnedRig(t, conformance.Faults{}, pins)
	r.bmc.PinURI("http://boot.example/media/of-an-earlier-attempt/" + hardware.PinnedFileName)
	r.installUntil(func() bool { return r.session().Step == hardware.StepBooting })
	url := r.bmc.PinnedURI()
	if !strings.HasPrefix(url, "http://boot.example/media/") || !strings.HasSuffix(url, "/"+hardware.PinnedFileName) || r.session().Way() != hardware.BootPinned || r.session().Boots != 1 {
		t.Fatalf("URL %q, session %+v", url, r.session())
	}
	if found := r.session().Findings.BootNotEncrypted; !strings.Contains(found.Message, "no HTTPS") {
		t.Errorf("that HTTP is used: %+v", found)
	}
	if _, script := r.request(http.MethodGet, "/boot/"+bootMAC, nil); strings.Contains(string(script), "ingot.token") || !strings.Contains(string(script), "poweroff") {
		t.Errorf("who knows the MAC address gets %s", script)
	}
	path := strings.TrimPrefix(url, "http://boot.example")
	// The URL of a medium is another secret.
	for _, wrong := range []string{strings.Replace(path, hardware.PinnedFileName, hardware.MediaFileName, 1), strings.Replace(path, ".", "x.", 1)} {
		if status, body := r.request(http.MethodGet, wrong, nil); status != http.StatusNotFound || strings.Contains(string(body), "token") {
			t.Errorf("%s: %d %s", wrong, status, body)
		}
	}
	// A BMC that asks whether the file is there begins no load.
	if status, _ := r.request(http.MethodHead, path, nil); status != http.StatusOK || r.session().Step != hardware.StepBooting {
		t.Errorf("HEAD: %d, step %s", status, r.session().Step)
	}
	r.installUntil(func() bool { return r.session().Step == hardware.StepLoading })
	r.installUntil(func() bool { return r.bmc.PinnedURI() == "" })
	if r.session().Agent.KeyDigest == "" {
		t.Errorf("the URL is taken out before the agent runs: %+v", r.session())
	}
	r.installUntil(func() bool { return r.session().Step == hardware.StepFinishing })
	if status, _ := r.request(http.MethodGet, path, nil); status != http.StatusNotFound {
		t.Errorf("after the attempt the program is served with %d", status)
	}
}

func TestFirmwareThatTakesTheAuthorityLoadsByHTTPS(t *testing.T) {
	for rule, isSecure := range map[bmc.CertificateRule]bool{bmc.CertificatesTaken: true, bmc.CertificatesRefused: false, "": false} {
		t.Run("rule "+string(rule), func(t *testing.T) {
			r := newPinnedRig(t, conformance.Faults{}, bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URIKept, Certificates: rule}})
			made, _, err := bootca.Do(bootca.Replace, bootca.Facts{Now: r.Now(), Times: bootca.DefaultTimes(time.Hour)}, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			r.authorities, r.secureURL = made.Signing.Certificate, "https://boot.example:8092"
			r.installUntil(func() bool { return r.session().Step == hardware.StepBooting })
			found := r.session().Findings.BootNotEncrypted
			if got := strings.HasPrefix(r.bmc.PinnedURI(), "https://boot.example:8092/media/"); got != isSecure || (found.Count > 0) == isSecure || isSecure != (len(r.bmc.Certificates()) == 1) {
				t.Errorf("URL %q, %d certificates, finding %+v", r.bmc.PinnedURI(), len(r.bmc.Certificates()), found)
			}
			r.installUntil(func() bool { return r.session().Step == hardware.StepFinishing })
		})
	}
}

func TestWhereNoURLIsPinnedTheNextWayIsUsedAndReported(t *testing.T) {
	isOn := map[string]any{"SecureBootEnable": true}
	for name, c := range map[string]struct {
		personality bmc.Personality
		isSigned    bool
		way         hardware.BootSource
		said        string
	}{
		"absent":     {bmc.Personality{}, false, hardware.BootMedia, "Boot has no HttpBootUri"},
		"dropped":    {bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URIDropped}}, false, hardware.BootMedia, "reports none in HttpBootUri"},
		"refused":    {bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URIRefused}}, false, hardware.BootMedia, "cannot be assigned the value"},
		"not signed": {bmc.Personality{SecureBoot: isOn, Boot: bmc.BootRules{HTTPBootURI: bmc.URITaken}}, true, hardware.BootNetwork, "Secure Boot is on"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPinnedRig(t, conformance.Faults{}, c.personality)
			r.isSigned = c.isSigned
			r.installUntil(func() bool { return r.session().Step == hardware.StepFinishing })
			s := r.session()
			if s.Way() != c.way || !strings.Contains(s.Findings.BootWayRefused.Message, c.said) || secretPattern.MatchString(s.Findings.BootWayRefused.Message) {
				t.Errorf("way %s, finding %+v", s.Way(), s.Findings.BootWayRefused)
			}
			if r.bmc.Media() != "" || r.bmc.PinnedURI() != "" {
				t.Errorf("left: medium %q, URL %q", r.bmc.Media(), r.bmc.PinnedURI())
			}
		})
	}
}

func TestTheNextWayFollowsTwoSilentBoots(t *testing.T) {
	r := newPinnedRig(t, conformance.Faults{}, pins)
	r.silent = []hardware.BootSource{hardware.BootPinned}
	boots := r.countBoots()
	r.installUntil(func() bool { return r.session().Step == hardware.StepFinishing })
	s := r.session()
	if got := boots(); got != "PinnedHTTP PinnedHTTP VirtualMedia Disk" || s.Findings.BootWaySilent.Count != 1 || !strings.Contains(s.Findings.BootWaySilent.Message, "not booted by PinnedHTTP, which the NodeProvider prefers, but by VirtualMedia") {
		t.Errorf("boots %s, finding %+v", got, s.Findings.BootWaySilent)
	}
	if r.bmc.PinnedURI() != "" || r.bmc.Media() != "" {
		t.Errorf("left: URL %q, medium %q", r.bmc.PinnedURI(), r.bmc.Media())
	}
}

func TestAServerThatIsSwitchedOffBetweenTwoWaysBootsNoDisk(t *testing.T) {
	r := newPinnedRig(t, conformance.Faults{}, pins)
	r.silent = []hardware.BootSource{hardware.BootPinned}
	r.installUntil(func() bool { return r.session().Step == hardware.StepBooting })
	r.installUntil(func() bool { return r.session().Step == hardware.StepPoweringOff })
	// At last it tries PXE, while its power is about to be cut.
	if _, script := r.request(http.MethodGet, "/boot/"+bootMAC, nil); !strings.Contains(string(script), "poweroff") {
		t.Errorf("it gets %s", script)
	}
	r.installUntil(func() bool { return r.session().Boots == 2 })
}

func TestAFailedAttemptIsGoneOnWithAndASuccessBeginsAgain(t *testing.T) {
	r := newPinnedRig(t, conformance.Faults{}, pins)
	r.silent = []hardware.BootSource{hardware.BootPinned, hardware.BootMedia}
	var got []string
	for number := range int64(4) {
		got = append(got, r.runAttempt(number+1))
	}
	// The last boot of an attempt is cut short by its deadline, which says nothing about its way.
	want := []string{"PinnedHTTP PinnedHTTP", "PinnedHTTP VirtualMedia", "VirtualMedia VirtualMedia", "VirtualMedia Network"}
	if s := r.session(); !slices.Equal(got, want) {
		t.Errorf("boots %q, expected %q; %+v", got, want, s)
	}
	got = append(got, r.runAttempt(5))
	if s := r.session(); s.Step != hardware.StepFinishing || !strings.Contains(s.Findings.BootWaySilent.Message, "PinnedHTTP and VirtualMedia") {
		t.Errorf("boots %q; %+v", got, s)
	}
	// After a success the first way is the first again.
	r.silent = nil
	r.runAttempt(6)
	if s := r.session(); s.Way() != hardware.BootPinned {
		t.Errorf("after a success: %s", s.Way())
	}
}
