package fleet

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

// Diagnosis leads from a Machine's condition over its check to its host, or says why a host is in its state, as `ingot why -o json` prints it.
type Diagnosis struct {
	// Machine is absent in the diagnosis of a host that no Machine has.
	Machine MachineRow `json:"machine,omitzero"`
	// Summary is one line.
	Summary string `json:"summary"`
	// Conditions that are not True, in the order of a Machine's life, and Claimed also while its host is being deleted.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Checks that do not pass.
	Checks []v1alpha1.Check `json:"checks,omitempty"`
	// Host is the Machine's host, Attempt the last attempt on it, and Progress what its installer has recorded of that attempt.
	Host     *HostRow                `json:"host,omitempty"`
	Attempt  *v1alpha1.WantedAttempt `json:"attempt,omitempty"`
	Progress *v1alpha1.HostAttempt   `json:"progress,omitempty"`
	// Queue is the place of a host that waits until its NodeProvider may work on it.
	Queue *v1alpha1.HostQueue `json:"queue,omitempty"`
	// FailingCalls are the calls to the host's hardware that fail again and again. One that lasts becomes the error of the host.
	FailingCalls []v1alpha1.FailingCall `json:"failingCalls,omitempty"`
	// Rollout that the Machine is a target of, or that is to move it.
	Rollout *v1alpha1.Rollout `json:"rollout,omitempty"`
	// Manager says that no ingot-manager works, or why that cannot be told; empty: one works.
	Manager string `json:"manager,omitempty"`
	// Candidates are the hosts that were compared for a Machine that has none.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Unread says what the caller may not read, and what is therefore missing here.
	Unread []string `json:"unread,omitempty"`
	// Next is what a person can do; empty: nothing needs to be done.
	Next string `json:"next,omitempty"`

	// now is the time of the diagnosis.
	now time.Time
	// missing are the names for ingot.dev/disk-gone of the disks that the host lacks, and others those of its disks beside the last root disk.
	missing, others []string
	// pool is the NodePool that controls the Machine; empty: none does.
	pool string
	// provider is the kind of the host's NodeProvider; the zero value: it is not known.
	provider providerkind.Kind
}

// conditionOrder is the order of a Machine's conditions.
var conditionOrder = []string{
	v1alpha1.ConditionClaimed, v1alpha1.ConditionProvisioned, v1alpha1.ConditionJoined, v1alpha1.ConditionValidated,
	v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate,
	v1alpha1.ConditionNodeMetadataKept,
}

// Diagnose says why a Machine is in its state. host and rollout are nil when the Machine has none.
func Diagnose(m *v1alpha1.Machine, host *placement.HostFacts, rollout *v1alpha1.Rollout, now time.Time) Diagnosis {
	w := Diagnosis{Machine: machineRow(m, now), Rollout: rollout}
	for _, name := range conditionOrder {
		if c := meta.FindStatusCondition(m.Status.Conditions, name); c != nil && (c.Status != metav1.ConditionTrue || c.Reason == v1alpha1.ReasonKeptForMachine) {
			w.Conditions = append(w.Conditions, *c)
		}
	}
	if v := m.Status.Verdict; v != nil {
		for _, c := range v.Checks {
			if c.Result != v1alpha1.CheckPass {
				w.Checks = append(w.Checks, c)
			}
		}
	}
	if host != nil {
		row := hostRow(*host, nil)
		w.Host = &row
		if host.Record != nil {
			w.Attempt, w.Progress, w.FailingCalls = host.Record.Status.Wanted, host.Record.Status.Progress(), host.Record.Status.FailingCalls
			w.Queue = host.Record.Status.Queue
			w.missing, w.others = diskNames(&host.Record.Status)
		}
	}
	w.now, w.pool = now, v1alpha1.NodePoolOf(m)
	w.Summary, w.Next = w.summary(now), w.nextStep()
	return w
}

// addManager adds what is known of the manager. While none works, nothing else that a person could do has an effect.
func (d *Diagnosis) addManager(manager connect.Manager) {
	d.Manager = manager.Text()
	if manager.Outage != nil {
		d.Next = "start ingot-manager: nothing else has an effect while none works"
	}
}

func (d Diagnosis) summary(now time.Time) string {
	m := d.Machine
	name := m.Namespace + "/" + m.Name
	switch {
	case m.Phase == "":
		return name + " is new: no controller has looked at it yet"
	case m.Ready && m.Reason == v1alpha1.ReasonWaitingForTenant:
		return fmt.Sprintf("%s was Ready when it was last seen, for %s, and waits for %s", name, timeSince(m.Since, now), m.WaitingFor)
	case m.Ready:
		return fmt.Sprintf("%s is Ready, for %s", name, timeSince(m.Since, now))
	}
	text := fmt.Sprintf("%s is %s for %s, and not Ready: %s", name, m.Phase, timeSince(m.Since, now), m.Reason)
	if m.Deadline != nil {
		text += "; deadline " + timeUntil(m.Deadline, now)
	}
	return text
}

// nextStep is what a person can do: the hint of the first check that fails, else what the host or the condition says.
func (d Diagnosis) nextStep() string {
	if d.Machine.Phase == "" {
		return "is ingot-manager running? kubectl get pods -n ingot-system"
	}
	if d.Machine.Ready {
		return cmp.Or(d.hostStep(), d.reasonStep(d.Machine.Reason), d.keptStep())
	}
	if hint := d.checkHint(); hint != "" {
		return hint
	}
	if advice := d.partStep(); advice != "" {
		return advice
	}
	if advice := cmp.Or(d.servedStep(), d.ironicStep(), d.reasonStep(d.Machine.Reason)); advice != "" {
		return advice + d.scaleStep()
	}
	if advice := d.hostStep(); advice != "" {
		return advice
	}
	if advice := d.keptStep(); advice != "" {
		return advice
	}
	if d.Machine.Overdue {
		return "the phase's time is over; the condition's message says what it stopped at"
	}
	return ""
}

// reasonStep is what a person can do about a reason.
func (d Diagnosis) reasonStep(reason string) string { return d.fillIn(nextSteps[reason]) }

// fillIn fills the names of the host and the Machine in.
func (d Diagnosis) fillIn(text string) string {
	namespace, host := "", d.Machine.Host
	if d.Host != nil {
		namespace, host = d.Host.Namespace, cmp.Or(host, d.Host.Name)
	}
	return strings.NewReplacer("NAMESPACE", namespace, "HOST", host, "MACHINE", "-n "+d.Machine.Namespace+" "+d.Machine.Name).Replace(text)
}

// scaleStep is the other thing that a person can do about a Machine that has no host: not to delete it, because its NodePool would make it again.
func (d Diagnosis) scaleStep() string {
	if d.pool == "" || d.Machine.Reason != v1alpha1.ReasonNoHostAvailable {
		return ""
	}
	return "; or, if it is not needed, scale its NodePool down: kubectl scale nodepool -n " + d.Machine.Namespace + " " + d.pool + " --replicas=N, as its condition Placed says"
}

// hostStep is what a person can do about the error of the host. The Machine may be Ready all the same: its node runs, and the next roll or
// release needs the host.
func (d Diagnosis) hostStep() string {
	if d.Host == nil || d.Host.Error == "" {
		return ""
	}
	if advice := d.servedHostStep(); advice != "" {
		return advice
	}
	// The error is the host's error type, the reason and the message.
	for text := d.Host.Error; text != ""; {
		var reason string
		reason, text, _ = strings.Cut(text, ": ")
		if advice := d.reasonStep(reason); advice != "" {
			return advice
		}
	}
	if d.Host.isServed {
		return d.fillIn("mend what the host reports; its baremetal-operator tries again by itself: " + describeHost)
	}
	return "mend what the host reports, then ask for another try: kubectl annotate --overwrite bmh -n " + d.Host.Namespace + " " + d.Host.Name + " ingot.dev/retry=$(date +%s)"
}

// keptStep is what a person can do about a host that was deleted while the Machine has it.
func (d Diagnosis) keptStep() string {
	if d.Host == nil || d.Host.Kept == "" || d.Machine.Phase == v1alpha1.MachineReleasing {
		return ""
	}
	return "host " + d.Host.Name + " " + d.Host.Kept
}

// checkHint is the hint of the first check that fails or, where none does, waits. Hints are about a node that runs, so there is none while the
// server is off.
func (d Diagnosis) checkHint() string {
	if d.Machine.Phase != v1alpha1.MachineValidating || d.Machine.Reason == v1alpha1.ReasonServerOff {
		return ""
	}
	for _, result := range []v1alpha1.CheckResult{v1alpha1.CheckFail, v1alpha1.CheckWait} {
		for _, c := range d.Checks {
			if c.Result == result && c.Hint != "" {
				return c.Hint
			}
		}
	}
	return ""
}

// partStep is what a person can do when the last attempt on the host has failed for want of a disk, or because of another TPM.
func (d Diagnosis) partStep() string {
	if d.Attempt == nil || d.Attempt.Outcome != v1alpha1.AttemptFailed || d.Host == nil {
		return ""
	}
	annotate := d.annotate()
	retry := "then ask for another try: " + annotate + v1alpha1.AnnotationRetry + "=$(date +%s)"
	switch hardware.Reason(d.Attempt.Reason) {
	case hardware.ReasonRootDiskDiffers:
		advice := "mend the disk that the Machine was installed on or, if what is on another disk may be lost, accept that one: " + annotate + v1alpha1.AnnotationRootDisk + "="
		if len(d.others) == 1 {
			return advice + input.ShellWord(d.others[0])
		}
		return advice + "SERIAL, where SERIAL is one of: " + cmp.Or(strings.Join(d.others, ", "), "those in the attempt's message")
	case hardware.ReasonTPMDiffers:
		return d.tpmStep()
	case hardware.ReasonDiskMissing:
		return "mend the disk, " + retry + "; if it was taken out: " + annotate + v1alpha1.AnnotationDiskGone + "=" +
			missingDisks(d.missing)
	case hardware.ReasonDiskNotErasable:
		return "mend the disk, " + retry + "; if it was taken out: " + annotate + v1alpha1.AnnotationDiskGone + "=SERIAL, with the serial number in the attempt's message"
	case hardware.ReasonNoDisk:
		return "look at the storage controllers of " + d.Host.Name + " and at the drivers of the agent's kernel, " + retry
	case hardware.ReasonEvidenceMissing:
		return "the agent reported an erase without proof for every disk: look at its version, in the files of the boot service, and at its log on the console of " + d.Host.Name + ", " + retry
	}
	return ""
}

// missingDisks returns the value of the annotation that gives the disks up.
func missingDisks(names []string) string {
	if len(names) == 0 {
		return "SERIAL, with the serial numbers in the attempt's message"
	}
	return input.ShellWord(strings.Join(names, ","))
}

// diskNames returns the names of the disks that the agent that looked last did not find, and of those that are there beside the disk of the
// installation before.
func diskNames(status *v1alpha1.HostRecordStatus) (missing, others []string) {
	for _, disk := range inventory.MissingDisks(status) {
		missing = append(missing, disk.Identifier())
	}
	if status.Wanted == nil || status.Inventory == nil {
		return missing, nil
	}
	previous := inventory.HardwareDisk(status.Wanted.PreviousRootDisk)
	for _, found := range status.Inventory.Disks {
		if disk := hardware.Disk(found); !disk.IsSame(previous) {
			others = append(others, disk.Identifier())
		}
	}
	return missing, others
}

// nextSteps are what a person can do about a reason. A reason whose own message is enough is left out.
var nextSteps = map[string]string{
	v1alpha1.ReasonNoHostAvailable:             "free a host, or register one: ingot hosts shows which fit the NodeType",
	v1alpha1.ReasonQuotaExceeded:               "raise the limit in the NodeQuota, or scale another NodePool of the namespace down: kubectl get nodequota default -o yaml shows who uses what",
	v1alpha1.ReasonHostNotFound:                "correct spec.hostName in a new Machine: ingot hosts lists the names",
	v1alpha1.ReasonWaitingForNodeType:          "kubectl describe nodetype: its Ready condition says what is missing",
	v1alpha1.ReasonWaitingForTenant:            "kubectl describe tenantcluster: its Ready condition says what is missing",
	v1alpha1.ReasonVersionSkew:                 "upgrade the tenant's API server, or take an OSImage with another kubelet",
	v1alpha1.ReasonDRANotServed:                "serve resource.k8s.io/v1 in the tenant's API server, or take a NodeType that advertises by device plugin",
	v1alpha1.ReasonKubeletUnsupported:          "take a NodeType without spec.kubelet, and have the TenantCluster's own join set what it says, or have nodes join by tlsBootstrap, kubeadm or vcluster",
	v1alpha1.ReasonBMCUnreachable:              "look at HOST's BMC: its network, its address in spec.bmc, and whether it hangs",
	v1alpha1.ReasonBMCUnauthorized:             "correct the Secret of HOST's BMC: it is read again at the next step",
	v1alpha1.ReasonBMCBusy:                     "look at the log of HOST's BMC; many recover by a reset of the BMC, which leaves the server running",
	v1alpha1.ReasonBMCSessionsExhausted:        "end sessions at HOST's BMC that nobody uses, and find the client that opens them and does not end them: often monitoring; many BMCs also end all at a reset, which leaves the server running",
	v1alpha1.ReasonBMCConflict:                 "look at the BIOS settings and pending jobs in HOST's BMC: it refuses what is asked of it",
	v1alpha1.ReasonBMCNotFound:                 "correct the path of the system in spec.bmc.address of HOST, or reset its BMC",
	v1alpha1.ReasonBMCUnsupported:              "look at the firmware version and the licence of HOST's BMC: it cannot do what is asked of it",
	v1alpha1.ReasonBMCInvalid:                  "look at the firmware version of HOST's BMC: its answers cannot be read",
	v1alpha1.ReasonBMCAddressInvalid:           "correct spec.bmc.address of HOST; one that Ironic knows by the annotation " + v1alpha1.AnnotationIronicNode + " needs none",
	v1alpha1.ReasonCredentialsMissing:          "create or correct the Secret of HOST's BMC",
	v1alpha1.ReasonCABundleMissing:             "create or correct the Secret of the NodeProvider's certificates",
	v1alpha1.ReasonInstallerUnreachable:        "look at the Ironic of HOST's NodeProvider: whether its API answers at spec.ironic.endpoint, and whether caBundle verifies its certificate",
	v1alpha1.ReasonInstallerUnauthorized:       "ingot why HOST says who refuses: correct the Secret of the NodeProvider's spec.ironic.credentialsSecretRef, or have an administrator of Ironic let that login do what the error names",
	v1alpha1.ReasonInstallerBusy:               "nothing: it is asked again. If it lasts, look at Ironic's conductors and their logs",
	v1alpha1.ReasonInstallerNotFound:           "correct the annotation " + v1alpha1.AnnotationIronicNode + " of HOST, or have an administrator of Ironic show its node to the login of the NodeProvider",
	v1alpha1.ReasonInstallerConflict:           "ingot why HOST names the node in Ironic, whose it is or in which state, and the command that ends that; then it goes on by itself",
	v1alpha1.ReasonInstallerUnsupported:        "ingot why HOST says what Ironic or the node's hardware type cannot do: upgrade it, or take an OSImage or an erase that it can",
	v1alpha1.ReasonInstallerInvalid:            "ingot why HOST has Ironic's answer: correct the field of HOST or of its NodeProvider that it names, or see the log of Ironic's API",
	v1alpha1.ReasonInstallerMaintenance:        "have whoever put HOST's node into maintenance end that: ingot why HOST has the reason and the command",
	v1alpha1.ReasonInstallerPowerFailure:       "look at HOST's BMC as Ironic reaches it: address, network and credentials; it goes on by itself when that answers",
	v1alpha1.ReasonBootAddressWrong:            "correct spec.redfish.netboot.address of the NodeProvider: its condition BootServiceReachable says what answers there",
	v1alpha1.ReasonBootNetworkInvalid:          "correct what the message names: an annotation of HOST, or spec.redfish.netboot.network of its NodeProvider",
	v1alpha1.ReasonSameServer:                  "two hosts are one server, and what runs there keeps running: delete or correct the host that is wrong, not the one that has this Machine; ingot hosts names both",
	v1alpha1.ReasonServerIsOn:                  "see what runs on HOST, and power it off by its BMC; or set its spec.inspectionMode to disabled to have it without the agent's look",
	v1alpha1.ReasonServerOff:                   "look at the power supplies of HOST and at its BMC's log: the condition's message says why the server is still off",
	v1alpha1.ReasonPoweredOff:                  "when the work on HOST is done: ingot drain MACHINE --undo",
	string(hardware.ReasonSecureBootOn):        "turn Secure Boot off in the firmware of HOST, by the setting that the message names, or serve it signed programs and set spec.redfish.netboot.secureBoot of its NodeProvider to Signed",
	string(hardware.ReasonBootImageNotFetched): "make the network of HOST's BMC lead to the address and port of the boot service that the message names, or name another way after VirtualMedia in spec.redfish.netboot.ways of its NodeProvider",
	string(hardware.ReasonBootMACConflict):     "correct spec.bootMACAddress of one of the hosts that the message names: the boot service serves neither",
	v1alpha1.ReasonProvisioningTimedOut:        "look at the log of the agent (ingot why --log HOST), or at the console of HOST; the step that it stopped at is in the condition's message",
	v1alpha1.ReasonJoinTimedOut:                "look at the console of HOST: journalctl -u kubelet -u cloud-final",
	v1alpha1.ReasonNodeConflict:                "delete the Node of that name in the tenant's cluster, or this Machine",
	v1alpha1.ReasonServerUnidentified:          "where the tenant's cluster sets providerIDs, a Node is known by the system UUID that Ingot's agent reads: the message names what is missing",
	v1alpha1.ReasonGateRemovedByOthers:         "have the program that the message names leave the gate's taint alone: its Node stays cordoned until then",
	v1alpha1.ReasonHostLost:                    "delete this Machine: its host is no longer its own",
	v1alpha1.ReasonEraseFailed:                 "the host stays out of the pool until its erase succeeds: look at the disks of HOST",
	v1alpha1.ReasonDrainTimedOut:               "make the pods leave, or their PodDisruptionBudgets let them: the message names them",
	v1alpha1.ReasonHostOrphaned:                "an earlier Machine of this name still has a host, which may run its node: release that host as ingot hosts says, or delete this Machine and make one of another name, as a NodePool does by itself",
}
