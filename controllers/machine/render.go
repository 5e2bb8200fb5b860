package machine

import (
	"context"
	"errors"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/step"
)

// checkRendering finds out, before a host is claimed, drained or installed, what the documents ask of the tenant, and that
// they cannot be made. Secrets that the next revision needs are looked at too, since a host is emptied for it.
func (r *Reconciler) checkRendering(ctx context.Context, v *view) error {
	plan := v.check(v.next, &v.facts.Next)
	if v.facts.Next.Problem == "" && v.host != nil && len(plan.SecretFiles) > 0 {
		_, err := documents.Secrets(ctx, r.Direct, v.host.Namespace, plan)
		var lacks *documents.Unreadable
		if err != nil && !errors.As(err, &lacks) {
			return err
		}
		if err != nil {
			v.facts.Next.Problem = lacks.Message
		}
	}
	switch v.machine.Status.Phase {
	case "", v1alpha1.MachinePending, v1alpha1.MachineClaiming, v1alpha1.MachineProvisioning, v1alpha1.MachineDraining:
		if s := v.facts.Secret; s.Found && s.Attempt == v.machine.Status.Attempt {
			break // its documents have been made: at every look again is work for nothing
		}
		v.check(v.current, &v.facts.Revision)
	}
	return nil
}

// check makes the documents of an edition without what is secret, and gives the plan that they carry out.
func (v *view) check(e edition, f *lifecycle.Revision) v1alpha1.NodePlan {
	if f.Problem != "" || e.rendering == nil {
		return v1alpha1.NodePlan{}
	}
	if _, err := v.documents(e).Render(nil, cloudinit.Secrets{}); err != nil {
		f.Problem = err.Error()
	}
	return e.rendering.Spec.Plan
}

// documents of the Machine's node with an edition.
func (v *view) documents(e edition) documents.Node {
	return documents.Node{Machine: v.machine, NodeType: v.nodeType, Revision: e.revision, Plan: e.rendering.Spec.Plan, Image: e.image, Host: v.host}
}

// warn has told, once for an attempt, what was accepted and people must know. A claim Secret that is written again for the
// same attempt, because its token was lost, is nothing new.
func (v *view) warn(plan v1alpha1.NodePlan, d cloudinit.Documents) {
	warnings := documents.Warnings(plan, d)
	if s := v.facts.Secret; len(warnings) == 0 || s.Found && s.Attempt == v.machine.Status.Attempt {
		return
	}
	v.told = append(v.told, step.Told(true, v1alpha1.ReasonAcceptedWithWarnings, string(v.machine.Status.Phase), strings.Join(warnings, "; ")))
}
