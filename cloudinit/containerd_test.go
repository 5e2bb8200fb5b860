package cloudinit

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/containerd"
)

func sandboxed(in Input) Input {
	in.Containerd = containerd.Node{Version: "2.2.0", Settings: &v1alpha1.ContainerdSpec{
		SandboxImage:    "registry.example.com/pause:3.10.1",
		RegistryMirrors: []v1alpha1.RegistryMirror{{Registry: "docker.io", Endpoints: []string{"https://registry.example.com"}}},
	}}
	return in
}

// TestContainerdIsConfiguredBeforeKubeletStarts: a kubelet that runs pods while containerd is restarted would report them as failed.
func TestContainerdIsConfiguredBeforeKubeletStarts(t *testing.T) {
	in := sandboxed(plain())
	if got := written(t, in)["/etc/containerd/conf.d/50-ingot.toml"]; !strings.Contains(got, "sandbox = 'registry.example.com/pause:3.10.1'") {
		t.Errorf("the drop-in is %q", got)
	}
	docs, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	text := string(docs.UserData)
	check, kubelet := strings.Index(text, `"--now", "`+containerd.CheckUnit), strings.Index(text, `"--now", "kubelet"`)
	if check < 0 || kubelet < check {
		t.Errorf("runcmd:\n%s", text[strings.Index(text, "runcmd"):])
	}
	if _, isWritten := written(t, plain())["/usr/local/sbin/ingot-containerd"]; isWritten {
		t.Error("a node that needs nothing of containerd is checked")
	}
	ignition, err := Render(sandboxed(ignited(t, "flatcar")))
	if err != nil || !strings.Contains(string(ignition.UserData), containerd.CheckUnit) || !strings.Contains(string(ignition.UserData), "50-ingot.toml") {
		t.Errorf("Ignition: %v", err)
	}
}

func TestUserDataDoesNotWriteContainerdsFiles(t *testing.T) {
	for _, path := range []string{"/etc/containerd/conf.d/50-ingot.toml", "/etc/containerd/certs.d/docker.io/hosts.toml"} {
		in := sandboxed(plain())
		in.Layers = append(in.Layers, Layer{Name: "NodeType h100", Text: "#cloud-config\nwrite_files: [{path: " + path + ", content: x}]\n"})
		var conflict *Conflict
		if _, err := Render(in); !errors.As(err, &conflict) {
			t.Errorf("%s: %v", path, err)
		}
		if err := Check(in); !errors.As(err, &conflict) {
			t.Errorf("%s, before there is a node: %v", path, err)
		}
		in.Containerd = containerd.Node{}
		if _, err := Render(in); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
