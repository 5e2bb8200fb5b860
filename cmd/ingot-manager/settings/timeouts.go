package settings

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/controllers/hardware"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// HostTimeouts limit the work on one host.
type HostTimeouts struct {
	// Inspect, InspectAgent, Install, EraseMetadata and EraseFull are the deadlines of one attempt. InspectAgent is for an inspection that boots the agent.
	Inspect       metav1.Duration `json:"inspect"`
	InspectAgent  metav1.Duration `json:"inspectAgent"`
	Install       metav1.Duration `json:"install"`
	EraseMetadata metav1.Duration `json:"eraseMetadata"`
	EraseFull     metav1.Duration `json:"eraseFull"`
	// BMCGrace is how long a registered host's BMC may fail before that is shown as an error.
	BMCGrace metav1.Duration `json:"bmcGrace"`
	// Retry is the pause after a first failed attempt; it doubles with each further one.
	Retry metav1.Duration `json:"retry"`
}

// StepTimeouts limit the waiting of an Installer: for changes of power, and for the steps of an attempt that boots the agent. The
// attempt's deadline limits all of them together.
type StepTimeouts struct {
	// GracefulOff is how long an operating system may take to stop before the power is cut.
	GracefulOff metav1.Duration `json:"gracefulOff"`
	// PowerOff and PowerOn are how long a BMC may take to confirm a change of power.
	PowerOff metav1.Duration `json:"powerOff"`
	PowerOn  metav1.Duration `json:"powerOn"`
	// PowerOnRetry is the interval at which a power-on without effect is asked for again.
	PowerOnRetry metav1.Duration `json:"powerOnRetry"`
	// Boot is the time from power-on to the request for the boot document: the power-on self-test of a large server takes over 10 minutes.
	Boot metav1.Duration `json:"boot"`
	// Load is the time from the boot document to the agent's registration.
	Load metav1.Duration `json:"load"`
	// Silence is how long an agent may report no progress.
	Silence metav1.Duration `json:"silence"`
}

func defaultHostTimeouts() HostTimeouts {
	t := hostplan.DefaultTimeouts()
	return HostTimeouts{
		Inspect: metav1.Duration{Duration: t.Inspect}, InspectAgent: metav1.Duration{Duration: t.InspectAgent}, Install: metav1.Duration{Duration: t.Install},
		EraseMetadata: metav1.Duration{Duration: t.EraseMetadata}, EraseFull: metav1.Duration{Duration: t.EraseFull},
		BMCGrace: metav1.Duration{Duration: t.BMCGrace}, Retry: metav1.Duration{Duration: t.RetryBase},
	}
}

func defaultStepTimeouts() StepTimeouts {
	t := hardware.DefaultTimeouts()
	return StepTimeouts{
		GracefulOff: metav1.Duration{Duration: t.GracefulOff},
		PowerOff:    metav1.Duration{Duration: t.PowerOff}, PowerOn: metav1.Duration{Duration: t.PowerOn},
		PowerOnRetry: metav1.Duration{Duration: t.PowerOnRetry}, Boot: metav1.Duration{Duration: t.Boot},
		Load: metav1.Duration{Duration: t.Load}, Silence: metav1.Duration{Duration: t.Silence},
	}
}

// HostTimeouts returns the time-outs of the host controller.
func (s Settings) HostTimeouts() hostplan.Timeouts {
	h := s.Timeouts.Hosts
	return hostplan.Timeouts{
		Inspect: h.Inspect.Duration, InspectAgent: h.InspectAgent.Duration, Install: h.Install.Duration, EraseMetadata: h.EraseMetadata.Duration, EraseFull: h.EraseFull.Duration,
		BMCGrace: h.BMCGrace.Duration, RetryBase: h.Retry.Duration,
		PollInterval: s.Intervals.Working.Duration, IdleInterval: s.Intervals.Steady.Duration,
	}
}

// InstallerTimeouts returns the time-outs of the Installer.
func (s Settings) InstallerTimeouts() hardware.Timeouts {
	t := s.Timeouts.Steps
	return hardware.Timeouts{
		GracefulOff: t.GracefulOff.Duration, PowerOff: t.PowerOff.Duration, PowerOn: t.PowerOn.Duration, PowerOnRetry: t.PowerOnRetry.Duration,
		Boot: t.Boot.Duration, Load: t.Load.Duration, Silence: t.Silence.Duration,
	}
}

func (s Settings) validateDurations() []error {
	var errs []error
	t, hosts, steps := s.Timeouts, s.Timeouts.Hosts, s.Timeouts.Steps
	for field, d := range map[string]metav1.Duration{
		"boot.progressInterval": s.Boot.ProgressInterval, "bmc.timeout": s.BMC.Timeout, "tenants.timeout": s.Tenants.Timeout,
		"intervals.working": s.Intervals.Working, "intervals.steady": s.Intervals.Steady,
		"timeouts.claiming": t.Claiming, "timeouts.provisioning": t.Provisioning,
		"timeouts.joining": t.Joining, "timeouts.releasing": t.Releasing, "timeouts.drain": t.Drain,
		"timeouts.hosts.inspect": hosts.Inspect, "timeouts.hosts.inspectAgent": hosts.InspectAgent, "timeouts.hosts.install": hosts.Install, "timeouts.hosts.eraseMetadata": hosts.EraseMetadata,
		"timeouts.hosts.eraseFull": hosts.EraseFull,
		"timeouts.hosts.bmcGrace":  hosts.BMCGrace, "timeouts.hosts.retry": hosts.Retry,
		"timeouts.steps.gracefulOff": steps.GracefulOff, "timeouts.steps.powerOff": steps.PowerOff, "timeouts.steps.powerOn": steps.PowerOn, "timeouts.steps.powerOnRetry": steps.PowerOnRetry,
		"timeouts.steps.boot": steps.Boot, "timeouts.steps.load": steps.Load, "timeouts.steps.silence": steps.Silence,
	} {
		if d.Duration <= 0 {
			errs = append(errs, fmt.Errorf("%s: got %s; expected more than 0", field, d.Duration))
		}
	}
	// The outer time-out must be longer than the inner one. Otherwise the outer one ends the attempt first, and the operator never sees
	// the reason that names the failed step.
	for _, r := range []struct {
		field, than string
		got, limit  metav1.Duration
	}{
		{"timeouts.drain", "timeouts.releasing", t.Drain, t.Releasing},
		{"timeouts.hosts.install", "timeouts.provisioning", hosts.Install, t.Provisioning},
		{"timeouts.steps.boot", "timeouts.hosts.install", steps.Boot, hosts.Install},
		{"timeouts.steps.load", "timeouts.hosts.install", steps.Load, hosts.Install},
		{"timeouts.steps.silence", "timeouts.hosts.install", steps.Silence, hosts.Install},
		{"timeouts.steps.powerOnRetry", "timeouts.steps.powerOn", steps.PowerOnRetry, steps.PowerOn},
	} {
		if r.got.Duration >= r.limit.Duration {
			errs = append(errs, fmt.Errorf("%s: got %s; expected less than %s, %s", r.field, r.got.Duration, r.than, r.limit.Duration))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errs
}
