package netboot

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
)

// maxBoots is the number of boot documents that one attempt may use. One more fails the attempt.
const maxBoots = 3

// exitScript lets the firmware continue with its next boot device.
const exitScript = "#!ipxe\nexit 1\n"

// holdScript prevents the server from booting its disk.
const holdScript = `#!ipxe
echo Ingot: this server must not boot its disk now
poweroff ||
:hold
sleep 60
goto hold
`

// waitIntervals is how many progress intervals a server waits that asks for a boot document while the agent of its host is at work: 30
// seconds by default, which is a part of the agent's silence.
const waitIntervals = 3

// scriptKind is one of the boot documents. The values appear in logs and metrics.
type scriptKind string

const (
	scriptExit scriptKind = "exit"
	scriptHold scriptKind = "hold"
	scriptBoot scriptKind = "boot"
	scriptWait scriptKind = "wait"
)

// serveBootDocument answers a request for a boot document.
func (s *Service) serveBootDocument(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		// A GET pattern also matches HEAD, which must not count as a boot.
		http.Error(w, "GET only", http.StatusMethodNotAllowed)
		return
	}
	mac, err := ParseMAC(r.PathValue("mac"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script, err := s.prepareBootDocument(r.Context(), mac, bootRequest{address: addressOf(r), failure: loadFailureOf(r)})
	if limited := (*limitedError)(nil); errors.As(err, &limited) {
		s.options.Count(EventLimited)
		refuseDocument(w, limited.wait)
		return
	}
	if err != nil {
		s.options.Log.Error("no boot document", "mac", mac, "error", err)
		refuseDocument(w, retryAfter)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// This fails when the client is gone; it requests the document again.
	_, _ = io.WriteString(w, script)
}

// refuseDocument asks the server to request the boot document again later. The status is 503, because iPXE gives up after any other error,
// and the firmware would then try the disk.
func refuseDocument(w http.ResponseWriter, wait time.Duration) {
	setRetryAfter(w, wait)
	http.Error(w, "the boot service cannot answer now, ask again", http.StatusServiceUnavailable)
}

// ceilSeconds returns the time in whole seconds, at least one.
func ceilSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// setRetryAfter sets the header Retry-After.
func setRetryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(ceilSeconds(wait)))
}

// limitedError is returned for a request that exceeds a limit.
type limitedError struct{ wait time.Duration }

// Error implements error.
func (e *limitedError) Error() string { return fmt.Sprintf("too many requests: wait %s", e.wait) }

// bootAnswer is what a server that asks what to boot gets.
type bootAnswer struct {
	kind    scriptKind
	session Session
	// key and settings are set for the kinds boot and wait.
	key      []byte
	settings HostSettings
	now      time.Time
}

// prepareBootDocument returns the boot document for the server with the MAC address, and counts the boot when it boots the agent.
func (s *Service) prepareBootDocument(ctx context.Context, mac string, request bootRequest) (string, error) {
	answer, err := s.answerBoot(ctx, mac, request)
	if err != nil {
		return "", err
	}
	switch answer.kind {
	case scriptBoot:
		return s.bootScript(answer.session, answer.key, answer.settings, answer.now), nil
	case scriptWait:
		return s.waitScript(answer.settings.URL, mac), nil
	case scriptHold:
		return holdScript, nil
	}
	return exitScript, nil
}

// answerBoot returns what the server with the MAC address boots, and counts the boot when it is the agent.
func (s *Service) answerBoot(ctx context.Context, mac string, request bootRequest) (bootAnswer, error) {
	now := s.options.Clock()
	wait, isKnown := s.limits.takeKnown(mac, now)
	if wait > 0 {
		return bootAnswer{}, &limitedError{wait}
	}
	session, err := s.options.Store.ByMAC(ctx, mac)
	if hardware.KindOf(err) == hardware.NotFound {
		return s.answerStranger(mac, request.address, now)
	}
	if !isKnown {
		s.limits.addHost(mac, now)
	}
	if err != nil {
		return bootAnswer{}, fmt.Errorf("finding the host: %w", err)
	}
	kind := s.scriptKindFor(session, mac, now)
	if request.isForSize {
		if kind == scriptBoot {
			kind = scriptHold
		}
		return bootAnswer{kind: kind, session: session}, nil
	}
	if kind == scriptBoot || kind == scriptWait {
		return s.answerOpen(ctx, session, mac, request, now)
	}
	return s.answerWithoutBoot(session, kind), nil
}

// answerStranger returns the answer for a server whose MAC address is nobody's.
func (s *Service) answerStranger(mac, address string, now time.Time) (bootAnswer, error) {
	s.limits.removeHost(mac)
	if wait := s.limits.takeStranger(now); wait > 0 {
		return bootAnswer{}, &limitedError{wait}
	}
	s.options.Count(EventStranger)
	s.options.NoteStranger(mac, address)
	// Anybody can ask with any address, so that a line for each would let a neighbour fill the log. The strangers are listed elsewhere.
	s.options.Log.Debug("a server that is nobody's asked for a boot document", "mac", mac, "from", address)
	return bootAnswer{kind: scriptExit}, nil
}

// answerOpen returns the answer for a server whose attempt is open.
func (s *Service) answerOpen(ctx context.Context, session Session, mac string, request bootRequest, now time.Time) (bootAnswer, error) {
	// Key and URL are read before the boot is counted. Otherwise a server whose document cannot be made would use up its boots
	// by asking again, and its attempt would fail with BootLoop.
	key, err := s.signingKey(ctx)
	if err != nil {
		return bootAnswer{}, err
	}
	settings, err := s.hostSettings(ctx, session)
	if err != nil {
		return bootAnswer{}, err
	}
	kind, address := scriptBoot, request.address
	session, err = s.options.Store.Update(ctx, session.HostUID, func(latest *Session) error {
		switch kind = s.scriptKindFor(*latest, mac, now); kind {
		case scriptBoot:
			s.addLoadFailure(latest, request, settings.URL, now)
			kind = s.countBoot(latest, request, settings.URL, now)
		case scriptWait:
			s.addFinding(&latest.Findings.BootRequestedAgain, now, "a boot document was requested from %s while the agent at %s, which registered at %s, is at work: "+
				"either the server has rebooted, or another server uses its MAC address %s; it is served when the agent is silent or the BMC reports a loss of power",
				address, latest.Agent.Address, latest.Agent.RegisteredAt.UTC().Format(time.RFC3339), mac)
		}
		return nil
	})
	if err != nil {
		return bootAnswer{}, fmt.Errorf("counting the boot: %w", err)
	}
	switch kind {
	case scriptBoot:
		s.options.Count(string(kind))
		s.log(session).Info("boot document served", "boot", session.Boots, "from", address)
	case scriptWait:
		s.options.Count(string(kind))
		s.log(session).Warn("boot document refused while the agent is at work", "boot", session.Boots, "from", address, "agent", session.Agent.Address)
	default:
		return s.answerWithoutBoot(session, kind), nil
	}
	return bootAnswer{kind: kind, session: session, key: key, settings: settings, now: now}, nil
}

// answerWithoutBoot returns an answer of a kind that boots no agent.
func (s *Service) answerWithoutBoot(session Session, kind scriptKind) bootAnswer {
	s.options.Count(string(kind))
	s.log(session).Info("boot document without a boot", "script", kind, "state", session.State, "reason", session.Reason)
	return bootAnswer{kind: kind, session: session}
}

// scriptKindFor returns the boot document for the server with the MAC address.
func (s *Service) scriptKindFor(session Session, mac string, now time.Time) scriptKind {
	switch {
	case session.BootMAC != mac, session.IsSettled():
		return scriptExit
	case session.BootWay.HasOwnImage() && isOpen(session, now):
		// The token is in the server's own image, which nobody gets who knows a MAC address only. A server that has not started its image must not
		// go on with its disk.
		return scriptHold
	case session.Step == hardware.StepPoweringOff && isOpen(session, now):
		// The power is cut because no agent came up, and the server is booted again.
		return scriptHold
	case isOpen(session, now) && s.isAgentAtWork(session, now):
		return scriptWait
	case isOpen(session, now):
		return scriptBoot
	case !session.NeedsAgent():
		return scriptExit
	case session.OpenedAt.IsZero():
		// Ingot has not powered the host on in this attempt, so the agent has not changed the disk.
		return scriptExit
	case session.State == hardware.AttemptFailed, !now.Before(session.Deadline):
		return scriptHold
	default:
		return scriptExit
	}
}

// countBoot counts one more boot document and returns the document to serve. It fails the attempt when there are too many. Who asked for one is
// known by an address only: another machine on the network may ask with the server's MAC address.
func (s *Service) countBoot(session *Session, request bootRequest, base string, now time.Time) scriptKind {
	address := request.address
	session.Boots++
	if session.Boots-session.ImageBoots > maxBoots {
		session.State, session.Reason = hardware.AttemptFailed, hardware.ReasonBootLoop
		agent := "no agent has registered with the last one"
		if session.Agent.Address != "" {
			agent = fmt.Sprintf("the agent that registered with the last one, at %s, came as far as %s", session.Agent.Address, session.Step)
		}
		for _, finding := range []Finding{session.Findings.BootLoadFailed, session.Findings.NoAgentRegistered} {
			if finding.Count > 0 {
				agent += "; " + finding.Message
			}
		}
		session.Message = sanitizeText(fmt.Sprintf("the boot document was served %d times in attempt %d without a result, and was asked for again from %s; %s: look at the server's console; "+
			"if the server did not boot that often, another machine asks with its MAC address %s (the log of the boot service has the address of every request)",
			maxBoots, session.Number, address, agent, session.BootMAC))
		return scriptHold
	}
	session.Channel = hardware.ChannelNetwork
	session.Step, session.StepAt, session.StepDeadline = hardware.StepLoading, now, now.Add(s.options.Timeouts.OfStep(hardware.StepLoading))
	session.Agent, session.KernelAwaited, session.KernelFetchedAt = Agent{}, KernelAwaited{At: now, URL: base}, time.Time{}
	if request.hasKernel {
		session.KernelAwaited, session.KernelFetchedAt = KernelAwaited{}, now
	}
	session.DoneBytes, session.TotalBytes = 0, 0
	return scriptBoot
}

// bootScript returns the iPXE script that boots the agent. When loading fails, the script requests the boot document again, and says what it
// could not load. This counts as a boot, so that repeated failures end with BootLoop and the disk is not booted.
//
// The request is relative to the address that the document came from (https://ipxe.org/cmd/imgexec), because that one leads here. Without it: the
// address of the NodeProvider is wrong, and the request that would say so goes to the wrong address too. ${errno} is iPXE's last error, of which
// https://ipxe.org/ has a page.
func (s *Service) bootScript(session Session, key []byte, settings HostSettings, now time.Time) string {
	arguments := append([]string{"initrd=initrd"}, s.agentArguments(session, key, settings, now)...)
	return fmt.Sprintf(`#!ipxe
set failed kernel
kernel %[1]s/files/kernel?mac=%[3]s&boot=%[4]d&arch=${buildarch} %[2]s || goto failed
set failed initrd
initrd --name initrd %[1]s/files/initrd?arch=${buildarch} || goto failed
set failed boot
boot || goto failed
:failed
set error ${errno}
:again
sleep 10
chain --replace --autofree /boot/%[3]s?failed=${failed}&errno=${error} ||
chain --replace --autofree %[1]s/boot/%[3]s || goto again
`, settings.URL, strings.Join(arguments, " "), session.BootMAC, session.Boots)
}

// agentArguments returns the kernel arguments of the agent for the current boot of the session. They hold the boot's token: never log them.
func (s *Service) agentArguments(session Session, key []byte, settings HostSettings, now time.Time) []string {
	line := cmdline.Arguments{
		URL: settings.agentURL(), Pins: settings.pins, Host: session.Namespace + "/" + session.Name, Attempt: session.Number, Time: now, Deadline: session.Deadline, Network: settings.Network,
		Token: signToken(key, claims{hostUID: session.HostUID, attempt: session.Number, boot: int64(session.Boots), expires: session.Deadline}),
	}
	line.Network.MAC = session.BootMAC
	return append(line.Words(), s.options.KernelArguments...)
}

// waitScript returns the iPXE script of a server that has to wait because the agent of its host is at work.
func (s *Service) waitScript(base, mac string) string {
	return fmt.Sprintf(`#!ipxe
echo Ingot: an agent of this server is at work; asking again in %[1]d seconds
:again
sleep %[1]d
chain --replace --autofree %[2]s/boot/%[3]s || goto again
`, ceilSeconds(waitIntervals*s.options.ProgressInterval), base, mac)
}

// hostSettings returns what is configured for the session's host, with the URL at which the host reaches this service.
func (s *Service) hostSettings(ctx context.Context, session Session) (HostSettings, error) {
	var settings HostSettings
	if s.options.HostSettings != nil {
		var err error
		if settings, err = s.options.HostSettings(ctx, session); err != nil {
			return settings, fmt.Errorf("finding the settings of %s/%s: %w", session.Namespace, session.Name, err)
		}
	}
	switch {
	case settings.URL == "":
		settings.URL = s.options.BaseURL
	case !isBaseURL(settings.URL):
		return settings, hardware.Errorf(hardware.Invalid, "serve a boot document", session.Namespace+"/"+session.Name,
			"the boot service's address %q does not make a URL: expected http://HOST:PORT", settings.URL)
	}
	return s.addPins(ctx, session, settings)
}

// addPins adds the pins for the agent's command line. An agent that could not check the certificate must not start, so without pins there are no settings.
func (s *Service) addPins(ctx context.Context, session Session, settings HostSettings) (HostSettings, error) {
	if settings.SecureURL == "" {
		return settings, nil
	}
	target := session.Namespace + "/" + session.Name
	if !isBaseURL(settings.SecureURL) || !strings.HasPrefix(settings.SecureURL, "https://") || s.options.Pins == nil {
		return settings, hardware.Errorf(hardware.Invalid, "serve a boot document", target, "the boot service's HTTPS address %q does not make a URL: expected https://HOST:PORT", settings.SecureURL)
	}
	var err error
	if settings.pins, err = s.options.Pins(ctx); err != nil {
		return settings, hardware.Errorf(hardware.Busy, "serve a boot document", target, "%w", err)
	}
	return settings, nil
}

// agentURL returns the URL of the boot service for the agent.
func (h HostSettings) agentURL() string { return cmp.Or(h.SecureURL, h.URL) }

// errMAC does not quote the malformed address, because any client may send it.
var errMAC = errors.New("not a MAC address: expected six octets like 0c:42:a1:00:00:01")

// addressOf returns the IP address that the request came from.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// ParseMAC parses a 48-bit MAC address with colons, hyphens or no separators, in any case, and returns it in lower case with colons.
func ParseMAC(text string) (string, error) {
	digits := text
	if len(text) == 17 {
		separator := text[2]
		if separator != ':' && separator != '-' {
			return "", errMAC
		}
		for i := 2; i < 17; i += 3 {
			if text[i] != separator {
				return "", errMAC
			}
		}
		digits = strings.ReplaceAll(text, string(separator), "")
	}
	octets, err := hex.DecodeString(digits)
	if err != nil || len(octets) != 6 {
		return "", errMAC
	}
	var out strings.Builder
	for i, octet := range octets {
		if i > 0 {
			out.WriteByte(':')
		}
		out.WriteString(hex.EncodeToString([]byte{octet}))
	}
	return out.String(), nil
}
