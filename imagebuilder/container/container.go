// Package container assembles a container image for several platforms from files, without a container engine.
//
// The same files give the same bytes, so that an image can be compared with one that somebody else has made: entries are in order, belong to
// root, and have the time 1970. A registry and a node keep each layer once, so files that change at different times go into different layers.
package container

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is a file of a layer.
type File struct {
	// Path in the image, without a leading slash.
	Path string
	Mode fs.FileMode
	// Source is the file on this machine; empty: Content is the file.
	Source  string
	Content []byte
}

// open returns the content and its size.
func (f File) open() (io.ReadCloser, int64, error) {
	if f.Source == "" {
		return io.NopCloser(bytes.NewReader(f.Content)), int64(len(f.Content)), nil
	}
	file, err := os.Open(f.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: expected a file", f.Source)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// Layer is the files of one layer.
type Layer []File

// Image is the image of one platform.
type Image struct {
	OS, Architecture string
	Layers           []Layer
	Entrypoint       []string
	// User that the program runs as, "65532:65532".
	User   string
	Labels map[string]string
}

// Index returns the images as one image for several platforms.
func Index(images []Image, annotations map[string]string) (v1.ImageIndex, error) {
	cache := layerCache{}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		built, err := i.build(cache)
		if err != nil {
			return nil, fmt.Errorf("image for %s/%s: %w", i.OS, i.Architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: i.OS, Architecture: i.Architecture},
		}})
	}
	annotated, ok := mutate.Annotations(index, annotations).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("the library returned no index")
	}
	return annotated, nil
}

// build returns the image of one platform.
func (i Image) build(cache layerCache) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range i.Layers {
		layer, err := cache.layer(files)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "ingot image manager", Created: v1.Time{Time: epoch}}}); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = i.OS, i.Architecture, v1.Time{Time: epoch}
	config.Config = v1.Config{Entrypoint: i.Entrypoint, User: i.User, Labels: i.Labels, WorkingDir: "/"}
	return mutate.ConfigFile(image, config)
}

// epoch is the time of everything in an image.
var epoch = time.Unix(0, 0).UTC()

// layerCache keeps layers that several images have, so that they are compressed once.
type layerCache map[string]v1.Layer

func (c layerCache) layer(files Layer) (v1.Layer, error) {
	key := fmt.Sprintf("%q", files)
	if layer, isKnown := c[key]; isKnown {
		return layer, nil
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(files.write(writer)) }()
		return reader, nil
	}, tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	c[key] = layer
	return layer, nil
}

// write writes the layer as a tar archive: the directories first, then the files, each in order.
func (l Layer) write(w io.Writer) error {
	for _, f := range l {
		if !fs.ValidPath(f.Path) || f.Path == "." {
			return fmt.Errorf("path %q: expected one relative to the root of the image", f.Path)
		}
	}
	archive := tar.NewWriter(w)
	for _, dir := range l.directories() {
		if err := archive.WriteHeader(header(dir+"/", tar.TypeDir, 0o755, 0)); err != nil {
			return err
		}
	}
	for _, f := range slices.SortedFunc(slices.Values(l), func(a, b File) int { return cmp.Compare(a.Path, b.Path) }) {
		if err := f.write(archive); err != nil {
			return err
		}
	}
	return archive.Close()
}

// directories returns the parents of all files, whose paths are valid, parents first.
func (l Layer) directories() []string {
	var all []string
	for _, f := range l {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (f File) write(archive *tar.Writer) error {
	content, size, err := f.open()
	if err != nil {
		return err
	}
	err = archive.WriteHeader(header(f.Path, tar.TypeReg, f.Mode, size))
	if err == nil {
		_, err = io.Copy(archive, content)
	}
	return errors.Join(err, content.Close())
}

func header(name string, kind byte, mode fs.FileMode, size int64) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Mode: int64(mode.Perm()), Size: size, ModTime: epoch, Format: tar.FormatPAX}
}
