package operator

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

const bootMAC = "0c:42:a1:00:00:01"

// oneSession is a netboot.Store with one host.
type oneSession struct {
	mu      sync.Mutex
	session netboot.Session
}

func (s *oneSession) read() (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session, nil
}

func (s *oneSession) ByMAC(context.Context, string) (netboot.Session, error) { return s.read() }
func (s *oneSession) ByUID(context.Context, string) (netboot.Session, error) { return s.read() }
func (s *oneSession) CachedByMAC(ctx context.Context, mac string) (netboot.Session, error) {
	return s.ByMAC(ctx, mac)
}

func (s *oneSession) CachedByUID(context.Context, string) (netboot.Session, error) { return s.read() }

func (s *oneSession) Update(_ context.Context, _ string, change func(*netboot.Session) error) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.session
	if err := change(&changed); err != nil {
		return s.session, err
	}
	s.session = changed
	return changed, nil
}

func (s *oneSession) ConfigDrive(context.Context, string, int64) (hardware.ConfigDrive, error) {
	return hardware.ConfigDrive{}, nil
}

// memoryDisk is a disk of the server.
type memoryDisk []byte

func (d memoryDisk) Info() hardware.Disk {
	return hardware.Disk{Name: "/dev/nvme0n1", SizeBytes: int64(len(d))}
}
func (d memoryDisk) SectorSize() int64 { return 512 }
func (d memoryDisk) Close() error      { return nil }
func (d memoryDisk) Sync() error       { return nil }
func (d memoryDisk) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(d).ReadAt(p, off)
}
func (d memoryDisk) WriteAt(p []byte, off int64) (int, error) { return copy(d[off:], p), nil }
func (d memoryDisk) ZeroRange(off, n int64) error             { clear(d[off : off+n]); return nil }

// otherCA returns the certificate of a CA that has signed nothing.
func otherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return inPEM(der)
}

func inPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// bootAgent starts the boot service as the manager does, boots the server of the namespace and runs its agent, which installs the image.
func bootAgent(t *testing.T, namespace string, image hardware.Image) (netboot.Session, error) {
	t.Helper()
	now := time.Now()
	store := &oneSession{session: netboot.Session{
		HostUID: "0b0c1fd6-1f0f-4f5e-9f0c-0d6f5f2f1a11", Namespace: namespace, Name: "gpu-1", BootMAC: bootMAC,
		Work:          netboot.Work{Operation: hardware.OpInstall, Image: image, RootDevice: hardware.RootDevice{MinSizeBytes: 1}},
		AttemptStatus: hardware.AttemptStatus{Number: 1, State: hardware.AttemptRunning, Step: hardware.StepBooting},
		Since:         now.Add(-time.Minute), OpenedAt: now.Add(-time.Second), Deadline: now.Add(time.Hour),
	}}
	var service http.Handler
	boot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { service.ServeHTTP(w, r) }))
	t.Cleanup(boot.Close)
	made, err := netboot.New(netboot.Options{
		Store: store, Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }, BaseURL: boot.URL,
		HostSettings: bootSettingsOfHost(server.Client, ""), Files: fstest.MapFS{"vmlinuz": {Data: []byte("kernel")}, "initrd": {Data: []byte("initrd")}},
		Kernel: "vmlinuz", Initrd: "initrd", ProgressInterval: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	service = made
	response, err := http.Get(boot.URL + "/boot/" + bootMAC)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	script, err := io.ReadAll(response.Body)
	token := regexp.MustCompile(`ingot\.token=(\S+)`).FindSubmatch(script)
	if err != nil || token == nil {
		t.Fatalf("boot document: %v, %s", err, script)
	}
	_, err = agent.Run(t.Context(), agent.Config{
		URL: boot.URL, Token: string(token[1]),
		Disks: func(context.Context) ([]agent.Disk, []hardware.UnusableDisk, error) {
			return []agent.Disk{make(memoryDisk, 8<<20)}, nil, nil
		},
		Inventory: func(context.Context) (hardware.Inventory, error) {
			return hardware.Inventory{SystemUUID: "4c4c4544-0042", NICs: []hardware.NIC{{Name: "eno1", MAC: bootMAC}}}, nil
		},
	})
	session, _ := store.read()
	return session, err
}

// TestTheCABundleOfANodeProviderReachesTheAgent: the image server's certificate is of a private CA, as most sites' are.
func TestTheCABundleOfANodeProviderReachesTheAgent(t *testing.T) {
	content := bytes.Repeat([]byte("image"), 1<<18)
	sum := sha256.Sum256(content)
	requests := 0
	images := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	defer images.Close()
	image := hardware.Image{URL: images.URL + "/image.raw", Checksum: "sha256:" + hex.EncodeToString(sum[:]), Format: "raw"}
	private := inPEM(images.Certificate().Raw)
	for name, c := range map[string]struct {
		bundle  string
		isTaken bool
	}{
		"its CA":                        {private, true},
		"its CA after another one":      {otherCA(t) + private, true},
		"another CA":                    {otherCA(t), false},
		"none, and so the system's CAs": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := server.Namespace(t)
			provider := &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1alpha1.NodeProviderSpec{HostNamespace: namespace,
				Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "127.0.0.1", CABundle: c.bundle}}}}
			server.Create(t, provider)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationNodeProvider+`":"`+namespace+`"}}}`))
			if err := server.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, patch); err != nil {
				t.Fatal(err)
			}
			requests = 0
			session, err := bootAgent(t, namespace, image)
			switch {
			case c.isTaken && (err != nil || requests != 1):
				t.Errorf("%d requests, %v", requests, err)
			case !c.isTaken && (err == nil || requests != 0 || session.State != hardware.AttemptFailed || session.Reason != hardware.ReasonImageUnreachable || !strings.Contains(session.Message, "certificate")):
				t.Errorf("%d requests, %v, attempt %+v", requests, err, session.AttemptStatus)
			}
		})
	}
}
