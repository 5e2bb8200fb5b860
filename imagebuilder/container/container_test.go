package container

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// images returns two images that share a layer, of files that are made anew.
func images(t *testing.T) []Image {
	t.Helper()
	source := filepath.Join(t.TempDir(), "kernel")
	if err := os.WriteFile(source, bytes.Repeat([]byte("kernel "), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(source, time.Now(), time.Now().Add(-time.Duration(os.Getpid())*time.Hour)); err != nil {
		t.Fatal(err)
	}
	shared := Layer{{Path: "var/lib/ingot/boot/vmlinuz", Mode: 0o644, Source: source}, {Path: "etc/passwd", Mode: 0o644, Content: []byte("root\n")}}
	var all []Image
	for _, architecture := range []string{"amd64", "arm64"} {
		all = append(all, Image{
			OS: "linux", Architecture: architecture, User: "65532:65532", Entrypoint: []string{"/bin/program"}, Labels: map[string]string{"version": "1"},
			Layers: []Layer{shared, {{Path: "bin/program", Mode: 0o755, Content: []byte(architecture)}}},
		})
	}
	return all
}

func index(t *testing.T) v1.ImageIndex {
	t.Helper()
	made, err := Index(images(t), map[string]string{"version": "1"})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func tag(t *testing.T, text string) name.Tag {
	t.Helper()
	ref, err := name.NewTag(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestTheSameFilesGiveTheSameDigest(t *testing.T) {
	first, err := index(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	again, err := index(t).Digest()
	if err != nil || again != first {
		t.Errorf("%s and %s, %v", first, again, err)
	}
	changed := images(t)
	changed[1].Layers[1][0].Content = []byte("other")
	other, err := Index(changed, map[string]string{"version": "1"})
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := other.Digest(); err != nil || digest == first {
		t.Errorf("a changed file leaves the digest %s, %v", digest, err)
	}
}

func TestARegistryTakesTheImageAndGivesItBack(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := tag(t, strings.TrimPrefix(server.URL, "http://")+"/ingot/ingot-manager:v1")
	pushed := index(t)
	if err := Push(t.Context(), pushed, ref); err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	arm, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := arm.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/bin/program"}) || config.Config.Labels["version"] != "1" {
		t.Errorf("%+v", config)
	}
	if err := Push(t.Context(), pushed, tag(t, "127.0.0.1:1/none:v1")); err == nil || !strings.Contains(err.Error(), "push 127.0.0.1:1/none:v1") {
		t.Errorf("a push to nobody: %v", err)
	}
}

func TestALayerHasItsFilesInOrderAndOwnedByRoot(t *testing.T) {
	var archive bytes.Buffer
	if err := images(t)[0].Layers[0].write(&archive); err != nil {
		t.Fatal(err)
	}
	var names []string
	for reader := tar.NewReader(&archive); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 || h.Uname != "" {
			t.Errorf("%+v", h)
		}
		names = append(names, h.Name)
	}
	if want := []string{"etc/", "var/", "var/lib/", "var/lib/ingot/", "var/lib/ingot/boot/", "etc/passwd", "var/lib/ingot/boot/vmlinuz"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	for _, path := range []string{"../etc/passwd", "/etc/passwd", ""} {
		if err := (Layer{{Path: path}}).write(io.Discard); err == nil {
			t.Errorf("the path %q is taken", path)
		}
	}
	if _, err := Index([]Image{{OS: "linux", Architecture: "amd64", Layers: []Layer{{{Path: "a", Source: t.TempDir()}}}}}, nil); err == nil || !strings.Contains(err.Error(), "expected a file") {
		t.Errorf("a directory as a file: %v", err)
	}
}

func TestTheLayoutAndTheArchiveAreReadByOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	ref := tag(t, "registry.example.com/ingot-manager:v1")
	made := index(t)
	for range 2 { // the second one replaces the first
		if err := WriteLayout(dir, made, ref); err != nil {
			t.Fatal(err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := made.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != digest || manifest.Manifests[0].Annotations[annotationName] != ref.Name() {
		t.Errorf("%+v", manifest.Manifests)
	}

	archive := filepath.Join(t.TempDir(), "image.tar")
	var text bytes.Buffer
	if err := WriteArchive(&text, dir, made, ref, "amd64"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(archive, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	// What docker load and crane push read.
	image, err := tarball.ImageFromPath(archive, &ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	if config, err := image.ConfigFile(); err != nil || config.Architecture != "amd64" {
		t.Errorf("%+v, %v", config, err)
	}
	if err := WriteArchive(io.Discard, dir, made, ref, "riscv64"); err == nil {
		t.Error("an architecture that is missing is written")
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteLayout(foreign, made, ref); err == nil || !strings.Contains(err.Error(), "found other files") {
		t.Errorf("a directory with other files: %v", err)
	}
}

func TestTheContentsNameEveryModuleAndFile(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := Contents("ingot-manager", "v1", program, images(t)[0].Layers)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct {
			Name         string
			ExternalRefs []struct{ ReferenceLocator string }
		}
		Files         []struct{ FileName string }
		Relationships []struct{ SPDXElementID string }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range document.Packages {
		names[p.Name] = true
	}
	if !names["github.com/ingot-dev/ingot"] || !names["stdlib"] || document.SPDXVersion != "SPDX-2.3" {
		t.Errorf("%v", names)
	}
	if len(document.Files) != 3 || document.Files[0].FileName != "./var/lib/ingot/boot/vmlinuz" || len(document.Relationships) != len(document.Packages)+len(document.Files) {
		t.Errorf("%+v", document.Files)
	}
	modules := moduleElements(&debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Path: "example.com/main"}, Deps: []*debug.Module{
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1+x"}}, {Path: "example.com/a", Version: "v2"},
	}}, "v1")
	var locators []string
	for _, m := range modules {
		locators = append(locators, m.ExternalRefs[0].Locator)
	}
	if want := []string{"pkg:golang/example.com/main@v1", "pkg:golang/stdlib@go1.26", "pkg:golang/example.com/a@v2", "pkg:golang/example.com/fork@v1.0.1+x"}; !slices.Equal(locators, want) {
		t.Errorf("%q", locators)
	}
	if _, err := Contents("ingot-manager", "v1", "/etc/hostname", nil); err == nil || !strings.Contains(err.Error(), "expected a Go program") {
		t.Error(err)
	}
}
