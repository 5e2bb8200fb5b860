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

// filesFor returns the boot files of the architecture, as the kernel, Kubernetes or iPXE names it. Unknown is amd64.
func (s *Service) filesFor(architecture string) BootFiles {
	if isARM64(architecture) {
		return s.options.ARM64
	}
	return BootFiles{Kernel: s.options.Kernel, Initrd: s.options.Initrd, Media: s.options.Media, Program: s.options.Program}
}

// isARM64 reports whether it is the name of arm64: that of the kernel and of agents, that of iPXE and Kubernetes, or that of Redfish.
func isARM64(architecture string) bool {
	return architecture == "aarch64" || architecture == "arm64" || architecture == "ARM-A64"
}

// filesOf returns the boot files of the session's server.
func (s *Service) filesOf(session Session) BootFiles { return s.filesFor(architectureOf(session)) }

func architectureOf(session Session) string {
	if session.Inventory == nil {
		return ""
	}
	return session.Inventory.Architecture
}

// noProgram says why there is no image for the session's server.
func noProgram(session Session) string {
	if isARM64(architectureOf(session)) {
		return "the boot service has no kernel and EFI stub for servers with an arm64 processor: make them with `make boot KERNEL_ARM64=PACKAGE EFI_STUB_ARM64=PACKAGE`"
	}
	return "the boot service has no EFI stub, linuxx64.efi.stub, beside its kernel: make its files with --efi-stub, or set boot.efiStub of the manager's configuration"
}

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
		s.options.Log.Error("a server with an arm64 processor asks for its boot program, and the boot service has none: make it with `make boot KERNEL_ARM64=PACKAGE EFI_STUB_ARM64=PACKAGE`", "mac", mac)
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
