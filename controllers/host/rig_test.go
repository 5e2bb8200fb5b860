package host_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/diskfs/go-diskfs"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/grants"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/controllers/host"
	"github.com/ingot-dev/ingot/controllers/host/sessions"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/readyourwrites"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/rack"
)

var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

// speed makes a self-test of four minutes take a quarter of a second.
const speed = 1000

// quick are Timeouts for servers of that speed.
func quick() plan.Timeouts {
	t := plan.DefaultTimeouts()
	t.Install, t.EraseMetadata, t.EraseFull = time.Minute, time.Minute, time.Minute
	t.BMCGrace = 200 * time.Millisecond
	t.RetryBase, t.PollInterval, t.IdleInterval = 50*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond
	return t
}

// diskImage is a partitioned disk with nothing on it, made once.
var diskImage = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "host-image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "image.raw")
	image, err := diskfs.Create(path, 16<<20, diskfs.SectorSize512)
	if err != nil {
		return nil, err
	}
	table := &gpt.Table{LogicalSectorSize: 512, PhysicalSectorSize: 512, ProtectiveMBR: true, Partitions: []*gpt.Partition{
		{Index: 1, Start: 2048, End: 4095, Type: gpt.EFISystemPartition, Name: "ESP"},
		{Index: 2, Start: 4096, End: 20479, Type: gpt.LinuxFilesystem, Name: "root"},
	}}
	if err := image.Partition(table); err != nil {
		return nil, err
	}
	if err := image.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// rig is a namespace of a redfish provider with simulated servers, and a controller that serves it.
// quickly is a clock that runs a thousand times as fast.
type quickly struct{}

var began = time.Now()

func (quickly) Now() time.Time                       { return began.Add(1000 * time.Since(began)) }
func (q quickly) Since(then time.Time) time.Duration { return q.Now().Sub(then) }

type rig struct {
	t         *testing.T
	namespace string
	rack      *rack.Rack
	image     v1alpha1.ExactImage
	bootURL   string
	boot      sync.Map // "handler": the boot service of the controller that runs
	stop      func()
	// stale fills in objects as the controller's cache still shows them; nil: it keeps up.
	stale func(client.ObjectKey, client.Object) bool
	// hasNoRecords has the lists of the controller's cache show no HostRecord yet.
	hasNoRecords bool
	// writes of the process.
	writes writes
	// progress is the boot service's ProgressInterval.
	progress time.Duration
	// powerOff and powerOn are the installer's; 0: as by default.
	powerOff, powerOn time.Duration
	// bmcTimeout limits every request to a BMC; 0: 5 seconds.
	bmcTimeout time.Duration
	// elsewhere is another namespace that the controller sees; empty: there is none.
	elsewhere string
	// timeouts are the controller's.
	timeouts plan.Timeouts
	// ways are how the NodeProvider has servers boot; nil: by the network.
	ways []v1alpha1.BootWay
	// ironic is that of the NodeProvider; nil: it is a redfish one.
	ironic *v1alpha1.IronicProvider
	// gracefulOff is Ironic's; 0: as by default.
	gracefulOff time.Duration
	// bootTimeout is how long a server may take to load the agent; 0: as by default.
	bootTimeout time.Duration
	// log gets what the process logs; nil: nothing is logged.
	log io.Writer
}

// logger writes to the log of the process.
func (r *rig) logger() *slog.Logger {
	if r.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// named is a server, by the name of its host.
type named interface{ Name() string }

func newRig(t *testing.T, servers int) *rig {
	t.Helper()
	return newRigWithDisks(t, servers, 0)
}

// newRigWithDisks makes a rig whose servers have so many data disks.
func newRigWithDisks(t *testing.T, servers, dataDisks int) *rig {
	t.Helper()
	return newRigWith(t, servers, dataDisks, func(*rig) {})
}

// newRigWith does the same with a rig that is changed before its controller starts.
func newRigWith(t *testing.T, servers, dataDisks int, change func(*rig)) *rig {
	t.Helper()
	raw, err := diskImage()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, namespace: server.Namespace(t), progress: 20 * time.Millisecond, timeouts: quick()}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/image.raw" {
			http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(raw))
			return
		}
		handler, _ := r.boot.Load("handler")
		handler.(http.Handler).ServeHTTP(w, q)
	}))
	t.Cleanup(web.Close)
	sum := sha256.Sum256(raw)
	r.bootURL = web.URL
	r.image = v1alpha1.ExactImage{URL: web.URL + "/image.raw", Checksum: "sha256:" + hex.EncodeToString(sum[:]), Format: v1alpha1.FormatRaw}
	r.rack, err = rack.New(rack.Options{Name: r.namespace, Dir: t.TempDir(), Count: servers, DataDisks: dataDisks, BootURL: web.URL, Speed: speed})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.rack.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.rack.Stop(); err != nil {
			t.Error(err)
		}
	})
	change(r)
	r.provide()
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

// provide makes the namespace the provider's.
func (r *rig) provide() {
	if len(r.ways) == 0 {
		r.ways = []v1alpha1.BootWay{v1alpha1.BootWayNetwork}
	}
	spec := v1alpha1.NodeProviderSpec{HostNamespace: r.namespace, Ironic: r.ironic}
	if r.ironic == nil {
		spec.Redfish = &v1alpha1.RedfishProvider{
			CABundleSecretRef: &v1alpha1.LocalReference{Name: "bmc-ca"}, Netboot: v1alpha1.NetbootSpec{Address: "127.0.0.1", Ways: r.ways}}
	}
	server.Create(r.t,
		&corev1.Secret{ObjectMeta: r.meta("bmc-ca"), Data: map[string][]byte{"ca.crt": r.rack.CA()}},
		&v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}, Spec: spec})
	ns := &corev1.Namespace{}
	if err := server.Client.Get(r.t.Context(), client.ObjectKey{Name: r.namespace}, ns); err != nil {
		r.t.Fatal(err)
	}
	ns.Annotations = map[string]string{v1alpha1.AnnotationNodeProvider: r.namespace}
	if err := server.Client.Update(r.t.Context(), ns); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name}
}

// start runs a manager with the controller, as ingot-manager would; r.stop ends it.
func (r *rig) start() {
	t := r.t
	skip := true
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: server.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{
			DefaultNamespaces: r.namespaces(),
			ByObject:          map[client.Object]cache.ByObject{&v1alpha1.Machine{}: {Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}}},
		},
		NewClient: readyourwrites.NewClient, Logger: logr.FromSlogHandler(r.logger().Handler()),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := sessions.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	if err := hostindex.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	counted := counting{mgr.GetClient(), &r.writes}
	store := &sessions.Store{APIReader: mgr.GetAPIReader(), Client: counted}
	bmcs := redfish.New(redfish.Options{Timeout: cmp.Or(r.bmcTimeout, 5*time.Second), Log: r.logger()})
	service, err := netboot.New(netboot.Options{
		Store: store, Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }, BaseURL: r.bootURL,
		Files: fstest.MapFS{"vmlinuz": {Data: []byte("kernel")}, "initrd": {Data: cpio("init", "the agent")}}, Kernel: "vmlinuz", Initrd: "initrd",
		ProgressInterval: r.progress, Log: r.logger(),
		Media: func(line string) (io.ReadSeeker, error) { return strings.NewReader(line), nil }, Program: func(line string) (io.ReadSeeker, error) { return strings.NewReader(line), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.boot.Store("handler", service)
	reconciler := &host.Reconciler{
		Client: behind{counted, r.stale, r.hasNoRecords}, APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("ingot"), Clock: clock.RealClock{}, Grants: &grants.Desk{Clock: quickly{}}, Jitter: rand.Float64,
		Timeouts: r.timeouts, ConfigDrives: store, Installers: r.installers(direct.Options{BMCs: bmcs, Store: store, MediaURLs: service.MediaURLs, ProgramURLs: service.ProgramURLs, Log: r.logger(),
			Timeouts: hardware.Timeouts{GracefulOff: 50 * time.Millisecond, PowerOff: r.powerOff, PowerOn: r.powerOn, PowerOnRetry: 300 * time.Millisecond, Boot: r.bootTimeout}}),
	}
	r.writeDocuments(mgr)
	if err := reconciler.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
		if err := bmcs.Close(context.Background()); err != nil {
			t.Log(err)
		}
	})
}

// installers returns the Installers of the rig's NodeProvider.
func (r *rig) installers(options direct.Options) host.Installers {
	installer := hardware.Installer(direct.New(options))
	if r.ironic != nil {
		installer = ironic.New(ironic.Options{
			Endpoint: r.ironic.Endpoint, HardwareType: r.ironic.HardwareType, DeployInterface: r.ironic.DeployInterface, ListAge: 100 * time.Millisecond, Log: r.logger(),
			DeployKernel: r.ironic.DeployKernel, DeployRamdisk: r.ironic.DeployRamdisk, Timeouts: hardware.Timeouts{GracefulOff: r.gracefulOff},
		})
	}
	return func(*v1alpha1.NodeProvider) hardware.Installer { return installer }
}

// namespaces are those that the controller sees.
func (r *rig) namespaces() map[string]cache.Config {
	all := map[string]cache.Config{r.namespace: {}}
	if r.elsewhere != "" {
		all[r.elsewhere] = cache.Config{}
	}
	return all
}

// cpio is an archive of the "new" format with one file.
func cpio(name, content string) []byte {
	var out bytes.Buffer
	for _, entry := range [][2]string{{name, content}, {"TRAILER!!!", ""}} {
		fmt.Fprintf(&out, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", 1, 0o100755, 0, 0, 1, 0, len(entry[1]), 0, 0, 0, 0, len(entry[0])+1, 0, entry[0])
		out.Write(make([]byte, (4-out.Len()%4)%4))
		out.WriteString(entry[1])
		out.Write(make([]byte, (4-out.Len()%4)%4))
	}
	return out.Bytes()
}

// credentials writes the BMC Secret of the server's host.
func (r *rig) credentials(s *rack.Server, username, password string) {
	r.t.Helper()
	secret := &corev1.Secret{ObjectMeta: r.meta(s.Name() + "-bmc"), StringData: map[string]string{"username": username, "password": password}}
	err := server.Client.Create(r.t.Context(), secret)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = server.Client.Update(r.t.Context(), secret)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// register creates the BareMetalHost of the server.
func (r *rig) register(s *rack.Server, change func(*metal3.BareMetalHost)) {
	r.t.Helper()
	h := &metal3.BareMetalHost{ObjectMeta: r.meta(s.Name()), Spec: metal3.BareMetalHostSpec{
		BootMACAddress: s.BootMAC(),
		BMC:            metal3.BMCDetails{Address: "redfish+" + s.BMCAddress() + s.SystemPath(), CredentialsName: s.Name() + "-bmc"},
	}}
	if change != nil {
		change(h)
	}
	if err := server.Client.Create(r.t.Context(), h); err != nil {
		r.t.Fatal(err)
	}
}

// available registers the server with its real credentials and waits until it is in the pool.
func (r *rig) available(s *rack.Server) {
	r.t.Helper()
	r.credentials(s, first(s.Credentials()), second(s.Credentials()))
	r.register(s, nil)
	r.await(s, "it is available", inState(metal3.StateAvailable))
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }

func (r *rig) get(s named) (*metal3.BareMetalHost, *v1alpha1.HostRecord, error) {
	h, record := &metal3.BareMetalHost{}, &v1alpha1.HostRecord{}
	key := client.ObjectKey{Namespace: r.namespace, Name: s.Name()}
	if err := server.Client.Get(context.Background(), key, h); err != nil {
		return nil, nil, err
	}
	return h, record, client.IgnoreNotFound(server.Client.Get(context.Background(), key, record))
}

// await waits until the check holds.
func (r *rig) await(s named, what string, check func(*metal3.BareMetalHost, *v1alpha1.HostRecord) bool) (*metal3.BareMetalHost, *v1alpha1.HostRecord) {
	r.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		h, record, err := r.get(s)
		if err != nil {
			r.t.Fatal(err)
		}
		if check(h, record) {
			return h, record
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("not in time: %s\nhost: %+v\nrecord: %+v\nwanted: %+v\nattempt: %+v\nserver: %+v", what, h.Status, record.Status, record.Status.Wanted, record.Status.Attempt, stateOf(s))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stateOf returns what a simulated server of the rack does.
func stateOf(s named) any {
	if simulated, ok := s.(*rack.Server); ok {
		return simulated.State()
	}
	return s
}

func inState(state metal3.ProvisioningState) func(*metal3.BareMetalHost, *v1alpha1.HostRecord) bool {
	return func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) bool {
		return h.Status.Provisioning.State == state && h.Status.ErrorType == ""
	}
}

// edit changes the host, however often others do meanwhile.
func (r *rig) edit(s named, change func(*metal3.BareMetalHost)) *metal3.BareMetalHost {
	r.t.Helper()
	h, _, err := r.get(s)
	if err != nil {
		r.t.Fatal(err)
	}
	before := h.DeepCopy()
	change(h)
	if err := server.Client.Patch(context.Background(), h, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// claim does what the machine controller does, in its order.
func (r *rig) claim(s named, uid string, attempt int64, erase v1alpha1.EraseMode) {
	r.t.Helper()
	r.edit(s, func(h *metal3.BareMetalHost) {
		h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "ingot.dev/v1alpha1", Kind: "Machine", Namespace: "team", Name: "node-1", UID: types.UID(uid)}
	})
	_, record, err := r.get(s)
	if err != nil {
		r.t.Fatal(err)
	}
	before := record.DeepCopy()
	image := r.image
	record.Spec = v1alpha1.HostRecordSpec{Machine: &v1alpha1.MachineReference{Namespace: "team", Name: "node-1", UID: types.UID(uid)}, Tenant: "team/research",
		Revision: "r1", Attempt: attempt, Image: &image, Erase: erase}
	if err := server.Client.Patch(r.t.Context(), record, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
	claim := &corev1.Secret{ObjectMeta: r.meta(s.Name() + "-claim"), StringData: map[string]string{
		"userData": "#cloud-config\n", "networkData": "{}", "metaData": `{"uuid": "u", "local-hostname": "node-1"}`}}
	if err := client.IgnoreAlreadyExists(server.Client.Create(r.t.Context(), claim)); err != nil {
		r.t.Fatal(err)
	}
	r.edit(s, func(h *metal3.BareMetalHost) {
		format := "raw"
		ref := &corev1.SecretReference{Name: s.Name() + "-claim", Namespace: r.namespace}
		h.Spec.Image = &metal3.Image{URL: image.URL, Checksum: image.Checksum[7:], ChecksumType: metal3.SHA256, DiskFormat: &format}
		h.Spec.UserData, h.Spec.NetworkData, h.Spec.MetaData, h.Spec.Online = ref, ref, ref, true
	})
}

// unassign takes the image away, which releases the host.
func (r *rig) unassign(s *rack.Server) {
	r.t.Helper()
	r.edit(s, func(h *metal3.BareMetalHost) {
		h.Spec.Image, h.Spec.UserData, h.Spec.NetworkData, h.Spec.MetaData = nil, nil, nil, nil
	})
}

// eventually waits until the check holds.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// writeDocuments is the machine controller's part of an installation: it marks the claim Secret as written for the agent that waits.
func (r *rig) writeDocuments(mgr ctrl.Manager) {
	r.t.Helper()
	informer, err := mgr.GetCache().GetInformer(r.t.Context(), &v1alpha1.HostRecord{})
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) {
		record, isRecord := o.(*v1alpha1.HostRecord)
		if !isRecord || record.Status.Wanted == nil {
			return
		}
		w, progress := record.Status.Wanted, record.Status.Progress()
		if w.ConfigDriveAwaitedAt == nil && (progress == nil || progress.ConfigDriveAwaitedAt == nil) {
			return
		}
		claim := &corev1.Secret{ObjectMeta: r.meta(record.Name + "-claim")}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q},"annotations":{%q:"%d",%q:"%d",%q:"abcdef"}}}`, v1alpha1.LabelMachine, w.MachineUID,
			v1alpha1.AnnotationClaimAttempt, w.MachineAttempt, v1alpha1.AnnotationClaimHostAttempt, w.Number, v1alpha1.AnnotationClaimTokenID)
		if err := client.IgnoreNotFound(server.Client.Patch(context.Background(), claim, client.RawPatch(types.MergePatchType, []byte(patch)))); err != nil {
			r.t.Error(err)
		}
	}})
	if err != nil {
		r.t.Fatal(err)
	}
}
