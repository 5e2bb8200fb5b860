package netboot

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// ownImage is a kind of images that are made for one boot of one server.
type ownImage struct {
	// context is part of what is signed for the URL of an image, so that it is no agent's token, nor the URL of another kind.
	context string
	// file is the last part of the URL, and contentType what is told to firmware (EDK II takes an EFI program by either).
	file, contentType string
	// maker returns the function that makes the image with the kernel command line; nil: none are made.
	maker func(BootFiles) func(commandLine string) (io.ReadSeeker, error)
}

// medium is the CD image that a BMC presents to the server.
func (s *Service) medium() ownImage {
	return ownImage{context: "ingot boot medium v1\x00", file: hardware.MediaFileName, contentType: "application/octet-stream", maker: func(f BootFiles) func(string) (io.ReadSeeker, error) { return f.Media }}
}

// program is the EFI program that the server's firmware loads from a pinned URL.
func (s *Service) program() ownImage {
	return ownImage{context: "ingot boot program v1\x00", file: hardware.PinnedFileName, contentType: contentTypeEFI, maker: func(f BootFiles) func(string) (io.ReadSeeker, error) { return f.Program }}
}

// MediaURLs returns the URLs of the CD image for the boot of the session's attempt with the number, by HTTP and by HTTPS. They are secrets: who has one
// gets the agent's token. They are valid until the attempt ends or a later boot begins, and they are the same at every call. secure is empty where the
// host has no HTTPS.
func (s *Service) MediaURLs(ctx context.Context, session Session, boot int) (plain, secure string, err error) {
	return s.imageURLs(ctx, s.medium(), session, boot)
}

// ProgramURLs returns the URLs of the EFI program for the boot, which are like those of MediaURLs.
func (s *Service) ProgramURLs(ctx context.Context, session Session, boot int) (plain, secure string, err error) {
	return s.imageURLs(ctx, s.program(), session, boot)
}

func (s *Service) imageURLs(ctx context.Context, image ownImage, session Session, boot int) (plain, secure string, err error) {
	path, settings, err := s.imagePath(ctx, image, session, boot)
	if settings.SecureURL != "" {
		secure = settings.SecureURL + path
	}
	return settings.URL + path, secure, err
}

// imagePath returns the path of an image for one boot, and the settings of its host.
func (s *Service) imagePath(ctx context.Context, image ownImage, session Session, boot int) (string, HostSettings, error) {
	const op = "make a boot image"
	target := session.Namespace + "/" + session.Name
	make := image.maker(s.filesOf(session))
	if make == nil {
		return "", HostSettings{}, hardware.Errorf(hardware.Unsupported, op, target, "%s", noProgram(session))
	}
	// An image that cannot be made is found now, and not by the BMC, which would report a server that does not answer.
	if _, err := make(""); err != nil {
		return "", HostSettings{}, hardware.Errorf(hardware.Invalid, op, target, "%w", err)
	}
	key, err := s.signingKey(ctx)
	if err != nil {
		return "", HostSettings{}, err
	}
	settings, err := s.hostSettings(ctx, session)
	if err != nil {
		return "", HostSettings{}, err
	}
	secret := signClaims(key, image.context, claims{hostUID: session.HostUID, attempt: session.Number, boot: int64(boot), expires: session.Deadline})
	return "/media/" + secret + "/" + image.file, settings, nil
}

// serveImage serves the image of one boot of one attempt to a BMC, which reads it in parts, or to firmware. Nothing of it is stored: every request
// makes the same bytes from the session and the key. A URL that is not valid is answered like one that does not exist.
func (s *Service) serveImage(image ownImage) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		now := s.options.Clock()
		key, err := s.signingKey(ctx)
		if err != nil {
			s.options.Log.Error("a boot image cannot be served", "error", err)
			refuseDocument(w, retryAfter)
			return
		}
		claims, err := verifyClaims(key, image.context, r.PathValue("secret"), now)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		session, err := s.options.Store.CachedByUID(ctx, claims.hostUID)
		if hardware.KindOf(err) == hardware.NotFound || err == nil && (!isImageCurrent(session, claims, now) || image.maker(s.filesOf(session)) == nil) {
			http.NotFound(w, r)
			return
		}
		if err == nil {
			err = s.writeImage(ctx, w, r, image, session, key, int(claims.boot))
		}
		if err != nil {
			s.log(session).Error("a boot image cannot be served", "error", err)
			refuseDocument(w, retryAfter)
		}
	}
}

// isImageCurrent reports whether the image is that of the session's current boot, or of the next one: its URL is given to the BMC before the boot is
// stored, and the BMC reads it at once.
func isImageCurrent(session Session, c claims, now time.Time) bool {
	return session.Number == c.attempt && session.State == hardware.AttemptRunning && !session.IsSettled() && now.Before(session.Deadline) &&
		(c.boot == int64(session.Boots) || c.boot == int64(session.Boots)+1)
}

// writeImage answers with the parts of the image that were asked for. The time on the command line is the begin of the attempt, because every
// request must get the same bytes.
func (s *Service) writeImage(ctx context.Context, w http.ResponseWriter, r *http.Request, kind ownImage, session Session, key []byte, boot int) error {
	settings, err := s.hostSettings(ctx, session)
	if err != nil {
		return err
	}
	if kind.file == hardware.PinnedFileName && r.Method == http.MethodGet {
		if err := s.noteProgramRequest(ctx, session, boot); err != nil {
			return err
		}
	}
	session.Boots = boot
	image, err := kind.maker(s.filesOf(session))(strings.Join(s.agentArguments(session, key, settings, session.Since), " "))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind.contentType)
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, image)
	return nil
}

// noteProgramRequest stores that the server has begun to load the agent: its firmware asks for the pinned program, as another one does for its boot
// document. A BMC that tries the URL before the power-on changes nothing.
func (s *Service) noteProgramRequest(ctx context.Context, session Session, boot int) error {
	now := s.options.Clock()
	if !isLoadAwaited(session, boot, now) {
		return nil
	}
	_, err := s.options.Store.Update(ctx, session.HostUID, func(latest *Session) error {
		if latest.Number == session.Number && isLoadAwaited(*latest, boot, now) {
			latest.Step, latest.StepAt, latest.StepDeadline = hardware.StepLoading, now, now.Add(s.options.Timeouts.OfStep(hardware.StepLoading))
		}
		return nil
	})
	return err
}

// isLoadAwaited reports whether the server has been powered on for the boot and has not begun to load its program.
func isLoadAwaited(session Session, boot int, now time.Time) bool {
	return session.BootWay == hardware.BootPinned && session.Boots == boot && session.Step == hardware.StepBooting && isOpen(session, now)
}
