package recipe

import (
	"regexp"
	"strings"
)

// ContainerdConfigPath is the path of containerd's configuration in a tree.
const ContainerdConfigPath = "etc/containerd/config.toml"

// The lines of containerd's configuration that decide whether a node's drop-in takes effect. A comment begins a line or follows its value.
var (
	versionLine = regexp.MustCompile(`(?m)^\s*version\s*=\s*3\s*(#.*)?$`)
	importsLine = regexp.MustCompile(`(?ms)^\s*imports\s*=\s*\[[^\]]*["'](/etc/containerd/)?conf\.d/\*(\.toml)?["']`)
	cdiOnLine   = regexp.MustCompile(`(?m)^\s*enable_cdi\s*=\s*true\b`)
	cdiOffLine  = regexp.MustCompile(`(?m)^\s*enable_cdi\s*=\s*false\b`)
)

// ContainerdWarnings returns why the containerd of an image would not do what a Machine's user data asks of it. config is the file at ContainerdConfigPath, nil
// when there is none; version is empty when the image has no containerd.
func ContainerdWarnings(config []byte, version string) []string {
	if version == "" {
		return nil
	}
	var out []string
	warn := func(isWrong bool, message string) {
		if isWrong {
			out = append(out, ContainerdConfigPath+": "+message)
		}
	}
	if major, _, _ := strings.Cut(version, "."); major == "0" || major == "1" {
		warn(!cdiOnLine.Match(config), "expected enable_cdi = true in the section of the CRI plugin, seen none: devices of claims (DRA) do not reach containers")
		out = append(out, "containerd "+version+": a drop-in replaces its whole section of the CRI plugin, so that a Machine's user data has none: "+
			"configure NVIDIA's runtime, mirrors (config_path) and the sandbox image in the image, or take containerd 2")
		return out
	}
	warn(!versionLine.Match(config), "expected version = 3, seen another or none: a node takes its drop-in away, or containerd reads none (containerd config migrate prints the file in this version)")
	warn(!importsLine.Match(config), "expected imports = ['/etc/containerd/conf.d/*.toml'], seen none: the drop-in of a Machine's user data and that of the GPU operator have no effect")
	warn(cdiOffLine.Match(config), "expected CDI, which is on by default, seen enable_cdi = false: devices of claims (DRA) do not reach containers unless a drop-in turns it on")
	return out
}
