package vm_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/imagebuilder/container"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

const (
	// nodeType is that of servers which become nodes.
	nodeTypeOfNodes = "node"
	// deviceName is what the device plugin advertises, and deviceIDs are QEMU's educational device on the PCI bus (docs/specs/edu.rst).
	deviceName, deviceIDs = "ingot.dev/edu", "1234:11e8"
	// guestImage is the container image of test/vm/guest, and sandboxImage the name under which containerd looks for the container that holds a
	// pod together when its configuration names no other.
	guestImage, sandboxImage = "ingot.test/guest:1", "registry.k8s.io/pause:3.10.1"
	// architecture is that of the servers.
	architecture = "amd64"
	// networkOfPods is what an administrator's network plugin writes.
	networkOfPods = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", "isGateway": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`
)

// serveNodeImage serves the image of nodes, and the container image of their pods beside it.
func (s *site) serveNodeImage(built string) (*v1alpha1.OSImage, error) {
	served := filepath.Join(s.env.Dir, "node-image")
	if err := os.Mkdir(served, 0o755); err != nil {
		return nil, err
	}
	manifests, err := filepath.Glob(filepath.Join(built, "*.osimage.yaml"))
	if err != nil || len(manifests) != 1 {
		return nil, fmt.Errorf("expected one OSImage in %s, seen %q, error %w", built, manifests, err)
	}
	text, err := os.ReadFile(manifests[0])
	if err != nil {
		return nil, err
	}
	image := &v1alpha1.OSImage{}
	if err := yaml.UnmarshalStrict(text, image); err != nil {
		return nil, err
	}
	file := strings.TrimSuffix(filepath.Base(manifests[0]), ".osimage.yaml") + ".raw.zst"
	if s.ironic != nil {
		file, image.Spec.Format = strings.TrimSuffix(file, ".zst"), "raw"
		image.Spec.Checksum, err = unpackImage(filepath.Join(served, file), filepath.Join(built, file+".zst"))
	} else {
		err = os.Symlink(filepath.Join(built, file), filepath.Join(served, file))
	}
	if err != nil {
		return nil, err
	}
	if err := writeGuestImage(filepath.Join(served, "guest.tar"), filepath.Join(built, "guest")); err != nil {
		return nil, err
	}
	if s.nodeImages, err = environment.ServeImages(lab.Address+":0", served, nodeImageRate); err != nil {
		return nil, err
	}
	image.Spec.URL = s.nodeImages.URL + "/" + file
	return image, nil
}

// writeGuestImage writes the archive of the container image with the program, under both names.
func writeGuestImage(archive, program string) error {
	index, err := container.Index([]container.Image{{OS: "linux", Architecture: architecture, Entrypoint: []string{"/guest"},
		Layers: []container.Layer{{{Path: "guest", Mode: 0o755, Source: program}}}}}, nil)
	if err != nil {
		return err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return err
	}
	image, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		return err
	}
	images := map[name.Tag]v1.Image{}
	for _, n := range []string{guestImage, sandboxImage} {
		tag, err := name.NewTag(n)
		if err != nil {
			return err
		}
		images[tag] = image
	}
	return tarball.MultiWriteToFile(archive, images)
}

// nodeTypeWithDevice is a NodeType of servers with one educational device. Its user data does what an administrator's does: the network of the pods,
// and, for there is no registry, their image. kubelet's log goes to the console, which a failure leaves.
func (s *site) nodeTypeWithDevice(image string) *v1alpha1.NodeType {
	out := nodeType(nodeTypeOfNodes, image)
	out.Spec.GPU = &v1alpha1.GPUSpec{
		Vendor: v1alpha1.VendorGeneric, Model: "edu", Count: 1, Generic: &v1alpha1.GenericSpec{ResourceName: deviceName},
		Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough},
	}
	out.Spec.Validation.Settle = &metav1.Duration{Duration: time.Second}
	out.Spec.Validation.Probe = &v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeCommand, Image: guestImage, Command: []string{"/guest", "probe"}}
	out.Spec.UserData = fmt.Sprintf(`#cloud-config
write_files:
- path: /etc/cni/net.d/10-pods.conflist
  content: |
%s
- path: /etc/systemd/system/kubelet.service.d/50-console.conf
  content: |
    [Service]
    StandardOutput=journal+console
    StandardError=journal+console
runcmd:
- [python3, -c, "import urllib.request; urllib.request.urlretrieve('%s/guest.tar', '/run/guest.tar')"]
- [ctr, --namespace, k8s.io, images, import, /run/guest.tar]
`, indent(networkOfPods, "    "), s.nodeImages.URL)
	return out
}

func indent(text, by string) string { return by + strings.ReplaceAll(text, "\n", "\n"+by) }

// devicePlugin is the DaemonSet of the device plugin. It tolerates everything, the gate too.
func devicePlugin() *appsv1.DaemonSet {
	labels := map[string]string{"app": "device-plugin"}
	privileged := true
	mounts, volumes := []corev1.VolumeMount{}, []corev1.Volume{}
	for volume, path := range map[string]string{"plugins": "/var/lib/kubelet/device-plugins", "sys": "/sys"} {
		mounts = append(mounts, corev1.VolumeMount{Name: volume, MountPath: path})
		volumes = append(volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}})
	}
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "device-plugin"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Volumes: volumes,
			Containers: []corev1.Container{{
				Name: "plugin", Image: guestImage, ImagePullPolicy: corev1.PullNever, Args: []string{"plugin", deviceName, deviceIDs},
				VolumeMounts: mounts, SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
			}},
		}},
	}}
}

// workload is a tenant's pod that has its device compute.
func workload() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "compute"}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "compute", Image: guestImage, ImagePullPolicy: corev1.PullNever, Args: []string{"compute"},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{deviceName: resource.MustParse("1")}},
		}},
	}}
}

// apply creates objects in the tenant's cluster.
func (s *site) apply(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.env.TenantClient.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

// awaitPowerOn waits until the server is switched on, which begins its phases.
func (s *site) awaitPowerOn() *phases {
	s.t.Helper()
	s.until("the server is switched on", func() error {
		if s.server.Power() != hardware.PowerOn {
			return errors.New("it is off")
		}
		return nil
	})
	return &phases{t: s.t, began: time.Now(), runs: s.runs()}
}

// runs returns how often cloud-init has reached the commands of the user data, as the console says (cloud-init 22.4 to 25).
func (s *site) runs() int {
	console, err := os.ReadFile(s.server.Console())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return bytes.Count(console, []byte("running 'modules:final'"))
}

// awaitNode follows a server from its power-on to the Machine's phase Ready, notes the phases, and returns the node.
func (s *site) awaitNode(machine string, p *phases) *corev1.Node {
	s.t.Helper()
	s.await("the agent starts", func(r *v1alpha1.HostRecord) bool {
		a := r.Status.Progress()
		return isOf(r, hardware.OpInstall) && a != nil && a.Step == string(hardware.StepWriting)
	})
	p.note("agent")
	return s.awaitJoined(machine, p)
}

// awaitJoined follows it from the start of the installation.
func (s *site) awaitJoined(machine string, p *phases) *corev1.Node {
	s.t.Helper()
	s.await("the installation", isInstalled)
	p.note("written")
	s.until("cloud-init runs the commands of the user data", func() error {
		if s.runs() == p.runs {
			return errors.New("the console does not say so")
		}
		return nil
	})
	p.note("runcmd")
	s.until("kubelet registers the node", func() error { _, err := s.node(machine); return err })
	p.note("kubelet")
	var node *corev1.Node
	s.until("the node is Ready", func() (err error) {
		if node, err = s.node(machine); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions: %+v", node.Status.Conditions)
	})
	p.note("Ready")
	s.awaitMachine(machine, v1alpha1.MachineReady)
	p.note("verdict")
	return node
}

// awaitMachine waits until the Machine is in the phase.
func (s *site) awaitMachine(machine string, phase v1alpha1.MachinePhase) {
	s.t.Helper()
	s.until(fmt.Sprintf("Machine %s is %s", machine, phase), func() error {
		m := &v1alpha1.Machine{}
		if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: team, Name: machine}, m); err != nil {
			return err
		}
		if m.Status.Phase != phase {
			text, err := yaml.Marshal(m.Status)
			return fmt.Errorf("it is %s: %s %w", m.Status.Phase, text, err)
		}
		return nil
	})
}

// checkProbe checks what the verdict says of the pod that used the node's device before the gate was lifted, and that nothing of that pod is left.
func (s *site) checkProbe(machine string) {
	s.t.Helper()
	m := &v1alpha1.Machine{}
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: team, Name: machine}, m); err != nil {
		s.t.Fatal(err)
	}
	seen := map[string]v1alpha1.Check{}
	for _, c := range m.Status.Verdict.Checks {
		seen[c.Name] = c
	}
	device, user := seen["probe/"+deviceName+"/1-device"], seen["probe/"+deviceName+"/2-user"]
	if device.Result != v1alpha1.CheckPass || device.Observed != "1048576 bytes of memory" || user.Result != v1alpha1.CheckPass || user.Observed != "65534" {
		s.t.Errorf("the probe found %+v and %+v among %+v", device, user, m.Status.Verdict.Checks)
	}
	var left corev1.PodList
	if err := s.env.TenantClient.List(s.t.Context(), &left, client.HasLabels{v1alpha1.LabelProbe}); err != nil || len(left.Items) > 0 {
		s.t.Errorf("%d pods of the probe are left, error %v", len(left.Items), err)
	}
}

// awaitWorkload waits for the end of the tenant's pod and for what its device has computed.
func (s *site) awaitWorkload() {
	s.t.Helper()
	s.until("the pod with the device ends", func() error {
		pod := &corev1.Pod{}
		if err := s.env.TenantClient.Get(s.t.Context(), client.ObjectKeyFromObject(workload()), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status)
		}
		if got := pod.Status.ContainerStatuses[0].State.Terminated.Message; got != "5! = 120" {
			s.t.Errorf("the device computed %q", got)
		}
		return nil
	})
}

// phases are the seconds of a server's way.
type phases struct {
	t     *testing.T
	began time.Time
	// runs is how often cloud-init had reached the commands of the user data before.
	runs int
	line []string
}

// note ends a phase.
func (p *phases) note(phase string) {
	p.line = append(p.line, fmt.Sprintf("%s %.0f s", phase, time.Since(p.began).Seconds()))
}

// print logs the phases.
func (p *phases) print() { p.t.Logf("since power-on: %s", strings.Join(p.line, ", ")) }
