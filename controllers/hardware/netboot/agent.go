package netboot

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// agentSteps are the steps that an agent may report as progress.
var agentSteps = []hardware.Step{hardware.StepRegistered, hardware.StepWriting, hardware.StepErasing, hardware.StepVerifying}

// agentReasons are the reasons with which an agent may fail. Only Ingot itself sets the others.
var agentReasons = []hardware.Reason{
	hardware.ReasonImageUnreachable, hardware.ReasonDigestMismatch, hardware.ReasonImageInvalid, hardware.ReasonNoRootDevice,
	hardware.ReasonDiskError,
}

// agentRequest is a request whose token was current when it arrived.
type agentRequest struct {
	*http.Request
	claims  claims
	session Session
	now     time.Time
	// keyDigest is the digest of the agent's key.
	keyDigest string
}

// withAuthorization passes a request to the handler only with a valid token of the current boot of a running attempt and with the key of
// the agent that registered with this token. The handler returns the body of the response; nil means no body.
func (s *Service) withAuthorization(handler func(agentRequest) (any, error)) http.HandlerFunc {
	return s.withToken(func(r agentRequest) (any, error) {
		if checkAgent(r.session, r.keyDigest) != nil {
			// As for the token, the cache may lack what another replica has just written.
			var err error
			if r.session, err = s.options.Store.ByUID(r.Context(), r.claims.hostUID); err != nil {
				return nil, err
			}
			if err := checkCurrent(r.session, r.claims, r.now); err != nil {
				return nil, err
			}
		}
		if err := checkAgent(r.session, r.keyDigest); err != nil {
			return nil, errors.Join(err, s.reportAnotherAgent(r))
		}
		return handler(r)
	})
}

// withToken passes a request to the handler only with a valid token of the current boot of a running attempt and with a key.
func (s *Service) withToken(handler func(agentRequest) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := s.handleWithToken(r, handler)
		if err != nil {
			s.writeRefusal(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		if body == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// This fails when the client is gone; it sends the request again.
		_ = json.NewEncoder(w).Encode(body)
	}
}

// handleWithToken checks the token of the request and calls the handler.
func (s *Service) handleWithToken(r *http.Request, handler func(agentRequest) (any, error)) (any, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, protocol.Refusalf(protocol.TokenInvalid, "expected a bearer token")
	}
	signingKey, err := s.signingKey(r.Context())
	if err != nil {
		return nil, err
	}
	now := s.options.Clock()
	claims, err := verifyToken(signingKey, token, now)
	if err != nil {
		return nil, err
	}
	keyDigest, err := agentKeyDigest(r)
	if err != nil {
		return nil, err
	}
	session, err := s.options.Store.CachedByUID(r.Context(), claims.hostUID)
	if err != nil || checkCurrent(session, claims, now) != nil {
		// The cache may lack what another replica has just written, such as this boot, so the store decides about a refusal.
		session, err = s.options.Store.ByUID(r.Context(), claims.hostUID)
	}
	if err != nil {
		return nil, err
	}
	if err := checkCurrent(session, claims, now); err != nil {
		return nil, err
	}
	return handler(agentRequest{Request: r, claims: claims, session: session, now: now, keyDigest: keyDigest})
}

// checkCurrent refuses a token that is not that of the session's current boot, or whose session is not open.
//
// Example: the server loses its power while the agent writes, and boots again. Requests of the first agent may still be on their way.
// If their tokens were accepted, the first agent could report a result for a disk that the second agent is writing. For the same reason
// no token counts from the time that the Installer begins to boot the server again until the server fetches its boot document.
func checkCurrent(session Session, c claims, now time.Time) error {
	if session.Number != c.attempt || int64(session.Boots) != c.boot {
		return protocol.Refusalf(protocol.TokenSuperseded, "the token is of attempt %d boot %d, the host is at attempt %d boot %d",
			c.attempt, c.boot, session.Number, session.Boots)
	}
	// A boot with an image of the server's own has a number of its own from the power-on, so that the token of an earlier boot has another one; and no boot document
	// tells that it has begun to load.
	if session.Step == hardware.StepPoweringOff || session.Step == hardware.StepBooting && !session.BootWay.HasOwnImage() {
		return protocol.Refusalf(protocol.TokenSuperseded, "the server is being booted again in attempt %d", session.Number)
	}
	if !isOpen(session, now) {
		return protocol.Refusalf(protocol.AttemptClosed, "attempt %d is %s and was open from %s to %s", session.Number, session.State,
			session.OpenedAt.UTC().Format(time.RFC3339), session.Deadline.UTC().Format(time.RFC3339))
	}
	return nil
}

// update changes the session if the token is current in the latest session and the agent is the one that has registered.
func (s *Service) update(r agentRequest, change func(*Session) error) (Session, error) {
	return s.options.Store.Update(r.Context(), r.claims.hostUID, func(session *Session) error {
		if err := checkCurrent(*session, r.claims, r.now); err != nil {
			return err
		}
		if err := checkAgent(*session, r.keyDigest); err != nil {
			return err
		}
		return change(session)
	})
}

func (s *Service) serveConfigDrive(r agentRequest) (any, error) {
	if r.session.Operation != hardware.OpInstall || r.session.Step == hardware.StepFinishing {
		return nil, protocol.Refusalf(protocol.BadRequest, "a config drive is served to an installation under way only")
	}
	drive, err := s.options.Store.ConfigDrive(r.Context(), r.claims.hostUID, r.claims.attempt)
	switch hardware.KindOf(err) {
	case hardware.Conflict:
		return nil, protocol.Refusalf(protocol.TokenSuperseded, "attempt %d is no longer the current one", r.claims.attempt)
	case hardware.Busy:
		return nil, s.awaitConfigDrive(r)
	}
	if err != nil {
		return nil, err
	}
	s.log(r.session).Info("config drive served", "boot", r.session.Boots)
	return protocol.ConfigDrive(drive), nil
}

// awaitConfigDrive stores that the agent waits for its config drive, and returns the refusal that has it ask again. The documents hold a
// credential of the tenant's cluster, so they are written for an agent that waits, and not before.
func (s *Service) awaitConfigDrive(r agentRequest) error {
	if r.session.ConfigDriveAwaitedAt.IsZero() {
		_, err := s.update(r, func(session *Session) error {
			if session.ConfigDriveAwaitedAt.IsZero() {
				session.ConfigDriveAwaitedAt = r.now
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return protocol.Refusalf(protocol.NotYet, "the config drive is not written yet, ask again")
}

func (s *Service) serveProgress(r agentRequest) (any, error) {
	var progress protocol.Progress
	if err := decodeBody(r, &progress); err != nil {
		return nil, err
	}
	if !slices.Contains(agentSteps, progress.Step) || progress.DoneBytes < 0 || progress.TotalBytes < 0 {
		return nil, protocol.Refusalf(protocol.BadRequest, "progress at step %q with %d of %d bytes makes no sense", progress.Step, progress.DoneBytes, progress.TotalBytes)
	}
	report := s.lastReport(r.session)
	isDue := report.isDue(r.session, progress, r.now, s.options.ProgressInterval)
	report.progress, report.receivedAt = progress, r.now
	if isDue {
		report.storedAt = r.now
	}
	s.keepReport(r.claims.hostUID, report)
	if !isDue {
		return nil, nil
	}
	_, err := s.update(r, func(session *Session) error {
		if err := checkNotFinished(session); err != nil {
			return err
		}
		s.setProgress(session, progress, r.now)
		return nil
	})
	return nil, err
}

// setProgress sets the progress of the session and the time at which the agent was heard. Each progress begins the agent's time-out again.
func (s *Service) setProgress(session *Session, progress protocol.Progress, now time.Time) {
	s.enterStep(session, progress.Step, now)
	session.StepDeadline = now.Add(s.options.Timeouts.OfStep(progress.Step))
	session.DoneBytes, session.TotalBytes = progress.DoneBytes, progress.TotalBytes
	session.Agent.HeardAt = now
}

// maxIntervals is the number of intervals after which progress is stored even when it is small or none, so that every replica knows
// that the agent is alive.
const maxIntervals = 6

// lastReport returns the last report that this replica received from the current boot of the session's host, or an empty one.
func (s *Service) lastReport(session Session) agentReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	report := s.reports[session.HostUID]
	if !report.isFrom(session) {
		report = agentReport{attempt: session.Number, boots: session.Boots}
	}
	for _, stored := range []time.Time{session.StepAt, session.Agent.HeardAt} {
		if stored.After(report.storedAt) {
			report.storedAt = stored
		}
	}
	return report
}

// isDue reports whether progress must be stored now. An agent reports every step at once and then every interval. Progress is stored at
// most once per interval, so a shorter step is stored with the next one. Bytes are stored by quarters, or after several intervals.
func (r agentReport) isDue(session Session, progress protocol.Progress, now time.Time, interval time.Duration) bool {
	sinceStored := now.Sub(r.storedAt)
	switch {
	case sinceStored < interval:
		return false
	case session.Step != progress.Step, session.TotalBytes != progress.TotalBytes, sinceStored >= maxIntervals*interval:
		return true
	}
	return progress.DoneBytes-session.DoneBytes >= max(progress.TotalBytes/4, 1)
}

// keepReport keeps the report of an agent in memory.
func (s *Service) keepReport(hostUID string, report agentReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports[hostUID] = report
}

// agentReport is the last report that this replica received from an agent.
type agentReport struct {
	attempt  int64
	boots    int
	progress protocol.Progress
	// receivedAt is when the progress was received, storedAt when progress was last stored.
	receivedAt, storedAt time.Time
}

// isFrom reports whether the report is from the session's current boot.
func (r agentReport) isFrom(session Session) bool {
	return r.attempt == session.Number && r.boots == session.Boots
}

// currentReport returns the last report with progress from the session's current boot, and whether there is one. It may be newer than the
// stored session. A result stores it, so that the step at which the agent failed and all bytes are included.
func (s *Service) currentReport(session Session) (report agentReport, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	report = s.reports[session.HostUID]
	return report, report.isFrom(session) && report.progress.Step != ""
}

func (s *Service) serveResult(r agentRequest) (any, error) {
	var result protocol.Result
	if err := decodeBody(r, &result); err != nil {
		return nil, err
	}
	if result.Reason != "" && !slices.Contains(agentReasons, result.Reason) {
		return nil, protocol.Refusalf(protocol.BadRequest, "reason %q is not the agent's to give", sanitizeText(string(result.Reason)))
	}
	if err := validateEvidence(result.Evidence); err != nil {
		return nil, err
	}
	session, err := s.update(r, func(session *Session) error { return s.recordResult(session, result, r.now) })
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.reports, session.HostUID)
	s.mu.Unlock()
	if s.options.Logs != nil {
		s.options.Logs.Finish(session.HostUID)
	}
	s.log(session).Info("agent finished", "operation", session.Operation, "step", session.Step, "reason", session.Reason, "message", session.Message)
	return nil, nil
}

// checkNotFinished refuses a request after the agent's successful result. It is called with the latest session. Example: the agent sends
// progress at Verifying, then its result, and the progress arrives last. Without this check the step would go back from Finishing to
// Verifying, and the installation would fail with AgentSilent although the server has booted its disk.
func checkNotFinished(session *Session) error {
	if session.Step == hardware.StepFinishing {
		return protocol.Refusalf(protocol.AttemptClosed, "attempt %d is done", session.Number)
	}
	return nil
}

// enterStep sets the step of the session, its time and its deadline. It changes nothing when the session is at the step.
func (s *Service) enterStep(session *Session, step hardware.Step, now time.Time) {
	if session.Step != step {
		session.Step, session.StepAt, session.StepDeadline = step, now, now.Add(s.options.Timeouts.OfStep(step))
	}
}

// maxItems is the number of items of each list that an agent may send: a server with all its slots full has some hundred PCI devices.
const maxItems = 1024

// decodeBody decodes the body of the request, and cleans its texts, because they are put into a status and a log.
func decodeBody(r agentRequest, into any) error {
	err := protocol.Decode(r.Body, protocol.MaxRequest, into)
	if err == nil {
		err = input.Clean(into, protocol.MaxMessage, maxItems)
	}
	if err != nil {
		return protocol.Refusalf(protocol.BadRequest, "%v", err)
	}
	return nil
}

// sanitizeText returns a message that quotes a server on one line, with the length that a message may have.
func sanitizeText(text string) string { return input.Line(text, protocol.MaxMessage) }

// writeRefusal writes the response to a request that is refused or fails.
func (s *Service) writeRefusal(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *protocol.Refusal
	switch {
	case errors.As(err, &refusal):
	case hardware.KindOf(err) == hardware.NotFound:
		refusal = protocol.Refusalf(protocol.AttemptClosed, "the host is not known any more")
	default:
		refusal = protocol.Refusalf(protocol.Unavailable, "the boot service cannot answer now, ask again")
	}
	// The cause is only logged: it may contain details that an unauthorized client must not learn.
	s.options.Log.Info("agent's request refused", "path", r.URL.Path, "code", refusal.Code, "from", r.RemoteAddr, "error", err)
	if refusal.Code.Status() == http.StatusServiceUnavailable {
		setRetryAfter(w, retryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(refusal.Code.Status())
	// This fails when the client is gone.
	_ = json.NewEncoder(w).Encode(refusal)
}
