package ironic_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	server "github.com/ingot-dev/ingot/test/ironic"
)

// agentCases run against Ironic's deploy interface direct, which needs an agent on the node.
var agentCases = map[string]func(f *fixture, agent *server.Agent){
	"an image with its config drive, and each kind of erase": func(f *fixture, agent *server.Agent) {
		f.expectSucceeded(1, f.install)
		if power := f.observe().Power; power != hardware.PowerOn {
			f.Errorf("after the install the power is %s", power)
		}
		steps, drive := agent.Done()
		if !slices.Equal(steps, []string{"write_image"}) || !strings.Contains(unpacked(f.T, drive), "#cloud-config") {
			f.Errorf("the agent did %v, with a config drive of %d characters", steps, len(drive))
		}
		f.expectSucceeded(2, f.eraseWith(hardware.EraseMetadata))
		f.expectSucceeded(3, f.eraseWith(hardware.EraseFull))
		if steps, _ := agent.Done(); !slices.Equal(steps[1:], []string{"erase_devices_metadata", "erase_devices"}) {
			f.Errorf("the agent did %v", steps)
		}
		if power := f.observe().Power; power != hardware.PowerOff {
			f.Errorf("after the erase the power is %s", power)
		}
	},
	"a wrong digest": func(f *fixture, agent *server.Agent) {
		agent.Set(server.AgentOptions{Fails: map[string]server.AgentError{"write_image": {
			Type: "ImageChecksumError", Code: 500, Message: "Error verifying image checksum: Image failed to verify against checksum. actual: b2",
		}}})
		f.expectFailed(1, f.install, hardware.ReasonDigestMismatch)
		agent.Set(server.AgentOptions{})
		f.expectSucceeded(2, f.install)
	},
	"a disk that an erase cannot clear": func(f *fixture, agent *server.Agent) {
		agent.Set(server.AgentOptions{Fails: map[string]server.AgentError{"erase_devices": {
			Type: "BlockDeviceEraseError", Code: 500, Message: "Error erasing block device: /dev/sda: input/output error",
		}}})
		status := f.expectFailed(1, f.eraseWith(hardware.EraseFull), hardware.ReasonDiskError)
		if !strings.Contains(status.Message, "input/output error") {
			f.Errorf("the message is %q", status.Message)
		}
		// Ironic has put the node in maintenance, and no person has to end that.
		agent.Set(server.AgentOptions{})
		f.expectSucceeded(2, f.eraseWith(hardware.EraseFull))
	},
	"a wait for the agent is cancelled, and a restarted process sees it": func(f *fixture, agent *server.Agent) {
		agent.Set(server.AgentOptions{Absent: true})
		attempt := attemptOf(1)
		f.repeat(func() error { f.restart(); return f.install(attempt) }, func(seen hardware.Observation) bool {
			return seen.Attempt != nil && seen.Attempt.Step == hardware.StepBooting
		})
		f.restart()
		f.expectFailed(1, f.cancel, hardware.ReasonCancelled)
		f.repeat(func() error { return f.cancel(attempt) }, func(seen hardware.Observation) bool { return seen.Power == hardware.PowerOff })
		f.expectFailed(1, f.install, hardware.ReasonCancelled)
	},
	"the deadline ends a wait for the agent, and every call is one of a restarted process": func(f *fixture, agent *server.Agent) {
		for i, call := range []func(hardware.Attempt) error{f.install, f.eraseWith(hardware.EraseMetadata)} {
			agent.Set(server.AgentOptions{Absent: true})
			attempt := attemptOf(int64(i + 1))
			f.repeat(func() error { return call(attempt) }, func(seen hardware.Observation) bool {
				return seen.Attempt != nil && seen.Attempt.Number == attempt.Number && seen.Attempt.Step == hardware.StepBooting
			})
			attempt.Deadline = time.Now()
			status := f.repeat(func() error { f.restart(); return call(attempt) }, func(seen hardware.Observation) bool {
				f.restart()
				return seen.Attempt.State != hardware.AttemptRunning
			}).Attempt
			if status.State != hardware.AttemptFailed || status.Reason != hardware.ReasonDeadlineExceeded {
				f.Errorf("attempt %d, which its deadline has ended, is %s by %s: %s", attempt.Number, status.State, status.Reason, status.Message)
			}
		}
		agent.Set(server.AgentOptions{})
		f.expectSucceeded(3, f.install)
	},
	"an erase that waits is overtaken by a later attempt": func(f *fixture, agent *server.Agent) {
		agent.Set(server.AgentOptions{Hangs: map[string]bool{"erase_devices": true}})
		erase := f.eraseWith(hardware.EraseFull)
		f.repeat(func() error { return erase(attemptOf(1)) }, func(seen hardware.Observation) bool {
			return seen.Attempt != nil && seen.Attempt.Step == hardware.StepErasing
		})
		agent.Set(server.AgentOptions{})
		f.expectSucceeded(2, f.eraseWith(hardware.EraseMetadata))
		if err := erase(attemptOf(1)); hardware.KindOf(err) != hardware.Conflict {
			f.Errorf("a late call for the attempt before: %v", err)
		}
	},
	"two controllers at once": func(f *fixture, agent *server.Agent) {
		other := *f
		other.restart()
		attempt := attemptOf(1)
		f.repeat(func() error {
			err := f.install(attempt)
			if otherErr := other.install(attempt); hardware.KindOf(otherErr) == hardware.Invalid {
				f.Errorf("the second controller: %v", otherErr)
			}
			return err
		}, func(seen hardware.Observation) bool {
			return seen.Attempt != nil && seen.Attempt.State == hardware.AttemptSucceeded
		})
		if steps, _ := agent.Done(); !slices.Equal(steps, []string{"write_image"}) {
			f.Errorf("the agent did %v, expected one image", steps)
		}
	},
}

// unpacked returns the bytes of a config drive: base64 of a gzipped ISO 9660 image.
func unpacked(t *testing.T, drive string) string {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(drive)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
