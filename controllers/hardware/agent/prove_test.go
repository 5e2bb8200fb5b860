package agent_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/tpm"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/test/swtpm"
)

// brokenTPM answers every command with TPM_RC_FAILURE.
type brokenTPM struct{}

func (brokenTPM) Write(p []byte) (int, error) { return len(p), nil }
func (brokenTPM) Read(p []byte) (int, error) {
	return copy(p, "\x80\x01\x00\x00\x00\x0a\x00\x00\x01\x01"), nil
}
func (brokenTPM) Close() error { return nil }

// openTPM opens a device at a connection; nil: the server has none.
type openTPM = func(context.Context) (*tpm.Device, error)

func deviceAt(t *testing.T, connect func() io.ReadWriteCloser) openTPM {
	t.Helper()
	return func(context.Context) (*tpm.Device, error) { return tpm.New(connect()), nil }
}

func software(t *testing.T, state string) openTPM {
	t.Helper()
	connection := swtpm.Dial(t, state)
	return deviceAt(t, func() io.ReadWriteCloser { return connection })
}

// erase boots the server for an erase of no disk's content, with what is known of its TPM, and returns the session afterwards.
func eraseWith(t *testing.T, known hardware.KnownTPM, channel hardware.Channel, device openTPM) (netboot.Session, string, error) {
	t.Helper()
	r := newRig(t, []byte("image"), "raw", hardware.ConfigDrive{})
	r.change(func(s *netboot.Session) {
		s.Work = netboot.Work{Operation: hardware.OpErase, Erase: hardware.EraseMetadata}
		s.KnownTPM = known
	})
	token := r.boot()
	r.change(func(s *netboot.Session) { s.Channel = channel })
	config := r.config(token, newMemoryDisk(4*mib, 0xaa))
	config.TPM = device
	_, err := agent.Run(t.Context(), config)
	return r.session(), r.log.String(), err
}

// TestASessionIsOpenedByTheServersTPMAlone drives the agent against software TPMs: the first one is trusted, or listed, and from then on no other counts.
func TestASessionIsOpenedByTheServersTPMAlone(t *testing.T) {
	own, none := t.TempDir(), openTPM(func(context.Context) (*tpm.Device, error) { return nil, nil })
	first, log, err := eraseWith(t, hardware.KnownTPM{}, hardware.ChannelNetwork, software(t, own))
	if err != nil || first.TPM.Proof != hardware.TPMFirstUse || len(first.TPM.Key) != 64 || first.Evidence == nil {
		t.Fatalf("the first time: %v; %+v\n%s", err, first.TPM, log)
	}
	key := first.TPM.Key
	broken := deviceAt(t, func() io.ReadWriteCloser { return brokenTPM{} })
	absentDriver := openTPM(func(context.Context) (*tpm.Device, error) { return nil, errors.New("no device for it") })
	for name, c := range map[string]struct {
		known   hardware.KnownTPM
		channel hardware.Channel
		device  openTPM
		proof   hardware.TPMProof
		problem string
	}{
		"the known one":                     {hardware.KnownTPM{Key: key, HadTenant: true}, hardware.ChannelNetwork, software(t, copyOf(t, own)), hardware.TPMKnown, ""},
		"the listed one":                    {hardware.KnownTPM{Key: key, IsListed: true}, hardware.ChannelNetwork, software(t, copyOf(t, own)), hardware.TPMListed, ""},
		"another one":                       {hardware.KnownTPM{Key: key}, hardware.ChannelNetwork, software(t, t.TempDir()), hardware.TPMDiffers, "another one, "},
		"another one than listed":           {hardware.KnownTPM{Key: key, IsListed: true}, hardware.ChannelVirtualMedia, software(t, t.TempDir()), hardware.TPMDiffers, "tpm-key of the BareMetalHost lists"},
		"none any more":                     {hardware.KnownTPM{Key: key}, hardware.ChannelNetwork, none, hardware.TPMNone, "seen no TPM 2.0"},
		"no answer any more":                {hardware.KnownTPM{Key: key}, hardware.ChannelNetwork, broken, hardware.TPMFailed, "a TPM that proves nothing ("},
		"one that has come":                 {hardware.KnownTPM{Key: hardware.NoTPM}, hardware.ChannelNetwork, software(t, copyOf(t, own)), hardware.TPMDiffers, "expected no TPM 2.0"},
		"none as before":                    {hardware.KnownTPM{Key: hardware.NoTPM}, hardware.ChannelNetwork, none, hardware.TPMNone, ""},
		"none the first time":               {hardware.KnownTPM{}, hardware.ChannelNetwork, nil, hardware.TPMNone, ""},
		"no answer the first time":          {hardware.KnownTPM{}, hardware.ChannelNetwork, broken, hardware.TPMFailed, ""},
		"no driver the first time":          {hardware.KnownTPM{}, hardware.ChannelNetwork, absentDriver, hardware.TPMFailed, ""},
		"the first time after a tenant":     {hardware.KnownTPM{HadTenant: true}, hardware.ChannelNetwork, software(t, copyOf(t, own)), hardware.TPMUnlisted, ""},
		"the same by a medium of the BMC's": {hardware.KnownTPM{HadTenant: true}, hardware.ChannelVirtualMedia, software(t, copyOf(t, own)), hardware.TPMFirstUse, ""},
	} {
		s, log, err := eraseWith(t, c.known, c.channel, c.device)
		if s.TPM.Proof != c.proof || (c.proof == hardware.TPMFailed) != (s.TPM.Error != "") {
			t.Errorf("%s: %+v\n%s", name, s.TPM, log)
		}
		if c.problem == "" {
			if err != nil || s.Evidence == nil || s.State != hardware.AttemptRunning {
				t.Errorf("%s: %v; the attempt is %s: %s", name, err, s.State, s.Message)
			}
			continue
		}
		if protocol.CodeOf(err) != protocol.ServerDiffers || s.Reason != hardware.ReasonTPMDiffers || s.Evidence != nil || !strings.Contains(s.Message, c.problem) ||
			!strings.Contains(s.Message, "kubectl annotate --overwrite bmh -n metal gpu-1 ingot.dev/tpm-key=") {
			t.Errorf("%s: %v; the attempt is %s, %s: %s; evidence %v", name, err, s.State, s.Reason, s.Message, s.Evidence)
		}
		if strings.Contains(err.Error(), hardware.ShortTPMKey(key)) {
			t.Errorf("%s: the agent is told the key that was expected: %v", name, err)
		}
	}
}

// TestATPMThatDoesNotAnswerDelaysNobodyForLong: the context of the agent ends what a device has swallowed.
func TestATPMThatDoesNotAnswerDelaysNobodyForLong(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	reader, writer := io.Pipe()
	defer writer.Close()
	device := tpm.New(struct {
		io.Reader
		io.Writer
		io.Closer
	}{reader, io.Discard, reader})
	if _, err := device.Identify(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a device that gives no response: %v", err)
	}
	if err := device.Close(); err != nil {
		t.Error(err)
	}
}

// copyOf returns a copy of a TPM's state, because each state has one TPM at a time.
func copyOf(t *testing.T, state string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	return to
}
