package direct

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

var start = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)

// running is an attempt that entered the step at start and was powered on then.
func running(operation hardware.Operation, step hardware.Step) netboot.Session {
	return netboot.Session{
		HostUID: "u", Work: netboot.Work{Operation: operation, Erase: hardware.EraseFull},
		AttemptStatus: hardware.AttemptStatus{Number: 1, State: hardware.AttemptRunning, Step: step},
		Since:         start, StepAt: start, OpenedAt: start, Deadline: start.Add(time.Hour),
	}
}

func TestActionsFollowFromPowerStepAndTime(t *testing.T) {
	broken := errors.New("connection refused")
	never := func(s *netboot.Session) { s.OpenedAt = time.Time{} }
	waits := func(heard time.Duration) func(*netboot.Session) {
		return func(s *netboot.Session) { s.ConfigDriveAwaitedAt, s.Agent.HeardAt = start, start.Add(heard) }
	}
	for _, c := range []struct {
		reason string
		step   hardware.Step
		power  hardware.PowerState
		err    error
		after  time.Duration
		quiet  time.Duration
		// observed is for how long this process has observed the step; 0 means from its beginning.
		observed     time.Duration
		wasPoweredOn bool
		change       func(*netboot.Session)
		want         actionKind
		fails        hardware.Reason
	}{
		{reason: "a server that runs is cut off first", step: hardware.StepPoweringOff, power: hardware.PowerOn, want: actionPowerOff},
		{reason: "one that shuts down is cut off too", step: hardware.StepPoweringOff, power: hardware.PowerTurningOff, want: actionPowerOff},
		{reason: "unknown is not off", step: hardware.StepPoweringOff, power: hardware.PowerUnknown, want: actionPowerOff},
		{reason: "off is confirmed by the BMC alone", step: hardware.StepPoweringOff, err: broken, want: actionReturnError},
		{reason: "then the override is set", step: hardware.StepPoweringOff, power: hardware.PowerOff, want: actionBootNetwork},
		{reason: "power-off has a time-out", step: hardware.StepPoweringOff, power: hardware.PowerOn, after: 3 * time.Minute, want: actionFail, fails: hardware.ReasonPowerOffIgnored},
		{reason: "which is not the BMC's silence", step: hardware.StepPoweringOff, err: broken, after: 30 * time.Minute, want: actionReturnError},
		{reason: "that ends with the deadline", step: hardware.StepPoweringOff, err: broken, after: time.Hour, want: actionFail, fails: hardware.ReasonDeadlineExceeded},
		{reason: "an override that is refused is not an ignored power-off", step: hardware.StepPoweringOff, power: hardware.PowerOff, after: time.Hour, want: actionFail, fails: hardware.ReasonDeadlineExceeded},

		{reason: "power-on is requested once it is stored", step: hardware.StepBooting, power: hardware.PowerOff, change: never, want: actionPowerOn},
		{reason: "a power-on of an earlier boot does not count", step: hardware.StepBooting, power: hardware.PowerOff, change: func(s *netboot.Session) { s.OpenedAt = start.Add(-time.Second) }, want: actionPowerOn},
		{reason: "then it is given time", step: hardware.StepBooting, power: hardware.PowerOff, after: 29 * time.Second, want: actionWait},
		{reason: "and requested again", step: hardware.StepBooting, power: hardware.PowerOff, after: 30 * time.Second, want: actionPowerOn},
		{reason: "powering on is waited for", step: hardware.StepBooting, power: hardware.PowerTurningOn, after: 20 * time.Second, want: actionWait},
		{reason: "on is waited with", step: hardware.StepBooting, power: hardware.PowerOn, want: actionWait},
		{reason: "somebody else's power-on opens nothing", step: hardware.StepBooting, power: hardware.PowerOn, change: never, want: actionPowerOn},
		{reason: "power-on has a time-out", step: hardware.StepBooting, power: hardware.PowerOff, after: 5 * time.Minute, want: actionFail, fails: hardware.ReasonPowerOnIgnored},
		{reason: "which begins anew with the process, that may have missed the power come and go", step: hardware.StepBooting, power: hardware.PowerOff, after: 5 * time.Minute, observed: time.Minute, want: actionPowerOn},
		{reason: "which is not the BMC's silence either", step: hardware.StepBooting, err: broken, after: 6 * time.Minute, want: actionReturnError},
		{reason: "a power that came on and is lost is restored at once", step: hardware.StepBooting, power: hardware.PowerOff, after: 6 * time.Minute, wasPoweredOn: true, want: actionBootNetwork},
		{reason: "and is not taken for lost when the BMC does not say", step: hardware.StepBooting, power: hardware.PowerUnknown, after: 6 * time.Minute, wasPoweredOn: true, want: actionWait},

		{reason: "POST takes its time", step: hardware.StepBooting, power: hardware.PowerOn, after: 19 * time.Minute, want: actionWait},
		{reason: "no boot request", step: hardware.StepBooting, power: hardware.PowerOn, after: 20 * time.Minute, want: actionFail, fails: hardware.ReasonNoBootRequest},
		{reason: "a silent BMC stops no time-out of the server", step: hardware.StepBooting, err: broken, after: 20 * time.Minute, want: actionFail, fails: hardware.ReasonNoBootRequest},
		{reason: "no agent", step: hardware.StepLoading, power: hardware.PowerOn, after: 10 * time.Minute, want: actionFail, fails: hardware.ReasonAgentMissing},
		{reason: "an agent that reports is left alone", step: hardware.StepWriting, power: hardware.PowerOn, after: 50 * time.Minute, quiet: time.Second, want: actionWait},
		{reason: "a silent agent", step: hardware.StepWriting, power: hardware.PowerOn, after: 50 * time.Minute, quiet: 15 * time.Minute, want: actionFail, fails: hardware.ReasonAgentSilent},
		{reason: "an agent that waits for its config drive is not silent", step: hardware.StepRegistered, power: hardware.PowerOn, after: 50 * time.Minute, quiet: 40 * time.Minute, change: waits(49 * time.Minute), want: actionWait},
		{reason: "one that does not ask any more is", step: hardware.StepRegistered, power: hardware.PowerOn, after: 50 * time.Minute, quiet: 40 * time.Minute, change: waits(35 * time.Minute), want: actionFail, fails: hardware.ReasonAgentSilent},
		{reason: "a config drive that nobody writes until the deadline", step: hardware.StepRegistered, power: hardware.PowerOn, after: time.Hour, quiet: 40 * time.Minute, change: waits(59 * time.Minute), want: actionFail, fails: hardware.ReasonNoConfigDrive},
		{reason: "power lost while writing", step: hardware.StepWriting, power: hardware.PowerOff, after: time.Minute, want: actionBootNetwork},
		{reason: "unknown power is no lost power", step: hardware.StepWriting, power: hardware.PowerUnknown, after: time.Minute, want: actionWait},
		{reason: "an unreadable power is reported", step: hardware.StepWriting, err: broken, after: time.Minute, want: actionReturnError},
		{reason: "too slow is not silent", step: hardware.StepWriting, power: hardware.PowerOn, after: time.Hour, quiet: 10 * time.Second, want: actionFail, fails: hardware.ReasonDeadlineExceeded},
		{reason: "silent at the deadline", step: hardware.StepVerifying, power: hardware.PowerOn, after: time.Hour, quiet: time.Minute, want: actionFail, fails: hardware.ReasonAgentSilent},
		{reason: "just not silent at the deadline", step: hardware.StepVerifying, power: hardware.PowerOn, after: time.Hour, quiet: 59 * time.Second, want: actionFail, fails: hardware.ReasonDeadlineExceeded},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := facts{power: c.power, powerErr: c.err, session: running(hardware.OpInstall, c.step), now: start.Add(c.after), timeouts: hardware.DefaultTimeouts()}
			f.record = attemptRecord{lastProgress: f.now.Add(-c.quiet), firstObserved: start, wasPoweredOn: c.wasPoweredOn}
			if c.observed > 0 {
				f.record.firstObserved = f.now.Add(-c.observed)
			}
			if c.err != nil {
				f.power = hardware.PowerUnknown
			}
			if c.change != nil {
				c.change(&f.session)
			}
			got := nextAction(f)
			if got.kind != c.want || got.reason != c.fails {
				t.Errorf("decided %s %s (%s), expected %s %s", got.kind, got.reason, got.message, c.want, c.fails)
			}
			if got.kind == actionFail && (got.message == "" || strings.Contains(got.message, "bytes done")) {
				t.Errorf("message %q, expected one without bytes, which are unknown", got.message)
			}
		})
	}
}

// TestActionsKeepTheRules checks every combination of operation, step, power and time.
func TestActionsKeepTheRules(t *testing.T) {
	steps := []hardware.Step{
		hardware.StepPoweringOff, hardware.StepBooting, hardware.StepLoading, hardware.StepRegistered,
		hardware.StepWriting, hardware.StepErasing, hardware.StepVerifying, hardware.StepFinishing,
	}
	powers := []hardware.PowerState{hardware.PowerOn, hardware.PowerOff, hardware.PowerTurningOn, hardware.PowerTurningOff, hardware.PowerUnknown}
	for _, operation := range []hardware.Operation{hardware.OpInstall, hardware.OpErase} {
		for _, step := range steps {
			for _, power := range powers {
				for _, err := range []error{nil, errors.New("no answer")} {
					for _, after := range []time.Duration{0, time.Minute, 4 * time.Minute, 10 * time.Minute, 25 * time.Minute, time.Hour, 3 * time.Hour} {
						if err != nil && power != hardware.PowerUnknown {
							continue
						}
						f := facts{power: power, powerErr: err, session: running(operation, step), record: attemptRecord{lastProgress: start, firstObserved: start}, now: start.Add(after), timeouts: hardware.DefaultTimeouts()}
						for _, broken := range brokenRules(f, nextAction(f)) {
							t.Errorf("%s at %s, power %s (%v), after %s: %s", operation, step, power, err, after, broken)
						}
					}
				}
			}
		}
	}
}

// brokenRules returns the rules that the action breaks.
func brokenRules(f facts, d action) []string {
	s := f.session
	writing := s.Step == hardware.StepWriting || s.Step == hardware.StepErasing || s.Step == hardware.StepVerifying
	confirmedOff := f.powerErr == nil && f.power == hardware.PowerOff
	var broken []string
	for rule, isKept := range map[string]bool{
		"an ended attempt at the deadline":          f.now.Before(s.Deadline) || d.kind == actionFail || d.kind == actionSucceed,
		"an install succeeds by the agent's result": d.kind != actionSucceed || s.Step == hardware.StepFinishing,
		"an erase succeeds with the power off":      d.kind != actionSucceed || s.Operation != hardware.OpErase || confirmedOff,
		"an agent at work is not powered off":       d.kind != actionPowerOff || !writing,
		"a boot begins on a server that is off":     d.kind != actionBootNetwork || confirmedOff,
		"power-on comes after power-off":            d.kind != actionPowerOn || s.Step == hardware.StepBooting,
		"a BMC's failure is reported":               f.powerErr == nil || d.kind == actionReturnError || d.kind == actionFail || d.kind == actionSucceed,
		"a failure has a reason and a message":      d.kind != actionFail || d.reason != "" && d.message != "",
		"a reason belongs to a failure":             d.kind == actionFail || d.reason == "",
	} {
		if !isKept {
			broken = append(broken, fmt.Sprintf("decided %s, which breaks: %s", d.kind, rule))
		}
	}
	return broken
}

func TestMergeKeepsWhatOnlyAnAgentReports(t *testing.T) {
	bmc := hardware.Inventory{
		SerialNumber: "NEW", BIOSVersion: "2", CPUThreads: 8, Disks: []hardware.Disk{{Model: "by BMC"}}, NICs: []hardware.NIC{{MAC: "by BMC"}},
	}
	if got := mergeInventories(nil, bmc); got.SerialNumber != "NEW" || len(got.Disks) != 1 {
		t.Errorf("merged with nothing: %+v", got)
	}
	agent := &hardware.Inventory{SystemUUID: "uuid", SerialNumber: "OLD", BIOSVersion: "1", CPUThreads: 16, Disks: []hardware.Disk{{Name: "/dev/sda"}}}
	got := mergeInventories(agent, bmc)
	if got.SystemUUID != "uuid" || got.CPUThreads != 16 || got.Disks[0].Name != "/dev/sda" {
		t.Errorf("the agent's part is lost: %+v", got)
	}
	if got.SerialNumber != "NEW" || got.BIOSVersion != "2" || len(got.NICs) != 1 {
		t.Errorf("the BMC's part is lost: %+v", got)
	}
	former := &hardware.Inventory{CPUThreads: 4, Disks: []hardware.Disk{{Model: "former"}, {Model: "former"}}}
	if got := mergeInventories(former, bmc); got.CPUThreads != 8 || len(got.Disks) != 1 {
		t.Errorf("a former reading of the BMC outlives the new one: %+v", got)
	}
	h100 := []hardware.PCIDevice{{VendorID: "10de", DeviceID: "2330", Class: "030200"}}
	reported := hardware.Inventory{PCIDevices: []hardware.PCIDevice{{List: "system", VendorID: "15b3", Class: "020000"}}}
	for source, want := range map[hardware.DeviceSource]int{hardware.DevicesByAgent: 1, hardware.DevicesByBMC: 0, "": 0} {
		got := mergeInventories(&hardware.Inventory{PCIDevices: h100, DeviceSource: source}, reported)
		isKept := got.PCIDevices[0].VendorID == "10de"
		if isKept != (want == 1) || isKept && got.DeviceSource != source || !isKept && got.DeviceSource != "" {
			t.Errorf("devices by %q beside a new list of the BMC: %+v by %q", source, got.PCIDevices, got.DeviceSource)
		}
	}
	repaired := &hardware.Inventory{
		SystemUUID: "uuid", DeviceSource: hardware.DevicesByAgent, BIOSVersion: "1", BIOSDate: "01/01/2020", MemoryBytes: 1 << 30, BMCVersion: "3",
		NICs:          []hardware.NIC{{Name: "eth0", NoLink: true, Driver: "ice", Firmware: "4.2"}},
		Disks:         []hardware.Disk{{Name: "/dev/sda", Firmware: "A"}},
		MemoryModules: []hardware.MemoryModule{{SizeBytes: 1 << 30}},
		PCIDevices:    []hardware.PCIDevice{{VendorID: "10de", LinkWidth: 8, MaxLinkWidth: 16, MaxLinkSpeed: 32000, PortMaxLinkSpeed: 16000}},
	}
	got = mergeInventories(repaired, hardware.Inventory{BIOSVersion: "2", MemoryBytes: 2 << 30})
	if n, d, p := got.NICs[0], got.Disks[0], got.PCIDevices[0]; n.NoLink || n.Firmware != "" || n.Driver != "ice" || d.Firmware != "" || p.LinkWidth != 0 || p.MaxLinkSpeed != 0 ||
		got.MemoryModules != nil || got.MemoryBytes != 2<<30 || got.BIOSDate != "" || got.BMCVersion != "3" {
		t.Errorf("what a technician repairs is not unknown after an inspection: %+v", got)
	}
	if agent.SerialNumber != "OLD" || !repaired.NICs[0].NoLink || repaired.PCIDevices[0].LinkWidth != 8 {
		t.Error("merging changed its argument")
	}
}
