package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

// effects maps each action of lifecycle.Plan to the method that carries it out.
var effects = map[lifecycle.ActionKind]func(*Reconciler, context.Context, *observation, lifecycle.Action) error{
	lifecycle.AddFinalizer:        (*Reconciler).addFinalizer,
	lifecycle.RemoveFinalizer:     (*Reconciler).removeFinalizer,
	lifecycle.ClaimHost:           (*Reconciler).claimHost,
	lifecycle.WriteHostRecord:     (*Reconciler).writeHostRecord,
	lifecycle.ClearHostRecord:     (*Reconciler).writeHostRecord,
	lifecycle.WriteClaimSecret:    (*Reconciler).writeClaimSecret,
	lifecycle.RecordSecretAttempt: (*Reconciler).recordSecretAttempt,
	lifecycle.RecordInstallation:  (*Reconciler).recordInstallation,
	lifecycle.ScrubSecret:         (*Reconciler).scrubSecret,
	lifecycle.DeleteClaimSecret:   (*Reconciler).deleteClaimSecret,
	lifecycle.RequestInstall:      (*Reconciler).requestInstall,
	lifecycle.PowerOff:            (*Reconciler).powerOff,
	lifecycle.PowerOn:             (*Reconciler).powerOn,
	lifecycle.Deprovision:         (*Reconciler).deprovision,
	lifecycle.ReturnHost:          (*Reconciler).returnHost,
	lifecycle.CreateToken:         (*Reconciler).createToken,
	lifecycle.RenewToken:          (*Reconciler).renewToken,
	lifecycle.DeleteToken:         (*Reconciler).deleteToken,
	lifecycle.SyncNodeMetadata:    (*Reconciler).syncNodeMetadata,
	lifecycle.Cordon:              (*Reconciler).cordon,
	lifecycle.Uncordon:            (*Reconciler).uncordon,
	lifecycle.Evict:               (*Reconciler).evict,
	lifecycle.DeleteNode:          (*Reconciler).deleteNode,
}

func (r *Reconciler) act(ctx context.Context, obs *observation, a lifecycle.Action) error {
	effect, known := effects[a.Kind]
	if !known {
		return fmt.Errorf("no effect is known for action %s", a.Kind)
	}
	var err error
	if slices.Contains(verifiedActions, a.Kind) {
		err = r.verifyMachine(ctx, obs.machine)
	}
	if err == nil {
		err = effect(r, ctx, obs, a)
	}
	countAction(a.Kind, err)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Kind, err)
	}
	return nil
}

// verifiedActions are the actions before which verifyMachine is called: the locks of the objects that they change do not show
// that the Machine has gone on.
var verifiedActions = []lifecycle.ActionKind{
	lifecycle.Cordon, lifecycle.Evict, lifecycle.PowerOff, lifecycle.PowerOn, lifecycle.DeleteNode, lifecycle.Deprovision,
	lifecycle.WriteHostRecord, lifecycle.WriteClaimSecret, lifecycle.ScrubSecret, lifecycle.RequestInstall,
}

func (r *Reconciler) addFinalizer(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	return r.patchMachine(ctx, obs, func(m *v1alpha1.Machine) { controllerutil.AddFinalizer(m, v1alpha1.MachineFinalizer) })
}

func (r *Reconciler) removeFinalizer(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	r.Claims.forget(obs.machine.ClaimUID())
	r.renders.forget(obs.machine.ClaimUID())
	return client.IgnoreNotFound(r.patchMachine(ctx, obs, func(m *v1alpha1.Machine) { controllerutil.RemoveFinalizer(m, v1alpha1.MachineFinalizer) }))
}

func (r *Reconciler) patchMachine(ctx context.Context, obs *observation, change func(*v1alpha1.Machine)) error {
	before := obs.machine.DeepCopy()
	change(obs.machine)
	return r.Client.Patch(ctx, obs.machine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// claimHost sets the consumerRef of the host that status.hostRef names, under the resource version that was read from the API
// server. It first reads the Machine from the API server. Otherwise: a stale cache shows the Machine in Claiming with host A,
// although the former leader has since given up A and claimed B, and the Machine gets two hosts. Then it reads the NodeQuota: a Machine whose reservation is
// removed after that is Claiming in whatever the next decision is made by, and counts.
func (r *Reconciler) claimHost(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	live := &v1alpha1.Machine{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(obs.machine), live); err != nil {
		return fmt.Errorf("read the Machine: %w", err)
	}
	ref := live.Status.HostRef
	if live.UID != obs.machine.UID || live.Status.Phase != v1alpha1.MachineClaiming || ref == nil || ref.Name != obs.host.Name || ref.Namespace != obs.host.Namespace {
		return newConflict("machines", obs.machine.Name, "it claims another host now")
	}
	if limits, _, err := r.quotaProblem(ctx, r.APIReader, obs); err != nil {
		return err
	} else if limits != nil {
		return newConflict("nodequotas", limits.Name, "its reservation has ended")
	}
	return r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) {
		h.Spec.ConsumerRef = claimRef(obs.machine)
		if !obs.facts.Provider.HasRecords {
			lifecycle.PassOnErase(h, obs.erasePolicy())
			setSecretAttempt(h, obs.machine.Status.Attempt+1)
		}
	})
}

// writeHostRecord sets the spec of the HostRecord to the action's. An action without one empties it.
func (r *Reconciler) writeHostRecord(ctx context.Context, obs *observation, a lifecycle.Action) error {
	before := obs.record.DeepCopy()
	obs.record.Spec = a.Record
	return r.Client.Patch(ctx, obs.record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *Reconciler) requestInstall(ctx context.Context, obs *observation, a lifecycle.Action) error {
	// The claim Secret is written when an agent asks for it. That its secrets can be read is checked before: otherwise a server would be
	// powered on, and its agent would wait for a Secret that nobody has made.
	node := obs.documents(obs.current)
	if _, err := documents.Secrets(ctx, r.APIReader, obs.host.Namespace, node.Plan); err != nil {
		return err
	}
	if _, err := documents.Script(ctx, r.APIReader, obs.tenant); err != nil {
		return err
	}
	rendered, err := node.Render(nil, cloudinit.Secrets{})
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	key := documents.ClaimKey(obs.host, obs.secretAttempt())
	ref := func(present []byte) *corev1.SecretReference {
		if len(present) == 0 {
			return nil
		}
		return &corev1.SecretReference{Name: key.Name, Namespace: key.Namespace}
	}
	note, err := installationNote(a.Installation, true)
	if err != nil {
		return err
	}
	r.reportCleaningChange(obs)
	return r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) {
		if obs.isServed() {
			lifecycle.KeepCleaningSetAside(h)
			r.beginServedInstallation(h, obs)
		}
		note(h)
		lifecycle.WithdrawPowerOff(h)
		h.Spec.Image, h.Spec.Online = obs.hostImage(), true
		h.Spec.UserData, h.Spec.NetworkData, h.Spec.MetaData = ref(rendered.UserData), ref(rendered.NetworkData), ref(rendered.MetaData)
	})
}

// hostImage returns the image in the fields of a BareMetalHost. They cannot express a compression; the exact image is in the
// HostRecord.
func (obs *observation) hostImage() *metal3.Image {
	image := obs.facts.Revision.Image
	algorithm, digest, _ := strings.Cut(image.Checksum, ":")
	format := "raw"
	if image.Format == v1alpha1.FormatQCOW2 || image.Format == v1alpha1.FormatLiveISO {
		format = string(image.Format)
	}
	return &metal3.Image{URL: image.URL, Checksum: digest, ChecksumType: metal3.ChecksumType(algorithm), DiskFormat: ptr.To(format)}
}

func (r *Reconciler) powerOff(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	note, err := leavingNote(obs)
	if err != nil {
		return err
	}
	return r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) {
		note(h)
		if obs.isServed() {
			lifecycle.RequestPowerOff(h, obs.machine.ClaimUID())
			return
		}
		h.Spec.Online = false
	})
}

func (r *Reconciler) powerOn(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	return r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) {
		h.Spec.Online = true
		lifecycle.WithdrawPowerOff(h)
	})
}

func (r *Reconciler) deprovision(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	note, err := leavingNote(obs)
	if err != nil {
		return err
	}
	if obs.host.Spec.Image == nil {
		r.reportCleaningChange(obs)
	}
	return r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) {
		note(h)
		switch {
		case obs.record != nil:
		case obs.facts.Machine.Status.Phase == v1alpha1.MachineDraining:
			lifecycle.BeginRoll(h, obs.erasePolicy())
			setSecretAttempt(h, obs.machine.Status.Attempt+1)
		default:
			lifecycle.BeginErase(h, obs.erasePolicy())
		}
		h.Spec.Image, h.Spec.Online = nil, false
		h.Spec.UserData, h.Spec.NetworkData, h.Spec.MetaData = nil, nil, nil
	})
}

// reportCleaningChange reports that somebody has enabled the cleaning of a host while Ingot had it set aside, which is then done again. A baremetal-operator may have
// begun to clean meanwhile.
func (r *Reconciler) reportCleaningChange(obs *observation) {
	if obs.record == nil && lifecycle.IsCleaningChanged(obs.host) {
		r.Recorder.Eventf(obs.host, nil, corev1.EventTypeWarning, v1alpha1.ReasonCleaningChanged, string(lifecycle.Deprovision),
			"somebody has set spec.automatedCleaningMode to %q while its cleaning was set aside: its disks may have been cleaned; it is set to disabled again until the next image is installed or the host is returned",
			obs.host.Spec.AutomatedCleaningMode)
	}
}

func (r *Reconciler) writeClaimSecret(ctx context.Context, obs *observation, a lifecycle.Action) error {
	join, err := obs.joinParameters()
	if err != nil {
		return err
	}
	// The write is under the version of a Secret that may be the next Machine's by now.
	if err := r.verifyHost(ctx, obs.host, obs.machine.ClaimUID()); err != nil {
		return err
	}
	node := obs.documents(obs.current)
	secrets, err := documents.Secrets(ctx, r.APIReader, obs.host.Namespace, node.Plan)
	if err != nil {
		return err
	}
	if join.Script, err = documents.Script(ctx, r.APIReader, obs.tenant); err != nil {
		return err
	}
	rendered, err := node.Render(join, secrets)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	if err := r.putSecret(ctx, obs, node.Claim(rendered, a.HostAttempt, a.TokenID, join.Token)); err != nil {
		return err
	}
	obs.addWarnings(node.Plan, rendered)
	return nil
}

// scrubSecret writes the claim Secret again with documents that hold nothing secret, because the node has read them.
func (r *Reconciler) scrubSecret(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	node := obs.documents(obs.current)
	rendered, err := node.Render(nil, cloudinit.Secrets{})
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	return r.putSecret(ctx, obs, node.Claim(rendered, obs.facts.Secret.HostAttempt, "", ""))
}

// putSecret creates the claim Secret, or replaces an earlier one under the resource version that was read.
func (r *Reconciler) putSecret(ctx context.Context, obs *observation, secret *corev1.Secret) error {
	r.Claims.forget(obs.machine.ClaimUID())
	if err := r.writeSecret(ctx, obs, secret); err != nil {
		return err
	}
	r.Claims.add(obs, secretFacts(secret, obs.machine.ClaimUID()))
	return nil
}

func (r *Reconciler) writeSecret(ctx context.Context, obs *observation, secret *corev1.Secret) error {
	if obs.secret == nil {
		return r.Client.Create(ctx, secret)
	}
	secret.ResourceVersion = obs.secret.ResourceVersion
	// Labels of others stay: a baremetal-operator finds the Secret by its own.
	labels := map[string]string{}
	maps.Copy(labels, obs.secret.Labels)
	maps.Copy(labels, secret.Labels)
	secret.Labels = labels
	return r.Client.Update(ctx, secret)
}

func (r *Reconciler) deleteClaimSecret(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	r.Claims.forget(types.UID(obs.secret.Labels[v1alpha1.LabelMachine]))
	return client.IgnoreNotFound(r.Client.Delete(ctx, obs.secret, client.Preconditions{UID: &obs.secret.UID, ResourceVersion: &obs.secret.ResourceVersion}))
}

// verifyMachine reads the Machine from the API server and returns a conflict unless it is in the phase and the attempt that were
// planned for. It is called right before an effect that no optimistic lock of its own would stop. Without it: a new leader's cache
// still shows a Machine in Draining that the former leader has since rolled and made Ready, and its Node is cordoned again.
func (r *Reconciler) verifyMachine(ctx context.Context, planned *v1alpha1.Machine) error {
	live := &v1alpha1.Machine{}
	if err := client.IgnoreNotFound(r.APIReader.Get(ctx, client.ObjectKeyFromObject(planned), live)); err != nil {
		return fmt.Errorf("read the Machine: %w", err)
	}
	if was, is := &planned.Status, &live.Status; live.UID != planned.UID || is.Phase != was.Phase || is.Attempt != was.Attempt {
		return newConflict("machines", planned.Name, "it has gone on since it was read")
	}
	return nil
}

// verifyHost reads the host from the API server and returns a conflict unless the Machine of that uid still has it. Without it: a
// stale cache shows a host that was released meanwhile, and the claim Secret of its next Machine is overwritten.
func (r *Reconciler) verifyHost(ctx context.Context, host *metal3.BareMetalHost, machine types.UID) error {
	live := &metal3.BareMetalHost{}
	if err := client.IgnoreNotFound(r.APIReader.Get(ctx, client.ObjectKeyFromObject(host), live)); err != nil {
		return fmt.Errorf("read the host: %w", err)
	}
	if ref := live.Spec.ConsumerRef; live.UID != host.UID || ref == nil || ref.UID != machine {
		return newConflict("baremetalhosts", host.Name, "it is not this Machine's any more")
	}
	return nil
}

// newConflict returns the error of an optimistic lock that was lost; step.Retry then starts the reconcile over.
func newConflict(resource, name, why string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, name, errors.New(why))
}
