package redfish_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/bootca"
	"github.com/ingot-dev/ingot/test/bmc"
)

const (
	programURL = "http://boot.example:8090/media/AAsecretAA.BBsecretBB/ingot-agent.efi"
	otherURL   = "http://boot.example:8090/media/CCsecretCC.DDsecretDD/ingot-agent.efi"
	foreignURL = "http://tools.example/rescue.efi"
)

// TestAPinnedURLIsSetForOneBootAndTakenOut has the BMCs that take a URL, at the system and at a settings object.
func TestAPinnedURLIsSetForOneBootAndTakenOut(t *testing.T) {
	dgx, err := bmc.PersonalityNamed("dgx-h100")
	must(t, err)
	dgx.Boot.HTTPBootURI = bmc.URIKept
	ilo, err := bmc.PersonalityNamed("hpe-dl385")
	must(t, err)
	ilo.Boot.HTTPBootURI = bmc.URIEmptyText
	for name, personality := range map[string]bmc.Personality{
		"emptied by the boot": {Boot: bmc.BootRules{HTTPBootURI: bmc.URITaken}}, "kept": {ETag: bmc.ETagRequired, Boot: bmc.BootRules{HTTPBootURI: bmc.URIKept}},
		"removed by an empty text": {Boot: bmc.BootRules{HTTPBootURI: bmc.URIEmptyText}}, "at the settings object": dgx, "without a mode": ilo,
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, personality)
			f.PinURI(otherURL) // an earlier attempt left it
			must(t, f.bmc.SetPinnedBootOnce(t.Context(), programURL))
			if enabled, target := f.Override(); f.PinnedURI() != programURL || target != "UefiHttp" || enabled != "Once" {
				t.Fatalf("override %s %s, URL %q", enabled, target, f.PinnedURI())
			}
			// The power-on that is repeated changes nothing.
			must(t, f.bmc.SetPinnedBootOnce(t.Context(), programURL))
			must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
			if f.BootedURI() != programURL {
				t.Errorf("the server boots %q", f.BootedURI())
			}
			for range 2 {
				must(t, f.bmc.ClearBoot(t.Context()))
				must(t, f.bmc.ClearPinnedBoot(t.Context()))
			}
			if f.PinnedURI() != "" {
				t.Errorf("left is %q", f.PinnedURI())
			}
			f.PinURI(foreignURL)
			must(t, f.bmc.ClearPinnedBoot(t.Context()))
			if f.PinnedURI() != foreignURL {
				t.Errorf("the URL of somebody else became %q", f.PinnedURI())
			}
			must(t, f.bmc.SetPinnedBootAlways(t.Context(), programURL))
			if enabled, _ := f.Override(); enabled != "Continuous" || f.PinnedURI() != programURL {
				t.Errorf("override %s, URL %q", enabled, f.PinnedURI())
			}
		})
	}
}

func TestABMCThatPinsNoURLSaysSoWithoutTheSecret(t *testing.T) {
	for name, c := range map[string]struct {
		rules bmc.BootRules
		said  string
	}{
		"no member":  {bmc.BootRules{}, "Boot has no HttpBootUri"},
		"dropped":    {bmc.BootRules{HTTPBootURI: bmc.URIDropped}, "reports none in HttpBootUri"},
		"refused":    {bmc.BootRules{HTTPBootURI: bmc.URIRefused}, "cannot be assigned the value http://boot.example:8090/media/***/ingot-agent.efi"},
		"no target":  {bmc.BootRules{HTTPBootURI: bmc.URITaken, Targets: []string{"None", "Pxe", "Hdd"}}, "the BMC offers the boot targets [None Pxe Hdd]"},
		"no removal": {bmc.BootRules{HTTPBootURI: bmc.URIUnremovable}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Boot: c.rules})
			err := f.bmc.SetPinnedBootOnce(t.Context(), programURL)
			if c.said == "" {
				must(t, err)
				err, c.said = f.bmc.ClearPinnedBoot(t.Context()), "the BMC keeps the URL"
			}
			expect(t, err, hardware.Unsupported, c.said)
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the secret: %v", err)
			}
			if c.rules.HTTPBootURI == bmc.URIDropped {
				f.PinURI(otherURL)
				expect(t, f.bmc.SetPinnedBootOnce(t.Context(), programURL), hardware.Unsupported, "reports another one in HttpBootUri")
			}
		})
	}
	f := start(t, bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URITaken}})
	expect(t, f.bmc.SetPinnedBootOnce(t.Context(), foreignURL), hardware.Invalid)
}

// authority returns the certificate of a new authority of a boot service.
func authority(t *testing.T, now time.Time) []byte {
	t.Helper()
	made, _, err := bootca.Do(bootca.Replace, bootca.Facts{Now: now, Times: bootca.DefaultTimes(time.Hour)}, rand.Reader)
	must(t, err)
	return made.Signing.Certificate
}

func TestAuthoritiesAreAddedOnceAndRemovedWhenTheyAreGone(t *testing.T) {
	for _, rule := range []bmc.CertificateRule{bmc.CertificatesTaken, bmc.CertificatesFingerprinted} {
		t.Run(string(rule), func(t *testing.T) {
			f := start(t, bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URITaken, Certificates: rule}})
			first, second := authority(t, f.clock.Now()), authority(t, f.clock.Now())
			foreign, err := bmc.NewAuthority(time.Now())
			must(t, err)
			f.AddCertificate(string(foreign.PEM()))
			for _, wanted := range [][]byte{first, first, slices.Concat(first, second), second, second, nil} {
				writes := f.Writes()
				before := f.Certificates()
				must(t, f.bmc.SetBootAuthorities(t.Context(), wanted))
				after := f.Certificates()
				if got, want := strings.Join(after, ""), string(foreign.PEM())+string(wanted); got != want {
					t.Fatalf("the BMC has %d certificates:\n%s", len(after), got)
				}
				if slices.Equal(before, after) && f.Writes() != writes {
					t.Error("what is there is changed again")
				}
			}
		})
	}
}

func TestABMCThatTakesNoAuthoritySaysSo(t *testing.T) {
	for rule, said := range map[bmc.CertificateRule]string{"": "Boot has no Certificates", bmc.CertificatesRefused: "does not take the certificate", bmc.CertificatesDropped: "does not list it"} {
		t.Run(string(rule), func(t *testing.T) {
			f := start(t, bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URITaken, Certificates: rule}})
			expect(t, f.bmc.SetBootAuthorities(t.Context(), authority(t, f.clock.Now())), hardware.Unsupported, said)
		})
	}
}
