package ironic

import (
	"context"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Installer implements hardware.Installer. It is safe for concurrent use, with at most one call per host at a time.
type Installer struct {
	options Options
	client  client
	listing listing
	sent    sentCredentials
	refused refusedHosts
	seen    sightings

	inventories inventories
	powers      powerRequests
}

var _ hardware.Installer = (*Installer)(nil)

// New returns an Installer with the options.
func New(options Options) *Installer {
	options = options.withDefaults()
	return &Installer{options: options, client: client{options: options, slots: make(chan struct{}, maxChanges)}}
}

// Capabilities implements hardware.Installer. Ironic's agent writes raw and qcow2 images, and reports no bytes and no evidence. The inventory
// that it reads has no system UUID. The inspect interface of a node decides whether its server is booted for an inspection.
func (i *Installer) Capabilities() hardware.Capabilities {
	return hardware.Capabilities{
		Formats:          formats,
		EraseModes:       []hardware.EraseMode{hardware.EraseNone, hardware.EraseMetadata, hardware.EraseFull},
		NeedsConfigDrive: true, NeedsRelease: true, BootsToInspect: true,
		RootDeviceHints: hardware.AllHints(),
	}
}

// Observe implements hardware.Installer. A host without a node has no power state and no attempt.
func (i *Installer) Observe(ctx context.Context, host hardware.Host) (hardware.Observation, error) {
	n, _, err := i.find(ctx, host)
	if err != nil {
		return hardware.Observation{Power: hardware.PowerUnknown}, named(err)
	}
	isOthers := isRecordOf(n, host) && isForeign(n)
	observation := hardware.Observation{Power: powerOf(n), IsPowerRemembered: true, PowerAskedAt: i.powers.askedAt(host.UID), Attempt: i.attemptOf(n, host)}
	if isOthers {
		observation.Power, observation.Attempt = hardware.PowerUnknown, nil // what Ironic tells is of somebody else's work
	}
	if host.IsLeaving && isRecordOf(n, host) && (isFree(n.state) || isOthers) {
		return observation, named(i.forget(ctx, host, n))
	}
	if isOthers {
		return observation, foreignUse(n, host)
	}
	if observation.Inventory, err = i.inventory(ctx, host, n, observation.Attempt); err != nil {
		observation.Attempt = nil // the inspection ends with its inventory
		return observation, named(err)
	}
	if err := i.settle(ctx, host, n); err != nil {
		return observation, named(err)
	}
	if trouble := maintenanceOf(n, host); trouble != nil {
		observation.Power = hardware.PowerUnknown
		return observation, trouble
	}
	return observation, nil
}

// attemptOf returns the status of the host's attempt; nil: its node carries none.
func (i *Installer) attemptOf(n node, host hardware.Host) *hardware.AttemptStatus {
	if !isRecordOf(n, host) {
		return nil
	}
	status := statusOf(n)
	if status == nil {
		return nil
	}
	status.Channel = hardware.ChannelOfIronic(n.bootInterface, host.BMC.Address != "" && !host.BMC.InsecureSkipVerify)
	if status.State == hardware.AttemptRunning && isAtRest(n.state) {
		status.IsRefusedByLimit = status.IsRefusedByLimit || i.refused.hasHost(host.UID)
	}
	return status
}

// Inspect implements hardware.Installer. Ironic decides who reads the inventory, by the inspect interface of the node.
func (i *Installer) Inspect(ctx context.Context, host hardware.Host, attempt hardware.Attempt, _ hardware.Inspector) error {
	return named(i.advance(ctx, host, attempt, workInspect, nil))
}

// Install implements hardware.Installer.
func (i *Installer) Install(ctx context.Context, host hardware.Host, attempt hardware.Attempt, spec hardware.InstallSpec) error {
	instance, err := instanceInfo(host, spec)
	if err != nil {
		return named(err)
	}
	return named(i.advance(ctx, host, attempt, workInstall, &installation{
		instance: instance, isLive: spec.Image.Format == hardware.FormatLiveISO, readDrive: spec.ReadConfigDrive,
	}))
}

// Erase implements hardware.Installer.
func (i *Installer) Erase(ctx context.Context, host hardware.Host, attempt hardware.Attempt, mode hardware.EraseMode) error {
	w, ok := eraseWork[mode]
	if !ok {
		return hardware.Errorf(hardware.Unsupported, "erase", host.String(), "unknown erase mode %q", mode)
	}
	return named(i.advance(ctx, host, attempt, w, nil))
}

// Cancel implements hardware.Installer. A host without a node gets one, which says that the attempt is cancelled: a late call cannot begin it.
func (i *Installer) Cancel(ctx context.Context, host hardware.Host, attempt hardware.Attempt) error {
	if attempt.Number <= 0 {
		return hardware.Errorf(hardware.Invalid, "cancel attempt", host.String(), "attempt %d: numbers begin with 1", attempt.Number)
	}
	n, asked, err := i.find(ctx, host)
	if err != nil || asked {
		return named(err)
	}
	c := call{host: host, number: attempt.Number, now: i.options.Clock()}
	if n.record.host != host.UID {
		return named(i.adopt(ctx, c, n))
	}
	return named(i.perform(ctx, c, n, nextCancel(n, c), nil))
}

// advance carries out the next action of an attempt.
func (i *Installer) advance(ctx context.Context, host hardware.Host, attempt hardware.Attempt, w work, install *installation) error {
	if attempt.Number <= 0 || attempt.Deadline.IsZero() {
		return hardware.Errorf(hardware.Invalid, "begin work", host.String(), "attempt %d until %s: expected a number from 1 on and a deadline", attempt.Number, attempt.Deadline)
	}
	n, asked, err := i.find(ctx, host)
	if err != nil || asked {
		return err
	}
	c := call{host: host, number: attempt.Number, deadline: attempt.Deadline, work: w, isLive: install != nil && install.isLive, evidence: i.seen.evidenceOf(n), now: i.options.Clock()}
	if n.record.host != host.UID {
		return i.adopt(ctx, c, n)
	}
	return i.perform(ctx, c, n, nextAction(n, c), install)
}

// perform carries out the action.
func (i *Installer) perform(ctx context.Context, c call, n node, next action, install *installation) error {
	switch next.kind {
	case actionWait:
		return nil
	case actionRefuse:
		return next.err
	}
	i.options.Log.Info(string(next.kind), "host", c.host.String(), "attempt", c.number, "node", n.uuid, "state", string(n.state),
		"target", string(next.target), "reason", string(next.outcome))
	return i.carryOut(ctx, c, n, next, install)
}

// carryOut makes the requests of the action.
func (i *Installer) carryOut(ctx context.Context, c call, n node, next action, install *installation) error {
	switch next.kind {
	case actionBegin:
		return i.begin(ctx, c, n, install)
	case actionEnd:
		return i.end(ctx, c, n, next.outcome)
	case actionManage:
		return i.manage(ctx, c, n)
	case actionProvide:
		return i.provide(ctx, c, n, install)
	case actionRequest:
		return i.requestState(ctx, c, n, next.target, nil)
	case actionPrepare:
		return i.prepare(ctx, c, n, next.target, install)
	case actionProve:
		return i.prove(ctx, c, n, install)
	case actionRelieve:
		return i.endMaintenance(ctx, c, n)
	case actionPower:
		return i.requestPower(ctx, c.host, n, hardware.PowerChange{Desired: hardware.PowerOff}, c.now)
	default:
		return nil
	}
}
