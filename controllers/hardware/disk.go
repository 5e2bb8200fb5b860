package hardware

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// EraseMethod is how a disk was erased.
type EraseMethod string

// Erase methods.
const (
	// MethodOverwrite means that every byte that the disk offers was overwritten with zeros. Spare sectors that the disk keeps for itself
	// were not.
	MethodOverwrite EraseMethod = "Overwrite"
	// MethodMetadata means that partition tables and signatures were overwritten with zeros.
	MethodMetadata EraseMethod = "Metadata"
	// MethodSanitizeBlock means that the disk erased all of its flash memory, spare blocks and caches with it (Sanitize, block erase).
	MethodSanitizeBlock EraseMethod = "SanitizeBlock"
	// MethodSanitizeCrypto means that the disk replaced the key with which everything on it is encrypted (Sanitize, crypto erase).
	MethodSanitizeCrypto EraseMethod = "SanitizeCrypto"
	// MethodSanitizeOverwrite means that the disk overwrote all of its medium, spare blocks with it (Sanitize, overwrite).
	MethodSanitizeOverwrite EraseMethod = "SanitizeOverwrite"
	// MethodSecureEraseEnhanced means that the disk erased all of its medium, reallocated sectors with it (ATA SECURITY ERASE UNIT, enhanced).
	MethodSecureEraseEnhanced EraseMethod = "SecureEraseEnhanced"
	// MethodSecureErase means that the disk erased the sectors that it offers (ATA SECURITY ERASE UNIT).
	MethodSecureErase EraseMethod = "SecureErase"
	// MethodFormatCrypto means that the disk replaced the key of its blocks (NVMe Format, cryptographic erase).
	MethodFormatCrypto EraseMethod = "FormatCrypto"
	// MethodFormat means that the disk erased its blocks (NVMe Format, user data erase).
	MethodFormat EraseMethod = "Format"
	// MethodDiscard means that the disk deallocated every block, guarantees that such a block reads as zeros, and that every byte was read as zero.
	MethodDiscard EraseMethod = "Discard"
)

// IsComplete reports whether the method leaves nothing of what the disk had.
func (m EraseMethod) IsComplete() bool {
	return slices.Contains([]EraseMethod{
		MethodOverwrite, MethodSanitizeBlock, MethodSanitizeCrypto, MethodSanitizeOverwrite, MethodSecureEraseEnhanced, MethodSecureErase,
		MethodFormatCrypto, MethodFormat, MethodDiscard,
	}, m)
}

// EraseResult is what became of one disk in an erase.
type EraseResult string

// Erase results.
const (
	// DiskErased means that the disk was erased by the method of the evidence.
	DiskErased EraseResult = "Erased"
	// DiskFailed means that the disk could not be erased.
	DiskFailed EraseResult = "Failed"
)

// MaxDisks is the maximum number of disks that an agent reports about, and that is kept for one host.
const MaxDisks = 256

// DiskEvidence says what an erase did to one disk.
type DiskEvidence struct {
	Disk
	Method EraseMethod `json:"method"`
	// Bytes is how many bytes were overwritten, or the size of a disk that erased itself.
	Bytes  int64       `json:"bytes"`
	Result EraseResult `json:"result"`
	// Message says why the disk failed, or why another method than the requested one was used.
	Message string `json:"message,omitempty"`
}

// EraseEvidence is the evidence of an erase, one element for each disk.
type EraseEvidence struct {
	Disks []DiskEvidence `json:"disks,omitempty"`
}

// UnusableDisk is a disk that cannot be written, or a controller whose disks cannot be seen.
type UnusableDisk struct {
	Disk
	// Why says what prevents it and what to do, as the rest of a sentence that begins with the disk.
	Why string `json:"why"`
	// HasContent is true when the disk may hold data. An administrator can declare another one gone, but not this one.
	HasContent bool `json:"hasContent,omitempty"`
}

// KnownDisks are the disks of a host that were seen by an agent or reported by a BMC, now or earlier.
type KnownDisks struct {
	// Expected are the disks that an erase must clear, each with a serial number or WWN.
	Expected []Disk `json:"expected,omitempty"`
	// Gone are the names of disks that an administrator has declared to be taken out: serial numbers, WWNs, or paths.
	Gone []string `json:"gone,omitempty"`
}

// String returns the path and the serial number of the disk, or what else is known of it.
func (d Disk) String() string {
	var parts []string
	if d.SerialNumber != "" {
		parts = append(parts, "serial number "+d.SerialNumber)
	}
	if d.WWN != "" && d.SerialNumber == "" {
		parts = append(parts, "WWN "+d.WWN)
	}
	if d.Model != "" {
		parts = append(parts, strings.TrimSpace(d.Model))
	}
	size := "size unknown"
	if d.SizeBytes > 0 {
		size = fmt.Sprintf("%d bytes", d.SizeBytes)
	}
	return cmp.Or(d.Name, "disk") + " (" + strings.Join(append(parts, size), ", ") + ")"
}

// HasIdentity reports whether the disk can be told from every other one: it has a serial number or a WWN.
func (d Disk) HasIdentity() bool { return normalSerial(d.SerialNumber) != "" || NormalWWN(d.WWN) != "" }

// Identifier returns the name by which an administrator means the disk: its serial number, else its WWN, else its path.
func (d Disk) Identifier() string { return cmp.Or(d.SerialNumber, d.WWN, d.Name) }

// IsNamed reports whether the name, which an administrator wrote, is the disk's serial number, its WWN or its path.
func (d Disk) IsNamed(name string) bool {
	name = strings.TrimSpace(name)
	serial, wwn := normalSerial(name), NormalWWN(name)
	return serial != "" && serial == normalSerial(d.SerialNumber) || wwn != "" && wwn == NormalWWN(d.WWN) || name != "" && name == d.Name
}

// IsDeclared reports whether an administrator who declared something with that name to be gone meant the disk. A path means a disk only that has
// neither serial number nor WWN, because it may be another disk's after the next boot. Without it: an administrator names the path that a broken
// disk had, the record has another disk by that path, and the erase succeeds without that one.
func (d Disk) IsDeclared(name string) bool {
	if d.HasIdentity() {
		d.Name = ""
	}
	return d.IsNamed(name)
}

// placeholderSerials are serial numbers that say nothing.
var placeholderSerials = []string{"n/a", "na", "none", "null", "unknown", "notavailable", "notspecified", "tobefilledbyo.e.m."}

// normalSerial returns the serial number as it is compared: in lower case and without white space, which BMCs and drivers add in
// different places. It is empty for a placeholder.
func normalSerial(serial string) string {
	serial = strings.ToLower(strings.Join(strings.Fields(serial), ""))
	if strings.Trim(serial, "0") == "" || slices.Contains(placeholderSerials, serial) {
		return ""
	}
	return serial
}

// wwnPrefixes precede the same World Wide Name in the notations of kernels, udev and BMCs.
var wwnPrefixes = []string{"wwn-", "nvme-", "naa.", "eui.", "eui-", "naa-", "uuid.", "urn:uuid:", "0x"}

// NormalWWN returns the World Wide Name as it is compared: in lower case and without prefixes and separators, so that
// "eui.0025385B71B02A33", "0x0025385b71b02a33" and "00-25-38-5B-71-B0-2A-33" are equal. It is empty for one of zeros alone.
func NormalWWN(wwn string) string {
	wwn = strings.ToLower(strings.Join(strings.Fields(wwn), ""))
	for isCut := true; isCut; {
		isCut = false
		for _, prefix := range wwnPrefixes {
			if rest, found := strings.CutPrefix(wwn, prefix); found {
				wwn, isCut = rest, true
			}
		}
	}
	wwn = strings.NewReplacer("-", "", ":", "").Replace(wwn)
	if strings.Trim(wwn, "0") == "" {
		return ""
	}
	return wwn
}

// IsSame reports whether the two describe the same disk: an equal WWN, or an equal serial number. Two NVMe namespaces of one
// controller have an equal serial number, so MatchDisks counts them. Disks of which one has neither are compared by path and size.
func (d Disk) IsSame(other Disk) bool { return similarity(d, other) > 0 }

// similarity returns how well two descriptions of disks agree; 0 means that they are of different disks.
func similarity(a, b Disk) int {
	if wwn := NormalWWN(a.WWN); wwn != "" && wwn == NormalWWN(b.WWN) {
		return 3
	}
	if serial := normalSerial(a.SerialNumber); serial != "" && serial == normalSerial(b.SerialNumber) {
		if a.SizeBytes == b.SizeBytes {
			return 2
		}
		return 1
	}
	if (!a.HasIdentity() || !b.HasIdentity()) && a.Name != "" && a.Name == b.Name && a.SizeBytes == b.SizeBytes {
		return 1
	}
	return 0
}

// AbsentDisks returns the known disks that are not among the present ones, as MatchDisks finds them.
func AbsentDisks(known, present []Disk) []Disk {
	var absent []Disk
	for i, at := range MatchDisks(known, present) {
		if at < 0 {
			absent = append(absent, known[i])
		}
	}
	return absent
}
