package kubelet

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// endOfResolvers is the line after the resolv.conf.
const endOfResolvers = "end of resolv.conf\n"

// pause is a program that writes its resolv.conf to standard output and waits for its end.
const pause = `package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(string(text), "` + "end of resolv.conf\\n" + `")
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
`

// WriteSandboxImage builds the image of the process that holds a pod's namespaces, and writes it as an archive that Options.Archives takes.
func WriteSandboxImage(ctx context.Context, file string) error {
	dir, err := os.MkdirTemp("", "ingot-pause-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "pause.go")
	if err := os.WriteFile(source, []byte(pause), 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "pause"), source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program of the sandbox image: %w: %s", err, out)
	}
	image, err := programImage(filepath.Join(dir, "pause"))
	if err != nil {
		return err
	}
	tag, err := name.NewTag(SandboxImage)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, tag, image)
}

// programImage returns an image with the static program alone, which it starts.
func programImage(program string) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "pause", Mode: 0o755, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	added, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, added)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config.Entrypoint = "amd64", "linux", []string{"/pause"}
	return mutate.ConfigFile(image, file)
}
