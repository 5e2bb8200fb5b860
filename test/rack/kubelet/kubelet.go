package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Hardware is what the node's capacity follows from.
type Hardware struct {
	CPUs int
	// MemoryBytes is what is built in; the kernel leaves a little less.
	MemoryBytes int64
	// DiskBytes is the size of the disk with the root file system.
	DiskBytes int64
}

// Devices are the devices that a plugin registers for one resource.
type Devices struct {
	Total, Healthy int64
}

// Plugins are the vendors' device plugins.
type Plugins interface {
	// Serves says whether the pod is a vendor's device plugin.
	IsPlugin(pod *corev1.Pod) bool
	// Register is what the plugin in the pod registers with kubelet, by resource name. The error is why its container
	// ends. configMap reads a ConfigMap of the pod's namespace that the pod refers to.
	Register(ctx context.Context, pod *corev1.Pod, configMap func(ctx context.Context, name string) (map[string]string, error)) (map[corev1.ResourceName]Devices, error)
}

// Acting are Plugins whose pods may change the machine and its node beside what they register. Such a pod is tried again and
// again, as its container would be.
type ActingPlugins interface {
	// Act is what the pod does on this node: the labels that it sets, which stay when it fails, and the devices that it
	// registers.
	RunPod(ctx context.Context, pod *corev1.Pod, node *corev1.Node, configMap func(ctx context.Context, name string) (map[string]string, error)) (labels map[string]string, devices map[corev1.ResourceName]Devices, err error)
}

// Drivers are the vendors' DRA drivers.
type Drivers interface {
	// Driver is the name of the DRA driver that is in the pod, "" for none.
	DriverName(pod *corev1.Pod) string
	// Drive is the driver's life until ctx ends. An error is why its container ends.
	RunDriver(ctx context.Context, in DriverPod) error
}

// DriverPod is what a DRA driver has around it.
type DriverPod struct {
	Pod *corev1.Pod
	// Node is the name of the pod's node.
	Node string
	// Client acts as the pod's service account, with the token that is mounted into the pod.
	Client kubernetes.Interface
	// Retry repeats an attempt until it succeeds or ctx ends, with pauses that double.
	Retry func(ctx context.Context, doing string, attempt func() error) error
}

// Keep is a place on the machine's disk. It keeps credentials.
type Storage interface {
	// Load returns nil without an error when there is nothing.
	Load(name string) ([]byte, error)
	Save(name string, content []byte) error
}

// Options are what the machine gives to kubelet. All are required but Log.
type Options struct {
	// Arguments is the command line, the program first.
	Arguments []string
	// ReadFile reads a file of the machine.
	ReadFile func(path string) ([]byte, error)
	// Hostname is the machine's.
	Hostname string
	// Address is the node's InternalIP.
	Address  string
	Hardware Hardware
	// NodeInfo is what the machine says of itself; the boot id is new with every boot.
	NodeInfo corev1.NodeSystemInfo
	Storage  Storage
	Plugins  Plugins
	Drivers  Drivers
	Clock    clock.Clock
	// Wait lets what a machine takes its time for take its time.
	Wait func(context.Context, time.Duration) error
	// Container is how long a container takes to start or to end, Plugin how long a plugin takes to find its devices.
	Container, Plugin time.Duration
	Log               *slog.Logger
}

// Kubelet is a running kubelet.
type Kubelet struct {
	options  Options
	settings settings
	log      *slog.Logger
	identity Identity
	client   kubernetes.Interface

	mu sync.Mutex
	// pods are those bound to this node.
	pods map[types.UID]*podWorker
	// devices are what plugins have registered, owners the pods of the plugins that did so last.
	devices map[corev1.ResourceName]Devices
	owners  map[corev1.ResourceName]types.UID
	// drivers are the DRA drivers that have registered, with the pods that did so last.
	drivers map[string]types.UID
	// changed wakes the status loop.
	changed chan struct{}
	workers sync.WaitGroup
}

// New reads command line and configuration; an error is why kubelet would not start.
func New(options Options) (*Kubelet, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	parsed, err := parseSettings(options.Arguments, options.Hostname, options.ReadFile)
	if err != nil {
		return nil, err
	}
	return &Kubelet{
		options: options, settings: parsed, log: options.Log.With("node", parsed.name), pods: map[types.UID]*podWorker{},
		devices: map[corev1.ResourceName]Devices{}, owners: map[corev1.ResourceName]types.UID{}, drivers: map[string]types.UID{}, changed: make(chan struct{}, 1),
	}, nil
}

// NodeName is the name that kubelet registers with.
func (k *Kubelet) NodeName() string { return k.settings.name }

// Run joins the cluster and serves the node until ctx ends. Then nothing of it is left.
func (k *Kubelet) Run(ctx context.Context) error {
	who, err := k.ensureIdentity(ctx)
	if err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	client, done, err := who.client(nil)
	if err != nil {
		return fmt.Errorf("using the node's certificate: %w", err)
	}
	defer done()
	k.client, k.identity = client, who
	node, err := k.register(ctx)
	if err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	k.log.Info("registered", "uid", string(node.UID))
	// What drivers published before is not true any more. Kubelet does not wait for it.
	k.workers.Go(func() { k.deleteSlices(ctx, "") })
	var loops sync.WaitGroup
	loops.Go(func() { k.renewLease(ctx, node) })
	loops.Go(func() { k.watchPods(ctx) })
	loops.Go(func() { k.reportStatus(ctx) })
	loops.Wait()
	k.workers.Wait()
	return context.Cause(ctx)
}

// retry repeats an attempt until it succeeds or ctx ends, with pauses as kubelet makes them: they double.
func (k *Kubelet) retry(ctx context.Context, doing string, least, most time.Duration, attempt func() error) error {
	for pause := least; ; pause = min(2*pause, most) {
		err := attempt()
		if err == nil || ctx.Err() != nil {
			return err
		}
		k.log.Warn("trying again", "doing", doing, "error", err, "pause", pause)
		if err := k.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// sleep waits for a time that others measure too, at any speed.
func (k *Kubelet) sleep(ctx context.Context, d time.Duration) error {
	timer := k.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}
