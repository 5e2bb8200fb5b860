package netboot

import (
	"io"
	"net/http"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// filesFor returns the boot files of the architecture, as the kernel, Kubernetes or iPXE names it. Unknown is amd64.
func (s *Service) filesFor(architecture string) BootFiles {
	if isARM64(architecture) {
		return s.options.ARM64
	}
	return BootFiles{Kernel: s.options.Kernel, Initrd: s.options.Initrd, Media: s.options.Media, Program: s.options.Program}
}

// isARM64 reports whether it is a name of arm64.
func isARM64(architecture string) bool { return hardware.ArchitectureName(architecture) == "arm64" }

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
		return "the boot service has no kernel and EFI stub for servers with an arm64 processor: make them with `make boot-arm64`"
	}
	return "the boot service has no EFI stub, linuxx64.efi.stub, beside its kernel: make its files with --efi-stub, or set boot.efiStub of the manager's configuration"
}

// serveFile serves the file with the file itself as the source: then the kernel copies it to the connection (sendfile(2)), which takes two thirds of
// the processor time. http.ServeFileFS wraps the file, and copies it through the program's memory.
func (s *Service) serveFile(nameOf func(BootFiles) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := nameOf(s.filesFor(r.URL.Query().Get("arch")))
		if name == "" {
			s.options.Log.Error("a server with an arm64 processor asks for a kernel, and the boot service has none for it: make one with `make boot-arm64`", "from", addressOf(r))
			http.Error(w, "there is no kernel of that architecture", http.StatusNotFound)
			return
		}
		file, err := s.options.Files.Open(name)
		if err != nil {
			s.options.Log.Error("a server asks for a file of the agent that cannot be opened: look at the directory boot.files", "file", name, "error", err)
			http.Error(w, "the file cannot be opened now", http.StatusServiceUnavailable)
			return
		}
		defer file.Close()
		info, err := file.Stat()
		content, canSeek := file.(io.ReadSeeker)
		if err != nil || !canSeek {
			s.options.Log.Error("a file of the agent cannot be served: look at the directory boot.files", "file", name, "error", err)
			http.Error(w, "the file cannot be served", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, name, info.ModTime(), content)
	}
}
