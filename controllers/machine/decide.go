package machine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

// decide observes and plans. Most reconciles find nothing to do, so it first observes with what the manager has at hand. A decision of consequence is
// confirmed: what it rests on is read from the API server, and when that is not the same, everything is observed again from there.
func (r *Reconciler) decide(ctx context.Context, machine *v1alpha1.Machine) (*observation, lifecycle.Decision, error) {
	obs, err := r.observe(ctx, machine, false)
	if err != nil {
		return nil, lifecycle.Decision{}, err
	}
	decision := lifecycle.Plan(obs.facts)
	if !isOfConsequence(machine.Status, decision) {
		return obs, decision, nil
	}
	if isConfirmed, err := r.confirm(ctx, obs, decision.Action); err != nil || isConfirmed {
		return obs, decision, err
	}
	if obs, err = r.observe(ctx, machine, true); err != nil {
		return nil, lifecycle.Decision{}, err
	}
	return obs, lifecycle.Plan(obs.facts), nil
}

// isOfConsequence reports whether the decision does more than report: it acts, or the next decisions rest on what it writes.
func isOfConsequence(before v1alpha1.MachineStatus, d lifecycle.Decision) bool {
	after := d.Status
	after.Conditions, after.WaitingFor = before.Conditions, before.WaitingFor
	return d.Action != nil || !equality.Semantic.DeepEqual(before, after)
}

// confirm reads again what the observation has from the cache or from memory, and reports whether it is the same. A claim Secret that is there is not read
// again for an action that has nothing to do with it.
func (r *Reconciler) confirm(ctx context.Context, obs *observation, action *lifecycle.Action) (bool, error) {
	if isConfirmed, err := r.confirmHost(ctx, obs); err != nil || !isConfirmed || !isNodeConfirmed(ctx, obs) {
		return false, err
	}
	if isConfirmed, err := r.confirmToken(ctx, obs, action); err != nil || !isConfirmed {
		return false, err
	}
	known := obs.facts.Secret
	if !obs.unconfirmedSecret || known.Found && !needsClaimSecret(action) {
		return true, nil
	}
	err := r.readSecret(ctx, obs)
	return err == nil && obs.facts.Secret == known, err
}

// confirmHost reads the host and its record again where the observation has them from the cache.
func (r *Reconciler) confirmHost(ctx context.Context, obs *observation) (bool, error) {
	key := obs.unconfirmedHost
	if key.Name == "" {
		return true, nil
	}
	host, record, err := r.readHostFrom(ctx, r.APIReader, key)
	if err != nil || host == nil || obs.host == nil || !isSameVersion(host, obs.host) {
		return false, err
	}
	if record == nil || obs.record == nil {
		return record == nil && obs.record == nil, nil
	}
	return isSameVersion(record, obs.record), nil
}

// isNodeConfirmed reads the Node again where the observation has it from the cache. It is not confirmed where the tenant's cluster does not answer: the next
// observation says so.
func isNodeConfirmed(ctx context.Context, obs *observation) bool {
	if !obs.unconfirmedNode || obs.access == nil {
		return true
	}
	node, err := read(ctx, obs.access.Client, clusterKey(obs.machine.Name), &corev1.Node{})
	if err != nil || node == nil || obs.node == nil {
		return err == nil && node == nil && obs.node == nil
	}
	return isSameVersion(node, obs.node)
}

// confirmToken lists the Machine's tokens again where they are remembered and the action does something about them.
func (r *Reconciler) confirmToken(ctx context.Context, obs *observation, action *lifecycle.Action) (bool, error) {
	if !obs.unconfirmedToken || obs.access == nil || !needsToken(action) {
		return true, nil
	}
	known := obs.facts.Token
	obs.facts.Token = nil
	err := r.readToken(ctx, obs)
	isSame := known == nil && obs.facts.Token == nil || known != nil && obs.facts.Token != nil && *known == *obs.facts.Token
	return err == nil && isSame && obs.access != nil, err
}

// needsToken reports whether the action is carried out with the token, or makes one.
func needsToken(a *lifecycle.Action) bool {
	if a == nil {
		return false
	}
	switch a.Kind {
	case lifecycle.CreateToken, lifecycle.RenewToken, lifecycle.DeleteToken, lifecycle.WriteClaimSecret:
		return true
	}
	return false
}

func isSameVersion(a, b metav1.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}
