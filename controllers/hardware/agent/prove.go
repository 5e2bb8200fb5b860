package agent

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/tpm"
)

// proveServer has the client speak with the key that the boot service has sealed for the server's TPM, and returns what is said of the TPM at the registration.
// What the TPM does not do is said too, and never taken for a TPM that is absent. The error is the boot service's.
func (c *client) proveServer(ctx context.Context) (*protocol.TPM, error) {
	if c.config.TPM == nil {
		return &protocol.TPM{IsAbsent: true}, nil
	}
	device, err := c.config.TPM(ctx)
	if err != nil {
		return c.tpmFailure(err), nil
	}
	if device == nil {
		c.config.Log.Info("the server has no TPM 2.0")
		return &protocol.TPM{IsAbsent: true}, nil
	}
	defer func() {
		if err := device.Close(); err != nil {
			c.config.Log.Warn("closing the TPM", "error", err)
		}
	}()
	identity, err := device.Identify(ctx)
	if err != nil {
		return c.tpmFailure(err), nil
	}
	said := &protocol.TPM{Key: identity.Key, Certificate: identity.Certificate, Name: identity.Name}
	var challenge protocol.Challenge
	if err := c.post(ctx, protocol.PathChallenge, said, &challenge); err != nil {
		return nil, err
	}
	key, err := device.OpenSealed(ctx, tpm.Sealed(challenge))
	if err == nil && len(key) != protocol.KeyBytes {
		err = fmt.Errorf("opened %d bytes, expected %d", len(key), protocol.KeyBytes)
	}
	if err != nil {
		return c.tpmFailure(err), nil
	}
	c.key = hex.EncodeToString(key)
	return said, nil
}

// tpmFailure returns what is said of a TPM that does not prove anything.
func (c *client) tpmFailure(err error) *protocol.TPM {
	c.config.Log.Warn("the server's TPM proves nothing", "error", err)
	return &protocol.TPM{Error: err.Error()}
}
