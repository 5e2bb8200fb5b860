package netboot

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// ProgramARM64 is the last part of the URL at which firmware of servers with an arm64 processor loads the agent as one EFI program: /boot/MAC/arm64.efi. It
// is what the boot document is to iPXE, which distributions have no program of for them.
const ProgramARM64 = "arm64.efi"

// contentTypeEFI is the UEFI specification's name for a program that firmware loads by HTTP.
const contentTypeEFI = "application/efi"

// serveBootProgram answers firmware that asks for the EFI program of its server, by the same rules as a boot document. A server that must not boot its disk
// gets the program without a token, which says so on the console and powers off: firmware that gets no program goes on with the disk.
func (s *Service) serveBootProgram(w http.ResponseWriter, r *http.Request) {
	mac, err := ParseMAC(r.PathValue("mac"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	make := s.options.ARM64.Program
	if make == nil {
		s.options.Log.Error("a server with an arm64 processor asks for its boot program, and the boot service has none: make it with `make boot-arm64`", "mac", mac)
		http.NotFound(w, r)
		return
	}
	// Firmware asks for the size first, by HEAD, which is no boot: the program without a token has the same size.
	answer, err := s.answerBoot(r.Context(), mac, bootRequest{address: addressOf(r), hasKernel: true, isForSize: r.Method == http.MethodHead})
	if limited := (*limitedError)(nil); errors.As(err, &limited) {
		s.options.Count(EventLimited)
		refuseDocument(w, limited.wait)
		return
	}
	if err == nil && answer.kind == scriptExit {
		http.NotFound(w, r) // firmware goes on with its next boot device
		return
	}
	var line []string
	if err == nil && answer.kind == scriptBoot {
		line = s.agentArguments(answer.session, answer.key, answer.settings, answer.now)
	}
	var image io.ReadSeeker
	if err == nil {
		image, err = make(strings.Join(line, " "))
	}
	if err != nil {
		s.options.Log.Error("no boot program", "mac", mac, "error", err)
		refuseDocument(w, retryAfter)
		return
	}
	w.Header().Set("Content-Type", contentTypeEFI)
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, image)
}
