package containerd

import (
	"path"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	pathDropIn = "/etc/containerd/conf.d/50-ingot.toml"
	// pathHosts is the directory with a directory for each registry (containerd, docs/hosts.md).
	pathHosts = "/etc/containerd/certs.d"
	// runtimeProgram is where the packages of NVIDIA's container toolkit install its runtime.
	runtimeProgram = "/usr/bin/nvidia-container-runtime"
)

// Files returns the drop-in, a file for each mirrored registry with its certificates, and the program that checks the configuration; none when containerd needs
// nothing. They have no secret.
func Files(n Node) []v1alpha1.NodeFile {
	if !n.hasNeeds() {
		return nil
	}
	var out []v1alpha1.NodeFile
	if hasDropIns(n.Version) {
		out = append(out, file(pathDropIn, dropIn(n)))
	}
	mirrors := slices.Clone(n.mirrors())
	slices.SortFunc(mirrors, func(a, b v1alpha1.RegistryMirror) int { return strings.Compare(a.Registry, b.Registry) })
	for _, m := range mirrors {
		dir := path.Join(pathHosts, m.Registry)
		certificates := ""
		if m.CABundle != "" {
			certificates = path.Join(dir, "ca.crt")
			out = append(out, file(certificates, strings.TrimRight(m.CABundle, "\n")+"\n"))
		}
		out = append(out, file(path.Join(dir, "hosts.toml"), hosts(m, certificates)))
	}
	return append(out, v1alpha1.NodeFile{Path: checkProgramPath, Mode: "0755", Content: checkProgram(n)})
}

func file(path, content string) v1alpha1.NodeFile {
	return v1alpha1.NodeFile{Path: path, Mode: "0644", Content: content}
}

// dropIn returns a configuration of version 3, that of containerd 2. What it has are members that merge: containerd replaces values and tables member by
// member, and appends to lists.
func dropIn(n Node) string {
	const runtimePlugin, imagesPlugin = "[plugins.'io.containerd.cri.v1.runtime'", "[plugins.'io.containerd.cri.v1.images'"
	lines := []string{"# Written by Ingot.", "version = 3"}
	if n.CDI {
		lines = append(lines, "", runtimePlugin+"]", "  enable_cdi = true")
	}
	if n.Runtime {
		// kubelet's cgroup driver is systemd, and each runtime has its own setting of it.
		lines = append(lines, "", runtimePlugin+".containerd.runtimes.nvidia]", "  runtime_type = 'io.containerd.runc.v2'",
			"  "+runtimePlugin+".containerd.runtimes.nvidia.options]", "    BinaryName = '"+runtimeProgram+"'", "    SystemdCgroup = true")
	}
	if len(n.mirrors()) > 0 {
		lines = append(lines, "", imagesPlugin+".registry]", "  config_path = '"+pathHosts+"'")
	}
	if image := n.sandboxImage(); image != "" {
		lines = append(lines, "", imagesPlugin+".pinned_images]", "  sandbox = '"+image+"'")
	}
	return strings.Join(lines, "\n") + "\n"
}

// hosts returns a registry's hosts.toml. It names no server: containerd asks the registry itself when no mirror has an image.
func hosts(m v1alpha1.RegistryMirror, certificates string) string {
	lines := []string{"# Written by Ingot."}
	for _, e := range m.Endpoints {
		lines = append(lines, "", "[host.'"+strings.TrimSuffix(e, "/")+"']", "  capabilities = ['pull', 'resolve']")
		if hasPath(e) {
			// Without it: containerd appends /v2 to the path.
			lines = append(lines, "  override_path = true")
		}
		if certificates != "" && strings.HasPrefix(e, "https:") {
			lines = append(lines, "  ca = '"+certificates+"'")
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// hasPath returns true when the URL has a path that is not the root.
func hasPath(endpoint string) bool {
	_, rest, _ := strings.Cut(endpoint, "://")
	_, rest, _ = strings.Cut(rest, "/")
	return rest != ""
}
