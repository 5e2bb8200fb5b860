package redfish_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
)

// withMembers serves the resource with other members. A nil value removes the member.
func (f *fixture) withMembers(t testing.TB, path string, members map[string]any) {
	t.Helper()
	raw, found := f.Document(path)
	if !found {
		t.Fatalf("the BMC has no %s", path)
	}
	var document map[string]any
	must(t, json.Unmarshal(raw, &document))
	for name, value := range members {
		if document[name] = value; value == nil {
			delete(document, name)
		}
	}
	edited, err := json.Marshal(document)
	must(t, err)
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || strings.TrimRight(r.URL.Path, "/") != path {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(edited)
		return true
	})
}

func TestAMistypedMemberOfTheSystemCostsNeitherPowerNorBootOverride(t *testing.T) {
	for member, value := range map[string]any{
		"MemorySummary": map[string]any{"TotalSystemMemoryGiB": "much"}, "ProcessorSummary": []any{}, "SerialNumber": 7, "Status": "OK", "PCIeDevices": "none",
		"HostedServices": 1,
	} {
		t.Run(member, func(t *testing.T) {
			f := start(t, bmc.Personality{})
			var log bytes.Buffer
			f.client = redfish.New(redfish.Options{Timeout: 10 * time.Second, Clock: f.clock.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
			f.bmc = f.open(t, f.Endpoint())
			f.withMembers(t, bmc.PathSystem, map[string]any{member: value})
			state, err := f.bmc.PowerState(t.Context())
			must(t, err)
			if state != hardware.PowerOff {
				t.Errorf("the power is %s", state)
			}
			for _, word := range []string{"level=INFO", bmc.PathSystem, member, "error="} {
				if !strings.Contains(log.String(), word) {
					t.Errorf("the log lacks %q: %s", word, &log)
				}
			}
			f.Intercept(nil)
			must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
		})
	}
}

func TestACrawlEndsAtTheDeadline(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/Storage") {
			<-r.Context().Done() // the BMC answers ever more slowly
			return true
		}
		return false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	got, err := f.bmc.Inventory(ctx)
	expect(t, err, hardware.Unreachable, "not complete at the deadline")
	if !errors.Is(err, context.DeadlineExceeded) || got.Model != "" {
		t.Errorf("%v with %+v", err, got)
	}
}

// patient opens the BMC with a client whose clock is advanced by its waits, and returns how long it has waited.
func (f *fixture) patient(t testing.TB) (waited func() time.Duration) {
	began := f.clock.Now()
	f.client = redfish.New(redfish.Options{Timeout: 10 * time.Second, Clock: f.clock.Now, Sleep: func(_ context.Context, d time.Duration) error {
		f.clock.Advance(d)
		return nil
	}})
	f.bmc = f.open(t, f.Endpoint())
	return func() time.Duration { return f.clock.Now().Sub(began) }
}

func TestCollectionsThatAreLoadedWhenRequestedAreWaitedFor(t *testing.T) {
	f := start(t, bmc.Personality{})
	waited := f.patient(t)
	f.SetFaults(bmc.Faults{LazyCollections: true})
	got, err := f.bmc.Inventory(t.Context())
	must(t, err)
	if diff := cmp.Diff(reportedInventory(), got); diff != "" {
		t.Errorf("inventory (-expected +seen):\n%s", diff)
	}
	if waited() < 5*time.Second || waited() > time.Minute {
		t.Errorf("waited %s for the collections", waited())
	}
}

func TestABMCThatStaysBusyIsNotWaitedForWithoutEnd(t *testing.T) {
	for after, limit := range map[string]time.Duration{"1": 2*time.Minute + time.Second, "60": 0} {
		f := start(t, bmc.Personality{})
		waited := f.patient(t)
		f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/Storage") {
				return false
			}
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})
		_, err := f.bmc.Inventory(t.Context())
		expect(t, err, hardware.Busy)
		if waited() > limit {
			t.Errorf("Retry-After %s: waited %s, expected at most %s", after, waited(), limit)
		}
	}
}
