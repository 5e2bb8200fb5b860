package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/imagebuilder/ramdisk"
)

// The versions in the images, and the path of their manifest.
const kernel, driver, manifest = "6.12.107", "570.172.08", "usr/lib/ingot/image.json"

// treeFiles are the files of the operating system. Those that the pipeline reads are real, programs are placeholders.
var treeFiles = map[string]string{
	"etc/os-release":            "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"13\"\nID=debian\n",
	"etc/hostname":              "image\n",
	"etc/machine-id":            "",
	"usr/bin/kubelet":           "#!/bin/sh\n# A simulated server has no processor: it reads what this program would read.\n",
	"usr/bin/nvidia-mig-parted": "#!/bin/sh\n# The same holds for it.\n",
	"usr/lib/modules/" + kernel + "/updates/dkms/nvidia.ko": "simulated\n",
	"boot/efi/EFI/BOOT/BOOTX64.EFI":                         "simulated\n",
	manifest: `{
  "os": {"id": "debian", "version": "13", "kernel": "` + kernel + `"},
  "kernelArguments": ["modprobe.blacklist=nouveau"],
  "software": {
    "gpuDriver": {"vendor": "nvidia", "version": "` + driver + `", "kernelModule": "Open"},
    "containerd": "2.2.0",
    "kubelet": "1.37.0",
    "containerToolkit": "1.18.0",
    "migParted": "0.15.0"
  }
}
`,
}

// WriteTree writes an operating system to dir, with as many bytes of ballast that does not compress.
func WriteTree(dir string, ballast int64) error {
	for name, text := range treeFiles {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the demo's image tree: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return fmt.Errorf("write the demo's image tree: %w", err)
		}
	}
	f, err := os.Create(filepath.Join(dir, "usr/lib/ballast"))
	if err != nil {
		return fmt.Errorf("write the demo's image tree: %w", err)
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), ballast)
	return errors.Join(err, f.Close())
}

// ImageServer serves a folder at a limited rate per request, as a real network does.
type ImageServer struct {
	// URL is the URL of the folder.
	URL    string
	server *http.Server
	// ended receives the error with which the server ended.
	ended chan error
}

// Loopback is an address with a free port of this machine, for ServeImages.
const Loopback = "127.0.0.1:0"

// ServeImages serves a folder at the address.
func ServeImages(address, dir string, bytesPerSecond int) (*ImageServer, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve images: %w", err)
	}
	files := http.FileServer(http.Dir(dir))
	s := &ImageServer{URL: "http://" + l.Addr().String(), ended: make(chan error, 1), server: &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			files.ServeHTTP(&slowWriter{ResponseWriter: w, ctx: r.Context(), rate: bytesPerSecond}, r)
		}),
	}}
	go func() { s.ended <- s.server.Serve(l) }()
	return s, nil
}

// Stop stops the server and cuts responses off that are being sent.
func (s *ImageServer) Stop() error {
	if s == nil {
		return nil
	}
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve images: %w", ended))
	}
	return err
}

// slowWriter limits the rate of the body of a response.
type slowWriter struct {
	http.ResponseWriter
	ctx  context.Context
	rate int
}

// Write implements io.Writer. It writes as much as the rate allows for a twentieth of a second at a time.
func (w *slowWriter) Write(p []byte) (int, error) {
	slice := max(w.rate/20, 1)
	done := 0
	for done < len(p) {
		n, err := w.ResponseWriter.Write(p[done:min(done+slice, len(p))])
		done += n
		if err != nil {
			return done, err
		}
		select {
		case <-w.ctx.Done():
			return done, w.ctx.Err()
		case <-time.After(time.Second * time.Duration(n) / time.Duration(w.rate)):
		}
	}
	return done, nil
}

// DecompressImage writes the disk image beside the compressed one and returns the OSImage of it, for installers that take raw images alone.
func DecompressImage(packed pack.Result) (v1alpha1.OSImage, error) {
	image := packed.OSImage
	if err := writeRaw(packed.Path, &image); err != nil {
		return image, fmt.Errorf("decompress image %s: %w", image.Name, err)
	}
	return image, nil
}

// compressedSuffix is that of the file names of packed images.
const compressedSuffix = ".zst"

func writeRaw(path string, image *v1alpha1.OSImage) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	reader, err := zstd.NewReader(in)
	if err != nil {
		return err
	}
	defer reader.Close()
	out, err := os.Create(strings.TrimSuffix(path, compressedSuffix))
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, sum), reader); err != nil {
		return errors.Join(err, out.Close())
	}
	image.Spec.URL = strings.TrimSuffix(image.Spec.URL, compressedSuffix)
	image.Spec.Format, image.Spec.Checksum = v1alpha1.FormatRaw, "sha256:"+hex.EncodeToString(sum.Sum(nil))
	return out.Close()
}

// RebuildTree changes the tree to that of the next image: the same software, built again.
func RebuildTree(dir string) error {
	return rewrite(filepath.Join(dir, "etc/build-id"), "2\n")
}

// ChangeDriver changes the tree to that of an image with an older driver.
func ChangeDriver(dir string) error {
	return rewrite(filepath.Join(dir, manifest), strings.Replace(treeFiles[manifest], driver, "570.124.06", 1))
}

func rewrite(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the demo's image tree: %w", err)
	}
	return nil
}

// WriteBootFiles writes the files that servers boot from the network: the agent's ramdisk and a file in place of a kernel. A simulated
// server fetches the kernel and does not run it.
func (e *Environment) WriteBootFiles() error {
	path, err := e.Program("ingot-agent")
	if err != nil {
		return err
	}
	boot := filepath.Join(e.Dir, "boot")
	if err := errors.Join(os.MkdirAll(boot, 0o755), os.WriteFile(filepath.Join(boot, "vmlinuz"), []byte("simulated"), 0o600)); err != nil {
		return fmt.Errorf("make the boot folder: %w", err)
	}
	if err := writeRamdisk(path, filepath.Join(boot, "agent.cpio.zst")); err != nil {
		return fmt.Errorf("make the ramdisk: %w", err)
	}
	return nil
}

func writeRamdisk(agent, path string) error {
	program, err := os.Open(agent)
	if err != nil {
		return err
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(ramdisk.Write(out, ramdisk.Tree{Init: program, InitSize: info.Size()}), out.Close())
}
