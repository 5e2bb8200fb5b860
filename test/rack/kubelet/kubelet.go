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

// Hardware is the hardware from which the node's capacity is computed.
type Hardware struct {
	CPUs int
	// MemoryBytes is the installed memory. The kernel leaves a little less.
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
	// IsPlugin reports whether the pod is a vendor's device plugin.
	IsPlugin(pod *corev1.Pod) bool
	// Register returns the devices that the plugin in the pod registers, by resource name. An error ends its container.
	// configMap reads a ConfigMap of the pod's namespace.
	Register(ctx context.Context, pod *corev1.Pod, configMap func(ctx context.Context, name string) (map[string]string, error)) (map[corev1.ResourceName]Devices, error)
}

// ActingPlugins are Plugins whose pods can change the machine and the node. Such a pod is retried after an error, as its
// container would be.
type ActingPlugins interface {
	// RunPod runs the pod on this node. It returns the labels that the pod sets, also with an error, and the devices that it
	// registers.
	RunPod(ctx context.Context, pod *corev1.Pod, node *corev1.Node, configMap func(ctx context.Context, name string) (map[string]string, error)) (labels map[string]string, devices map[corev1.ResourceName]Devices, err error)
}

// Drivers are the vendors' DRA drivers.
type Drivers interface {
	// DriverName returns the name of the DRA driver in the pod, or "".
	DriverName(pod *corev1.Pod) string
	// RunDriver runs the driver until ctx ends. An error ends its container.
	RunDriver(ctx context.Context, in DriverPod) error
}

// DriverPod is the environment of a DRA driver.
type DriverPod struct {
	Pod *corev1.Pod
	// Node is the name of the pod's node.
	Node string
	// Client uses the pod's service account, with the token that is mounted into the pod.
	Client kubernetes.Interface
	// Retry repeats an attempt until it succeeds or ctx ends, with pauses that double.
	Retry func(ctx context.Context, doing string, attempt func() error) error
}

// Storage is a directory on the machine's disk. It holds credentials.
type Storage interface {
	// Load returns nil without an error when nothing is stored under the name.
	Load(name string) ([]byte, error)
	Save(name string, content []byte) error
}

// Options are the parameters of a Kubelet. All are required but Log.
type Options struct {
	// Arguments is the command line, the program first.
	Arguments []string
	// ReadFile reads a file of the machine.
	ReadFile func(path string) ([]byte, error)
	// ListFiles returns the paths of all files below a directory, sorted; nil: there are none.
	ListFiles func(directory string) []string
	// Hostname is the machine's host name.
	Hostname string
	// Address is the node's InternalIP.
	Address  string
	Hardware Hardware
	// NodeInfo describes the machine. The boot id is new in every boot.
	NodeInfo corev1.NodeSystemInfo
	// Annotations of the Node that the machine's own units set in this boot.
	Annotations map[string]string
	Storage     Storage
	Plugins     Plugins
	Drivers     Drivers
	Clock       clock.Clock
	// Wait waits for processes on the machine that take time.
	Wait func(context.Context, time.Duration) error
	// Container is how long a container takes to start or to stop, Plugin how long a plugin takes to find its devices.
	Container, Plugin time.Duration
	// HasLink reports whether the machine reaches anybody; nil: it does.
	HasLink func() bool
	Log     *slog.Logger
}

// Kubelet is a running kubelet.
type Kubelet struct {
	options  Options
	settings settings
	log      *slog.Logger
	identity Identity
	client   kubernetes.Interface

	mu sync.Mutex
	// pods are the pods that are bound to this node.
	pods map[types.UID]*podWorker
	// devices are the devices that plugins have registered, owners the pods of the plugins that registered them last.
	devices map[corev1.ResourceName]Devices
	owners  map[corev1.ResourceName]types.UID
	// drivers are the pods of the registered DRA drivers, by driver.
	drivers map[string]types.UID
	// changed signals reportStatus.
	changed chan struct{}
	workers sync.WaitGroup
}

// New reads the command line and the configuration. It returns an error when kubelet would not start.
func New(options Options) (*Kubelet, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	parsed, err := parseSettings(options.Arguments, options.Hostname, options.ReadFile, options.ListFiles)
	if err == nil {
		err = parsed.reservation().check(options.Hardware)
	}
	if err != nil {
		return nil, err
	}
	return &Kubelet{
		options: options, settings: parsed, log: options.Log.With("node", parsed.name), pods: map[types.UID]*podWorker{},
		devices: map[corev1.ResourceName]Devices{}, owners: map[corev1.ResourceName]types.UID{}, drivers: map[string]types.UID{}, changed: make(chan struct{}, 1),
	}, nil
}

// NodeName returns the name that kubelet registers with.
func (k *Kubelet) NodeName() string { return k.settings.name }

// Run joins the cluster and serves the node until ctx ends and all its goroutines have returned.
func (k *Kubelet) Run(ctx context.Context) error {
	who, err := k.ensureIdentity(ctx)
	if err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	client, done, err := who.client(nil, k.options.HasLink)
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

// retry repeats an attempt until it succeeds or ctx ends, with pauses that double, as kubelet does.
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

// sleep waits for a duration on the clock, which tests can run at any speed.
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
