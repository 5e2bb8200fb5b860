package netboot

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// maxBoots is the number of boot documents that one attempt may use. One more fails the attempt.
const maxBoots = 3

// exitScript lets the firmware continue with its next boot device.
const exitScript = "#!ipxe\nexit 1\n"

// holdScript prevents the server from booting its disk.
const holdScript = `#!ipxe
echo Ingot: the last attempt on this server failed; its disk is not booted
poweroff ||
:hold
sleep 60
goto hold
`

// scriptKind is one of the three boot documents.
type scriptKind int

const (
	scriptExit scriptKind = iota
	scriptHold
	scriptBoot
)

func (s *Service) serveFile(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFileFS(w, r, s.options.Files, name)
	}
}

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
	script, err := s.prepareBootDocument(r.Context(), mac)
	if err != nil {
		s.options.Log.Error("no boot document", "mac", mac, "error", err)
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "the boot service cannot answer now, ask again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// This fails when the client is gone; it requests the document again.
	_, _ = io.WriteString(w, script)
}

// prepareBootDocument returns the boot document for the server with the MAC address, and counts the boot when it boots the agent.
func (s *Service) prepareBootDocument(ctx context.Context, mac string) (string, error) {
	session, err := s.options.Store.ByMAC(ctx, mac)
	if hardware.KindOf(err) == hardware.NotFound {
		s.options.Log.Info("a server that is nobody's asked for a boot document", "mac", mac)
		return exitScript, nil
	}
	if err != nil {
		return "", fmt.Errorf("finding the host: %w", err)
	}
	now := s.options.Clock()
	kind := scriptKindFor(session, mac, now)
	if kind == scriptBoot {
		// Key and URL are read before the boot is counted. Otherwise a server whose document cannot be made would use up its boots
		// by asking again, and its attempt would fail with BootLoop.
		key, err := s.signingKey(ctx)
		if err != nil {
			return "", err
		}
		base, err := s.serviceURL(ctx, session)
		if err != nil {
			return "", err
		}
		session, err = s.options.Store.Update(ctx, session.HostUID, func(latest *Session) error {
			if kind = scriptKindFor(*latest, mac, now); kind == scriptBoot {
				kind = countBoot(latest, now)
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("counting the boot: %w", err)
		}
		if kind == scriptBoot {
			s.log(session).Info("boot document served", "boot", session.Boots)
			return s.bootScript(session, key, base), nil
		}
	}
	s.log(session).Info("boot document without a boot", "hold", kind == scriptHold, "state", session.State, "reason", session.Reason)
	if kind == scriptHold {
		return holdScript, nil
	}
	return exitScript, nil
}

// scriptKindFor returns the boot document for the server with the MAC address.
func scriptKindFor(session Session, mac string, now time.Time) scriptKind {
	switch {
	case session.BootMAC != mac, session.Number <= 0, session.Operation == "":
		return scriptExit
	case isOpen(session, now) && session.Step != hardware.StepFinishing:
		return scriptBoot
	case session.Operation == hardware.OpInspect, session.State == hardware.AttemptSucceeded, session.Step == hardware.StepFinishing:
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

// countBoot counts one more boot document and returns the document to serve. It fails the attempt when there are too many.
func countBoot(session *Session, now time.Time) scriptKind {
	session.Boots++
	if session.Boots > maxBoots {
		session.State, session.Reason = hardware.AttemptFailed, hardware.ReasonBootLoop
		session.Message = fmt.Sprintf("the agent was booted %d times in attempt %d without a result, the last time it came as far as %s: "+
			"look at the server's console", maxBoots, session.Number, session.Step)
		return scriptHold
	}
	session.Step, session.StepAt = hardware.StepLoading, now
	session.DoneBytes, session.TotalBytes = 0, 0
	return scriptBoot
}

// bootScript returns the iPXE script that boots the agent. When loading fails, the script requests the boot document again. This
// counts as a boot, so that repeated failures end with BootLoop and the disk is not booted.
func (s *Service) bootScript(session Session, key []byte, base string) string {
	token := signToken(key, claims{hostUID: session.HostUID, attempt: session.Number, boot: int64(session.Boots), expires: session.Deadline})
	arguments := append([]string{"initrd=initrd", protocol.ArgURL + "=" + base, protocol.ArgToken + "=" + token}, s.options.KernelArguments...)
	return fmt.Sprintf(`#!ipxe
kernel %[1]s/files/kernel %[2]s || goto again
initrd --name initrd %[1]s/files/initrd || goto again
boot || goto again
:again
sleep 10
chain --replace --autofree %[1]s/boot/%[3]s || goto again
`, base, strings.Join(arguments, " "), session.BootMAC)
}

// serviceURL returns the URL at which the session's host reaches this service.
func (s *Service) serviceURL(ctx context.Context, session Session) (string, error) {
	if s.options.HostURL == nil {
		return s.options.BaseURL, nil
	}
	url, err := s.options.HostURL(ctx, session)
	switch {
	case err != nil:
		return "", fmt.Errorf("finding the boot service's address for %s/%s: %w", session.Namespace, session.Name, err)
	case url == "":
		return s.options.BaseURL, nil
	case !isBaseURL(url):
		return "", hardware.Errorf(hardware.Invalid, "serve a boot document", session.Namespace+"/"+session.Name,
			"the boot service's address %q does not make a URL: expected http://HOST:PORT", url)
	}
	return url, nil
}

// errMAC does not quote the malformed address, because any client may send it.
var errMAC = errors.New("not a MAC address: expected six octets like 0c:42:a1:00:00:01")

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
