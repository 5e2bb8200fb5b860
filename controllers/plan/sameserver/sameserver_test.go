package sameserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestOneBMCIsRecognizedInEverySpelling(t *testing.T) {
	for _, same := range [][]string{
		{
			"redfish://10.0.0.7/redfish/v1/Systems/1", "redfish+https://10.0.0.7:443/redfish/v1/Systems/1/", "https://10.0.0.7//redfish/v1/systems/%31", "idrac-redfish://10.0.0.7/redfish/v1/Systems/1?x=1",
			"redfish-virtualmedia+http://10.0.0.7:80/redfish/v1/Systems/1", "redfish://root:secret@10.0.0.7/redfish/v1/Systems/1", "ipmi://10.0.0.7:623", "10.0.0.7", " 10.0.0.7:623", "ilo5://10.0.0.7",
			"redfish://[::ffff:10.0.0.7]/redfish/v1/Systems/1", "redfish://[::FFFF:0a00:0007]", "REDFISH://10.0.0.7/", "redfish://10.0.0.7/redfish/v1", "redfish://10.0.0.7/redfish/v1/Systems/", "redfish://10.0.0.7:0443",
		},
		{"redfish://BMC-7.Example.com", "https://bmc-7.example.com.", "bmc-7.example.com"},
		{"redfish://[2001:DB8:0:0::7]", "redfish+https://[2001:db8::7]:443/redfish/v1/Systems/1", "https://[2001:0db8:0000:0000:0000:0000:0000:0007]/"},
		{"redfish://[2001:db8::7]:8443", "https://[2001:db8:0::7]:8443/"},
	} {
		for _, a := range same {
			for _, b := range same {
				if Compare(Host{Name: "a", BMCAddress: a}, Host{Name: "b", BMCAddress: b}) == "" {
					t.Errorf("%s and %s are not recognized as one BMC", a, b)
				}
			}
		}
	}
	for _, c := range [][2]string{
		{"redfish://10.0.0.7/redfish/v1/Systems/1", "redfish://10.0.0.7/redfish/v1/Systems/2"},
		{"redfish://10.0.0.7", "redfish://10.0.0.8"}, {"redfish://10.0.0.7:8443", "redfish://10.0.0.7:8444"}, {"redfish://10.0.0.7", "redfish://10.0.0.7:8443"},
		{"redfish://bmc-7", "redfish://bmc-7.example.com"}, {"", ""}, {"redfish://", "redfish://"}, {"redfish://%zz", "redfish://%zz"}, {"redfish://[2001:db8::7]", "redfish://[2001:db8::8]"},
	} {
		if evidence := Compare(Host{Name: "a", BMCAddress: c[0]}, Host{Name: "b", BMCAddress: c[1]}); evidence != "" {
			t.Errorf("%s and %s: %s", c[0], c[1], evidence)
		}
	}
}

func TestNoPasswordIsQuoted(t *testing.T) {
	h := Host{Name: "a", BMCAddress: "redfish://root:hunter2@10.0.0.7/redfish/v1/Systems/1?password=hunter2"}
	other := h
	other.Name = "b"
	if evidence := Compare(h, other); evidence != "the same BMC 10.0.0.7/redfish/v1/systems/1" {
		t.Error(evidence)
	}
	if keys := fmt.Sprint(h.Keys()); strings.Contains(keys, "hunter2") {
		t.Error(keys)
	}
}

func TestOneBootMACAddressIsOneServerUnlessSoftwareAssignedIt(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"0c:42:a1:00:00:01", "0C-42-A1-00-00-01", true}, {"0c42.a100.0001", "0c:42:a1:00:00:01", true},
		{"0c:42:a1:00:00:01", "0c:42:a1:00:00:02", false},
		{"02:42:a1:00:00:01", "02:42:a1:00:00:01", false}, {"52:54:00:12:34:56", "52:54:00:12:34:56", false}, {"0a:ca:fe:f0:0d:04", "0a:ca:fe:f0:0d:04", false},
		{"01:00:5e:00:00:01", "01:00:5e:00:00:01", false}, {"00:00:00:00:00:00", "00:00:00:00:00:00", false}, {"", "", false}, {"nonsense", "nonsense", false},
	} {
		if evidence := Compare(Host{Name: "a", BootMAC: c.a}, Host{Name: "b", BootMAC: c.b}); (evidence != "") != c.same {
			t.Errorf("%q and %q: %q", c.a, c.b, evidence)
		}
	}
}

// dell returns a host whose inspection found that serial number.
func dell(name, serial string) Host {
	return Host{Namespace: "metal", Name: name, Manufacturer: "Dell Inc.", Model: "PowerEdge XE9680", SerialNumber: serial}
}

func TestASerialNumberCountsTogetherWithManufacturerAndModel(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Host)
		same   bool
	}{
		{"the same", func(*Host) {}, true},
		{"other spellings", func(h *Host) { h.SerialNumber, h.Manufacturer, h.Model = " 4xk-92t3 ", "DELL", "PowerEdge  XE9680 " }, true},
		{"Metal3's SKU", func(h *Host) {
			h.Model = "PowerEdge XE9680 (SKU=NotProvided;ModelName=PowerEdge XE9680)"
		}, true},
		{"another serial number", func(h *Host) { h.SerialNumber = "4XK92T4" }, false},
		{"another manufacturer", func(h *Host) { h.Manufacturer = "Lenovo" }, false},
		{"another model", func(h *Host) { h.Model = "PowerEdge R750" }, false},
		{"no manufacturer", func(h *Host) { h.Manufacturer = "" }, false},
		{"a model that is a placeholder", func(h *Host) { h.Model = "System Product Name" }, false},
	} {
		other := dell("b", "4XK92T3")
		c.change(&other)
		if evidence := Compare(dell("a", "4XK92T3"), other); (evidence != "") != c.same {
			t.Errorf("%s: %q", c.name, evidence)
		}
	}
}

func TestPlaceholdersAreUnknown(t *testing.T) {
	for _, text := range []string{
		"", " ", "To be filled by O.E.M.", "To Be Filled By O.E.M", "TO BE FILLED BY OEM", "ToBeFilledByOEM", "Not Specified", "NotSpecified", "N/A", "NA", "n.a.", "None", "NULL", "Unknown", "Default string",
		"System Serial Number", "SystemSerialNumber", "Chassis Serial Number", "Base Board Serial Number", "Serial Number", "0123456789", "123456789", "1234567890", "0123456789ABCDEF", "123",
		"0", "0000000000", "00000000-0000", "xxxxxxxx", "----", "...........", "FFFFFFFF", "11111111", "INVALID", "Empty", "Not Available", "Not Applicable", "Not Provided", "No Asset Tag", "Undefined", "OEM", "TBD", "System-Serial-Number",
		"System manufacturer", "System Product Name", "Not Present", "Unspecified System Serial Number", "not set", "Product Name", "empty string",
	} {
		if evidence := Compare(dell("a", text), dell("b", text)); evidence != "" {
			t.Errorf("%q: %s", text, evidence)
		}
	}
}

func TestSystemUUIDsOfTheAgentAreCompared(t *testing.T) {
	const uuid = "4c4c4544-0058-4b10-8039-b4c04f325433"
	for _, c := range []struct {
		name string
		a, b Host
		same bool
	}{
		{"the same", Host{AgentUUID: uuid}, Host{AgentUUID: strings.ToUpper(uuid)}, true},
		{"only the BMC was asked", Host{AgentUUID: uuid}, Host{}, false},
		{"another one", Host{AgentUUID: uuid}, Host{AgentUUID: strings.Replace(uuid, "4c", "5c", 1)}, false},
		{"a copied UUID of two serial numbers", with(dell("", "4XK92T3"), uuid), with(dell("", "4XK92T4"), uuid), false},
		{"one serial number is a placeholder", with(dell("", "4XK92T3"), uuid), with(dell("", "Default string"), uuid), true},
		{"zeros", Host{AgentUUID: "00000000-0000-0000-0000-000000000000"}, Host{AgentUUID: "00000000-0000-0000-0000-000000000000"}, false},
		{"ones", Host{AgentUUID: "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"}, Host{AgentUUID: "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"}, false},
		{"AMI's default", Host{AgentUUID: "03000200-0400-0500-0006-000700080009"}, Host{AgentUUID: "03000200-0400-0500-0006-000700080009"}, false},
		{"AMI's default, swapped", Host{AgentUUID: "00020003-0004-0005-0006-000700080009"}, Host{AgentUUID: "00020003-0004-0005-0006-000700080009"}, false},
		{"a typed one", Host{AgentUUID: "12345678-1234-5678-90ab-cddeefaabbcc"}, Host{AgentUUID: "12345678-1234-5678-90ab-cddeefaabbcc"}, false},
		{"two digits", Host{AgentUUID: "fefefefe-fefe-fefe-fefe-fefefefefefe"}, Host{AgentUUID: "fefefefe-fefe-fefe-fefe-fefefefefefe"}, false},
		{"no UUID", Host{AgentUUID: "Not Settable"}, Host{AgentUUID: "Not Settable"}, false},
	} {
		c.a.Name, c.b.Name = "a", "b"
		if evidence := Compare(c.a, c.b); (evidence != "") != c.same {
			t.Errorf("%s: %q", c.name, evidence)
		}
	}
}

func with(h Host, uuid string) Host {
	h.AgentUUID = uuid
	return h
}

func TestTheAnnotationOfOneHostEndsAFalseConflict(t *testing.T) {
	one := func(namespace, name, exceptions string) Host {
		return Host{Namespace: namespace, Name: name, BootMAC: "0c:42:a1:00:00:01", Exceptions: exceptions}
	}
	for _, c := range []struct {
		a, b Host
		same bool
	}{
		{one("m", "a", ""), one("m", "b", ""), true}, {one("m", "a", "b"), one("m", "b", ""), false}, {one("m", "a", ""), one("m", "b", "m/a"), false},
		{one("m", "a", "n/c, m/b"), one("m", "b", ""), false}, {one("m", "a", "b"), one("n", "b", ""), true}, {one("m", "a", "n/b"), one("n", "b", ""), false},
		{one("m", "a", "c"), one("m", "b", ""), true}, {one("m", "a", "true"), one("m", "b", ""), true}, {one("m", "a", ""), one("m", "a", ""), false},
	} {
		if evidence := Compare(c.a, c.b); (evidence != "") != c.same || evidence != Compare(c.b, c.a) {
			t.Errorf("%+v and %+v: %q and %q", c.a, c.b, evidence, Compare(c.b, c.a))
		}
	}
}

func TestTheAnnotationDoesNotExceptHostsWithOneBMC(t *testing.T) {
	a := Host{Namespace: "m", Name: "a", BMCAddress: "10.0.0.7", Exceptions: "b"}
	b := Host{Namespace: "m", Name: "b", BMCAddress: "redfish://10.0.0.7:443/redfish/v1/Systems/1", Exceptions: "a"}
	found := Conflicts(a, []Host{b})
	if len(found) != 1 || !found[0].IsSameBMC {
		t.Fatalf("%+v", found)
	}
	if text := Message(found); strings.Contains(text, v1alpha1.AnnotationNotSameServer) || !strings.Contains(text, "name the system") || !strings.Contains(text, "first annotate it with baremetalhost.metal3.io/detached") {
		t.Error(text)
	}
	b.BMCAddress, b.BootMAC, a.BootMAC = "10.0.0.8", "0c:42:a1:00:00:01", "0c:42:a1:00:00:01"
	if found := Conflicts(a, []Host{b}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

func TestHostsThatAreOneServerHaveAKeyInCommon(t *testing.T) {
	hosts := []Host{
		{Namespace: "m", Name: "path", BMCAddress: "redfish://10.0.0.7/redfish/v1/Systems/1"}, {Namespace: "n", Name: "no-path", BMCAddress: "https://10.0.0.7"},
		{Namespace: "m", Name: "path-2", BMCAddress: "redfish://10.0.0.7/redfish/v1/Systems/2"}, {Namespace: "m", Name: "mac", BootMAC: "0c:42:a1:00:00:01"},
		with(dell("dell", "4XK92T3"), "4c4c4544-0058-4b10-8039-b4c04f325433"), {Namespace: "x", Name: "uuid", AgentUUID: "4c4c4544-0058-4b10-8039-b4c04f325433", BootMAC: "0C:42:A1:00:00:01"},
		{Namespace: "x", Name: "empty"}, {Namespace: "y", Name: "empty"},
	}
	all := ConflictsOfAll(hosts)
	for _, h := range hosts {
		if want := Conflicts(h, hosts); !slices.Equal(all[h.FullName()], want) {
			t.Errorf("%s: %v by keys, %v by comparison", h.FullName(), all[h.FullName()], want)
		}
	}
	if got := Describe(all["n/no-path"]); got != "BareMetalHost m/path has the same BMC 10.0.0.7/redfish/v1/systems/1, and 1 more are this server too" {
		t.Error(got)
	}
	if len(all) != 6 || Describe(nil) != "" {
		t.Errorf("%v", all)
	}
	if text := Message(all["m/mac"]); !strings.Contains(text, "x/uuid") || strings.Contains(text, "power it off") || !strings.Contains(text, "then powers off and erases") || !strings.HasSuffix(text, "ingot.dev/not-same-server: x/uuid") {
		t.Error(text)
	}
}

func TestAHostIsReadFromItsObjects(t *testing.T) {
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "a", Annotations: map[string]string{v1alpha1.AnnotationNotSameServer: "b"}}}
	h.Spec.BMC.Address, h.Spec.BootMACAddress = "10.0.0.7", "0c:42:a1:00:00:01"
	h.Status.HardwareDetails = &metal3.HardwareDetails{SystemVendor: metal3.HardwareSystemVendor{Manufacturer: "Dell Inc.", ProductName: "XE9680", SerialNumber: "OLD1"}}
	want := Host{Namespace: "m", Name: "a", BMCAddress: "10.0.0.7", BootMAC: "0c:42:a1:00:00:01", Manufacturer: "Dell Inc.", Model: "XE9680", SerialNumber: "OLD1", Exceptions: "b"}
	if got := HostOf(h, nil); got != want {
		t.Errorf("without a record: %+v", got)
	}
	want.SerialNumber, want.AgentUUID = "NEW1", "u"
	record := &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Inventory: &v1alpha1.HostInventory{Manufacturer: "Dell Inc.", Model: "XE9680", SerialNumber: "NEW1", SystemUUID: "u"}}}
	if got := HostOf(h, record); got != want {
		t.Errorf("with a record: %+v", got)
	}
}

func TestAConflictTellsWhetherTheOtherHostHasDataOfATenant(t *testing.T) {
	record := func(s v1alpha1.HostRecordStatus) *v1alpha1.HostRecord { return &v1alpha1.HostRecord{Status: s} }
	for _, c := range []struct {
		name   string
		state  metal3.ProvisioningState
		record *v1alpha1.HostRecord
		want   bool
	}{
		{"never used", metal3.StateAvailable, record(v1alpha1.HostRecordStatus{}), false},
		{"installed", metal3.StateProvisioned, record(v1alpha1.HostRecordStatus{Installed: &v1alpha1.HostInstalled{}}), true},
		{"released", metal3.StateDeprovisioning, record(v1alpha1.HostRecordStatus{LastTenant: "team/research"}), true},
		{"erased", metal3.StateAvailable, record(v1alpha1.HostRecordStatus{LastTenant: "team/research", Erased: &v1alpha1.EraseProof{}}), false},
		{"new, without a record", metal3.StateRegistering, nil, false},
		{"of another provisioner", metal3.StateProvisioned, nil, true},
	} {
		h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "a"}}
		h.Spec.BMC.Address, h.Status.Provisioning.State = "10.0.0.7", c.state
		conflicts := Conflicts(Host{Namespace: "m", Name: "b", BMCAddress: "10.0.0.7"}, []Host{HostOf(h, c.record)})
		if len(conflicts) != 1 || HasData(conflicts) != c.want {
			t.Errorf("%s: %+v", c.name, conflicts)
		}
	}
}
