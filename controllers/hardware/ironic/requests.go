package ironic

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/ports"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// adopt makes a node that is not the host's yet the host's: n, which has the name that the host's node must have, or the one with a port of its boot MAC address.
// Where there is neither, it creates one. Ironic gives no name twice, so that of two who create it one is refused.
func (i *Installer) adopt(ctx context.Context, c call, n node) error {
	if n.uuid == "" && c.host.InstallerNode != "" {
		return missingNode(c.host)
	}
	if refused := refusalOf(n, c); n.uuid != "" && refused != nil {
		return refused
	}
	service, minor, err := i.client.open(ctx)
	if err != nil {
		return err
	}
	owner, err := i.nodeOfMAC(ctx, service, c.host)
	if err != nil {
		return err
	}
	if n.uuid == "" && owner == "" {
		return i.create(ctx, service, minor, c)
	}
	// The list is some seconds old: another host may have the node since.
	if n, err = i.read(ctx, c.host, firstOf(n.uuid, owner)); err != nil {
		return err
	}
	if refused := refusalOf(n, c); refused != nil {
		return refused
	}
	if err := i.checkMAC(ctx, c.host, n, owner); err != nil {
		return err
	}
	i.options.Log.Info("adopt node", "host", c.host.String(), "node", n.uuid, "name", n.name, "state", string(n.state))
	_, err = i.patch(ctx, c.host, n, "adopt node", append(taking(n, c.host), set("/extra/"+extraHost, c.host.UID)))
	return err
}

// missingNode returns the refusal of a host that names a node which Ironic does not have.
func missingNode(host hardware.Host) error {
	advice := "correct the annotation ingot.dev/ironic-node"
	if host.BMC.Address != "" {
		advice += ", or remove it to have the node found by its boot MAC address or created"
	}
	return hardware.Errorf(hardware.NotFound, "find node", host.String(), "Ironic has no node with the UUID or the name %q, or shows it to nobody with these credentials: %s", host.InstallerNode, advice)
}

// checkMAC refuses a node that has ports, and none with the host's boot MAC address. Without it: a host names the node of another free server by mistake, and that
// server is installed in place of its own. A node without ports gets one later.
func (i *Installer) checkMAC(ctx context.Context, host hardware.Host, n node, owner string) error {
	const op = "adopt node"
	if host.BootMAC == "" || owner == n.uuid {
		return nil
	}
	if owner != "" {
		return hardware.Errorf(hardware.Conflict, op, host.String(), "the host is Ironic's node %s (%s), but its boot MAC address %s is that of Ironic's node %s: correct the one that is wrong",
			n.uuid, n.name, host.BootMAC, owner)
	}
	macs, err := i.readMACs(ctx, host, n)
	if err != nil || len(macs) == 0 {
		return err
	}
	return hardware.Errorf(hardware.Conflict, op, host.String(), "the host is Ironic's node %s (%s), whose ports have the MAC addresses %s and not the host's boot MAC address %s: "+
		"correct the one that is wrong", n.uuid, n.name, strings.Join(macs, ", "), host.BootMAC)
}

// create creates the node of the host.
func (i *Installer) create(ctx context.Context, service *gophercloud.ServiceClient, minor int, c call) error {
	driver := driverOf(i.options, c.host)
	info := maps.Clone(driver.info)
	if minor >= minorChildren {
		info[ownPower] = true
	}
	off := false
	instance := reservationOf(c.host.UID)
	extra := map[string]any{extraHost: c.host.UID, extraCreated: true, extraInstance: instance, extraCleaning: cleaningDefault}
	if c.number > 0 {
		extra[extraAttempt], extra[extraWork], extra[extraEnrolled] = c.number, string(c.work), timeText(time.Time{})
	}
	created, err := nodes.Create(ctx, service, createOptions{instance: instance, CreateOpts: nodes.CreateOpts{
		Name: nodeName(c.host), Driver: driver.name, DriverInfo: info, Extra: extra,
		BootInterface: i.options.BootInterface, DeployInterface: i.options.DeployInterface,
		NetworkInterface: i.options.NetworkInterface, AutomatedClean: &off,
	}}).Extract()
	if err != nil {
		return i.failed(asSecretError(err, "create node", c.host.String(), driver.secrets()...))
	}
	i.sent.note(c.host.UID, driver)
	i.note(c.host, newNode(*created), false)
	return nil
}

// nodeOfMAC returns the UUID of the node that has a port with the host's boot MAC address, and "" when there is none. A host without
// that address has no such node: Ironic would answer with the ports of all nodes.
func (i *Installer) nodeOfMAC(ctx context.Context, service *gophercloud.ServiceClient, host hardware.Host) (string, error) {
	const op = "find node by MAC address"
	if host.BootMAC == "" {
		return "", nil
	}
	found, err := i.listPorts(ctx, service, op, host, ports.ListOpts{Address: host.BootMAC, Fields: []string{"uuid", "node_uuid"}})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", nil
	}
	return found[0].NodeUUID, nil
}

// read returns the node as it is now.
func (i *Installer) read(ctx context.Context, host hardware.Host, uuid string) (node, error) {
	service, _, err := i.client.open(ctx)
	if err != nil {
		return node{}, err
	}
	read, err := nodes.Get(ctx, service, uuid).Extract()
	if err != nil {
		return node{}, i.failed(asError(err, "read node", host.String()))
	}
	return i.seen.withProof(newNode(*read)), nil
}

// patch changes fields of the node and notes what Ironic answers. The secrets are those in the operations.
func (i *Installer) patch(ctx context.Context, host hardware.Host, n node, op string, operations nodes.UpdateOpts, secrets ...string) (node, error) {
	service, _, err := i.client.open(ctx)
	if err != nil {
		return node{}, err
	}
	patched, err := nodes.Update(ctx, service, n.uuid, operations).Extract()
	if err != nil {
		return node{}, i.failed(asSecretError(err, op, host.String(), secrets...))
	}
	changed := newNode(*patched).withTimeOf(n)
	i.note(host, changed, false)
	return changed, nil
}

// set returns the operation that gives a field of the node a value, whether or not it has one.
func set(path string, value any) nodes.UpdateOperation {
	return nodes.UpdateOperation{Op: nodes.AddOp, Path: path, Value: value}
}

// end stores the outcome of an attempt that is over before Ironic ends it.
func (i *Installer) end(ctx context.Context, c call, n node, outcome hardware.Reason) error {
	_, err := i.patch(ctx, c.host, n, "end attempt", nodes.UpdateOpts{
		set("/extra/"+extraHost, c.host.UID), set("/extra/"+extraAttempt, c.number), set("/extra/"+extraOutcome, string(outcome)),
	})
	return err
}

// settle makes the changes of a node that are due beside its work.
func (i *Installer) settle(ctx context.Context, host hardware.Host, n node) error {
	if err := i.renewCredentials(ctx, host, n); err != nil {
		return err
	}
	return i.storeOutcome(ctx, host, n)
}

// storeOutcome stores the outcome of an installation that is proven by what this process has seen, when it is time.
func (i *Installer) storeOutcome(ctx context.Context, host hardware.Host, n node) error {
	if !i.seen.mustBeStored(n, i.options.Clock()) {
		return nil
	}
	return i.end(ctx, call{host: host, number: n.record.number}, n, outcomeDone)
}

// manage sees to the port with the boot MAC address and lets Ironic verify the node.
func (i *Installer) manage(ctx context.Context, c call, n node) error {
	if n.state != nodes.Enroll || c.host.BootMAC == "" {
		return i.requestState(ctx, c, n, nodes.TargetManage, nil)
	}
	service, _, err := i.client.open(ctx)
	if err != nil {
		return err
	}
	pxe := true
	_, err = ports.Create(ctx, service, ports.CreateOpts{NodeUUID: n.uuid, Address: c.host.BootMAC, PXEEnabled: &pxe}).Extract()
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		return i.failed(asError(err, "create port", c.host.String()))
	}
	if err != nil {
		owner, findErr := i.nodeOfMAC(ctx, service, c.host)
		if findErr != nil {
			return findErr
		}
		if owner == "" {
			return i.failed(asHiddenPort(asError(err, "create port", c.host.String()), c.host, n)) // no port has the address that this login may see
		}
		if owner != n.uuid {
			return hardware.Errorf(hardware.Conflict, "create port", c.host.String(),
				"the boot MAC address %s is that of Ironic's node %q: correct the one that is wrong", c.host.BootMAC, owner)
		}
	}
	return i.requestState(ctx, c, n, nodes.TargetManage, nil)
}

// takenText is in Ironic's refusal of a port whose MAC address another port has.
const takenText = "already exists"

// asHiddenPort returns what the refusal of a port means where another port has the address and this login does not see it: the server has a node already, which is another
// project's. Any other refusal stays as it is: the node is locked.
func asHiddenPort(err error, host hardware.Host, n node) error {
	if !n.record.isCreated || !strings.Contains(err.Error(), takenText) {
		return err
	}
	return hardware.Errorf(hardware.Conflict, "create port", host.String(), "Ironic says that a port has the boot MAC address %s, and does not show it to these credentials, so that the server has another node there: "+
		"have an administrator of Ironic make the project of the credentials the owner of that node (baremetal node set --owner PROJECT NODE), and delete the node that Ingot has created, which is reserved (baremetal node maintenance set %s; baremetal node delete %s)",
		host.BootMAC, n.uuid, n.uuid)
}

// forget removes the host from the node, which is free or somebody else's: its server can be registered under another UID. What says that this package has created it stays.
func (i *Installer) forget(ctx context.Context, host hardware.Host, n node) error {
	operations := append(releasingReservation(n), restoringCleaning(n)...)
	_, err := i.patch(ctx, host, n, "forget the host", append(operations,
		nodes.UpdateOperation{Op: nodes.RemoveOp, Path: "/extra/" + extraHost}, set("/extra/"+extraAttempt, 0), set("/extra/"+extraWork, ""), set("/extra/"+extraFrom, ""), set("/extra/"+extraOutcome, ""),
		set("/extra/"+extraInstance, "")))
	return err
}

// endMaintenance ends the maintenance that Ironic has begun because work has failed.
func (i *Installer) endMaintenance(ctx context.Context, c call, n node) error {
	service, _, err := i.client.open(ctx)
	if err != nil {
		return err
	}
	if err := nodes.UnsetMaintenance(ctx, service, n.uuid).ExtractErr(); err != nil {
		return i.failed(asError(err, "end maintenance", c.host.String()))
	}
	i.note(c.host, n, true)
	return nil
}

// notInspected is what Ironic says of a node whose driver has no inspection, as the hardware type ipmi without ironic-inspector.
const notInspected = "does not support inspect"

// provide stores what the installation needs and reserves the node, where that is not done, and makes it available. The one change of the node is made before, because
// others may schedule a node that is available and not reserved. Of a node that rests where installations begin nothing is read before: no time decides whether
// it was installed.
func (i *Installer) provide(ctx context.Context, c call, n node, install *installation) error {
	if isPrepared(n, c) && taking(n, c.host) == nil {
		return i.requestState(ctx, c, n, nodes.TargetProvide, nil)
	}
	prepared, err := i.storeWork(ctx, c, n, install)
	if err != nil || prepared.changed != n.changed {
		return err // it has left its state since the list: the next call decides anew
	}
	return i.requestState(ctx, c, prepared, nodes.TargetProvide, nil)
}

// requestState requests another provision state.
func (i *Installer) requestState(ctx context.Context, c call, n node, target nodes.TargetProvisionState, install *installation) error {
	service, _, err := i.client.open(ctx)
	if err != nil {
		return err
	}
	options := nodes.ProvisionStateOpts{Target: target}
	var secrets []string
	if install != nil {
		options.ConfigDrive, secrets = install.drive, install.secrets
	}
	if target == nodes.TargetClean {
		options.CleanSteps = cleanSteps[c.work]
	}
	err = nodes.ChangeProvisionState(ctx, service, n.uuid, options).ExtractErr()
	if isWork(target) {
		i.seen.requested(c, err == nil, i.options.Clock())
	}
	if err != nil {
		failed := i.failed(asSecretError(err, "request "+string(target), c.host.String(), secrets...))
		if target == nodes.TargetInspect && strings.Contains(failed.Error(), notInspected) {
			return i.end(ctx, c, n, outcomeNotInspected)
		}
		if strings.Contains(failed.Error(), noWorkerFault) {
			failed = asFull(failed)
		}
		i.refused.set(c.host.UID, hardware.ReasonOf(failed) == hardware.ReasonInstallerFull)
		return failed
	}
	i.refused.set(c.host.UID, false)
	i.note(c.host, n, true)
	return nil
}

// isWork reports whether what is requested is the work of an attempt, and no step to it.
func isWork(target nodes.TargetProvisionState) bool {
	switch target {
	case nodes.TargetActive, nodes.TargetRebuild, nodes.TargetClean, nodes.TargetInspect:
		return true
	default:
		return false
	}
}

// refusedHosts remembers for which hosts Ironic has last refused work because of its limits. A process that starts again asks again, and is refused again.
type refusedHosts struct {
	mu    sync.Mutex
	hosts map[string]bool
}

func (r *refusedHosts) set(uid string, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !refused {
		delete(r.hosts, uid)
		return
	}
	if r.hosts == nil {
		r.hosts = map[string]bool{}
	}
	r.hosts[uid] = true
}

func (r *refusedHosts) hasHost(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hosts[uid]
}

// sentCredentials remembers which credentials of BMCs this process has given to Ironic, as digests: Ironic does not show them.
type sentCredentials struct {
	mu     sync.Mutex
	byHost map[string][sha256.Size]byte
}

func (s *sentCredentials) note(uid string, d driver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHost == nil {
		s.byHost = map[string][sha256.Size]byte{}
	}
	s.byHost[uid] = d.digest()
}

// hasOther reports whether this process has given Ironic other credentials than these. Of what an earlier process gave nothing is known.
func (s *sentCredentials) hasOther(uid string, d driver) (other, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, known := s.byHost[uid]
	return known && sent != d.digest(), known
}

func (d driver) digest() [sha256.Size]byte {
	text, _ := json.Marshal(d.info) // a map of strings and truth values, with sorted keys
	return sha256.Sum256(text)
}

// renewCredentials gives Ironic the credentials of the BMC when they have changed, or when Ironic cannot read the BMC and nobody knows which it has. Without
// it: a password is rotated while the node is deployed, Ironic puts the node into maintenance, and nobody sees the power of the server until the next attempt.
func (i *Installer) renewCredentials(ctx context.Context, host hardware.Host, n node) error {
	if host.BMC.Address == "" || n.record.host != host.UID || !n.record.isCreated || !isAtRest(n.state) || n.reservation != "" {
		return nil
	}
	d := driverOf(i.options, host)
	other, known := i.sent.hasOther(host.UID, d)
	if !other && (known || n.fault != faultPower) {
		return nil
	}
	if _, err := i.patch(ctx, host, n, "renew credentials", d.operations(), d.secrets()...); err != nil {
		return err
	}
	i.sent.note(host.UID, d)
	return nil
}
