package netboot

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// agentSteps are the steps an agent may report as progress.
var agentSteps = []hardware.Step{hardware.StepRegistered, hardware.StepWriting, hardware.StepErasing, hardware.StepVerifying}

// agentReasons are the reasons an agent may fail with; the others are ours to find.
var agentReasons = []hardware.Reason{
	hardware.ReasonImageUnreachable, hardware.ReasonDigestMismatch, hardware.ReasonImageInvalid, hardware.ReasonNoRootDevice, hardware.ReasonDiskError,
}

// agentRequest is a request whose token was current when it came in.
type agentRequest struct {
	*http.Request
	claims  claims
	session Session
	now     time.Time
}

// authorized lets a request through only with a valid token of the current boot of a running attempt.
// The handler returns the body of the answer, nil for none.
func (s *Service) authorized(handler func(agentRequest) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := s.authorize(r, handler)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		if body == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// The client is gone when this fails; it asks again.
		_ = json.NewEncoder(w).Encode(body)
	}
}

func (s *Service) authorize(r *http.Request, handler func(agentRequest) (any, error)) (any, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, protocol.Refuse(protocol.TokenInvalid, "expected a bearer token")
	}
	key, err := s.key(r.Context())
	if err != nil {
		return nil, err
	}
	now := s.options.Clock()
	claims, err := verifyToken(key, token, now)
	if err != nil {
		return nil, err
	}
	session, err := s.options.Store.CachedByUID(r.Context(), claims.hostUID)
	if err != nil || current(session, claims, now) != nil {
		// Nobody is refused for what another replica has written since.
		session, err = s.options.Store.ByUID(r.Context(), claims.hostUID)
	}
	if err != nil {
		return nil, err
	}
	if err := current(session, claims, now); err != nil {
		return nil, err
	}
	return handler(agentRequest{Request: r, claims: claims, session: session, now: now})
}

// current says whether the token's claims are the session's.
func current(session Session, c claims, now time.Time) error {
	if session.Number != c.attempt || int64(session.Boots) != c.boot {
		return protocol.Refuse(protocol.TokenSuperseded, "the token is of attempt %d boot %d, the host is at attempt %d boot %d",
			c.attempt, c.boot, session.Number, session.Boots)
	}
	if !open(session, now) {
		return protocol.Refuse(protocol.AttemptClosed, "attempt %d is %s and was open from %s to %s", session.Number, session.State,
			session.OpenedAt.UTC().Format(time.RFC3339), session.Deadline.UTC().Format(time.RFC3339))
	}
	return nil
}

// update changes the session, provided that the token is still current in its newest state.
func (s *Service) update(r agentRequest, change func(*Session) error) (Session, error) {
	return s.options.Store.Update(r.Context(), r.claims.hostUID, func(session *Session) error {
		if err := current(*session, r.claims, r.now); err != nil {
			return err
		}
		return change(session)
	})
}

func (s *Service) serveRegister(r agentRequest) (any, error) {
	var registration protocol.Registration
	if err := decode(r, &registration); err != nil {
		return nil, err
	}
	// The newest state decides, and nothing is written: what the agent has said goes with its next report, or with its result.
	session, err := s.options.Store.ByUID(r.Context(), r.claims.hostUID)
	if err != nil {
		return nil, err
	}
	if err := current(session, r.claims, r.now); err != nil {
		return nil, err
	}
	if err := refusalOfFinished(&session); err != nil {
		return nil, err
	}
	// It is kept until it is written with something else.
	s.rememberReport(session.HostUID, report{
		attempt: session.Number, boots: session.Boots, inventory: &registration.Inventory, heard: r.now, written: session.StepAt,
		progress: protocol.Progress{Step: hardware.StepRegistered},
	})
	s.log(session).Info("agent registered", "boot", session.Boots, "operation", session.Operation)
	instructions := protocol.Instructions{
		Attempt: session.Number, Operation: session.Operation, RootDevice: session.RootDevice, Erase: session.Erase,
		ProgressMillis:  s.options.ProgressInterval.Milliseconds(),
		RemainingMillis: session.Deadline.Sub(r.now).Milliseconds(),
	}
	if session.Operation == hardware.OpInstall {
		image := protocol.Image(session.Image)
		instructions.Image = &image
	}
	return instructions, nil
}

func (s *Service) serveConfigDrive(r agentRequest) (any, error) {
	if r.session.Operation != hardware.OpInstall || r.session.Step == hardware.StepFinishing {
		return nil, protocol.Refuse(protocol.BadRequest, "a config drive is served to an installation under way only")
	}
	drive, err := s.options.Store.ConfigDrive(r.Context(), r.claims.hostUID, r.claims.attempt)
	if hardware.KindOf(err) == hardware.Conflict {
		return nil, protocol.Refuse(protocol.TokenSuperseded, "attempt %d is no longer the current one", r.claims.attempt)
	}
	if err != nil {
		return nil, err
	}
	s.log(r.session).Info("config drive served", "boot", r.session.Boots)
	return protocol.ConfigDrive(drive), nil
}

func (s *Service) serveProgress(r agentRequest) (any, error) {
	var progress protocol.Progress
	if err := decode(r, &progress); err != nil {
		return nil, err
	}
	if !slices.Contains(agentSteps, progress.Step) || progress.DoneBytes < 0 || progress.TotalBytes < 0 {
		return nil, protocol.Refuse(protocol.BadRequest, "progress at step %q with %d of %d bytes makes no sense", progress.Step, progress.DoneBytes, progress.TotalBytes)
	}
	last := s.lastReport(r.session)
	isDue := last.isDue(r.session, progress, r.now, s.options.ProgressInterval)
	last.progress, last.heard = progress, r.now
	if isDue {
		last.written = r.now
	}
	s.rememberReport(r.claims.hostUID, last)
	if !isDue {
		return nil, nil
	}
	_, err := s.update(r, func(session *Session) error {
		if err := refusalOfFinished(session); err != nil {
			return err
		}
		s.noteProgress(session, progress, r.now)
		return nil
	})
	if err == nil {
		s.forgetInventory(r.claims.hostUID)
	}
	return nil, err
}

// noteProgress enters into the session what its agent reported last, and what it found when it registered.
func (s *Service) noteProgress(session *Session, progress protocol.Progress, now time.Time) {
	enter(session, progress.Step, now)
	session.DoneBytes, session.TotalBytes = progress.DoneBytes, progress.TotalBytes
	if last, known := s.heard(*session); known && last.inventory != nil {
		session.Inventory = last.inventory
	}
}

// forgetInventory ends the memory of an inventory that is written.
func (s *Service) forgetInventory(hostUID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.reported[hostUID]; known {
		last.inventory = nil
		s.reported[hostUID] = last
	}
}

// keepAlive is after how many intervals progress is written however little it is: what waits for a sign of life waits for
// minutes.
const keepAlive = 6

// lastReport is what this replica last heard of the current boot of the session's host.
func (s *Service) lastReport(session Session) report {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.reported[session.HostUID]
	if !last.of(session) {
		last = report{attempt: session.Number, boots: session.Boots}
	}
	if session.StepAt.After(last.written) {
		last.written = session.StepAt
	}
	return last
}

// isDue says whether progress is worth a write now. An agent reports every step at once and again every interval: a step that takes
// less is told with the next one. Of the bytes a quarter at a time is told, or what several intervals brought.
func (r report) isDue(session Session, progress protocol.Progress, now time.Time, interval time.Duration) bool {
	since := now.Sub(r.written)
	switch {
	case since < interval:
		return false
	case session.Step != progress.Step, session.TotalBytes != progress.TotalBytes, since >= keepAlive*interval:
		return true
	}
	return progress.DoneBytes-session.DoneBytes >= max(progress.TotalBytes/4, 1)
}

// rememberReport keeps what was heard of an agent.
func (s *Service) rememberReport(hostUID string, last report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported[hostUID] = last
}

// report is what this replica last heard of an agent.
type report struct {
	attempt  int64
	boots    int
	progress protocol.Progress
	// heard is when progress was reported, written when it was last written.
	heard, written time.Time
	// inventory is what the agent found; nil once it is written.
	inventory *hardware.Inventory
}

// of says whether the report is of the session's current boot.
func (r report) of(session Session) bool {
	return r.attempt == session.Number && r.boots == session.Boots
}

// heard is what an agent reported last, so that the step is named at which it failed, and the last byte counts.
func (s *Service) heard(session Session) (report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.reported[session.HostUID]
	return last, last.of(session) && last.progress.Step != ""
}

func (s *Service) serveResult(r agentRequest) (any, error) {
	var result protocol.Result
	if err := decode(r, &result); err != nil {
		return nil, err
	}
	if result.Reason != "" && !slices.Contains(agentReasons, result.Reason) {
		return nil, protocol.Refuse(protocol.BadRequest, "reason %q is not the agent's to give", printable(string(result.Reason)))
	}
	session, err := s.update(r, func(session *Session) error {
		finished := refusalOfFinished(session)
		// Another replica may have heard more, and written it.
		if last, known := s.heard(*session); known && finished == nil && !last.heard.Before(session.StepAt) {
			s.noteProgress(session, last.progress, r.now)
		}
		if result.Inventory != nil && finished == nil {
			session.Inventory = result.Inventory // whichever replica the agent registered with
		}
		if result.Reason == "" {
			enter(session, hardware.StepFinishing, r.now)
			return nil
		}
		if finished != nil {
			return finished
		}
		session.State, session.Reason, session.Message = hardware.AttemptFailed, result.Reason, printable(result.Message)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.reported, session.HostUID)
	s.mu.Unlock()
	s.log(session).Info("agent finished", "operation", session.Operation, "step", session.Step, "reason", session.Reason, "message", session.Message)
	return nil, nil
}

// refusalOfFinished refuses what comes after the agent's good result: a request that was under way meanwhile must not take the
// attempt back. It is asked of the newest state.
func refusalOfFinished(session *Session) error {
	if session.Step == hardware.StepFinishing {
		return protocol.Refuse(protocol.AttemptClosed, "attempt %d is done", session.Number)
	}
	return nil
}

// enter moves the session to the step and remembers when; being there already changes nothing.
func enter(session *Session, step hardware.Step, now time.Time) {
	if session.Step != step {
		session.Step, session.StepAt = step, now
	}
}

// decode reads the body of the request.
func decode(r agentRequest, into any) error {
	if err := protocol.Decode(r.Body, protocol.MaxRequest, into); err != nil {
		return protocol.Refuse(protocol.BadRequest, "%v", err)
	}
	return nil
}

// printable bounds a text from a server and takes control characters out, so that it is fit for a status and a log.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	if len(text) > protocol.MaxMessage {
		text = strings.ToValidUTF8(text[:protocol.MaxMessage], "")
	}
	return text
}

// refuse writes the answer to a request that is not served.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *protocol.Refusal
	switch {
	case errors.As(err, &refusal):
	case hardware.KindOf(err) == hardware.NotFound:
		refusal = protocol.Refuse(protocol.AttemptClosed, "the host is not known any more")
	default:
		refusal = protocol.Refuse(protocol.Unavailable, "the boot service cannot answer now, ask again")
	}
	// The cause is for our log only: it may name what a stranger need not know.
	s.options.Log.Info("agent's request refused", "path", r.URL.Path, "code", refusal.Code, "from", r.RemoteAddr, "error", err)
	if refusal.Code == protocol.Unavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(refusal.Code.Status())
	// The client is gone when this fails.
	_ = json.NewEncoder(w).Encode(refusal)
}

func (s *Service) log(session Session) *slog.Logger {
	return s.options.Log.With("host", session.Namespace+"/"+session.Name, "attempt", session.Number)
}
