package hardware

import "time"

// Timeouts bound what an Installer waits for; zero values take the defaults. The deadline of an attempt bounds all of them.
type Timeouts struct {
	// GracefulOff is how long an operating system may take to stop before the power is cut.
	GracefulOff time.Duration
	// PowerOff is how long a BMC may take to confirm that the power is cut.
	PowerOff time.Duration
	// PowerOn is how long a BMC may take to report power-on.
	PowerOn time.Duration
	// PowerOnRetry is the interval at which a power-on without effect is asked for again.
	PowerOnRetry time.Duration
	// Boot is from power-on to the request for the boot document. The self-test of an HGX server takes more than 10 minutes.
	Boot time.Duration
	// Load is from the boot document to the first word of the agent.
	Load time.Duration
	// Silence is how long an agent may report no progress.
	Silence time.Duration
}

// DefaultTimeouts are those for real servers.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		GracefulOff: 2 * time.Minute, PowerOff: 3 * time.Minute, PowerOn: 5 * time.Minute, PowerOnRetry: 30 * time.Second,
		Boot: 20 * time.Minute, Load: 10 * time.Minute, Silence: 15 * time.Minute,
	}
}

// WithDefaults returns the time-outs with the default for each that is not positive.
func (t Timeouts) WithDefaults() Timeouts {
	d := DefaultTimeouts()
	for value, standard := range map[*time.Duration]time.Duration{
		&t.GracefulOff: d.GracefulOff, &t.PowerOff: d.PowerOff, &t.PowerOn: d.PowerOn, &t.PowerOnRetry: d.PowerOnRetry,
		&t.Boot: d.Boot, &t.Load: d.Load, &t.Silence: d.Silence,
	} {
		if *value <= 0 {
			*value = standard
		}
	}
	return t
}
