package netboot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
)

const (
	// defaultProgressInterval is used when Options.ProgressInterval is not positive.
	defaultProgressInterval = 10 * time.Second
	// requestTimeout bounds one request, including its body and the answer of the store. It does not apply to kernel and initrd.
	requestTimeout = 30 * time.Second
	// retryAfter is when a client asks again after the store did not answer.
	retryAfter = 5 * time.Second
)

// Events that Options.Count is called with, beside the kinds of boot documents: boot, wait, hold and exit.
const (
	// EventStranger is a boot document for a MAC address that is no host's.
	EventStranger = "stranger"
	// EventLimited is a boot document that was not served because there were too many requests.
	EventLimited = "limited"
	// EventAnotherAgent is a request with the token of a boot and the key of another agent.
	EventAnotherAgent = "another-agent"
	// EventWrongServer is a registration of a server that is not the host, or lacks what the installation needs.
	EventWrongServer = "wrong-server"
)

// Options configure a Service. Store, Key, BaseURL, Files, Kernel and Initrd are required.
type Options struct {
	// Store stores the sessions.
	Store Store
	// Key returns the key that signs tokens, at least 32 bytes. It is called for every request, so that a changed Secret is used at once.
	Key func(context.Context) ([]byte, error)
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
	// BaseURL is the URL at which servers reach this service, "http://10.0.0.2:8080", without a trailing slash.
	BaseURL string
	// HostSettings returns what is configured for one host; nil means the zero value for every host.
	HostSettings func(context.Context, Session) (HostSettings, error)
	// Pins returns the pins of the authorities of the boot service's certificate, for agents of hosts with HostSettings.SecureURL; nil: there are no
	// such hosts.
	Pins func(context.Context) ([]string, error)
	// Files holds the agent's kernel and initrd under the names Kernel and Initrd. Its files must implement io.Seeker, as those of os.DirFS do.
	Files          fs.FS
	Kernel, Initrd string
	// Media returns the CD image that boots the agent with the kernel command line; nil: there are none, and MediaURLs fails with Unsupported.
	Media func(commandLine string) (io.ReadSeeker, error)
	// Program returns the EFI program that does the same; nil: there are none, and ProgramURLs fails with Unsupported.
	Program func(commandLine string) (io.ReadSeeker, error)
	// ARM64 are the files of servers with that architecture; the zero value: there are none. Kernel, Initrd, Media and Program are those of amd64.
	ARM64 BootFiles
	// KernelArguments are added to the command line of the kernel, such as "console=ttyS0,115200".
	KernelArguments []string
	// Log receives one line for each boot document, refusal and result; nil means no log.
	Log *slog.Logger
	// Count counts what the service was asked, for metrics; nil means no metrics.
	Count func(event string)
	// NoteStranger is called for a boot document that a server asked for which is nobody's; nil: nothing.
	NoteStranger func(mac, address string)
	// ProgressInterval is the minimum time between two writes of the progress of one host, including steps. 0 means 10 seconds.
	ProgressInterval time.Duration
	// Logs keeps the logs of agents; nil: they are not kept.
	Logs *agentlogs.Keeper
	// Timeouts are those of the Installer, which the deadlines of the steps are computed by. Values that are not positive are replaced by the
	// defaults.
	Timeouts hardware.Timeouts
}

// BootFiles boot the agent on servers of one architecture. The fields are those of Options.
type BootFiles struct {
	Kernel, Initrd string
	Media, Program func(commandLine string) (io.ReadSeeker, error)
}

// HostSettings are what is configured for one host.
type HostSettings struct {
	// URL is the URL at which the host reaches this service, in the form of BaseURL; empty means BaseURL.
	URL string
	// SecureURL is the https URL at which agents reach this service, with a certificate that is pinned by their command line; empty: they use URL.
	SecureURL string
	// StrictIdentity refuses an agent whose server differs from the known hardware of the host.
	StrictIdentity bool
	// CABundle has certificates in PEM that the agent trusts image servers by; empty: those of the ramdisk only.
	CABundle string
	// Network is how the agent brings up the network of the server, beside the MAC address of the boot NIC.
	Network cmdline.Network

	// pins are for SecureURL.
	pins []string
}

// Service serves boot documents and agents. It implements http.Handler. It holds no state that another replica would need.
type Service struct {
	options Options
	mux     *http.ServeMux
	limits  documentLimits

	mu sync.Mutex
	// reports holds the last report that this replica received from each running agent, by host UID.
	reports map[string]agentReport
}

// New validates the options and returns a Service.
func New(options Options) (*Service, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("netboot: %w", err)
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Count == nil {
		options.Count = func(string) {}
	}
	if options.NoteStranger == nil {
		options.NoteStranger = func(string, string) {}
	}
	if options.ProgressInterval <= 0 {
		options.ProgressInterval = defaultProgressInterval
	}
	options.Timeouts = options.Timeouts.WithDefaults()
	s := &Service{options: options, mux: http.NewServeMux(), reports: map[string]agentReport{}}
	s.mux.HandleFunc("GET /boot/{mac}", withTimeout(s.serveBootDocument))
	s.mux.HandleFunc("GET "+PathIdentity, withTimeout(s.serveIdentity))
	s.mux.HandleFunc("GET /boot/{mac}/"+ProgramARM64, withTimeout(s.serveBootProgram))
	s.mux.HandleFunc("GET "+pathKernel, s.noteKernelRequest(s.serveFile(func(f BootFiles) string { return f.Kernel })))
	s.mux.HandleFunc("GET /files/initrd", s.serveFile(func(f BootFiles) string { return f.Initrd }))
	for _, image := range []ownImage{s.medium(), s.program()} {
		s.mux.HandleFunc("GET /media/{secret}/"+image.file, s.serveImage(image))
	}
	s.mux.HandleFunc("POST "+protocol.PathChallenge, withTimeout(s.withToken(s.serveChallenge)))
	s.mux.HandleFunc("POST "+protocol.PathRegister, withTimeout(s.withToken(s.serveRegister)))
	s.mux.HandleFunc("POST "+protocol.PathDisks, withTimeout(s.withAuthorization(s.serveDisks)))
	s.mux.HandleFunc("GET "+protocol.PathConfigDrive, withTimeout(s.withAuthorization(s.serveConfigDrive)))
	s.mux.HandleFunc("POST "+protocol.PathProgress, withTimeout(s.withAuthorization(s.serveProgress)))
	s.mux.HandleFunc("POST "+protocol.PathLog, withTimeout(s.withAuthorization(s.serveLog)))
	s.mux.HandleFunc("POST "+protocol.PathResult, withTimeout(s.withAuthorization(s.serveResult)))
	return s, nil
}

// validate returns an error for options that cannot work.
func (o Options) validate() error {
	if o.Store == nil || o.Key == nil || o.Files == nil {
		return errors.New("Options.Store, Key and Files are required")
	}
	if !isBaseURL(o.BaseURL) {
		return fmt.Errorf("base URL %q: expected http://HOST:PORT without credentials, query and trailing slash", o.BaseURL)
	}
	names := []string{o.Kernel, o.Initrd}
	if o.ARM64.Kernel != "" {
		names = append(names, o.ARM64.Kernel, o.ARM64.Initrd)
	}
	for _, name := range names {
		if _, err := fs.Stat(o.Files, name); err != nil {
			return fmt.Errorf("the agent's boot file: %w", err)
		}
	}
	for _, argument := range o.KernelArguments {
		if !isPlainArgument(argument) {
			return fmt.Errorf("kernel argument %q: white space, control characters, \"${\", \"||\" and \"&&\" mean something else to iPXE", argument)
		}
	}
	return nil
}

// isBaseURL reports whether a path can be appended to the text, and the result be used in an iPXE script.
func isBaseURL(text string) bool {
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" {
		return false
	}
	return (base.Scheme == "http" || base.Scheme == "https") && !strings.HasSuffix(text, "/") && isPlainArgument(text)
}

// isPlainArgument reports whether iPXE passes the argument on without changing it.
func isPlainArgument(argument string) bool {
	for _, special := range []string{"${", "||", "&&"} {
		if strings.Contains(argument, special) {
			return false
		}
	}
	return argument != "" && !strings.ContainsFunc(argument, func(r rune) bool { return r <= ' ' || r > '~' })
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// withTimeout limits the time of a request whose body and answer are small.
func withTimeout(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		// A ResponseWriter without read deadlines (a recorder in a test) is served too; the context still limits the store.
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			http.Error(w, "the connection is gone", http.StatusServiceUnavailable)
			return
		}
		handler(w, r.WithContext(ctx))
	}
}

// signingKey reads the key that signs tokens and refuses one that is too short.
func (s *Service) signingKey(ctx context.Context) ([]byte, error) {
	key, err := s.options.Key(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the token key: %w", err)
	}
	if len(key) < minKeyBytes {
		return nil, fmt.Errorf("the token key has %d bytes, expected at least %d: look at its Secret", len(key), minKeyBytes)
	}
	return key, nil
}

func (s *Service) log(session Session) *slog.Logger {
	return s.options.Log.With("host", session.Namespace+"/"+session.Name, "attempt", session.Number)
}

// Session is the stored state of the current attempt of a host. Any replica can serve the host from it, and the next process can
// continue the attempt after the current one was killed.
type Session struct {
	// HostUID, Namespace and Name identify the host.
	HostUID, Namespace, Name string
	// BootMAC is the MAC address of the NIC that the host boots from over the network.
	BootMAC string
	// Work is what the attempt does.
	Work
	// Since is the time from which the attempt is wanted. Deadline is the time at which it fails.
	Since, Deadline time.Time
	// AttemptStatus is the status of the attempt, which an Observation contains. Number is 0 while the host has no attempt.
	hardware.AttemptStatus
	// StepAt is when the current step was entered.
	StepAt time.Time
	// BootWay is how the host was powered on for its current boot: BootMedia, BootPinned, or empty for the network.
	BootWay hardware.BootSource
	// ImageBoots is how many of Boots were with an image of the server's own, so that no boot document was served for them.
	ImageBoots int
	// SilentBoots are the last boots in a row by one way in which no agent has registered, in this attempt and the failed ones right before it.
	SilentBoots SilentBoots
	// BootOrder is the boot order that is to be put back at the BMC; nil: there is none.
	BootOrder []string
	// OpenedAt is when the host was powered on for this attempt. The boot service serves the host from OpenedAt until Deadline.
	OpenedAt time.Time
	// Agent is the agent that has registered in the current boot; the zero value until one has.
	Agent Agent
	// ConfigDriveAwaitedAt is when an agent asked first in this attempt for a config drive that was not written yet; zero until then.
	ConfigDriveAwaitedAt time.Time
	// KernelAwaited is the boot document whose kernel the server has not asked for yet; zero when it has, or when none was served.
	KernelAwaited KernelAwaited
	// KernelFetchedAt is when the server asked for the kernel of its current boot; zero until it has.
	KernelFetchedAt time.Time
	// Findings are what a person should know about the current attempt.
	Findings Findings
	// Inventory is the known hardware of the host; nil when nothing is known.
	Inventory *hardware.Inventory
	// KnownTPM is what is known of its TPM.
	KnownTPM hardware.KnownTPM
	// Disks are the disks that an erase must clear; nil when nothing is known.
	Disks *hardware.KnownDisks
}

// WithTimes returns the session with all its times as present returns them. Deadlines stay as long after what they count from as they are.
func (s Session) WithTimes(present func(time.Time) time.Time) Session {
	s.Deadline = s.Deadline.Add(present(s.Since).Sub(s.Since))
	if !s.StepDeadline.IsZero() {
		s.StepDeadline = s.StepDeadline.Add(present(s.StepAt).Sub(s.StepAt))
	}
	for _, at := range []*time.Time{
		&s.Since, &s.StepAt, &s.OpenedAt, &s.ConfigDriveAwaitedAt, &s.KernelAwaited.At, &s.KernelFetchedAt, &s.Agent.RegisteredAt, &s.Agent.HeardAt,
	} {
		*at = present(*at)
	}
	return s
}

// IsSettled reports whether the host has no attempt, or one that has succeeded, so that the server boots its disk.
func (s Session) IsSettled() bool {
	return s.Number <= 0 || s.Operation == "" || s.State == hardware.AttemptSucceeded || s.Step == hardware.StepFinishing
}

// Way returns the way of the current boot.
func (s Session) Way() hardware.BootSource { return cmp.Or(s.BootWay, hardware.BootNetwork) }

// SilentBoots are boots by one way in which no agent has registered. The zero value is none.
type SilentBoots struct {
	Way   hardware.BootSource
	Boots int
}

// Agent is the agent that owns a boot. The boot service serves no other one with the token of that boot.
type Agent struct {
	// KeyDigest is the SHA-256 digest of the agent's key in hexadecimal digits. The key itself is stored nowhere.
	KeyDigest string
	// Address is the address from which the agent registered. It is for people only: firmware, iPXE and the kernel of one server may
	// get different leases, and a neighbour can take any address.
	Address string
	// RegisteredAt is when the agent registered. HeardAt is when it was last heard, as far as that is stored.
	RegisteredAt, HeardAt time.Time
}

// isOpen reports whether the boot service serves the session's agent: the attempt is running, Ingot has powered the host on for it, and
// the deadline has not passed.
//
// Each part is a guard. Example for OpenedAt: an attempt begins while the old operating system still runs and reboots by itself before
// the power-off is confirmed. If the agent were served then, it would write to the disk and the BMC would cut the power in the middle.
func isOpen(session Session, now time.Time) bool {
	return session.Number > 0 && session.State == hardware.AttemptRunning &&
		!session.OpenedAt.IsZero() && !now.Before(session.OpenedAt) && now.Before(session.Deadline)
}

// Work is what an attempt does. All calls for one attempt must have the same Work.
type Work struct {
	// Operation is the operation of the agent.
	Operation hardware.Operation
	// Inspector is who reads the inventory, for Inspect.
	Inspector hardware.Inspector
	// Image and RootDevice are set for Install.
	Image      hardware.Image
	RootDevice hardware.RootDevice
	// GPUs are what the server must have for Install.
	GPUs hardware.RequiredGPUs
	// Requirements are what it must have beside them.
	Requirements hardware.Requirements
	// PreviousRootDisk and AcceptedRootDisk are those of hardware.InstallSpec.
	PreviousRootDisk hardware.Disk
	AcceptedRootDisk string
	// Erase is set for Erase.
	Erase hardware.EraseMode
}

// NeedsAgent reports whether the work boots the agent.
func (w Work) NeedsAgent() bool {
	return w.Operation != hardware.OpInspect || w.IsAgentInspection()
}

// IsAgentInspection reports whether the work is that the agent reads the inventory and does nothing else.
func (w Work) IsAgentInspection() bool {
	return w.Operation == hardware.OpInspect && w.Inspector == hardware.InspectByAgent
}

// IsSame reports whether the work is the same.
func (w Work) IsSame(other Work) bool { return reflect.DeepEqual(w, other) }

// Store stores Sessions and returns config drives. Its errors are *hardware.Error; an unknown host is NotFound.
type Store interface {
	// ByMAC returns the session of the host that boots with the MAC address (lower case, colons). Number is 0 for a host without an attempt.
	ByMAC(ctx context.Context, mac string) (Session, error)
	// CachedByMAC is cheaper than ByMAC. It includes what this process has written, but may lack recent writes of other replicas.
	CachedByMAC(ctx context.Context, mac string) (Session, error)
	// ByUID returns the session of the host with the UID.
	ByUID(ctx context.Context, hostUID string) (Session, error)
	// CachedByUID is cheaper than ByUID. It includes what this process has written, but may lack recent writes of other replicas.
	CachedByUID(ctx context.Context, hostUID string) (Session, error)
	// Update changes the session of the host under an optimistic lock. change is called with the latest session and may be called more
	// than once. Nothing is written when it returns an error or changes nothing.
	Update(ctx context.Context, hostUID string, change func(*Session) error) (Session, error)
	// ConfigDrive returns the documents for the attempt. It fails with Busy while they are not written yet, and with Conflict when the
	// host is at another attempt.
	ConfigDrive(ctx context.Context, hostUID string, attempt int64) (hardware.ConfigDrive, error)
}
