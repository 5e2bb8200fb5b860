package sessions_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/host/sessions"
	"github.com/ingot-dev/ingot/controllers/readyourwrites"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

const mac = "52:54:00:aa:bb:01"

// rig is a namespace with a host that is being installed.
type rig struct {
	t      *testing.T
	host   *metal3.BareMetalHost
	record *v1alpha1.HostRecord
	store  *sessions.Store
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t}
	namespace := server.Namespace(t)
	r.host, r.record = r.add(namespace, "server-1", strings.ToUpper(mac))
	r.store = newStore(t, namespace)
	return r
}

// newStore is what a replica has, its cache filled.
func newStore(t *testing.T, namespace string) *sessions.Store {
	t.Helper()
	store, _ := newReplica(t, namespace)
	return store
}

// newReplica also gives what makes its cache stand still.
func newReplica(t *testing.T, namespace string) (*sessions.Store, func()) {
	t.Helper()
	c, err := cache.New(server.Config, cache.Options{Scheme: server.Scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sessions.Index(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = c.Start(ctx); close(ended) }()
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not fill")
	}
	cached, err := client.New(server.Config, client.Options{Scheme: server.Scheme, Cache: &client.CacheOptions{Reader: c}})
	if err != nil {
		t.Fatal(err)
	}
	return &sessions.Store{APIReader: server.Client, Client: readyourwrites.Wrap(cached, server.Client)}, func() { stop(); <-ended }
}

func (r *rig) add(namespace, name, bootMAC string) (*metal3.BareMetalHost, *v1alpha1.HostRecord) {
	r.t.Helper()
	ref := func(name string) *corev1.SecretReference { return &corev1.SecretReference{Name: name} }
	host := &metal3.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: metal3.BareMetalHostSpec{
			BootMACAddress: bootMAC, ConsumerRef: &corev1.ObjectReference{UID: "m1"}, RootDeviceHints: &metal3.RootDeviceHints{MinSizeGigabytes: 2},
			UserData: ref(name + "-claim"), NetworkData: ref(name + "-claim"), MetaData: ref(name + "-meta"),
		},
		Status: metal3.BareMetalHostStatus{OperationalStatus: metal3.OperationalStatusOK},
	}
	server.Create(r.t, host)
	now := metav1.NewMicroTime(time.Date(2026, 11, 20, 12, 0, 0, 1000, time.UTC))
	record := &v1alpha1.HostRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost", Name: name, UID: host.UID}}},
		Status: v1alpha1.HostRecordStatus{Wanted: &v1alpha1.WantedAttempt{
			Number: 7, Operation: "Install", MachineUID: "m1", MachineAttempt: 2, Since: now,
			Deadline: metav1.NewMicroTime(now.Add(time.Hour)), Image: &v1alpha1.ExactImage{URL: "http://images/a", Checksum: "sha256:aa", Format: "raw"},
		}},
	}
	claim := func(suffix string, data map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + suffix, Labels: map[string]string{v1alpha1.LabelMachine: "m1"},
			Annotations: map[string]string{v1alpha1.AnnotationClaimAttempt: "2", v1alpha1.AnnotationClaimHostAttempt: "7", v1alpha1.AnnotationClaimTokenID: "abcdef"},
		}, StringData: data}
	}
	server.Create(r.t, record, claim("-claim", map[string]string{"userData": "user", "networkData": "network"}), claim("-meta", map[string]string{"value": "meta"}))
	return host, record
}

func (r *rig) uid() string { return string(r.host.UID) }

func (r *rig) edit(change func(*metal3.BareMetalHost)) {
	r.t.Helper()
	before := r.host.DeepCopy()
	change(r.host)
	if err := server.Client.Patch(r.t.Context(), r.host, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
	management.Eventually(r.t, "the cache has the change", func() bool {
		cached := &metal3.BareMetalHost{}
		err := r.store.Client.Get(r.t.Context(), client.ObjectKeyFromObject(r.host), cached)
		return err == nil && cached.ResourceVersion == r.host.ResourceVersion
	})
}

func expect(t *testing.T, err error, kind hardware.Kind) {
	t.Helper()
	if hardware.KindOf(err) != kind || (kind == "") != (err == nil) {
		t.Errorf("error %v, expected kind %q", err, kind)
	}
}

func TestAnAttemptThatIsWantedIsASessionBeforeAnythingIsKeptOfIt(t *testing.T) {
	r := newRig(t)
	byMAC, err := r.store.ByMAC(t.Context(), mac)
	expect(t, err, "")
	byUID, err := r.store.ByUID(t.Context(), r.uid())
	expect(t, err, "")
	started := time.Date(2026, 11, 20, 12, 0, 0, 1000, time.UTC)
	want := netboot.Session{
		HostUID: r.uid(), Namespace: r.host.Namespace, Name: "server-1", BootMAC: mac,
		Work: netboot.Work{Operation: hardware.OpInstall,
			Image: hardware.Image{URL: "http://images/a", Checksum: "sha256:aa", Format: "raw"}, RootDevice: hardware.RootDevice{MinSizeBytes: 2 << 30},
			Requirements: hardware.Requirements{Architecture: "amd64"}},
		AttemptStatus: hardware.AttemptStatus{Number: 7, State: hardware.AttemptRunning, Step: hardware.StepPoweringOff}, Since: started, StepAt: started, Deadline: started.Add(time.Hour),
	}
	for _, got := range []netboot.Session{byMAC, byUID} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	_, err = r.store.ByMAC(t.Context(), "52:54:00:00:00:00")
	expect(t, err, hardware.NotFound)
	_, err = r.store.ByUID(t.Context(), "nobody")
	expect(t, err, hardware.NotFound)
}

func TestTwoHostsWithOneMACAddressAreBothRefused(t *testing.T) {
	r := newRig(t)
	r.add(r.host.Namespace, "server-2", mac)
	store := newStore(t, r.host.Namespace)
	_, err := store.ByMAC(t.Context(), mac)
	expect(t, err, hardware.Conflict)
}

func TestARecordOfAnEarlierHostOfThatNameIsNoSession(t *testing.T) {
	r := newRig(t)
	before := r.record.DeepCopy()
	r.record.OwnerReferences[0].UID = "earlier"
	if err := server.Client.Patch(t.Context(), r.record, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	_, err := r.store.ByUID(t.Context(), r.uid())
	expect(t, err, hardware.NotFound)
}

func TestUpdatesOfTwoReplicasAreNeverLost(t *testing.T) {
	r := newRig(t)
	replicas := []*sessions.Store{r.store, newStore(t, r.host.Namespace)}
	const each = 5
	var group sync.WaitGroup
	for _, replica := range replicas {
		group.Go(func() {
			for range each {
				_, err := replica.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
					s.Boots++
					return nil
				})
				expect(t, err, "")
			}
		})
	}
	group.Wait()
	s, err := r.store.ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if s.Boots != 2*each {
		t.Errorf("%d boots are counted, expected %d", s.Boots, 2*each)
	}
}

func TestAReplicaBehindTheOthersRefusesNothing(t *testing.T) {
	r := newRig(t)
	behind, stop := newReplica(t, r.host.Namespace)
	if _, err := behind.CachedByUID(t.Context(), r.uid()); err != nil {
		t.Fatal(err)
	}
	stop()
	count := func(s *netboot.Session) error { s.Boots++; return nil }
	if _, err := r.store.Update(t.Context(), r.uid(), count); err != nil {
		t.Fatal(err)
	}
	if s, err := behind.CachedByUID(t.Context(), r.uid()); err != nil || s.Boots != 0 {
		t.Fatalf("the cache does not stand still: %d boots, %v", s.Boots, err)
	}
	s, err := behind.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		if s.Boots != 1 {
			return hardware.Errorf(hardware.Conflict, "count", "", "%d boots", s.Boots)
		}
		return count(s)
	})
	expect(t, err, "")
	recent, err := behind.CachedByUID(t.Context(), r.uid())
	expect(t, err, "")
	if s.Boots != 2 || recent.Boots != 2 {
		t.Errorf("%d boots after the update, %d when read again, want 2 and 2", s.Boots, recent.Boots)
	}
}

func TestTheDeadlineOfAStepIsStoredUnlessTheAttemptEndsBefore(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		left   time.Duration
		stored bool
	}{{20 * time.Minute, true}, {2 * time.Hour, false}} {
		_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
			s.Step, s.StepAt, s.StepDeadline = hardware.StepBooting, s.Since, s.Since.Add(c.left)
			return nil
		})
		expect(t, err, "")
		s, err := r.store.ByUID(t.Context(), r.uid())
		expect(t, err, "")
		if s.StepDeadline.IsZero() == c.stored || c.stored && !s.StepDeadline.Equal(s.Since.Add(c.left)) {
			t.Errorf("a step that ends after %s: deadline %s", c.left, s.StepDeadline)
		}
	}
}

func TestAnUpdateKeepsWhatTheHostControllerWroteAndWritesNothingForNothing(t *testing.T) {
	r := newRig(t)
	_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		s.Step, s.OpenedAt, s.DoneBytes = hardware.StepWriting, s.Since.Add(time.Minute), 12
		s.Inventory = &hardware.Inventory{SystemUUID: "dmi", Architecture: "amd64", BIOSVersion: "2.4",
			NICs:       []hardware.NIC{{Name: "eno1", MAC: mac, SpeedMbps: 10000}},
			Disks:      []hardware.Disk{{Name: "/dev/nvme0n1", SerialNumber: "S1", SizeBytes: 1 << 40}},
			PCIDevices: []hardware.PCIDevice{{VendorID: "10de", DeviceID: "2330", Class: "030200"}, {VendorID: "15b3", DeviceID: "1021", Class: "020700"}}}
		return nil
	})
	expect(t, err, "")
	record := &v1alpha1.HostRecord{}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(r.record), record); err != nil {
		t.Fatal(err)
	}
	if w, a := record.Status.Wanted, record.Status.Progress(); w.MachineUID != "m1" || w.MachineAttempt != 2 || a == nil || a.Step != "Writing" || a.DoneBytes != 12 || a.OpenedAt == nil {
		t.Errorf("wanted = %+v, attempt = %+v", w, a)
	}
	version := record.ResourceVersion
	var seen netboot.Session
	_, err = r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		seen = *s
		return nil
	})
	expect(t, err, "")
	_, err = r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		s.Boots = 99
		return hardware.Errorf(hardware.Conflict, "change", "", "no")
	})
	expect(t, err, hardware.Conflict)
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(r.record), record); err != nil || record.ResourceVersion != version {
		t.Errorf("something was written: %v, %+v", err, record.Status)
	}
	if i := seen.Inventory; i == nil || i.SystemUUID != "dmi" || len(i.PCIDevices) != 1 || i.PCIDevices[0].DeviceID != "2330" {
		t.Errorf("inventory = %+v", i)
	}
}

func TestAnInventoryIsKeptWithTheNamesOfNICsAndDisks(t *testing.T) {
	r := newRig(t)
	found := hardware.Inventory{Manufacturer: "Acme", Model: "G8", SerialNumber: "1", BIOSVersion: "2.4", Architecture: "amd64", CPUThreads: 8, MemoryBytes: 8 << 30,
		NICs:  []hardware.NIC{{Name: "eno1", MAC: mac, SpeedMbps: 10000}},
		Disks: []hardware.Disk{{Name: "/dev/nvme0n1", Model: "M", SerialNumber: "S1", WWN: "w", SizeBytes: 1 << 40, Rotational: true}}}
	_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		s.Inventory = &found
		return nil
	})
	expect(t, err, "")
	got, err := newStore(t, r.host.Namespace).ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if diff := cmp.Diff(&found, got.Inventory); diff != "" {
		t.Error(diff)
	}
}

func TestAnAgentsReportForgetsNoDiskOfARecordOfAnEarlierVersion(t *testing.T) {
	r := newRig(t)
	kept, lost := hardware.Disk{SerialNumber: "S1", SizeBytes: 1 << 40}, hardware.Disk{SerialNumber: "S2", SizeBytes: 1 << 40}
	var record v1alpha1.HostRecord
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(r.host), &record); err != nil {
		t.Fatal(err)
	}
	before := record.DeepCopy()
	record.Status.Inventory = &v1alpha1.HostInventory{Disks: []v1alpha1.DiskInventory{v1alpha1.DiskInventory(kept), v1alpha1.DiskInventory(lost)}}
	if err := server.Client.Status().Patch(t.Context(), &record, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		s.Inventory = &hardware.Inventory{Disks: []hardware.Disk{kept}}
		return nil
	})
	expect(t, err, "")
	got, err := newStore(t, r.host.Namespace).ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if got.Disks == nil || len(got.Disks.Expected) != 2 || got.Disks.Expected[1] != lost {
		t.Errorf("disks to erase: %+v", got.Disks)
	}
}

func TestNothingIsKeptOfAnAttemptThatIsNotWanted(t *testing.T) {
	r := newRig(t)
	opened := func(number int64) func(*netboot.Session) error {
		return func(s *netboot.Session) error { s.Number, s.OpenedAt = number, s.Since; return nil }
	}
	_, err := r.store.Update(t.Context(), r.uid(), opened(8))
	expect(t, err, hardware.Conflict)
	_, err = r.store.Update(t.Context(), r.uid(), opened(7))
	expect(t, err, "")

	// Another one is wanted now: what was kept is no part of it.
	record := &v1alpha1.HostRecord{}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(r.record), record); err != nil {
		t.Fatal(err)
	}
	before := record.DeepCopy()
	record.Status.Wanted.Number = 8
	if err := server.Client.Status().Patch(t.Context(), record, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	s, err := r.store.ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if s.Number != 8 || s.State != hardware.AttemptRunning || !s.OpenedAt.IsZero() || record.Status.Progress() != nil {
		t.Errorf("session = %+v", s)
	}
	_, err = r.store.Update(t.Context(), r.uid(), opened(7))
	expect(t, err, hardware.Conflict)
	_, err = r.store.ConfigDrive(t.Context(), r.uid(), 7)
	expect(t, err, hardware.Conflict)
}

func TestTheAgentOfABootAndTheFindingsAreKept(t *testing.T) {
	r := newRig(t)
	at := time.Date(2026, 11, 20, 12, 1, 0, 1000, time.UTC)
	var want netboot.Session
	_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		s.Agent = netboot.Agent{KeyDigest: strings.Repeat("a1", 32), Address: "10.0.0.5", RegisteredAt: at, HeardAt: at.Add(time.Minute)}
		s.ConfigDriveAwaitedAt = at
		s.Findings.AnotherAgent = netboot.Finding{Count: 2, At: at, Message: "two"}
		s.Findings.BootRequestedAgain = netboot.Finding{Count: 1, At: at, Message: "one"}
		s.Findings.ServerDiffers = netboot.Finding{Count: 3, At: at, Message: "three"}
		s.Findings.BootLoadFailed = netboot.Finding{Count: 1, At: at, Message: "four"}
		s.Findings.KernelNotRequested = netboot.Finding{Count: 1, At: at, Message: "five"}
		s.Findings.NoAgentRegistered = netboot.Finding{Count: 1, At: at, Message: "six"}
		s.KernelFetchedAt = at
		s.KernelAwaited = netboot.KernelAwaited{At: at, URL: "http://10.0.0.2:8090"}
		want = *s
		return nil
	})
	expect(t, err, "")
	got, err := newStore(t, r.host.Namespace).ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err = r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		s.Agent, s.Findings = netboot.Agent{}, netboot.Findings{}
		return nil
	})
	expect(t, err, "")
	got, err = r.store.ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if got.Agent != (netboot.Agent{}) || got.Findings != (netboot.Findings{}) {
		t.Errorf("agent %+v, findings %+v after they were cleared", got.Agent, got.Findings)
	}
}

// TestASessionKnowsTheTPMOfItsServer: what an agent reported is kept, and what a person lists comes before it.
func TestASessionKnowsTheTPMOfItsServer(t *testing.T) {
	r := newRig(t)
	reported := hardware.TPM{Proof: hardware.TPMFirstUse, Key: strings.Repeat("ab", 32), Certificate: "MII"}
	_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		s.TPM = reported
		return nil
	})
	expect(t, err, "")
	first, err := r.store.ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(r.record), r.record); err != nil {
		t.Fatal(err)
	}
	r.record.Status.TPM = r.record.Status.Attempt.TPM
	if err := server.Client.Status().Update(t.Context(), r.record); err != nil {
		t.Fatal(err)
	}
	got, err := newStore(t, r.host.Namespace).ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if got.TPM != reported || got.KnownTPM != (hardware.KnownTPM{Key: reported.Key}) || first.KnownTPM != (hardware.KnownTPM{Key: reported.Key, IsFirstUse: true}) {
		t.Errorf("reported %+v, known %+v", got.TPM, got.KnownTPM)
	}
	before := r.host.DeepCopy()
	metav1.SetMetaDataAnnotation(&r.host.ObjectMeta, v1alpha1.AnnotationTPMKey, strings.Repeat("CD", 32))
	if err := server.Client.Patch(t.Context(), r.host, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	got, err = newStore(t, r.host.Namespace).ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if got.KnownTPM != (hardware.KnownTPM{Key: strings.Repeat("cd", 32), IsListed: true}) {
		t.Errorf("listed: %+v", got.KnownTPM)
	}
}

// refusingReader is an API server that must not be read.
type refusingReader struct{ client.Reader }

func (refusingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return hardware.Errorf(hardware.Unreachable, "read", "API server", "it was read")
}

func TestAStrangerCostsNoReadOfTheAPIServer(t *testing.T) {
	r := newRig(t)
	other := "52:54:00:aa:bb:77"
	// A host of a baremetal-operator in the same cluster has no HostRecord.
	server.Create(t, &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: r.host.Namespace, Name: "theirs"}, Spec: metal3.BareMetalHostSpec{BootMACAddress: other}})
	store := newStore(t, r.host.Namespace)
	store.APIReader = refusingReader{}
	for _, stranger := range []string{other, "52:54:00:00:00:99"} {
		_, err := store.ByMAC(t.Context(), stranger)
		expect(t, err, hardware.NotFound)
	}
	_, err := store.ByMAC(t.Context(), mac)
	expect(t, err, hardware.Unreachable)
}

func TestTheConfigDriveIsForTheCurrentInstallationOnly(t *testing.T) {
	r := newRig(t)
	drive, err := r.store.ConfigDrive(t.Context(), r.uid(), 7)
	expect(t, err, "")
	if string(drive.UserData) != "user" || string(drive.NetworkData) != "network" || string(drive.MetaData) != "meta" {
		t.Errorf("drive = %q %q %q", drive.UserData, drive.NetworkData, drive.MetaData)
	}
	_, err = r.store.ConfigDrive(t.Context(), r.uid(), 6)
	expect(t, err, hardware.Conflict)

	r.edit(func(h *metal3.BareMetalHost) { h.Spec.UserData.Namespace = "kube-system" })
	_, err = r.store.ConfigDrive(t.Context(), r.uid(), 7)
	expect(t, err, hardware.Invalid)
	r.edit(func(h *metal3.BareMetalHost) { h.Spec.UserData.Namespace, h.Spec.UserData.Name = "", "gone" })
	_, err = r.store.ConfigDrive(t.Context(), r.uid(), 7)
	expect(t, err, hardware.Busy)
	r.edit(func(h *metal3.BareMetalHost) { h.Spec.ConsumerRef.UID = types.UID("m2") })
	_, err = r.store.ConfigDrive(t.Context(), r.uid(), 7)
	expect(t, err, hardware.Conflict)

	_, err = r.store.Update(context.Background(), r.uid(), func(s *netboot.Session) error {
		s.State = hardware.AttemptFailed
		return nil
	})
	expect(t, err, "")
	r.edit(func(h *metal3.BareMetalHost) { h.Spec.ConsumerRef.UID, h.Spec.UserData = "m1", nil })
	_, err = r.store.ConfigDrive(t.Context(), r.uid(), 7)
	expect(t, err, hardware.Conflict)
}

func TestAConfigDriveThatIsNotWrittenYetCostsOneReadAndNoneWhereItsAuthorRuns(t *testing.T) {
	r := newRig(t)
	r.edit(func(h *metal3.BareMetalHost) {
		for _, ref := range []*corev1.SecretReference{h.Spec.UserData, h.Spec.NetworkData, h.Spec.MetaData} {
			ref.Name = "later"
		}
	})
	reads := &countingReader{Reader: r.store.APIReader}
	store := *r.store
	store.APIReader = reads
	_, err := store.ConfigDrive(t.Context(), r.uid(), 7)
	if expect(t, err, hardware.Busy); reads.count != 1 || hardware.ReasonOf(err) != hardware.ReasonNoConfigDrive {
		t.Errorf("%d reads, reason %s", reads.count, hardware.ReasonOf(err))
	}
	store.IsUnwritten = func(machine types.UID, number int64) bool { return machine == "m1" && number == 7 }
	_, err = store.ConfigDrive(t.Context(), r.uid(), 7)
	if expect(t, err, hardware.Busy); reads.count != 1 || hardware.ReasonOf(err) != hardware.ReasonNoConfigDrive {
		t.Errorf("where it is known: %d reads, reason %s", reads.count-1, hardware.ReasonOf(err))
	}
}

// countingReader counts the objects that are read.
type countingReader struct {
	client.Reader
	count int
}

func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	c.count++
	return c.Reader.Get(ctx, key, into, options...)
}

func TestDocumentsOfAnotherAttemptAreNotServed(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"an earlier Machine":                     func(s *corev1.Secret) { s.Labels[v1alpha1.LabelMachine] = "m0" },
		"an earlier attempt of the Machine":      func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationClaimAttempt] = "1" },
		"an earlier installation of the host":    func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationClaimHostAttempt] = "6" },
		"a node that has joined, without token":  func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationClaimTokenID] = "" },
		"nobody, without annotations and labels": func(s *corev1.Secret) { s.Labels, s.Annotations = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			secret := &corev1.Secret{}
			if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.host.Namespace, Name: r.host.Name + "-claim"}, secret); err != nil {
				t.Fatal(err)
			}
			change(secret)
			if err := server.Client.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			drive, err := r.store.ConfigDrive(t.Context(), r.uid(), 7)
			if expect(t, err, hardware.Busy); len(drive.UserData) > 0 {
				t.Errorf("the agent gets the documents of %s", name)
			}
		})
	}
}

func TestAServerThatTwoHostsHaveGetsNoBootDocument(t *testing.T) {
	r := newRig(t)
	_, err := r.store.ByMAC(t.Context(), mac)
	expect(t, err, "")
	var record v1alpha1.HostRecord
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(r.host), &record); err != nil {
		t.Fatal(err)
	}
	before := record.DeepCopy()
	record.Status.Error = &v1alpha1.HostError{Reason: v1alpha1.ReasonSameServer, Message: "BareMetalHost hall-2/b has the same BMC"}
	if err := server.Client.Status().Patch(t.Context(), &record, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	_, err = r.store.ByMAC(t.Context(), mac)
	expect(t, err, hardware.Conflict)
	if err == nil || !strings.Contains(err.Error(), "BareMetalHost hall-2/b has the same BMC") {
		t.Errorf("the error is %v", err)
	}

	// What is installed boots, whoever registers the server a second time.
	before = record.DeepCopy()
	record.Status.Attempt = &v1alpha1.HostAttempt{Number: record.Status.Wanted.Number, State: string(hardware.AttemptSucceeded), Step: string(hardware.StepFinishing)}
	if err := server.Client.Status().Patch(t.Context(), &record, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	session, err := r.store.ByMAC(t.Context(), mac)
	if expect(t, err, ""); !session.IsSettled() {
		t.Errorf("session %+v", session)
	}
}
