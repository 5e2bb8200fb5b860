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
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
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
	for _, m := range cases(t) {
		for _, how := range m.installs() {
			t.Run(m.name+"/"+how, func(t *testing.T) {
				seen := m.live(t, how, change{})
				if seen.broken != "" {
					t.Fatal(seen.broken)
				}
				for _, c := range seen.verdict.Checks {
					if c.Result != v1alpha1.CheckPass {
						t.Errorf("%s: expected %s, observed %s (%s)", c.Name, c.Expected, c.Observed, c.Hint)
					}
				}
				shown := seen.shows()
				for _, want := range m.Shows {
					if !slices.Contains(shown, want) {
						t.Errorf("the node does not show %s; it shows %q", want, shown)
					}
				}
				if t.Failed() {
					t.Log(seen.outcome.Problems)
				}
			})
		}
	}
}

// TestEveryModeStandsAReboot boots twice: what cloud-init does once per instance was done by the first boot, and the GPUs have forgotten
// what they forget.
func TestEveryModeStandsAReboot(t *testing.T) {
	for _, m := range cases(t) {
		t.Run(m.name, func(t *testing.T) {
			how := m.installs()[0]
			first, again := m.live(t, how, change{}), m.live(t, how, change{Reboots: true})
			if failed := again.failed(); again.broken != "" || failed != "" || !slices.Equal(first.truth, again.truth) {
				t.Errorf("after a reboot: %q, %q fails, %q; before %q", again.broken, failed, again.truth, first.truth)
			}
		})
	}
}

func TestOneLineElseFailsTheCheckThatIsNamed(t *testing.T) {
	for _, m := range cases(t) {
		for _, c := range m.Changes {
			t.Run(m.name+"/"+strings.ReplaceAll(c.Why, " ", "-"), func(t *testing.T) {
				seen := m.live(t, cmp.Or(c.How, m.installs()[0]), c)
				if reason, isNone := strings.CutPrefix(c.Fails, "no node: "); isNone {
					if !strings.Contains(seen.broken, reason) || seen.broken == "" {
						t.Errorf("the node did not fail to join with %q: %q; checks %q; problems %q", reason, seen.broken, seen.failed(), seen.outcome.Problems)
					}
					return
				}
				if got := seen.failed(); got != c.Fails {
					t.Errorf("fails %q, want %q (%s); problems %q", got, c.Fails, seen.broken, seen.outcome.Problems)
				}
			})
		}
	}
}

func (m mode) installs() []string {
	if len(m.Install) == 0 {
		return []string{"manifests", "charts"}
	}
	return m.Install
}

// seen is what became of a server.
type seen struct {
	// broken is why there is no node.
	broken  string
	outcome offlinenode.Result
	verdict v1alpha1.Verdict
	// truth is what became of the hardware, whatever is told of it.
	truth   []string
	cluster *operator.Cluster
}

// failed are the names of the checks that do not pass, for ever.
func (s seen) failed() string {
	var out []string
	for _, c := range s.verdict.Checks {
		if c.Result != v1alpha1.CheckPass {
			out = append(out, c.Name)
		}
	}
	return strings.Join(out, " ")
}

// shows are the facts of the node: resources, labels, and devices by driver and type.
func (s seen) shows() []string {
	var out []string
	for name, quantity := range s.outcome.Node.Status.Allocatable {
		out = append(out, string(name)+"="+quantity.String())
	}
	for key, value := range s.outcome.Node.Labels {
		out = append(out, key+"="+value)
	}
	devices := map[string]int{}
	for _, slice := range s.outcome.Slices {
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

// made is what follows from a mode alone: it is made once, and nobody changes it.
type made struct {
	plan      *v1alpha1.NodePlan
	documents *cloudinit.Documents
	// tenant is the YAML of what is installed, by how.
	tenant map[string]string
}

func (m mode) plan(t *testing.T) v1alpha1.NodePlan {
	t.Helper()
	if m.made.plan != nil {
		return *m.made.plan
	}
	plan, err := presentation.Resolve(spec.Request{GPU: m.NodeType.GPU, Image: m.OSImage, Resources: m.NodeType.Resources})
	if err != nil {
		t.Fatal(err)
	}
	m.made.plan = &plan
	return plan
}

// live renders, boots, settles and judges, with one change.
func (m mode) live(t *testing.T, how string, c change) seen {
	t.Helper()
	out := m.settle(t, how, c)
	if out.broken == "" {
		out.verdict = judge(m.plan(t), out.outcome, out.cluster)
	}
	return out
}

// settle is live without the verdict.
func (m mode) settle(t *testing.T, how string, c change) seen {
	t.Helper()
	plan := m.plan(t)
	booted, broken := m.boot(t, plan, c)
	if broken != nil {
		return seen{broken: broken.Error()}
	}
	k, err := m.kubelet(booted)
	if err != nil {
		return seen{broken: err.Error()}
	}
	cluster, err := m.cluster(t, how, plan, c)
	if err != nil {
		return seen{broken: err.Error()}
	}
	return seen{outcome: offlinenode.Run(t.Context(), booted, k, cluster), cluster: cluster, truth: truth(booted)}
}

// truth is which driver holds each device of a GPU's vendor, and how each GPU is cut.
func truth(m *machine.Machine) []string {
	var out []string
	for _, d := range m.Bus.Devices() {
		compute, memory := d.Partition()
		out = append(out, fmt.Sprint(d.Address, " ", d.Driver, " ", compute, memory, " ", d.VirtualType, d.Mediated))
	}
	for _, g := range m.GPUs() {
		out = append(out, fmt.Sprint(g.Address, " MIG ", g.MIG, " ", g.Layout()))
	}
	return out
}

// render renders the documents.
func (m mode) render(t *testing.T, plan v1alpha1.NodePlan) cloudinit.Documents {
	t.Helper()
	if m.made.documents != nil {
		return *m.made.documents
	}
	documents, err := cloudinit.Render(cloudinit.Input{
		Kind: m.OSImage.UserData, OS: m.OSImage.OS.ID, KernelArguments: m.OSImage.KernelArguments, Plan: plan, Gate: gate, Secrets: m.secrets(),
		Machine: cloudinit.MachineInput{Name: nodeName, Namespace: "default", UID: uid, Revision: "r-1", Attempt: 1},
		Node:    cloudinit.NodeInput{Labels: map[string]string{v1alpha1.LabelNodeType: m.name}},
		Join:    &cloudinit.TLSBootstrap{Endpoint: "https://tenant.example.com:6443", CA: []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), Token: "abcdef.0123456789abcdef"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.made.documents = &documents
	return documents
}

// boot boots the documents. The error is why kubelet does not start.
func (m mode) boot(t *testing.T, plan v1alpha1.NodePlan, c change) (*machine.Machine, error) {
	t.Helper()
	documents := m.render(t, plan)
	drive := &machineos.ConfigDrive{UserData: []byte(c.edited(t, "documents", string(documents.UserData))), MetaData: machineos.MetaData{UUID: uid + "/r-1"}}
	options := machine.Options{Image: m.image(t, c), Drive: drive, Owner: uid, Boot: "boot-1"}
	hardware, err := rewritten(t, c, "server", m.Server)
	if err != nil {
		return nil, err
	}
	hardwareOf(t, hardware, &options)
	booted, err := machine.Boot(options)
	if err == nil && c.Reboots {
		left := booted.State
		options.State, options.Boot = &left, "boot-2"
		booted, err = machine.Boot(options)
	}
	if err != nil {
		return nil, err
	}
	if !booted.Running("kubelet") {
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

// image is what is baked in, which is not what the OSImage says once it is changed.
func (m mode) image(t *testing.T, c change) machineos.Image {
	t.Helper()
	baked, err := rewritten(t, c, "image", m.OSImage)
	if err != nil {
		t.Fatal(err)
	}
	var out machineos.Image
	plainly(t, baked, &out)
	out.Kernel, out.Ignition = baked.OS.Kernel, baked.UserData == v1alpha1.UserDataIgnition
	if baked.Software.MIGParted != "" {
		out.Programs = append(out.Programs, "nvidia-mig-parted")
	}
	if baked.Software.VGPUDeviceManager != "" {
		out.Programs = append(out.Programs, "nvidia-vgpu-dm")
	}
	return out
}

func hardwareOf(t *testing.T, s server, options *machine.Options) {
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

// kubelet reads the machine's disk.
func (m mode) kubelet(booted *machine.Machine) (*kubelet.Kubelet, error) {
	words, err := booted.Command("kubelet", "[Service]\nExecStart=/usr/bin/kubelet\n")
	if err != nil {
		return nil, err
	}
	cpus, memory := m.NodeType.Resources.Cpu().Value(), m.NodeType.Resources.Memory().Value()
	return kubelet.New(kubelet.Options{
		Arguments: words, ReadFile: booted.ReadFile, Hostname: booted.Hostname, Address: "198.18.0.1", Clock: clock.RealClock{},
		Hardware: kubelet.Hardware{CPUs: int(cpus), MemoryBytes: memory, DiskBytes: 1 << 40},
		NodeInfo: corev1.NodeSystemInfo{
			BootID: "boot-1", SystemUUID: uid, KernelVersion: booted.Image.Kernel, KubeletVersion: "v" + booted.Image.Software.Kubelet, OperatingSystem: "linux", Architecture: "amd64",
		},
	})
}

// cluster is the tenant with its software installed. The error is that of what cannot be installed as changed.
func (m mode) cluster(t *testing.T, how string, plan v1alpha1.NodePlan, c change) (*operator.Cluster, error) {
	t.Helper()
	text, made := m.made.tenant[how]
	if !made {
		releases, applied := m.software(t, how, plan)
		text = asYAML(t, installed{releases, applied})
		m.made.tenant[how] = text
	}
	var all installed
	if err := yaml.Unmarshal([]byte(c.edited(t, "tenant", text)), &all); err != nil {
		return nil, fmt.Errorf("after the change of %q: %w", c.Line, err)
	}
	out := &operator.Cluster{}
	for _, r := range all.Charts {
		if err := out.Install(r.release()); err != nil {
			return nil, err
		}
	}
	return out, out.Apply(objects(all.Objects)...)
}

// installed is what is in the tenant.
type installed struct {
	Charts  []release        `json:"charts"`
	Objects []map[string]any `json:"objects"`
}

// software is what is installed in the tenant, as charts or as objects.
func (m mode) software(t *testing.T, how string, plan v1alpha1.NodePlan) ([]release, []map[string]any) {
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
		return asPlain(t, releases), m.Own
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

// release is an operator.Release as text has it.
type release struct {
	Chart     string           `json:"chart"`
	Name      string           `json:"name"`
	Namespace string           `json:"namespace"`
	Values    map[string]any   `json:"values"`
	Objects   []map[string]any `json:"objects"`
}

func asPlain(t *testing.T, all []operator.Release) []release {
	t.Helper()
	var out []release
	for _, r := range all {
		plain := release{Chart: r.Chart, Name: r.Name, Namespace: r.Namespace}
		plainly(t, r.Values, &plain.Values)
		for _, o := range r.Objects {
			plain.Objects = append(plain.Objects, o.Object)
		}
		out = append(out, plain)
	}
	return out
}

func (r release) release() operator.Release {
	return operator.Release{Chart: r.Chart, Name: r.Name, Namespace: r.Namespace, Values: r.Values, Objects: objects(r.Objects)}
}

// judge is the verdict when its time is up, so that what waits has failed.
func judge(plan v1alpha1.NodePlan, outcome offlinenode.Result, cluster *operator.Cluster) v1alpha1.Verdict {
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
	return verdict.Judge(verdict.Input{
		Now: now, Deadline: now, Expectation: plan.Expectation, Node: outcome.Node, SlicesServed: true, Slices: slices.Clone[[]resourcev1.ResourceSlice](outcome.Slices),
		DeviceClasses: classes, DaemonSets: cluster.DaemonSets, Gate: gate, OnFailure: v1alpha1.OnFailureHold,
		Identity: verdict.Identity{ProviderID: v1alpha1.ProviderID(uid, 1), SystemUUID: uid, Revision: "r-1"},
	}).Verdict
}
