package rack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/ingot-dev/ingot/test/bmc"
)

// defaultDisk is the size of a server's disk: room for an operating system with a GPU driver, and sparse.
const defaultDisk = 16 << 30

// ServerSpec describes one server.
type ServerSpec struct {
	// Name is a DNS label and unique in the rack.
	Name    string
	Profile Profile
	// DiskBytes is the size of the disk; 0: 16 GiB.
	DiskBytes int64
	// DataDisks is the number of further disks. Each is twice as large, so that an installation without hints selects the first one.
	DataDisks int
	// Username and Password are those of the BMC; empty: root and a random password.
	Username, Password string
	// BMCAddress is where the BMC listens; empty: a free port on 127.0.0.1.
	BMCAddress string
	// NetworkFirst means that without a boot override the firmware boots from the network before the disk.
	NetworkFirst bool
	// Faults are the faults with which the server starts.
	Faults Faults
}

// Timing is how long a server takes for what it does, before it is divided by Options.Speed.
type Timing struct {
	// PowerOn and PowerOff are the time until the BMC reports a change of power.
	PowerOn, PowerOff time.Duration
	// POST is the power-on self-test.
	POST time.Duration
	// NetworkTimeout is the time until the firmware gives up a network card without a link.
	NetworkTimeout time.Duration
	// AgentStart is the time from the loaded kernel to the agent, OSStart that from the boot loader to the end of cloud-init.
	AgentStart, OSStart time.Duration
	// Shutdown is the time that an operating system takes to shut down.
	Shutdown time.Duration
	// Container is the time until a container runs or has ended, Plugin that until a vendor's plugin has found its devices.
	Container, Plugin time.Duration
}

// DefaultTiming returns the timing of GPU servers, whose self-test trains the memory and takes minutes.
func DefaultTiming() Timing {
	return Timing{
		PowerOn: 3 * time.Second, PowerOff: 4 * time.Second, POST: 4 * time.Minute, NetworkTimeout: time.Minute,
		AgentStart: 20 * time.Second, OSStart: time.Minute, Shutdown: 30 * time.Second, Container: 3 * time.Second, Plugin: 5 * time.Second,
	}
}

// Options describe a rack. Dir is required, and Servers, or Count and Profile.
type Options struct {
	// Name is the name of the rack and the value of the label "rack" of its hosts; empty: rack-1.
	Name string
	// Dir is the folder of the disks.
	Dir     string
	Servers []ServerSpec
	// Count servers of the profile named Profile are added, called NAME-server-1 and so on; an empty Profile is hgx-h100.
	Count   int
	Profile string
	// DataDisks is that of the Count servers.
	DataDisks int
	// BootURL is the URL that DHCP gives to servers that boot from the network: the base URL of the boot service, or a URL with ${net0/mac} in it.
	BootURL string
	// Speed divides the Timing; 0: 1.
	Speed  float64
	Timing Timing
	// Clock is the clock of the rack; nil: the real one.
	Clock clock.Clock
	// Agents is how many agents run at the same time, while the others wait in their ramdisk: each has some 40 MiB of
	// buffers, and here they share the memory of one machine; 0: 32.
	Agents int
	// OnStep, if set, is called in the server's own goroutine when a server reaches a step.
	OnStep func(*Server, Step)
	// Log receives what the servers do; nil: nothing is logged.
	Log *slog.Logger
}

// Rack is a set of simulated servers.
type Rack struct {
	options   Options
	authority *bmc.Authority
	servers   []*Server
	transport *http.Transport
	// agents holds a token for each agent that may run.
	agents chan struct{}

	mu      sync.Mutex
	bootURL string
	ctx     context.Context
	cancel  context.CancelFunc
	// group counts the goroutines of servers with power.
	group sync.WaitGroup
}

// New creates a rack whose servers have no power yet. It keeps the disks of an earlier rack in Dir.
func New(options Options) (*Rack, error) {
	options, err := complete(options)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the rack's folder: %w", err)
	}
	authority, err := bmc.NewAuthority(options.Clock.Now())
	if err != nil {
		return nil, err
	}
	r := &Rack{options: options, authority: authority, bootURL: options.BootURL, agents: make(chan struct{}, options.Agents), transport: &http.Transport{
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, DisableCompression: true, ReadBufferSize: 256 << 10,
	}}
	names := map[string]bool{}
	for _, spec := range options.Servers {
		if spec.Name == "" || names[spec.Name] {
			return nil, fmt.Errorf("server name %q: empty, or twice in the rack", spec.Name)
		}
		names[spec.Name] = true
		server, err := newServer(r, spec)
		if err != nil {
			return nil, err
		}
		r.servers = append(r.servers, server)
	}
	return r, nil
}

// complete returns the options with their defaults.
func complete(options Options) (Options, error) {
	if options.Dir == "" {
		return options, errors.New("a rack needs Options.Dir")
	}
	if options.Name == "" {
		options.Name = "rack-1"
	}
	if options.Speed <= 0 {
		options.Speed = 1
	}
	if options.Agents <= 0 {
		options.Agents = 32
	}
	if options.Timing == (Timing{}) {
		options.Timing = DefaultTiming()
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if err := addServers(&options); err != nil {
		return options, err
	}
	if len(options.Servers) == 0 {
		return options, errors.New("a rack needs servers: Options.Servers or Count")
	}
	return options, nil
}

// addServers adds Count servers of the profile.
func addServers(options *Options) error {
	if options.Count <= 0 {
		return nil
	}
	profile, err := ProfileNamed(cmp.Or(options.Profile, "hgx-h100"))
	if err != nil {
		return err
	}
	for i := range options.Count {
		options.Servers = append(options.Servers, ServerSpec{Name: fmt.Sprintf("%s-server-%d", options.Name, i+1), Profile: profile, DataDisks: options.DataDisks})
	}
	return nil
}

// Start starts the BMCs. The servers can be powered on until ctx ends or Stop is called.
func (r *Rack) Start(ctx context.Context) error {
	r.mu.Lock()
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.mu.Unlock()
	for i, server := range r.servers {
		if err := server.bmc.Start(ctx); err != nil {
			r.cancel()
			for _, started := range r.servers[:i] {
				err = errors.Join(err, started.bmc.Stop())
			}
			return fmt.Errorf("starting rack %s: %w", r.options.Name, err)
		}
	}
	return nil
}

// Stop cuts the power and returns when nothing of the rack runs any more. The rack must have been started. The disks are kept.
func (r *Rack) Stop() error {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, server := range r.servers {
		wg.Go(func() {
			if err := server.bmc.Stop(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	r.group.Wait()
	r.transport.CloseIdleConnections()
	return errors.Join(errs...)
}

// CA returns the certificate, PEM encoded, of the authority that signed the certificates of the BMCs.
func (r *Rack) CA() []byte { return r.authority.PEM() }

// Servers returns all servers in order.
func (r *Rack) Servers() []*Server { return r.servers }

// Server returns the server with the name, or nil.
func (r *Rack) Server(name string) *Server {
	for _, server := range r.servers {
		if server.name == name {
			return server
		}
	}
	return nil
}

// SetBootURL changes the URL that DHCP gives to the servers, from their next network boot on.
func (r *Rack) SetBootURL(url string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bootURL = url
}

// errNotRunning is returned for a rack that was not started or is stopped.
var errNotRunning = errors.New("the rack is not running")

// startServer runs a server until the rack is stopped. It returns errNotRunning when the rack does not run.
func (r *Rack) startServer(run func(ctx context.Context)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return errNotRunning
	}
	ctx := r.ctx
	r.group.Go(func() { run(ctx) })
	return nil
}

// wait waits for d divided by the speed of the rack.
func (r *Rack) wait(ctx context.Context, d time.Duration) error {
	timer := r.options.Clock.NewTimer(time.Duration(float64(d) / r.options.Speed))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
