package nvme

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// Drive is one namespace of an NVMe disk.
type Drive struct {
	// Namespace is its number.
	Namespace uint32
	// Admin sends an admin command to the controller of the namespace.
	Admin func(Command) error
}

// Methods returns the methods by which the disk can erase the namespace, the best first.
func (d *Drive) Methods() ([]hardware.EraseMethod, error) {
	controller, namespaces := identify(cnsController, 0), identify(cnsNamespaces, 0)
	if err := d.Admin(controller); err != nil {
		return nil, fmt.Errorf("asking the controller what it can do: %w", err)
	}
	capabilities, err := parseController(controller.Data)
	if err != nil {
		return nil, err
	}
	// A controller of before NVMe 1.1 has no list. Then nobody can tell that the namespace is alone.
	if err := d.Admin(namespaces); err != nil || countNamespaces(namespaces.Data) != 1 {
		capabilities.IsShared = true
	}
	return capabilities.Methods(), nil
}

// Begin begins the erase. A format has ended when Begin returns; a sanitize goes on, also after a power cut, until State says otherwise.
func (d *Drive) Begin(method hardware.EraseMethod) error {
	if err := d.leaveFailure(); err != nil {
		return err
	}
	switch method {
	case hardware.MethodSanitizeBlock:
		return d.Admin(sanitize(blockErase))
	case hardware.MethodSanitizeCrypto:
		return d.Admin(sanitize(cryptoErase))
	case hardware.MethodFormatCrypto:
		return d.format(eraseKey)
	case hardware.MethodFormat:
		return d.format(eraseUserData)
	}
	return fmt.Errorf("an NVMe disk has no method %q", method)
}

// Recover makes the disk readable and writable again after a sanitize that failed.
func (d *Drive) Recover() error { return d.leaveFailure() }

// leaveFailure ends the state that a failed sanitize leaves, in which the disk refuses reads, writes and formats.
func (d *Drive) leaveFailure() error {
	state, err := d.State()
	if err != nil || !state.HasFailed {
		return err
	}
	if err := d.Admin(sanitize(exitFailure)); err != nil {
		return fmt.Errorf("leaving the state after a failed sanitize: %w", err)
	}
	return nil
}

func (d *Drive) format(erase secureErase) error {
	namespace := identify(cnsNamespace, d.Namespace)
	if err := d.Admin(namespace); err != nil {
		return fmt.Errorf("asking for the block size: %w", err)
	}
	layout, err := parseNamespace(namespace.Data)
	if err != nil {
		return err
	}
	return d.Admin(format(d.Namespace, layout, erase))
}

// State returns how far the sanitize operation is. A disk without sanitize has none that runs.
func (d *Drive) State() (selferase.State, error) {
	data, err := d.readSanitizeLog()
	if err != nil || data == nil {
		return selferase.State{}, err
	}
	return parseSanitizeLog(data)
}

// readSanitizeLog returns the Sanitize Status log page, nil for a disk without sanitize.
func (d *Drive) readSanitizeLog() ([]byte, error) {
	controller := identify(cnsController, 0)
	if err := d.Admin(controller); err != nil {
		return nil, fmt.Errorf("asking the controller what it can do: %w", err)
	}
	if c, err := parseController(controller.Data); err != nil || !c.SanitizeBlock && !c.SanitizeCrypto {
		return nil, err
	}
	log := sanitizeLog()
	if err := d.Admin(log); err != nil {
		return nil, fmt.Errorf("reading the state of the sanitize operation: %w", err)
	}
	return log.Data, nil
}

// Estimate returns how long the disk says that a sanitize takes. A format has ended when Begin returns.
func (d *Drive) Estimate(method hardware.EraseMethod) time.Duration {
	data, err := d.readSanitizeLog()
	if err != nil {
		return 0
	}
	return parseEstimate(data, method)
}

// HasZerosAfterDiscard reports whether deallocated blocks read as zeros (DLFEAT).
func (d *Drive) HasZerosAfterDiscard() bool {
	controller, namespace := identify(cnsController, 0), identify(cnsNamespace, d.Namespace)
	return d.Admin(controller) == nil && d.Admin(namespace) == nil && hasZerosAfterDeallocate(controller.Data, namespace.Data)
}
