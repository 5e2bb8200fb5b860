package redfish_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

// mediaSecret is the secret in the URL of each image.
const mediaSecret = "MMsecretMM"

// mediaURL returns the URL of an image.
func mediaURL(scheme, name string) string {
	return fmt.Sprintf("%s://boot.example:8090/media/%s-%s/%s", scheme, mediaSecret, name, hardware.MediaFileName)
}

// insert inserts the image with the name, and repeats that every ten seconds while the BMC is busy with it, as the Installer does.
func (f *fixture) insert(t testing.TB, name string) error {
	t.Helper()
	var err error
	for range 20 {
		err = f.bmc.SetVirtualMedia(t.Context(), mediaURL("http", name), mediaURL("https", name))
		if err != nil && strings.Contains(err.Error(), mediaSecret) {
			t.Errorf("the error has the secret: %v", err)
		}
		if hardware.KindOf(err) != hardware.Busy || hardware.ReasonOf(err) != "" {
			return err
		}
		f.clock.Advance(10 * time.Second)
	}
	return err
}

// mediaPersonalities returns the personalities whose virtual media deviate, and those of products with slots of their own.
func mediaPersonalities(t testing.TB) map[string]bmc.Personality {
	t.Helper()
	all, err := bmc.Personalities()
	must(t, err)
	for name := range all {
		if !strings.HasPrefix(name, "media-") && name != "supermicro-x13" && name != "hpe-dl380a" && name != "generic" {
			delete(all, name)
		}
	}
	return all
}

func TestMediaAreInsertedOnceAndEjectedAtTheBMCsOfTheField(t *testing.T) {
	for name, personality := range mediaPersonalities(t) {
		t.Run(name, func(t *testing.T) {
			f := start(t, personality)
			for _, step := range []string{"a", "a", "b", "", ""} {
				before, writes := f.Media(), f.Writes()
				if step == "" {
					must(t, f.bmc.SetVirtualMedia(t.Context()))
				} else {
					must(t, f.insert(t, step))
				}
				if got := f.Media(); (step == "") != (got == "") || !strings.Contains(got, step) {
					t.Errorf("after the step %q inserted is %q", step, got)
				}
				if f.Media() == before && f.Writes() != writes {
					t.Errorf("after the step %q %q was changed again", step, before)
				}
			}
		})
	}
}

func TestStaleMediaAreEjected(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.SetFaults(bmc.Faults{StaleMedia: true})
	must(t, f.insert(t, "a"))
	if f.Media() != mediaURL("http", "a") {
		t.Errorf("inserted is %q", f.Media())
	}
	f.Remove("/redfish/v1/Managers/1/VirtualMedia")
	expect(t, f.bmc.SetVirtualMedia(t.Context(), mediaURL("http", "a")), hardware.Unsupported)
}

func TestAnImageThatABMCCannotFetchIsNamedWithItsNetwork(t *testing.T) {
	for name, rules := range map[string]bmc.MediaRules{
		"nothing says so": {}, "its monitor says so": {Task: bmc.TaskMonitor, TaskReads: 2}, "its task says so": {Task: bmc.TaskResource, TaskReads: 2}, "its task is unnamed": {Task: bmc.TaskUnnamed, TaskReads: 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Media: rules})
			f.SetFaults(bmc.Faults{LostImages: bmc.All})
			err := f.insert(t, "a")
			expect(t, err, hardware.Busy, "https://boot.example:8090/***/ingot-agent.iso", "the BMC's own network")
			if hardware.ReasonOf(err) != hardware.ReasonBootImageNotFetched {
				t.Errorf("the reason is %q", hardware.ReasonOf(err))
			}
			if said := "failed to establish a connection"; strings.Contains(name, "says so") && rules.Task != "" {
				expect(t, err, hardware.Busy, said)
			}
			f.SetFaults(bmc.Faults{LostImages: 1})
			must(t, f.insert(t, "a"))
			if f.Media() != mediaURL("https", "a") {
				t.Errorf("inserted is %q", f.Media())
			}
		})
	}
}

func TestABMCWithoutALicenceForMediaSaysSo(t *testing.T) {
	for message, status := range map[string]int{"iLO.2.14.LicenseKeyRequired": 400, "SMC.1.0.OemLicenseNotPassed": 403, "IDRAC.2.8.LIC501": 503, "Base.1.18.LicenseRequired": 200} {
		t.Run(message, func(t *testing.T) {
			f := start(t, bmc.Personality{Media: bmc.MediaRules{Refusal: bmc.Refusal{Status: status, Message: message}}})
			f.Requests()
			err := f.bmc.SetVirtualMedia(t.Context(), mediaURL("http", "a"))
			expect(t, err, hardware.Unsupported, "licence", "***")
			if strings.Contains(err.Error(), mediaSecret) {
				t.Errorf("the error has the secret: %v", err)
			}
			if n := count(f.Requests(), "POST /redfish/v1/Managers"); n != 1 {
				t.Errorf("%d insertions, expected 1", n)
			}
		})
	}
}

func TestABMCWithoutAProtocolOfTheBootServiceSaysSo(t *testing.T) {
	f := start(t, bmc.Personality{Media: bmc.MediaRules{Schemes: []string{"https", "nfs"}, SchemeRule: bmc.SchemeListed}})
	expect(t, f.bmc.SetVirtualMedia(t.Context(), mediaURL("http", "a")), hardware.Unsupported, "HTTPS, NFS", "needed is HTTP", "boot.tls.address")
	if f.Writes() != 0 {
		t.Error("an image was sent that the BMC says it cannot fetch")
	}
}

func TestMediaThatABMCKeepsAreReported(t *testing.T) {
	f := start(t, bmc.Personality{})
	must(t, f.insert(t, "a"))
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "VirtualMedia") {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
		return true
	})
	expect(t, f.bmc.SetVirtualMedia(t.Context()), hardware.Busy, "eject it at the BMC")
}
