package netboot

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// mediaContext is part of what is signed for the URL of a medium, so that it is no agent's token, and the reverse.
const mediaContext = "ingot boot medium v1\x00"

// MediaURL returns the URL of the CD image for the boot of the session's attempt with the number. The URL is a secret: who has it gets the agent's
// token. It is valid until the attempt ends or a later boot begins, and it is the same at every call.
func (s *Service) MediaURL(ctx context.Context, session Session, boot int) (string, error) {
	target := session.Namespace + "/" + session.Name
	if s.options.Media == nil {
		return "", hardware.Errorf(hardware.Unsupported, "make a boot medium", target, "the boot service has no EFI stub, linuxx64.efi.stub, beside its kernel: make its files with --efi-stub, or set boot.efiStub of the manager's configuration")
	}
	// A medium that cannot be made is found now, and not by the BMC, which would report a server that does not answer.
	if _, err := s.options.Media(""); err != nil {
		return "", hardware.Errorf(hardware.Invalid, "make a boot medium", target, "%w", err)
	}
	key, err := s.signingKey(ctx)
	if err != nil {
		return "", err
	}
	settings, err := s.hostSettings(ctx, session)
	if err != nil {
		return "", err
	}
	secret := signClaims(key, mediaContext, claims{hostUID: session.HostUID, attempt: session.Number, boot: int64(boot), expires: session.Deadline})
	return settings.URL + "/media/" + secret + "/" + hardware.MediaFileName, nil
}

// serveMedia serves the CD image of one boot of one attempt to a BMC, which reads it in parts. Nothing of it is stored: every request makes the same
// bytes from the session and the key. A URL that is not valid is answered like one that does not exist.
func (s *Service) serveMedia(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	now := s.options.Clock()
	key, err := s.signingKey(ctx)
	if err != nil {
		s.options.Log.Error("a boot medium cannot be served", "error", err)
		refuseDocument(w, retryAfter)
		return
	}
	claims, err := verifyClaims(key, mediaContext, r.PathValue("secret"), now)
	if err != nil || s.options.Media == nil {
		http.NotFound(w, r)
		return
	}
	session, err := s.options.Store.CachedByUID(ctx, claims.hostUID)
	if hardware.KindOf(err) == hardware.NotFound || err == nil && !isMediumCurrent(session, claims, now) {
		http.NotFound(w, r)
		return
	}
	if err == nil {
		err = s.writeMedium(ctx, w, r, session, key, int(claims.boot))
	}
	if err != nil {
		s.log(session).Error("a boot medium cannot be served", "error", err)
		refuseDocument(w, retryAfter)
	}
}

// isMediumCurrent reports whether the medium is that of the session's current boot, or of the next one: it is inserted before the boot is stored,
// and the BMC reads it at once.
func isMediumCurrent(session Session, c claims, now time.Time) bool {
	return session.Number == c.attempt && session.State == hardware.AttemptRunning && !session.IsSettled() && now.Before(session.Deadline) &&
		(c.boot == int64(session.Boots) || c.boot == int64(session.Boots)+1)
}

// writeMedium answers with the parts of the image that were asked for. The time on the command line is the begin of the attempt, because every
// request must get the same bytes.
func (s *Service) writeMedium(ctx context.Context, w http.ResponseWriter, r *http.Request, session Session, key []byte, boot int) error {
	settings, err := s.hostSettings(ctx, session)
	if err != nil {
		return err
	}
	session.Boots = boot
	image, err := s.options.Media(strings.Join(s.agentArguments(session, key, settings, session.Since), " "))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, image)
	return nil
}
