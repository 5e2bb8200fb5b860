package modes

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/containerd"
	kubeletfiles "github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
	"github.com/ingot-dev/ingot/test/rack/machine"
	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/offlinenode"
	"github.com/ingot-dev/ingot/test/rack/operator"
)

const (
	gate     = v1alpha1.DefaultGateTaintKey
	uid      = "6f1c1d0e-0000-4000-8000-000000000001"
	nodeName = "node-1"
)

func TestEveryModesVerdictPasses(t *testing.T) {
	for _, m := range readModes(t) {
		for _, how := range m.installMethods() {
			t.Run(m.name+"/"+how, func(t *testing.T) {
				observed := m.runAndJudge(t, how, change{})
				if observed.joinError != "" {
					t.Fatal(observed.joinError)
				}
				for _, c := range observed.verdict.Checks {
					if c.Result != v1alpha1.CheckPass {
						t.Errorf("%s: expected %s, observed %s (%s)", c.Name, c.Expected, c.Observed, c.Hint)
					}
				}
				shown := observed.facts()
				for _, want := range m.Shows {
					if !slices.Contains(shown, want) {
						t.Errorf("the node does not show %s; it shows %q", want, shown)
					}
				}
				if t.Failed() {
					t.Log(observed.result.Problems)
				}
			})
		}
	}
}

// TestEveryModeStandsAReboot boots twice. In the second boot cloud-init has already done its work for the instance, and the
// GPUs have lost the state that they do not keep.
func TestEveryModeStandsAReboot(t *testing.T) {
	for _, m := range readModes(t) {
		t.Run(m.name, func(t *testing.T) {
			how := m.installMethods()[0]
			first, again := m.runAndJudge(t, how, change{}), m.runAndJudge(t, how, change{Reboots: true})
			if failed := again.failedChecks(); again.joinError != "" || failed != "" || !slices.Equal(first.hardwareState, again.hardwareState) {
				t.Errorf("after a reboot: %q, %q fails, %q; before %q", again.joinError, failed, again.hardwareState, first.hardwareState)
			}
		})
	}
}

func TestOneLineElseFailsTheCheckThatIsNamed(t *testing.T) {
	for _, m := range readModes(t) {
		for _, c := range m.Changes {
			t.Run(m.name+"/"+strings.ReplaceAll(c.Why, " ", "-"), func(t *testing.T) {
				observed := m.runAndJudge(t, cmp.Or(c.How, m.installMethods()[0]), c)
				if reason, isNone := strings.CutPrefix(c.Fails, "no node: "); isNone {
					if !strings.Contains(observed.joinError, reason) || observed.joinError == "" {
						t.Errorf("the node did not fail to join with %q: %q; checks %q; problems %q", reason, observed.joinError, observed.failedChecks(), observed.result.Problems)
					}
					return
				}
				if got := observed.failedChecks(); got != c.Fails {
					t.Errorf("fails %q, want %q (%s); problems %q", got, c.Fails, observed.joinError, observed.result.Problems)
				}
			})
		}
	}
}

func (m mode) installMethods() []string {
	if len(m.Install) == 0 {
		return []string{"manifests", "charts"}
	}
	return m.Install
}

// observation is the state of a server and its node at the end of a run.
type observation struct {
	// joinError is the reason why there is no node.
	joinError string
	result    offlinenode.Result
	verdict   v1alpha1.Verdict
	// hardwareState is the actual state of the hardware, independent of what the node reports.
	hardwareState []string
	cluster       *operator.Cluster
	// reserves means that the NodeType has settings of kubelet.
	reserves bool
}

// failedChecks returns the names of the checks that do not pass, separated by blanks.
func (s observation) failedChecks() string {
	var out []string
	for _, c := range s.verdict.Checks {
		if c.Result != v1alpha1.CheckPass {
			out = append(out, c.Name)
		}
	}
	return strings.Join(out, " ")
}

// ofKubelet are the resources of which kubelet reserves a part by default. What is left is promised only where the NodeType says how much is reserved.
var ofKubelet = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}

// facts returns the node's resources, labels, and numbers of devices by driver and type, as name=value.
func (s observation) facts() []string {
	var out []string
	for name, quantity := range s.result.Node.Status.Allocatable {
		if !s.reserves && slices.Contains(ofKubelet, name) {
			continue
		}
		out = append(out, string(name)+"="+quantity.String())
	}
	for key, value := range s.result.Node.Labels {
		out = append(out, key+"="+value)
	}
	devices := map[string]int{}
	for _, slice := range s.result.Slices {
		for _, d := range slice.Spec.Devices {
			kind := ""
			if v := d.Attributes["type"].StringValue; v != nil {
				kind = "/" + *v
			}
			devices[slice.Spec.Driver+kind]++
		}
	}
	for name, n := range devices {
		out = append(out, fmt.Sprintf("%s=%d", name, n))
	}
	slices.Sort(out)
	return out
}

// cache holds results that depend on a mode alone.
type cache struct {
	plan      *v1alpha1.NodePlan
	documents *cloudinit.Documents
	// tenant is the YAML of what is installed, by the way in which it is installed.
	tenant map[string]string
}

func (m mode) plan(t *testing.T) v1alpha1.NodePlan {
	t.Helper()
	if m.cache.plan != nil {
		return *m.cache.plan
	}
	plan, err := presentation.Resolve(spec.Request{GPU: m.NodeType.GPU, Image: m.OSImage, Resources: m.NodeType.Resources})
	if err != nil {
		t.Fatal(err)
	}
	m.cache.plan = &plan
	return plan
}

// runAndJudge runs the mode with one change and judges the node.
func (m mode) runAndJudge(t *testing.T, how string, c change) observation {
	t.Helper()
	out := m.run(t, how, c)
	if out.joinError == "" {
		out.verdict = m.judge(m.plan(t), out.result, out.cluster)
	}
	return out
}

// run renders the documents, boots the machine and runs the pods, with one change. It does not judge the node.
func (m mode) run(t *testing.T, how string, c change) observation {
	t.Helper()
	plan := m.plan(t)
	booted, broken := m.boot(t, plan, c)
	if broken != nil {
		return observation{joinError: broken.Error()}
	}
	k, err := m.newKubelet(booted)
	if err != nil {
		return observation{joinError: err.Error()}
	}
	cluster, err := m.installTenant(t, how, plan, c)
	if err != nil {
		return observation{joinError: err.Error()}
	}
	return observation{result: offlinenode.Run(t.Context(), booted, k, cluster), cluster: cluster, hardwareState: hardwareState(booted), reserves: m.NodeType.Kubelet != nil}
}

// hardwareState returns which driver holds each PCI device, how each GPU is partitioned, and whether containers get GPUs without asking for them.
func hardwareState(m *machine.Machine) []string {
	var out []string
	for _, d := range m.Bus.Devices() {
		compute, memory := d.Partition()
		out = append(out, fmt.Sprint(d.Address, " ", d.Driver, " ", compute, memory, " ", d.VGPUType, d.MediatedDevices))
	}
	for _, g := range m.GPUs() {
		out = append(out, fmt.Sprint(g.Address, " MIG ", g.MIG, " ", g.Layout()))
	}
	if m.Toolkit != "" && m.IsToolkitOpen() {
		out = append(out, "every container gets what NVIDIA_VISIBLE_DEVICES names")
	}
	return out
}

// render renders the documents of the mode.
func (m mode) render(t *testing.T, plan v1alpha1.NodePlan) cloudinit.Documents {
	t.Helper()
	if m.cache.documents != nil {
		return *m.cache.documents
	}
	documents, err := cloudinit.Render(cloudinit.Input{
		Kind: m.OSImage.UserData, OS: m.OSImage.OS.ID, KernelArguments: m.OSImage.KernelArguments, Plan: plan, Gate: gate, Secrets: m.secrets(),
		Containerd: m.containerd(), Machine: cloudinit.MachineInput{Name: nodeName, Namespace: "default", UID: uid, Revision: "r-1", Attempt: 1},
		Kubelet: cloudinit.KubeletInput{Version: m.OSImage.Software.Kubelet, Members: m.NodeType.KubeletMembers()},
		Node:    cloudinit.NodeInput{Labels: map[string]string{v1alpha1.LabelNodeType: m.name}},
		Join:    &kubeletfiles.Join{Endpoint: "https://tenant.example.com:6443", CA: []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), Token: "abcdef.0123456789abcdef"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.cache.documents = &documents
	return documents
}

// containerd returns what the node's containerd must do, where the verdict on the node reads a report of it.
func (m mode) containerd() containerd.Node {
	if m.NodeType.GPU == nil || m.NodeType.GPU.Tenancy != v1alpha1.TenancyShared {
		return containerd.Node{}
	}
	return containerd.NodeOf(m.OSImage.Software, m.NodeType.GPU, nil)
}

// boot boots a machine from the documents. It returns an error when the kubelet does not start.
func (m mode) boot(t *testing.T, plan v1alpha1.NodePlan, c change) (*machine.Machine, error) {
	t.Helper()
	documents := m.render(t, plan)
	drive := &machineos.ConfigDrive{UserData: []byte(c.apply(t, "documents", string(documents.UserData))), MetaData: machineos.MetaData{UUID: uid + "/r-1"}}
	options := machine.Options{Image: m.installedImage(t, c), Drive: drive, Owner: uid, Boot: "boot-1"}
	options.CPUs, options.MemoryBytes = int(m.NodeType.Resources.Cpu().Value()), kubelet.KernelMemory(m.NodeType.Resources.Memory().Value())
	hardware, err := applyTo(t, c, "server", m.Server)
	if err != nil {
		return nil, err
	}
	setHardware(t, hardware, &options)
	booted, err := machine.Boot(options)
	if err == nil && c.Reboots {
		left := booted.State
		options.State, options.Boot = &left, "boot-2"
		booted, err = machine.Boot(options)
	}
	if err != nil {
		return nil, err
	}
	if !booted.IsRunning("kubelet") {
		return nil, errors.Join(fmt.Errorf("kubelet does not run: %w", errors.Join(booted.Failure("kubelet"))), errors.Join(booted.Failed...))
	}
	return booted, nil
}

func (m mode) secrets() cloudinit.Secrets {
	out := cloudinit.Secrets{Namespace: "default", Contents: map[cloudinit.SecretKey][]byte{}}
	for name, keys := range m.Secrets {
		for key, content := range keys {
			out.Contents[cloudinit.SecretKey{Secret: name, Key: key}] = []byte(content)
		}
	}
	return out
}

// installedImage returns the image on the disk. With a change of the image it differs from the OSImage.
func (m mode) installedImage(t *testing.T, c change) machineos.Image {
	t.Helper()
	baked, err := applyTo(t, c, "image", m.OSImage)
	if err != nil {
		t.Fatal(err)
	}
	var out machineos.Image
	convertJSON(t, baked, &out)
	out.Kernel, out.Ignition = baked.OS.Kernel, baked.UserData == v1alpha1.UserDataIgnition
	if baked.Software.MIGParted != "" {
		out.Programs = append(out.Programs, "nvidia-mig-parted")
	}
	if baked.Software.VGPUDeviceManager != "" {
		out.Programs = append(out.Programs, "nvidia-vgpu-dm")
	}
	return out
}

func setHardware(t *testing.T, s server, options *machine.Options) {
	t.Helper()
	options.CPU, options.Architecture = s.CPU, s.Architecture
	bus := 0x0f
	for _, group := range s.PCI {
		for range group.Count {
			bus += 3
			options.Devices = append(options.Devices, hardware.PCIDevice{
				Address: fmt.Sprintf("0000:%02x:00.0", bus), VendorID: group.VendorID, DeviceID: group.DeviceID, Class: group.Class, Model: group.Model,
			})
		}
	}
	if !s.PersistedMIG {
		return
	}
	options.InfoROM = gpu.InfoROM(t.TempDir() + "/inforom")
	found, err := gpu.Discover(options.Devices, options.Owner, "boot-0", options.InfoROM)
	for _, g := range found {
		err = errors.Join(err, g.SetMIG(true))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newKubelet makes the kubelet that the machine's disk configures.
func (m mode) newKubelet(booted *machine.Machine) (*kubelet.Kubelet, error) {
	words, err := booted.Command("kubelet", "[Service]\nExecStart=/usr/bin/kubelet\n")
	if err != nil {
		return nil, err
	}
	cpus, memory := m.NodeType.Resources.Cpu().Value(), m.NodeType.Resources.Memory().Value()
	return kubelet.New(kubelet.Options{
		Arguments: words, ReadFile: booted.ReadFile, ListFiles: booted.FilesBelow, Hostname: booted.Hostname, Address: "198.18.0.1", Clock: clock.RealClock{},
		Hardware:    kubelet.Hardware{CPUs: int(cpus), MemoryBytes: memory, DiskBytes: 1 << 40},
		Annotations: booted.Annotations,
		NodeInfo: corev1.NodeSystemInfo{
			BootID: booted.BootID(), SystemUUID: uid, KernelVersion: booted.Image.Kernel, KubeletVersion: "v" + booted.Image.Software.Kubelet, OperatingSystem: "linux", Architecture: "amd64",
		},
	})
}

// installTenant returns a tenant cluster with the software installed. It returns an error when the changed software cannot
// be installed.
func (m mode) installTenant(t *testing.T, how string, plan v1alpha1.NodePlan, c change) (*operator.Cluster, error) {
	t.Helper()
	text, isCached := m.cache.tenant[how]
	if !isCached {
		releases, applied := m.tenantSoftware(t, how, plan)
		text = asYAML(t, installed{releases, applied})
		m.cache.tenant[how] = text
	}
	var all installed
	if err := yaml.Unmarshal([]byte(c.apply(t, "tenant", text)), &all); err != nil {
		return nil, fmt.Errorf("after the change of %q: %w", c.Line, err)
	}
	out := &operator.Cluster{}
	for _, r := range all.Charts {
		if err := out.Install(r.toOperator()); err != nil {
			return nil, err
		}
	}
	return out, out.Apply(toUnstructured(all.Objects)...)
}

// installed is the software in the tenant.
type installed struct {
	Charts  []release        `json:"charts"`
	Objects []map[string]any `json:"objects"`
}

// tenantSoftware returns what is installed in the tenant, as charts or as objects.
func (m mode) tenantSoftware(t *testing.T, how string, plan v1alpha1.NodePlan) ([]release, []map[string]any) {
	t.Helper()
	nodeTypes := []software.NodeType{{Name: m.name, GPU: m.NodeType.GPU, Image: m.OSImage, Plan: plan}}
	if how == "charts" {
		charts, err := tenantsoftware.Charts(nodeTypes)
		if err != nil {
			t.Fatal(err)
		}
		var releases []operator.Release
		for _, chart := range charts {
			releases = append(releases, operator.Release{Chart: chart.Name, Name: chart.Release, Namespace: chart.Namespace, Values: chart.Values, Objects: chart.Objects})
		}
		return toReleases(t, releases), m.Own
	}
	all, err := tenantsoftware.Objects(nodeTypes)
	if err != nil {
		t.Fatal(err)
	}
	var applied []map[string]any
	for _, o := range all {
		applied = append(applied, o.Object)
	}
	return nil, append(applied, m.Own...)
}

// release is an operator.Release that can be written as YAML.
type release struct {
	Chart     string           `json:"chart"`
	Name      string           `json:"name"`
	Namespace string           `json:"namespace"`
	Values    map[string]any   `json:"values"`
	Objects   []map[string]any `json:"objects"`
}

func toReleases(t *testing.T, all []operator.Release) []release {
	t.Helper()
	var out []release
	for _, r := range all {
		plain := release{Chart: r.Chart, Name: r.Name, Namespace: r.Namespace}
		convertJSON(t, r.Values, &plain.Values)
		for _, o := range r.Objects {
			plain.Objects = append(plain.Objects, o.Object)
		}
		out = append(out, plain)
	}
	return out
}

func (r release) toOperator() operator.Release {
	return operator.Release{Chart: r.Chart, Name: r.Name, Namespace: r.Namespace, Values: r.Values, Objects: toUnstructured(r.Objects)}
}

// judge returns the verdict at the deadline, so that checks that would wait have failed.
func (m mode) judge(plan v1alpha1.NodePlan, result offlinenode.Result, cluster *operator.Cluster) v1alpha1.Verdict {
	return verdict.Judge(m.input(plan, result, cluster)).Verdict
}

// judgeAgain judges a node that was admitted.
func (m mode) judgeAgain(plan v1alpha1.NodePlan, result offlinenode.Result, cluster *operator.Cluster) v1alpha1.Verdict {
	in := m.input(plan, result, cluster)
	in.HasBeenReady = true
	return verdict.Judge(in).Verdict
}

// input returns the node as the validation controller sees it.
func (m mode) input(plan v1alpha1.NodePlan, result offlinenode.Result, cluster *operator.Cluster) verdict.Input {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	classes := map[string]verdict.DeviceClass{}
	for _, s := range plan.Expectation.Slices {
		for _, c := range s.DeviceClasses {
			classes[c.Name] = verdict.DeviceClass{Missing: true}
		}
	}
	for i := range cluster.DeviceClasses {
		class := &cluster.DeviceClasses[i]
		classes[class.Name] = verdict.DeviceClass{Selectors: verdict.Compile(class)}
	}
	return verdict.Input{
		Clock: watched.Clock{Now: now}, Deadline: now, Expectation: plan.Expectation, Node: result.Node, SlicesServed: true, Slices: slices.Clone[[]resourcev1.ResourceSlice](result.Slices),
		DeviceClasses: classes, DaemonSets: cluster.DaemonSets, Gate: gate, Kubelet: m.NodeType.KubeletMembers(), OnFailure: v1alpha1.OnFailureHold,
		Identity: verdict.Identity{Claim: nodeidentity.Claim{MachineUID: uid, Attempt: 1, SystemUUID: uid}, Revision: "r-1"},
	}
}
