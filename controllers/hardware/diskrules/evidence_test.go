package diskrules

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAnEraseCountsOnlyWithEvidenceForEveryDisk(t *testing.T) {
	first, second := hardware.Disk{Name: "/dev/nvme0n1", SerialNumber: "S1", SizeBytes: 100}, hardware.Disk{Name: "/dev/nvme1n1", SerialNumber: "S2", SizeBytes: 100}
	erased := func(disk hardware.Disk, change ...func(*hardware.DiskEvidence)) hardware.DiskEvidence {
		out := hardware.DiskEvidence{Disk: disk, Method: hardware.MethodOverwrite, Bytes: disk.SizeBytes, Result: hardware.DiskErased}
		for _, c := range change {
			c(&out)
		}
		return out
	}
	metadata := func(e *hardware.DiskEvidence) { e.Method, e.Bytes = hardware.MethodMetadata, 10 }
	sanitized := func(e *hardware.DiskEvidence) { e.Method = hardware.MethodSanitizeBlock }
	half := func(e *hardware.DiskEvidence) { e.Bytes = 50 }
	failed := func(e *hardware.DiskEvidence) { e.Result = hardware.DiskFailed }
	for _, c := range []struct {
		name     string
		mode     hardware.EraseMode
		known    *hardware.KnownDisks
		found    []hardware.Disk
		evidence []hardware.DiskEvidence
		names    string
	}{
		{"all", hardware.EraseFull, &hardware.KnownDisks{Expected: []hardware.Disk{first, second}}, []hardware.Disk{first, second}, []hardware.DiskEvidence{erased(second), erased(first)}, ""},
		{"nothing to erase", hardware.EraseNone, nil, nil, nil, ""},
		{"none", hardware.EraseFull, nil, nil, nil, "no evidence"},
		{"none, for metadata", hardware.EraseMetadata, nil, []hardware.Disk{first}, nil, "no evidence"},
		{"a disk of the record", hardware.EraseFull, &hardware.KnownDisks{Expected: []hardware.Disk{first, second}}, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first)}, "S2"},
		{"a disk that the agent found", hardware.EraseFull, nil, []hardware.Disk{first, second}, []hardware.DiskEvidence{erased(first)}, "S2"},
		{"a disk that is gone", hardware.EraseFull, &hardware.KnownDisks{Expected: []hardware.Disk{first}, Gone: []string{"S2"}}, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first)}, ""},
		{"a disk that failed", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, failed)}, "S1"},
		{"half a disk", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, half)}, "50 of 100"},
		{"metadata for full", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, metadata)}, "Metadata"},
		{"metadata", hardware.EraseMetadata, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, metadata)}, ""},
		{"full for metadata", hardware.EraseMetadata, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first)}, ""},
		{"by the disk itself", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, sanitized)}, ""},
		{"half a disk by itself", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, sanitized, half)}, "50 of 100"},
		{"half a disk for metadata", hardware.EraseMetadata, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, half)}, "50 of 100"},
	} {
		err := CheckEvidence(c.mode, &hardware.EraseEvidence{Disks: c.evidence}, c.known, c.found)
		var refusal *Refusal
		if isRefused := errors.As(err, &refusal); isRefused != (c.names != "") {
			t.Errorf("%s: %v", c.name, err)
		} else if isRefused && (refusal.Reason != hardware.ReasonEvidenceMissing || !strings.Contains(refusal.Message, c.names)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.names)
		}
	}
	if CheckEvidence(hardware.EraseFull, nil, nil, nil) == nil {
		t.Error("no evidence is a proof")
	}
}
