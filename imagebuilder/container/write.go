package container

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Annotations by which programs that read an archive name the image: the former is containerd's, the latter of the OCI image layout.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// WriteLayout writes the index as an OCI image layout to a directory that does not exist or that has a layout already.
func WriteLayout(dir string, index v1.ImageIndex, ref name.Tag) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "oci-layout" }) {
		return fmt.Errorf("%s: expected an empty directory or an OCI layout, which is replaced; found other files", dir)
	}
	work := dir + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	top, err := layout.Write(work, empty.Index)
	if err == nil {
		err = top.AppendIndex(index, layout.WithAnnotations(map[string]string{annotationName: ref.Name(), annotationTag: ref.TagStr()}))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(work, dir)
}

// dockerImage is an entry of manifest.json, by which `docker load` finds an image in an archive. Its paths are those of the layout's blobs.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// WriteArchive writes a layout as a tar archive. It has manifest.json too, which older programs read: that names the image of the architecture.
func WriteArchive(w io.Writer, dir string, index v1.ImageIndex, ref name.Tag, architecture string) error {
	archive := tar.NewWriter(w)
	manifest, err := dockerManifest(index, ref, architecture)
	if err != nil {
		return err
	}
	if err := (File{Path: "manifest.json", Mode: 0o644, Content: manifest}).write(archive); err != nil {
		return err
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, path := range files {
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := (File{Path: filepath.ToSlash(inside), Mode: 0o644, Source: path}).write(archive); err != nil {
			return err
		}
	}
	return archive.Close()
}

func dockerManifest(index v1.ImageIndex, ref name.Tag, architecture string) ([]byte, error) {
	entries, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range entries.Manifests {
		if m.Platform == nil || m.Platform.Architecture != architecture {
			continue
		}
		image, err := index.Image(m.Digest)
		if err != nil {
			return nil, err
		}
		content, err := image.Manifest()
		if err != nil {
			return nil, err
		}
		entry := dockerImage{Config: blobPath(content.Config.Digest), RepoTags: []string{ref.Name()}}
		for _, l := range content.Layers {
			entry.Layers = append(entry.Layers, blobPath(l.Digest))
		}
		return json.Marshal([]dockerImage{entry})
	}
	return nil, fmt.Errorf("no image for the architecture %s", architecture)
}

func blobPath(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

// Push pushes the index to its registry, with the credentials that `docker login` keeps for it.
func Push(ctx context.Context, index v1.ImageIndex, ref name.Tag) error {
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", ref.Name(), err)
	}
	return nil
}
