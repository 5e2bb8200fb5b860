package redfish

import "testing"

func TestIDsAreReadInEveryFormThatProductsWrite(t *testing.T) {
	for _, c := range []struct {
		vendor, device word
		want           string
	}{
		{"0x10DE", "0x2330", "10de:2330"}, {"0x10de", "2330", "10de:2330"}, {"10DE", "2330", "10de:2330"}, {"0X10DE", "0X2321", "10de:2321"},
		{"4318", "8373", "10de:20b5"}, {"5555", "4123", "15b3:101b"}, {"4139", "1336", "102b:0538"}, {"32902", "5502", "8086:157e"}, {"36869", "655", "9005:028f"},
		{"0xf811", "0x2841", "11f8:4128"}, {"0xde10", "0x3023", "10de:2330"}, {"1002", "74a1", "1002:74a1"}, {"8086", "1572", "8086:1572"},
		{"0x0000", "0x0000", ":"}, {"0xffff", "0xffff", ":"}, {"", "", ":"}, {"0x", "none", ":"}, {"0x144d", "", "144d:"}, {"0x10de0", "0x1", ":0001"}, {"0x10DE ", " 0x2330", "10de:2330"},
	} {
		if vendor, device, _ := normalizeIDs(c.vendor, c.device); vendor+":"+device != c.want {
			t.Errorf("%q %q: %s:%s, expected %s", c.vendor, c.device, vendor, device, c.want)
		}
	}
}

func TestClassesAreReadInEveryFormThatProductsWrite(t *testing.T) {
	for _, c := range []struct {
		code word
		name string
		base int
		want string
	}{
		{"0x030200", "DisplayController", 16, "030200"}, {"0x030200", "", 16, "030200"}, {"030000", "", 16, "030000"}, {"0X030200", "", 16, "030200"},
		{"0x000003", "DisplayController", 16, "030000"}, {"0X000003", "", 16, "030000"}, {"00000c", "SerialBusController", 16, "0c0000"}, {"0x12", "", 16, "120000"},
		{"3", "", 10, "030000"}, {"12", "SerialBusController", 10, "0c0000"}, {"18", "", 10, "120000"}, {"0x0302", "", 16, "030200"},
		{"0x888888", "MassStorageController", 16, "010000"}, {"0x888888", "", 16, ""}, {"", "DisplayController", 16, "030000"}, {"", "", 16, ""},
		{"0x000000", "", 16, ""}, {"0x000000", "ProcessingAccelerators", 16, "120000"}, {"0x068000", "Bridge", 16, "068000"}, {"0x030200", "UnassignedClass", 16, "030200"},
		{"0x020000", "DisplayController", 16, "030000"},
	} {
		if got := normalizeClass(c.code, c.name, c.base); got != c.want {
			t.Errorf("%q %s: %q, expected %q", c.code, c.name, got, c.want)
		}
	}
}

func TestOnlyDisksOfTheServerAreDisks(t *testing.T) {
	for name, c := range map[string]struct {
		drive drive
		want  bool
	}{
		"a disk":                       {drive{Model: "SAMSUNG MZ", CapacityBytes: 1e12}, true},
		"in MiB":                       {drive{CapacityMiB: 2289272}, true},
		"a RAID volume":                {drive{Model: "LOGICAL VOLUME", CapacityBytes: 1e12}, true},
		"a virtual CD":                 {drive{Model: "Virtual Cdrom Device", CapacityBytes: 2048}, false},
		"a virtual disk":               {drive{Model: "Virtual HDisk Device", CapacityBytes: 1098907648}, false},
		"iDRAC's":                      {drive{Model: "iDRAC Virtual CD", CapacityBytes: 1e9}, false},
		"a virtual floppy":             {drive{Name: "Virtual_Floppy", CapacityBytes: 1e9}, false},
		"a backplane":                  {drive{Model: "PCIe SSD Backplane 1"}, false},
		"an empty bay":                 {drive{Name: "Empty Bay", CapacityBytes: 1e12, Status: status{State: "Absent"}}, false},
		"nothing is known":             {drive{}, false},
		"negative":                     {drive{CapacityBytes: -1}, false},
		"more than a disk":             {drive{CapacityBytes: 1e300}, false},
		"smaller than that":            {drive{CapacityBytes: 2048}, false},
		"of unknown size":              {drive{Model: "PM1735", SerialNumber: "S4WANA0"}, true},
		"too big to be so":             {drive{SerialNumber: "S4WANA0", CapacityBytes: 1e300}, true},
		"a placeholder":                {drive{Model: "PM1735", SerialNumber: "N/A"}, false},
		"a virtual CD of unknown size": {drive{Model: "Virtual Cdrom Device", SerialNumber: "AAAABBBBCCCC1"}, false},
	} {
		if got := c.drive.isDisk(); got != c.want {
			t.Errorf("%s: %v, expected %v", name, got, c.want)
		}
	}
}

func TestAnAddressThatIdentifiesNoInterfaceIsNone(t *testing.T) {
	for text, want := range map[string]string{
		"A0:88:C2:00:00:01": "a0:88:c2:00:00:01", "a0-88-c2-00-00-01": "a0:88:c2:00:00:01", " A0:88:C2:00:00:01 ": "a0:88:c2:00:00:01", "52:54:00:aa:00:01": "52:54:00:aa:00:01",
		"": "", "00:00:00:00:00:00": "", "FF:FF:FF:FF:FF:FF": "", "11:11:11:11:11:11": "", "22:22:22:22:22:22": "", "01:00:5e:00:00:01": "", "Not Available": "",
		"00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01": "",
	} {
		if got := usableMAC(text); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
}
