package fleet

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

func TestHostsSayWhichAreOneServerAndWhichHaveOtherGPUsThanPromised(t *testing.T) {
	host := func(namespace, name, address string) metal3.BareMetalHost {
		h := metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"gpu": "h100"}}}
		h.Spec.BMC.Address = address
		h.Status.Provisioning.State = metal3.StateAvailable
		return h
	}
	hosts := []metal3.BareMetalHost{host("metal", "a", "redfish://10.0.0.7"), host("metal", "b", "redfish://10.0.0.8"), host("metal", "c", "redfish://10.0.0.9"), host("other", "b", "10.0.0.7")}
	hosts[3].Labels[v1alpha1.LabelGPUModel], hosts[3].Labels[v1alpha1.LabelGPUCount] = "H100-SXM5-80GB", "8"
	records := []v1alpha1.HostRecord{{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "b"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "c"}}}
	records[1].Status.Inventory = &v1alpha1.HostInventory{Model: "whose BMC cannot count GPUs"}
	records[0].Status.Inventory = &v1alpha1.HostInventory{GPUSource: v1alpha1.SourceBMC, GPUs: []v1alpha1.GPUInventory{{VendorID: "10de", DeviceID: "2330", Model: "H100-SXM5-80GB", Count: 7}}}
	nodeType := v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "h100"}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: "hall"}, HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "h100"}},
		GPU: &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8},
	}}
	provider := v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: "hall"}, Spec: v1alpha1.NodeProviderSpec{HostNamespace: "metal"}}
	facts := placement.Pair(hosts, records)
	compareServers(facts, facts)
	table := hostTable(HostRows(facts, []v1alpha1.NodeType{nodeType}, []v1alpha1.NodeProvider{provider}, nil), false)
	for i, want := range []string{
		"metal a error available Off - - SameServer: BareMetalHost other/b has the same BMC 10.0.0.7",
		"metal b free available Off - 7 x H100-SXM5-80GB none: h100: is selected by its labels but has 7 H100-SXM5-80GB, and 8 H100-SXM5-80GB are promised",
		"metal c free available Off - unknown h100",
		"other b error available Off - 8 x H100-SXM5-80GB SameServer: BareMetalHost metal/a has the same BMC 10.0.0.7",
	} {
		if got := strings.Join(table[i+1], " "); !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAHostIsFreeOnlyWhenAMachineCouldClaimItAndElseSaysWhyNot(t *testing.T) {
	providers := []v1alpha1.NodeProvider{{Spec: v1alpha1.NodeProviderSpec{HostNamespace: "metal"}}}
	annotated := func(name, value string) func(*placement.HostFacts) {
		return func(f *placement.HostFacts) { f.Host.Annotations = map[string]string{name: value} }
	}
	for _, c := range []struct {
		use, says string
		change    func(*placement.HostFacts)
	}{
		{"free", "none: there is no NodeType", func(*placement.HostFacts) {}},
		{"PoweredOn", "is powered on though no Machine has it: power it off by its BMC, only if nothing else uses it", func(f *placement.HostFacts) { f.Host.Status.PoweredOn = true }},
		{"Paused", "is paused by the annotation", annotated(metal3.PausedAnnotation, "")},
		{"Detached", "is detached by the annotation", annotated(metal3.DetachedAnnotation, "")},
		{"EraseUnfinished", "is to be erased first (Full)", annotated(v1alpha1.AnnotationErase, "Full")},
		{"EraseUnfinished", "was not erased: DiskMissing", func(f *placement.HostFacts) {
			f.Record.Status.Wanted = &v1alpha1.WantedAttempt{Operation: "Erase", Outcome: v1alpha1.AttemptFailed, Reason: "DiskMissing"}
		}},
		{"OtherTenant", "is free for its last tenant only: was tenant team/one's and had only this erase since: None", func(f *placement.HostFacts) { f.Record.Status.LastTenant = "team/one" }},
		{"NotReleased", "is still being given back by Machine team/m1", func(f *placement.HostFacts) {
			f.Record.Spec.Machine = &v1alpha1.MachineReference{Namespace: "team", Name: "m1"}
		}},
		{"NoRecord", "has no HostRecord yet", func(f *placement.HostFacts) { f.Record = nil }},
		{"InUse", "has an image in its spec", func(f *placement.HostFacts) { f.Host.Spec.Image = &metal3.Image{URL: "http://x"} }},
		{"busy", "none: there is no NodeType", func(f *placement.HostFacts) { f.Host.Status.Provisioning.State = metal3.StateDeprovisioning }},
		{"claimed", "none: there is no NodeType", func(f *placement.HostFacts) {
			f.Host.Status.PoweredOn, f.Host.Spec.ConsumerRef = true, &corev1.ObjectReference{Namespace: "team", Name: "m1"}
		}},
	} {
		facts := placement.HostFacts{Host: &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "a"}}, Record: &v1alpha1.HostRecord{}}
		facts.Host.Status.Provisioning.State = metal3.StateAvailable
		c.change(&facts)
		line := hostTable(HostRows([]placement.HostFacts{facts}, nil, providers, nil), false)[1]
		if last := line[len(line)-1]; line[2] != c.use || !strings.HasPrefix(last, c.says) {
			t.Errorf("%s: %q, expected %s: %s", line[2], last, c.use, c.says)
		}
	}
}

func TestAMissingDiskIsShownBeforeAnEraseFailsAndWithWhatToDoAfterwards(t *testing.T) {
	known := v1alpha1.DiskInventory{Name: "/dev/nvme1n1", SerialNumber: "LOST", SizeBytes: 4096}
	facts := placement.HostFacts{
		Host: &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "a"}},
		Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{
			Disks: []v1alpha1.KnownDisk{{DiskInventory: known}}, Inventory: &v1alpha1.HostInventory{
				GPUSource: v1alpha1.SourceAgent, Disks: []v1alpha1.DiskInventory{{Name: "/dev/nvme0n1", SerialNumber: "NEW", SizeBytes: 4096}},
			},
		}},
	}
	const missing = "/dev/nvme1n1 (serial number LOST, 4096 bytes)"
	if got := strings.Join(hostTable(HostRows([]placement.HostFacts{facts}, nil, nil, nil), false)[1], " "); !strings.HasSuffix(got, "missing, and an erase waits for it: "+missing) {
		t.Errorf("line %q", got)
	}
	m := machine("training-x", v1alpha1.MachineReleasing, 6, 0, isNot(v1alpha1.ReasonEraseFailed, "host a: DiskMissing"))
	for reason, next := range map[hardware.Reason]string{
		hardware.ReasonDiskMissing:     "kubectl annotate --overwrite bmh -n metal a ingot.dev/disk-gone=LOST\n",
		hardware.ReasonDiskNotErasable: "ingot.dev/disk-gone=SERIAL, with the serial number in the attempt's message\n",
		hardware.ReasonEvidenceMissing: "look at its version, in the files of the boot service, and at its log on the console of a, then ask for another try: kubectl annotate",
		hardware.ReasonNoDisk:          "look at the storage controllers of a and at the drivers of the agent's kernel, then ask for another try: kubectl annotate",
		hardware.ReasonRootDiskDiffers: "kubectl annotate --overwrite bmh -n metal a ingot.dev/root-disk=NEW\n",
		hardware.ReasonDiskError:       "look at the disks of",
	} {
		facts.Record.Status.Wanted = &v1alpha1.WantedAttempt{Number: 2, Operation: "Erase", Outcome: v1alpha1.AttemptFailed, Reason: string(reason), PreviousRootDisk: &known}
		text := Diagnose(&m, &facts, nil, noon).text()
		if !strings.Contains(text, next) || !strings.Contains(text, "  missing    "+missing) {
			t.Errorf("%s lacks %q or the disk:\n%s", reason, next, text)
		}
		if strings.Contains(text, "disk-gone") != (reason == hardware.ReasonDiskMissing || reason == hardware.ReasonDiskNotErasable) {
			t.Errorf("%s: disk-gone is the remedy of disks that are missing or cannot be written alone:\n%s", reason, text)
		}
	}
}

func TestHostsSayHowOneWhoseMachineIsGoneIsReleased(t *testing.T) {
	const command = "kubectl annotate baremetalhost -n metal a --overwrite ingot.dev/release=m1"
	for _, c := range []struct {
		name, error, release string
		machines             MachineUIDs
		change               func(*placement.HostFacts)
	}{
		{"a Machine that exists", "", "", MachineUIDs{"m1": true}, nil},
		{"a Machine that is gone", "MachineGone: Machine team/one with uid m1 does not exist any more", command, MachineUIDs{"m2": true}, nil},
		{"one that the host reports itself", "provisioned registration error: MachineGone: as the host says", command, MachineUIDs{}, func(f *placement.HostFacts) {
			f.Host.Status.ErrorType, f.Host.Status.ErrorMessage = metal3.ProvisionedRegistrationError, "MachineGone: as the host says; to have it freed, annotate it with ingot.dev/release=m1; Node one may remain"
		}},
		{"the Machines cannot be listed", "", "", nil, nil},
		{"the Machines cannot be listed, and the HostRecord says it", "MachineGone", command, nil, func(f *placement.HostFacts) {
			f.Record = &v1alpha1.HostRecord{Spec: v1alpha1.HostRecordSpec{MachineGone: &v1alpha1.MachineGone{UID: "m1"}}}
		}},
		{"the release is requested", "MachineGone", "", MachineUIDs{}, func(f *placement.HostFacts) { f.Host.Annotations = map[string]string{"ingot.dev/release": "m1"} }},
		{"the release of an earlier claim", "MachineGone", command, MachineUIDs{}, func(f *placement.HostFacts) { f.Host.Annotations = map[string]string{"ingot.dev/release": "m0"} }},
		{"another host is its server", "SameServer: BareMetalHost metal/b has the same BMC; its Machine is gone, and a release waits", command, MachineUIDs{}, func(f *placement.HostFacts) { f.SameServer = "BareMetalHost metal/b has the same BMC" }},
		{"another system's", "", "", MachineUIDs{}, func(f *placement.HostFacts) {
			f.Host.Spec.ConsumerRef.APIVersion = "infrastructure.cluster.x-k8s.io/v1beta1"
		}},
	} {
		facts := placement.HostFacts{Host: &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "a"}}}
		facts.Host.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "ingot.dev/v1alpha1", Kind: "Machine", Namespace: "team", Name: "one", UID: "m1"}
		if c.change != nil {
			c.change(&facts)
		}
		row := HostRows([]placement.HostFacts{facts}, nil, nil, c.machines)[0]
		if !strings.HasPrefix(row.Error, c.error) || (c.error == "") != (row.Error == "") || row.Release != c.release || (row.Use == "error") != (c.error != "") {
			t.Errorf("%s: %+v", c.name, row)
		}
		line := strings.Join(hostTable([]HostRow{row}, false)[1], " ")
		if strings.HasSuffix(line, command) != (c.release != "") || strings.Count(line, "ingot.dev/release=") > 1 || strings.Contains(row.Error, "may remain") != strings.Contains(line, "may remain") {
			t.Errorf("%s: %s", c.name, line)
		}
	}
}

func TestAClaimedHostThatIsDeletedIsKeptForItsMachineEverywhere(t *testing.T) {
	now := metav1.Now()
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "a", UID: "h", DeletionTimestamp: &now}}
	host.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: "team", Name: "m1", UID: "u1"}
	facts := placement.HostFacts{Host: host, Record: &v1alpha1.HostRecord{}}
	const kept, way = "is being deleted and kept for Machine team/m1", "kubectl delete machine -n team m1"
	rows := HostRows([]placement.HostFacts{facts}, nil, nil, MachineUIDs{"u1": true})
	line := strings.Join(hostTable(rows, false)[1], " ")
	if rows[0].Use != "claimed" || !strings.Contains(line, kept) || !strings.Contains(line, way) {
		t.Errorf("ingot hosts: %s", line)
	}
	ready := machine("m1", v1alpha1.MachineReady, 60, 0, isReady())
	ready.Status.Conditions = append(ready.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionClaimed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKeptForMachine, Message: "host metal/a " + kept})
	text := Diagnose(&ready, &facts, nil, now.Time).text()
	for _, part := range []string{"condition  Claimed=True KeptForMachine: host metal/a " + kept, "being deleted, and kept for its Machine", "next       host a " + kept, way} {
		if !strings.Contains(text, part) {
			t.Errorf("ingot why lacks %q:\n%s", part, text)
		}
	}
	// Its Machine is gone: nothing keeps it but the claim, and ingot hosts says how to release it.
	if gone := HostRows([]placement.HostFacts{facts}, nil, nil, MachineUIDs{}); gone[0].Kept != "" || gone[0].Release == "" {
		t.Errorf("its Machine is gone: %+v", gone[0])
	}
}

func TestHostsNameTheNodesThatRemain(t *testing.T) {
	node := v1alpha1.ReleasedNode{Tenant: "team/research", Name: "gpu-7", MachineUID: "m1"}
	newHost := func() *metal3.BareMetalHost {
		return &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "a"}}
	}
	inRecord := placement.HostFacts{Host: newHost(), Record: &v1alpha1.HostRecord{Spec: v1alpha1.HostRecordSpec{RemainingNodes: []v1alpha1.ReleasedNode{node}}}}
	onHost := placement.HostFacts{Host: newHost()}
	if err := v1alpha1.AddRemainingNode(&onHost.Host.ObjectMeta, node); err != nil {
		t.Fatal(err)
	}
	for want, facts := range map[string]placement.HostFacts{
		"; may remain, and is deleted when the tenant's cluster can be used: Node gpu-7 of TenantCluster team/research":                                                                                                   inRecord,
		"; may remain: Node gpu-7 of TenantCluster team/research; nobody looks for it: when it is not there any more, clear this by kubectl annotate baremetalhost -n metal a " + v1alpha1.AnnotationRemainingNodes + "-": onHost,
	} {
		row := HostRows([]placement.HostFacts{facts}, nil, nil, nil)[0]
		if line := strings.Join(hostTable([]HostRow{row}, false)[1], " "); !strings.HasSuffix(line, want) || len(row.RemainingNodes) != 1 {
			t.Errorf("%+v: %s", row, line)
		}
	}
	mangled := placement.HostFacts{Host: newHost()}
	mangled.Host.Annotations = map[string]string{v1alpha1.AnnotationRemainingNodes: "gpu-7"}
	if row := HostRows([]placement.HostFacts{mangled}, nil, nil, nil)[0]; row.ForgetNodes != "" {
		t.Errorf("%+v", row)
	}
}
