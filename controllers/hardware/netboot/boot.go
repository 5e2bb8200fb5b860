package netboot

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// maxBoots is how many boot documents one attempt may use; the next one fails it.
const maxBoots = 3

// leaveScript lets the firmware go on with its next boot device.
const leaveScript = "#!ipxe\nexit 1\n"

// holdScript keeps a server from booting what is on its disk.
const holdScript = `#!ipxe
echo Ingot: the last attempt on this server failed; its disk is not booted
poweroff ||
:hold
sleep 60
goto hold
`

// answer is what a boot request gets.
type answer int

const (
	answerLeave answer = iota
	answerHold
	answerBoot
)

func (s *Service) routes() {
	s.mux.HandleFunc("GET /boot/{mac}", bounded(s.serveBoot))
	s.mux.HandleFunc("GET /files/kernel", s.serveFile(s.options.Kernel))
	s.mux.HandleFunc("GET /files/initrd", s.serveFile(s.options.Initrd))
	s.mux.HandleFunc("POST "+protocol.PathRegister, bounded(s.authorized(s.serveRegister)))
	s.mux.HandleFunc("GET "+protocol.PathConfigDrive, bounded(s.authorized(s.serveConfigDrive)))
	s.mux.HandleFunc("POST "+protocol.PathProgress, bounded(s.authorized(s.serveProgress)))
	s.mux.HandleFunc("POST "+protocol.PathResult, bounded(s.authorized(s.serveResult)))
}

func (s *Service) serveFile(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFileFS(w, r, s.options.Files, name)
	}
}

// serveBoot answers a request for a boot document.
func (s *Service) serveBoot(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		// A GET pattern also takes HEAD, which must not count as a boot.
		http.Error(w, "GET only", http.StatusMethodNotAllowed)
		return
	}
	mac, err := ParseMAC(r.PathValue("mac"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script, err := s.bootDocument(r.Context(), mac)
	if err != nil {
		s.options.Log.Error("no boot document", "mac", mac, "error", err)
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "the boot service cannot answer now, ask again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// The client is gone when this fails; it asks again.
	_, _ = io.WriteString(w, script)
}

// bootDocument decides what the server with the MAC boots and counts the boot.
func (s *Service) bootDocument(ctx context.Context, mac string) (string, error) {
	session, err := s.options.Store.ByMAC(ctx, mac)
	if hardware.KindOf(err) == hardware.NotFound {
		s.options.Log.Info("a server that is nobody's asked for a boot document", "mac", mac)
		return leaveScript, nil
	}
	if err != nil {
		return "", fmt.Errorf("finding the host: %w", err)
	}
	now := s.options.Clock()
	verdict := answerFor(session, mac, now)
	if verdict == answerBoot {
		// Key and address come first: a boot that cannot be signed, or whose agent could not call, must not count.
		key, err := s.key(ctx)
		if err != nil {
			return "", err
		}
		base, err := s.urlFor(ctx, session)
		if err != nil {
			return "", err
		}
		session, err = s.options.Store.Update(ctx, session.HostUID, func(newest *Session) error {
			if verdict = answerFor(*newest, mac, now); verdict == answerBoot {
				verdict = countBoot(newest, now)
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("counting the boot: %w", err)
		}
		if verdict == answerBoot {
			s.log(session).Info("boot document served", "boot", session.Boots)
			return s.bootScript(session, key, base), nil
		}
	}
	s.log(session).Info("boot document without a boot", "hold", verdict == answerHold, "state", session.State, "reason", session.Reason)
	if verdict == answerHold {
		return holdScript, nil
	}
	return leaveScript, nil
}

// answerFor decides which of the three scripts the server gets.
func answerFor(session Session, mac string, now time.Time) answer {
	switch {
	case session.BootMAC != mac, session.Number <= 0, session.Operation == "":
		return answerLeave
	case open(session, now) && session.Step != hardware.StepFinishing:
		return answerBoot
	case session.Operation == hardware.OpInspect, session.State == hardware.AttemptSucceeded, session.Step == hardware.StepFinishing:
		return answerLeave
	case session.OpenedAt.IsZero():
		// The disk is as it was before the attempt: we never powered the host on to change it.
		return answerLeave
	case session.State == hardware.AttemptFailed, !now.Before(session.Deadline):
		return answerHold
	default:
		return answerLeave
	}
}

// countBoot counts one more boot document and fails the attempt when they are too many.
func countBoot(session *Session, now time.Time) answer {
	session.Boots++
	if session.Boots > maxBoots {
		session.State, session.Reason = hardware.AttemptFailed, hardware.ReasonBootLoop
		session.Message = fmt.Sprintf("the agent was booted %d times in attempt %d without a result, the last time it came as far as %s: "+
			"look at the server's console", maxBoots, session.Number, session.Step)
		return answerHold
	}
	session.Step, session.StepAt = hardware.StepLoading, now
	session.DoneBytes, session.TotalBytes = 0, 0
	return answerBoot
}

// bootScript is the iPXE script that boots the agent. A load that fails asks for the document again: that counts, and
// so ends as BootLoop instead of booting whatever is on the disk.
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

// urlFor returns where the session's host reaches this service.
func (s *Service) urlFor(ctx context.Context, session Session) (string, error) {
	if s.options.HostURL == nil {
		return s.options.BaseURL, nil
	}
	url, err := s.options.HostURL(ctx, session)
	switch {
	case err != nil:
		return "", fmt.Errorf("finding the boot service's address for %s/%s: %w", session.Namespace, session.Name, err)
	case url == "":
		return s.options.BaseURL, nil
	case !baseURL(url):
		return "", hardware.Errorf(hardware.Invalid, "serve a boot document", session.Namespace+"/"+session.Name,
			"the boot service's address %q does not make a URL: expected http://HOST:PORT", url)
	}
	return url, nil
}
