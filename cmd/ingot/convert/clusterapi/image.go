package clusterapi

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
)

// convertedImage is an OSImage that was made of a URL, with what the first template and MachineDeployment with that URL say.
type convertedImage struct {
	name, version, checksum, format string
}

const imageField = "spec.template.spec.image"

// convertImage makes an OSImage of the template's image, the first time that its URL is named, and returns its name.
func (c *converter) convertImage(d deployment) string {
	image := conversion.ValueAt[map[string]any](d.hosts, "image")
	url := conversion.ValueAt[string](image, "url")
	switch {
	case d.hosts == nil:
		return ""
	case url == "":
		c.AddFinding(d.template, "spec.template.spec", conversion.RuleAdd, "it has no image with a URL: make an OSImage, and name it in osImageRef of the NodeType")
		return ""
	}
	said := convertedImage{
		version:  strings.TrimPrefix(conversion.ValueAt[string](d.machine, "version"), "v"),
		checksum: conversion.ValueAt[string](image, "checksum"), format: conversion.ValueAt[string](image, "format"),
	}
	if made, isMade := c.images[url]; isMade {
		c.compareImage(d, made, said)
		return made.name
	}
	said.name = c.newImageName(url)
	spec := c.ConvertImage(d.template, imageField, conversion.Image{
		URL: url, Checksum: said.checksum, ChecksumType: conversion.ValueAt[string](image, "checksumType"), Format: said.format,
	})
	if said.version != "" {
		spec["software"] = map[string]any{"kubelet": said.version}
		c.AddFinding(d.Manifest, "spec.template.spec.version", conversion.RuleCheck, "OSImage %s is said to have kubelet %s: look whether it has", said.name, said.version)
	}
	c.AddFinding(d.template, imageField, conversion.RuleAdd, "OSImage %s is made of the URL: "+conversion.CompleteImage, said.name)
	c.images[url] = said
	c.AddConverted("OSImage", map[string]any{"name": said.name}, spec)
	return said.name
}

// compareImage adds a finding for each thing that a further MachineDeployment says otherwise of an image that is made already.
func (c *converter) compareImage(d deployment, made, said convertedImage) {
	if said.version != "" && said.version != made.version {
		c.AddFinding(d.Manifest, "spec.template.spec.version", conversion.RuleCheck,
			"it says kubelet %s of the URL of which OSImage %s was made with kubelet %s: look what the image has", said.version, made.name, cmp.Or(made.version, "unknown"))
	}
	for _, field := range []struct{ name, made, said string }{{"checksum", made.checksum, said.checksum}, {"format", made.format, said.format}} {
		if field.said != "" && field.said != field.made {
			c.AddFinding(d.template, imageField+"."+field.name, conversion.RuleCheck,
				"OSImage %s was made of the same URL with the %s %s: an image of Ingot's never changes, so give two images two URLs", made.name, field.name, cmp.Or(field.made, "unknown"))
		}
	}
}

// newImageName returns a name that no other OSImage has: that of the file, with the folders before it where another image has that name.
func (c *converter) newImageName(url string) string {
	path, _, _ := strings.Cut(url, "?")
	folders := strings.Split(path, "/")
	name := kubernetesName(folders[len(folders)-1])
	for i := len(folders) - 2; i > 0 && c.imageNames[name]; i-- {
		name = kubernetesName(strings.Join(folders[i:], "-"))
	}
	for i, first := 2, name; c.imageNames[name]; i++ {
		suffix := fmt.Sprint("-", i)
		name = first[:min(len(first), maxName-len(suffix))] + suffix
	}
	c.imageNames[name] = true
	return name
}

// maxName is the longest name of an object.
const maxName = 63

// kubernetesName returns the name of a file without what says its format, as a name that Kubernetes takes.
func kubernetesName(file string) string {
	file = strings.ToLower(file)
	for _, suffix := range []string{".gz", ".zst", ".xz", ".raw", ".qcow2", ".img", "-raw", "-qcow2"} {
		file = strings.TrimSuffix(file, suffix)
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, file)
	return cmp.Or(strings.Trim(name[:min(len(name), maxName)], "-."), "image")
}
