package netboot

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// kernelWait is how long after its boot document a server may ask for no kernel. iPXE asks at once; what takes long is an address at which
	// nobody answers.
	kernelWait = time.Minute
	// agentWait is how long after its kernel a server may register no agent. Loading takes seconds, a kernel with much memory a minute, and the agent says on
	// its console after 45 seconds what its network lacks.
	agentWait = 4 * time.Minute
	// noteTimeout limits the note that a kernel was asked for, which must not keep the server from its kernel.
	noteTimeout = 5 * time.Second
)

// KernelAwaited is a boot document whose kernel has not been asked for.
type KernelAwaited struct {
	// At is when the document was served.
	At time.Time
	// URL is the base URL of the files that it names.
	URL string
}

// bootRequest is a request for a boot document.
type bootRequest struct {
	// address is where it came from.
	address string
	// failure is what the server could not load with its last document.
	failure loadFailure
	// hasKernel means that the answer has the kernel in it, as an EFI program has.
	hasKernel bool
	// isForSize means that the server asks for the size of the answer only.
	isForSize bool
}

// loadFailure is what a boot script says in its request for a further boot document; the zero value: nothing failed.
type loadFailure struct {
	// file is kernel, initrd or boot.
	file string
	// errno is iPXE's error in hexadecimal digits; empty: it is not known.
	errno string
}

// errnoPattern is the form of iPXE's ${errno}, an unsigned 32-bit setting.
var errnoPattern = regexp.MustCompile("^0x[0-9a-fA-F]{1,8}$")

// loadFailureOf returns what the request says. Anybody on the provisioning network can make it, so only what a boot script would say is taken.
func loadFailureOf(r *http.Request) loadFailure {
	query := r.URL.Query()
	failure := loadFailure{file: query.Get("failed")}
	if failure.file != "kernel" && failure.file != "initrd" && failure.file != "boot" {
		return loadFailure{}
	}
	if errno := query.Get("errno"); errnoPattern.MatchString(errno) {
		failure.errno = errno[2:]
	}
	return failure
}

// addLoadFailure counts what the server could not load with the last boot document of the session.
func (s *Service) addLoadFailure(session *Session, request bootRequest, base string, now time.Time) {
	failure := request.failure
	if failure.file == "" || session.Boots == 0 {
		return
	}
	if session.KernelAwaited.URL != "" {
		base = session.KernelAwaited.URL // the NodeProvider may have been corrected since
	}
	cause := ""
	if failure.errno != "" {
		cause = " (iPXE's error, see https://ipxe.org/" + failure.errno + ")"
	}
	switch failure.file {
	case "boot":
		s.addFinding(&session.Findings.BootLoadFailed, now, "the server at %s loaded kernel and initrd from %s and could not start them%s: look at the boot service's files, and at Secure Boot", request.address, base, cause)
	default:
		s.addFinding(&session.Findings.BootLoadFailed, now, "the server at %s has its boot document and could not load the %s from %s%s: look whether the provisioning network reaches that address, "+
			"which is the NodeProvider's spec.redfish.netboot.address", request.address, failure.file, base, cause)
	}
}

// noteKernelRequest stores that the server of a boot document has asked for its kernel, and then serves it.
func (s *Service) noteKernelRequest(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		mac, macErr := ParseMAC(r.URL.Query().Get("mac"))
		boot, bootErr := strconv.Atoi(r.URL.Query().Get("boot"))
		if r.Method == http.MethodGet && macErr == nil && bootErr == nil {
			if err := s.endKernelWait(r.Context(), mac, boot); err != nil {
				s.options.Log.Warn("that a kernel was asked for is not stored", "mac", mac, "error", err)
			}
		}
		serve(w, r)
	}
}

// endKernelWait stores that the kernel of a boot was asked for. It writes at most once for each boot document.
func (s *Service) endKernelWait(ctx context.Context, mac string, boot int) error {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	session, err := s.options.Store.CachedByMAC(ctx, mac)
	if err == nil && session.Boots < boot { // another replica has answered with the boot document
		session, err = s.options.Store.ByMAC(ctx, mac)
	}
	if err != nil || session.Boots != boot || session.KernelAwaited == (KernelAwaited{}) {
		return err
	}
	now := s.options.Clock()
	_, err = s.options.Store.Update(ctx, session.HostUID, func(latest *Session) error {
		if latest.Number == session.Number && latest.Boots == boot && latest.KernelAwaited != (KernelAwaited{}) {
			latest.KernelAwaited, latest.KernelFetchedAt = KernelAwaited{}, now
		}
		return nil
	})
	return err
}

// MustReportMissingKernel reports whether the server got a boot document, asked for no kernel for a minute, and nobody was told yet. What came
// before the document proves nothing, so a server that never asked for one is not meant.
func (s Session) MustReportMissingKernel(now time.Time) bool {
	return s.State == hardware.AttemptRunning && s.Step == hardware.StepLoading && s.Findings.KernelNotRequested.Count == 0 &&
		!s.KernelAwaited.At.IsZero() && !now.Before(s.KernelAwaited.At.Add(kernelWait))
}

// AddKernelNotRequested adds the finding that MustReportMissingKernel is about.
func (s *Session) AddKernelNotRequested(now time.Time) {
	s.Findings.KernelNotRequested = Finding{Count: 1, At: now, Message: sanitizeText("the server got its boot document and has asked for no kernel for " + kernelWait.String() +
		": expected a request at " + s.KernelAwaited.URL + ": look whether the provisioning network reaches that address, which is the NodeProvider's spec.redfish.netboot.address")}
}

// MustReportMissingAgent reports whether the server fetched its kernel, no agent has registered for minutes, and nobody was told of this boot yet. The boot
// service hears nothing of an agent without a network, so that its console alone says why.
func (s Session) MustReportMissingAgent(now time.Time) bool {
	due := s.KernelFetchedAt.Add(agentWait)
	return s.State == hardware.AttemptRunning && s.Step == hardware.StepLoading && !s.KernelFetchedAt.IsZero() && !now.Before(due) && s.Findings.NoAgentRegistered.At.Before(due)
}

// AddNoAgentRegistered adds the finding that MustReportMissingAgent is about.
func (s *Session) AddNoAgentRegistered(now time.Time) {
	s.Findings.NoAgentRegistered = Finding{Count: s.Findings.NoAgentRegistered.Count + 1, At: now, Message: sanitizeText(fmt.Sprintf(
		"the server has booted the agent %d times in attempt %d, fetched the kernel last at %s, and no agent has registered for %s: look at its console, whose last page says what is missing: "+
			"a link, an address, a route, a name of the boot service that resolves, or a certificate that is trusted", s.Boots, s.Number, s.KernelFetchedAt.UTC().Format(time.RFC3339), agentWait))}
}
