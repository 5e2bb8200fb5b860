package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/tpm"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
)

// Disk is a block device. A write is on the medium only after the next Sync.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Info returns the name, size and identity of the disk.
	Info() hardware.Disk
	// SectorSize returns the logical sector size in bytes.
	SectorSize() int64
	// ZeroRange makes the range read as zeros. Offset and length are multiples of the sector size, except at the end of an image.
	ZeroRange(off, n int64) error
	// Sync returns when everything written before is on the medium.
	Sync() error
}

// Clock returns the time and sleeps. Sleep returns early with the error of ctx when ctx ends.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the clock of the machine.
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

// Config configures Run. URL, Token, Disks and Inventory are required. It holds the token: never log it.
type Config struct {
	// URL is the base URL of the boot service, ingot.url on the kernel command line.
	URL string
	// Token authorizes the agent at the boot service, ingot.token on the kernel command line.
	Token string
	// Pins are the authorities that the boot service's certificate may be of, ingot.ca on the kernel command line; empty: those that HTTP trusts. With
	// pins the boot service is asked by HTTPS alone.
	Pins []string
	// HTTP is the client for the boot service and for image servers; nil means a client with connection time-outs.
	HTTP *http.Client
	// Disks opens the disks of the server that may be written, which excludes removable ones, and returns the others as unusable. Run
	// closes them.
	Disks func(context.Context) ([]Disk, []hardware.UnusableDisk, error)
	// Inventory reads the hardware of the server.
	Inventory func(context.Context) (hardware.Inventory, error)
	// TPM opens the TPM 2.0 of the server; nil, and a nil device: it has none. An error is a TPM that proves nothing, and not one that is absent.
	TPM func(context.Context) (*tpm.Device, error)
	// Clock is the clock; nil means SystemClock.
	Clock Clock
	// Random is the source of the agent's key; nil means crypto/rand.Reader.
	Random io.Reader
	// Log receives the log; nil means no log.
	Log *slog.Logger
	// LogChunk returns the log from an offset on, for the boot service; nil: it gets none.
	LogChunk func(offset int64) protocol.LogChunk
	// StallTimeout is how long an image server may send nothing before the download is restarted at the same byte. 0 means 60 seconds.
	StallTimeout time.Duration
	// FirstByteTimeout is how long an image server may be asked in vain for the first byte. 0 means 75 seconds. Without it: the address is wrong
	// and its packets vanish, and the server that is installed tries for ten minutes before anybody hears of it.
	FirstByteTimeout time.Duration

	// inventoryErr is why the inventory that was registered is not complete; nil: it is.
	inventoryErr error
}

// String returns a text without the token, so that printing a Config shows no secret.
func (c Config) String() string { return "agent of " + c.URL }

// GoString does the same for the verb %#v.
func (c Config) GoString() string { return c.String() }

// ExitAction is what the machine does after Run has returned, with or without an error.
type ExitAction string

// Exit actions.
const (
	// Reboot boots the image that was installed.
	Reboot ExitAction = "Reboot"
	// PowerOff powers the server off: after an inspection, an erase, a failure or a cancelled attempt.
	PowerOff ExitAction = "PowerOff"
)

// Failure is the failure of the operation as it is reported to the boot service.
type Failure struct {
	Reason  hardware.Reason
	Message string
	// Err is the cause; it may be nil.
	Err error
}

// Error returns reason, message and cause.
func (f *Failure) Error() string {
	if f.Err != nil {
		return string(f.Reason) + ": " + f.Message + ": " + f.Err.Error()
	}
	return string(f.Reason) + ": " + f.Message
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// failuref returns a *Failure with a formatted message. The message must contain neither token nor user data.
func failuref(reason hardware.Reason, cause error, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...), Err: cause}
}

// errDeadline stops the operation when the deadline has passed. The Installer has failed the attempt by then.
var errDeadline = errors.New("the attempt's deadline has passed")

// Run registers at the boot service, carries out one operation and reports the result. The error wraps a *Failure when the operation
// failed and the failure was reported, and a *protocol.Refusal when the token is no longer current. When ctx is cancelled, Run stops
// without a report.
func Run(ctx context.Context, config Config) (ExitAction, error) {
	config, err := config.complete()
	if err != nil {
		return PowerOff, err
	}
	inventory, err := config.Inventory(ctx)
	if err != nil {
		// An incomplete inventory is better than a server that does not register.
		config.Log.Warn("reading the inventory", "error", err)
		config.inventoryErr = err
	}
	client, err := newClient(config)
	if err != nil {
		return PowerOff, err
	}
	registration := protocol.Registration{Inventory: inventory}
	if registration.TPM, err = client.proveServer(ctx); err != nil {
		return PowerOff, fmt.Errorf("asking for a challenge: %w", err)
	}
	var instructions protocol.Instructions
	if err := client.post(ctx, protocol.PathRegister, registration, &instructions); err != nil {
		return PowerOff, fmt.Errorf("registering: %w", err)
	}
	config.Log.Info("registered", "attempt", instructions.Attempt, "operation", instructions.Operation)
	config.HTTP = trustBundle(config.HTTP, instructions.CABundle, config.Log)
	client.deadline = config.Clock.Now().Add(time.Duration(instructions.RemainingMillis) * time.Millisecond)
	return runAndReport(ctx, config, client, instructions)
}

// runAndReport carries out the operation and reports the result.
func runAndReport(ctx context.Context, config Config, client *client, instructions protocol.Instructions) (ExitAction, error) {
	operationCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		// After the deadline another attempt may write to the same disk.
		if config.Clock.Sleep(operationCtx, client.deadline.Sub(config.Clock.Now())) == nil {
			stop(errDeadline)
		}
	}()
	reports := startReporter(operationCtx, client, time.Duration(instructions.ProgressMillis)*time.Millisecond, stop)
	logs := startLogSender(operationCtx, client, time.Duration(instructions.ProgressMillis)*time.Millisecond)
	var result protocol.Result
	err := runOperation(operationCtx, config, client, reports, instructions, &result)
	stop(nil)
	reports.wait()
	if ctx.Err() != nil {
		return PowerOff, context.Cause(ctx)
	}
	if refusal := reports.refusalError(); refusal != nil {
		return PowerOff, fmt.Errorf("stopped by the boot service: %w", refusal)
	}
	var failure *Failure
	if err != nil && !errors.As(err, &failure) {
		return PowerOff, err
	}
	if failure != nil {
		config.Log.Error("failed", "reason", failure.Reason, "error", failure)
		result.Reason, result.Message = failure.Reason, strings.TrimPrefix(failure.Error(), string(failure.Reason)+": ")
	}
	// After a result the boot service takes nothing of this boot any more.
	logs.finish(ctx)
	if reportErr := client.post(ctx, protocol.PathResult, result, nil); reportErr != nil {
		return PowerOff, errors.Join(err, fmt.Errorf("reporting the result: %w", reportErr))
	}
	if err == nil && instructions.Operation == hardware.OpInstall {
		return Reboot, nil
	}
	return PowerOff, err
}

// runOperation carries out the operation of the instructions and writes into the result what it did.
func runOperation(ctx context.Context, config Config, client *client, reports *reporter, instructions protocol.Instructions, result *protocol.Result) (err error) {
	if instructions.Operation == hardware.OpInspect {
		if config.inventoryErr != nil {
			result.Message = fmt.Sprintf("the inventory is not complete: %v", config.inventoryErr)
		}
		return nil
	}
	disks, unusable, err := config.Disks(ctx)
	if err != nil {
		return failuref(hardware.ReasonDiskError, err, "opening the disks")
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
			return failuref(hardware.ReasonImageInvalid, nil, "the boot service named no image")
		}
		return install(ctx, config, client, reports, diskSet{disks, unusable}, instructions, result)
	case hardware.OpErase:
		result.Evidence, err = erase(ctx, client, reports, diskSet{disks, unusable}, instructions.Erase)
		return err
	default:
		return fmt.Errorf("operation %q is not known to this agent: the agent is older than the boot service", instructions.Operation)
	}
}

// complete returns the configuration with the defaults. It fails when a required field is missing.
func (c Config) complete() (Config, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return c, fmt.Errorf("%s: expected the boot service's base URL, seen %q", cmdline.ArgURL, c.URL)
	}
	if len(c.Pins) > 0 && base.Scheme != "https" {
		return c, fmt.Errorf("%s: expected an https URL, because %s says which authority the boot service's certificate is of, seen %q", cmdline.ArgURL, cmdline.ArgCA, c.URL)
	}
	if c.Token == "" || c.Disks == nil || c.Inventory == nil {
		return c, fmt.Errorf("%s, Config.Disks and Config.Inventory are required", cmdline.ArgToken)
	}
	return c.withDefaults(), nil
}

// dialTimeout is how long a connection may take to be made. With it, an address whose packets vanish is tried several times within
// FirstByteTimeout.
const dialTimeout = 20 * time.Second

// withDefaults returns the configuration with the default of each optional field that is not set.
func (c Config) withDefaults() Config {
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableCompression: true, ReadBufferSize: 256 << 10,
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout: 15 * time.Second, ResponseHeaderTimeout: time.Minute,
		}}
	}
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.StallTimeout <= 0 {
		c.StallTimeout = time.Minute
	}
	if c.FirstByteTimeout <= 0 {
		c.FirstByteTimeout = 75 * time.Second
	}
	return c
}
