package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// Disk is a block device. A write is on the medium only after the next Sync.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Info describes the disk: name, size, serial number.
	Info() hardware.Disk
	// SectorSize is the logical sector size in bytes.
	SectorSize() int64
	// ZeroRange makes the range read as zeros. Offset and length are multiples of the sector size, except at an image's end.
	ZeroRange(off, n int64) error
	// Sync returns when everything written before is on the medium.
	Sync() error
}

// Clock tells the time and waits. Sleep returns early with ctx's error when ctx ends.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now implements Clock.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Config is what the agent needs. URL, Token, Disks and Inventory are required. It holds the token: never log it.
type Config struct {
	// URL is the boot service's base URL, ingot.url on the kernel command line.
	URL string
	// Token proves the right to ask, ingot.token on the kernel command line.
	Token string
	// HTTP talks to the service and to image servers; nil: a client with connection time-outs.
	HTTP *http.Client
	// Disks opens the server's disks that may be written: no removable ones. They are closed when Run returns.
	Disks func(context.Context) ([]Disk, error)
	// Inventory reads the server's hardware.
	Inventory func(context.Context) (hardware.Inventory, error)
	// Clock tells the time; nil: SystemClock.
	Clock Clock
	// Log gets what happens; nil: nothing.
	Log *slog.Logger
	// StallTimeout is how long an image server may send nothing before the download is begun again where it stopped; 0: 60 seconds.
	StallTimeout time.Duration
}

// String keeps the token out of anything that is printed.
func (c Config) String() string { return "agent of " + c.URL }

// GoString keeps the token out of %#v.
func (c Config) GoString() string { return c.String() }

// Outcome is what the machine is to do when the agent has returned, also when it returned an error.
type Outcome string

// Outcomes.
const (
	// Reboot: an image is installed, boot it.
	Reboot Outcome = "Reboot"
	// PowerOff: inspected, erased, failed, or no longer wanted.
	PowerOff Outcome = "PowerOff"
)

// Failure is why the work failed, as it is reported.
type Failure struct {
	Reason  hardware.Reason
	Message string
	// Err is the cause; may be nil.
	Err error
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Err != nil {
		return string(f.Reason) + ": " + f.Message + ": " + f.Err.Error()
	}
	return string(f.Reason) + ": " + f.Message
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// failf makes a *Failure; the message must carry neither token nor user data.
func failf(reason hardware.Reason, cause error, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...), Err: cause}
}

// errDeadline stops the work of an attempt that ran out of time; the other side has failed it by then.
var errDeadline = errors.New("the attempt's deadline has passed")

// Run does what the service asks for, once. The error is a *Failure when the work failed and that was reported, and a
// *protocol.Refusal when the attempt is no longer this boot's. Cancelling ctx stops it where it is, reporting nothing.
func Run(ctx context.Context, config Config) (Outcome, error) {
	config, err := config.complete()
	if err != nil {
		return PowerOff, err
	}
	inventory, err := config.Inventory(ctx)
	if err != nil {
		// An inventory with holes is better than a server that says nothing.
		config.Log.Warn("reading the inventory", "error", err)
	}
	client := newClient(config)
	var instructions protocol.Instructions
	if err := client.post(ctx, protocol.PathRegister, protocol.Registration{Inventory: inventory}, &instructions); err != nil {
		return PowerOff, fmt.Errorf("registering: %w", err)
	}
	config.Log.Info("registered", "attempt", instructions.Attempt, "operation", instructions.Operation)
	client.deadline = config.Clock.Now().Add(time.Duration(instructions.RemainingMillis) * time.Millisecond)
	return perform(ctx, config, client, instructions, inventory)
}

// perform does the work and reports how it ended.
func perform(ctx context.Context, config Config, client *client, instructions protocol.Instructions, inventory hardware.Inventory) (Outcome, error) {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		// Behind the deadline someone else may be in charge of the disk.
		if config.Clock.Sleep(work, client.deadline.Sub(config.Clock.Now())) == nil {
			stop(errDeadline)
		}
	}()
	reports := startReporter(work, client, time.Duration(instructions.ProgressMillis)*time.Millisecond, stop)
	err := operate(work, config, client, reports, instructions)
	stop(nil)
	reports.wait()
	if ctx.Err() != nil {
		return PowerOff, context.Cause(ctx)
	}
	if refusal := reports.refused(); refusal != nil {
		return PowerOff, fmt.Errorf("stopped by the boot service: %w", refusal)
	}
	var failure *Failure
	if err != nil && !errors.As(err, &failure) {
		return PowerOff, err
	}
	result := protocol.Result{Inventory: &inventory}
	if failure != nil {
		config.Log.Error("failed", "reason", failure.Reason, "error", failure)
		result.Reason, result.Message = failure.Reason, strings.TrimPrefix(failure.Error(), string(failure.Reason)+": ")
	}
	if reportErr := client.post(ctx, protocol.PathResult, result, nil); reportErr != nil {
		return PowerOff, errors.Join(err, fmt.Errorf("reporting the result: %w", reportErr))
	}
	if err == nil && instructions.Operation == hardware.OpInstall {
		return Reboot, nil
	}
	return PowerOff, err
}

// operate does the one operation.
func operate(ctx context.Context, config Config, client *client, reports *reporter, instructions protocol.Instructions) error {
	if instructions.Operation == hardware.OpInspect {
		return nil
	}
	disks, err := config.Disks(ctx)
	if err != nil {
		return failf(hardware.ReasonDiskError, err, "opening the disks")
	}
	defer func() {
		for _, disk := range disks {
			if err := disk.Close(); err != nil {
				config.Log.Warn("closing disk", "disk", disk.Info().Name, "error", err)
			}
		}
	}()
	switch instructions.Operation {
	case hardware.OpInstall:
		if instructions.Image == nil {
			return failf(hardware.ReasonImageInvalid, nil, "the boot service named no image")
		}
		return install(ctx, config, client, reports, disks, instructions)
	case hardware.OpErase:
		return erase(ctx, reports, disks, instructions.Erase)
	default:
		return fmt.Errorf("operation %q is not known to this agent: the agent is older than the boot service", instructions.Operation)
	}
}

// complete checks the configuration and fills in what was left out.
func (c Config) complete() (Config, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return c, fmt.Errorf("%s: expected the boot service's base URL, seen %q", protocol.ArgURL, c.URL)
	}
	if c.Token == "" || c.Disks == nil || c.Inventory == nil {
		return c, fmt.Errorf("%s, Config.Disks and Config.Inventory are required", protocol.ArgToken)
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableCompression: true, ReadBufferSize: 256 << 10,
			TLSHandshakeTimeout: 15 * time.Second, ResponseHeaderTimeout: time.Minute,
		}}
	}
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.StallTimeout <= 0 {
		c.StallTimeout = time.Minute
	}
	return c, nil
}
