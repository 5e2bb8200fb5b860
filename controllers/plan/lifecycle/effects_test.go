package lifecycle

import (
	"slices"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// reconcile is one turn of a Machine's controller: facts, plan, act, one status write.
func (w *world) reconcile(m *machine) {
	if m.gone {
		return
	}
	f, h, observed := w.facts(m)
	d := plan(f, w.guards)
	if w.plans++; w.plans%8 == 0 {
		w.checkMemory(f, d)
		w.checkDiscretion(f)
	}
	w.logf("%s %s -> %s: action %v, waits for %q", m.live.Name, f.Machine.Status.Phase, d.Status.Phase, d.Action, d.Status.WaitingFor)
	if d.Action != nil {
		if d.Action.Kind == CreateToken && d.Action.TokenID == "" {
			d.Action.TokenID = w.uid("token") // the shell's random one
		}
		w.checkIntent(f, d)
		if !w.try(func() bool { return w.act(m, f, h, observed, *d.Action) }) {
			return // the shell reports the error and starts over
		}
	}
	rv := m.cached.rv
	if d.Action != nil && (d.Action.Kind == AddFinalizer || d.Action.Kind == RemoveFinalizer) {
		rv = m.live.rv
	}
	w.try(func() bool { return w.writeStatus(m, rv, f, d) })
}

// try lets an effect through, or loses it, or loses only the answer, or lets it arrive late. It says whether the caller was told
// of success.
func (w *world) try(effect func() bool) bool {
	switch {
	case w.happens(4):
		w.logf("  lost")
		return false
	case w.happens(4):
		w.logf("  answer lost")
		effect()
		return false
	case w.happens(4):
		w.logf("  late")
		w.pending = append(w.pending, func() { effect() })
		return false
	case w.happens(3):
		effect()
		return effect()
	default:
		return effect()
	}
}

func (w *world) writeStatus(m *machine, rv int, f Facts, d Decision) bool {
	if m.gone || m.live.rv != rv {
		return false
	}
	if d.Status.Phase != m.live.Status.Phase {
		w.checkEntry(m, f, d)
		if d.Status.Phase == v1alpha1.MachineJoining && d.Status.Attempt > 1 {
			w.rolls++
		}
		w.reached[d.Status.Phase], m.entered = true, w.now
	}
	verdict := m.live.Status.Verdict
	m.live.Status = d.Status
	m.live.Status.Verdict = verdict
	m.live.rv++
	for _, e := range d.Events {
		m.remains = m.remains || e.Reason == v1alpha1.ReasonNodeRemains
	}
	w.checkStatus(m)
	return true
}

// act is what the shell's actions do to the API objects. Every write is under the version that was observed; no guard of
// the planner is repeated here, so that its absence shows.
func (w *world) act(m *machine, f Facts, h *host, observed bmh, a Action) bool {
	n := w.tenant.nodes[f.Machine.Name]
	nodeMatches := w.tenant.reachable && n != nil && n.uid == a.NodeUID
	switch a.Kind {
	case AddFinalizer:
		return w.onMachine(m, func() { m.live.Finalizer = true })
	case RemoveFinalizer:
		return w.onMachine(m, func() { m.live.Finalizer = false; m.gone = m.live.Deleting; w.checkGone(m) })
	case ClaimHost:
		if r := m.live.Status.HostRef; m.gone || r == nil || r.Name != h.name || m.live.Status.Phase != v1alpha1.MachineClaiming {
			return false // the shell reads the Machine once more before it claims
		}
		return w.onHost(h, observed, func() {
			w.checkClaim(m, h)
			h.live.consumer, h.live.consumerName = f.Machine.UID, f.Machine.Name
			w.changeServed(f, h, a.Kind)
		})
	case PowerOff:
		return w.onHost(h, observed, func() {
			w.checkMine(f, h, a)
			w.checkEvicted(m, f)
			w.changeServed(f, h, a.Kind)
			h.live.online = false
		})
	case PowerOn:
		return w.onHost(h, observed, func() { w.checkPowerOn(f, h, a); h.live.online = true; w.changeServed(f, h, a.Kind) })
	case RequestInstall:
		return w.onHost(h, observed, func() {
			w.checkInstall(f, h, a)
			w.changeServed(f, h, a.Kind)
			h.live.imageURL, h.live.online, h.live.installation = f.Revision.Image.URL, true, a.Installation
		})
	case RecordInstallation:
		return w.onHost(h, observed, func() {
			w.checkMine(f, h, a)
			h.live.installation = a.Installation
			w.changeServed(f, h, a.Kind)
		})
	case Deprovision:
		return w.onHost(h, observed, func() {
			w.checkDeprovision(m, f, h, a)
			h.live.imageURL, h.live.online = "", false
			w.changeServed(f, h, a.Kind)
		})
	case ReturnHost:
		return w.onHost(h, observed, func() {
			w.checkReturn(f, h, a)
			h.live.consumer, h.live.consumerName, h.live.installation = "", "", nil
			w.changeServed(f, h, a.Kind)
		})
	case WriteHostRecord:
		return w.onRecord(h, observed, func() { w.checkMine(f, h, a); h.live.spec = a.Record })
	case ClearHostRecord:
		return w.onRecord(h, observed, func() { w.checkMine(f, h, a); h.live.spec = a.Record })
	case WriteClaimSecret:
		w.checkMine(f, h, a)
		w.checkSecretAttempt(f, h)
		w.secrets[w.claimKey(h, f)] = &secret{f.Machine.UID, f.Machine.Status.Attempt, a.HostAttempt, a.TokenID, f.Machine.Status.Revision, w.late}
	case ScrubSecret:
		w.secrets[w.claimKey(h, f)] = &secret{f.Machine.UID, f.Machine.Status.Attempt, f.Secret.HostAttempt, "", f.Machine.Status.Revision, w.late}
	case DeleteClaimSecret:
		delete(w.secrets, w.claimKey(h, f))
	case RecordSecretAttempt:
		return w.onHost(h, observed, func() { w.checkMine(f, h, a); h.live.secretAttempt = f.Machine.Status.Attempt })
	case CreateToken, RenewToken:
		w.setToken(f, a)
	case DeleteToken:
		delete(w.tenant.tokens, a.TokenID)
	case SyncNodeMetadata:
		if nodeMatches {
			n.labelled = true
		}
	case Cordon:
		if nodeMatches && !n.cordoned {
			n.cordoned, n.ours = true, true
		}
	case Uncordon:
		if nodeMatches && n.ours {
			n.cordoned, n.ours = false, false
		}
	case Evict:
		if nodeMatches && !n.kept {
			n.pods = max(0, n.pods-1)
		}
	case DeleteNode:
		if nodeMatches {
			w.checkDeleteNode(m, h)
			delete(w.tenant.nodes, f.Machine.Name)
		}
	}
	return true
}

func (w *world) setToken(f Facts, a Action) {
	if !w.tenant.reachable {
		return
	}
	isAwaited := w.served != nil // nobody tells when a baremetal-operator reads the documents
	if r := f.Host.Record; r != nil {
		p := r.Status.Progress()
		isAwaited = p != nil && p.ConfigDriveAwaitedAt != nil
	}
	switch phase := f.Machine.Status.Phase; {
	case phase != v1alpha1.MachineProvisioning && phase != v1alpha1.MachineJoining:
		w.violated("6: token: %s in phase %s", a.Kind, phase)
	case phase == v1alpha1.MachineProvisioning && !isAwaited:
		w.violated("6: token: %s before an agent waits for it", a.Kind)
	case a.Expires.After(w.latestJoin(f)):
		w.violated("6: token expires at %s, after the end of Joining", a.Expires)
	}
	w.tenant.tokens[a.TokenID] = &token{machine: f.Machine.UID, expires: a.Expires.Add(-w.clockOff), late: w.late}
}

// latestJoin returns the latest end of Joining for the Machine.
func (w *world) latestJoin(f Facts) time.Time {
	end := f.Machine.Status.Deadline.Time
	if f.Machine.Status.Phase == v1alpha1.MachineProvisioning {
		if w.served == nil {
			end = f.Host.Record.Status.Wanted.Deadline.Time
		}
		end = end.Add(w.timeouts.Joining)
	}
	if late := f.Now.Add(w.timeouts.Joining); late.After(end) {
		end = late
	}
	return end.Add(time.Second)
}

func (w *world) onMachine(m *machine, change func()) bool {
	if m.gone || m.live.rv != m.cached.rv {
		return false
	}
	change()
	m.live.rv++
	return true
}

func (w *world) onHost(h *host, observed bmh, change func()) bool {
	if h.live.rv != observed.rv {
		return false
	}
	image, online, consumer, cleaning := h.live.imageURL, h.live.online, h.live.consumer, h.live.cleaning
	change()
	if image != h.live.imageURL || online != h.live.online || consumer != h.live.consumer || cleaning != h.live.cleaning {
		h.live.generation++
	}
	h.live.rv++
	return true
}

func (w *world) onRecord(h *host, observed bmh, change func()) bool {
	if h.live.recordRV != observed.recordRV {
		return false
	}
	change()
	h.live.recordRV++
	return true
}

// freeOrphans is what the shell does for hosts whose Machine is gone.
func (w *world) freeOrphans() {
	for _, h := range w.hosts {
		if h.live.consumer == "" || h.live.consumerName == "somebody" {
			continue
		}
		claim := Claim{Now: w.clock().Now, Host: *hostFacts(h.name, h.live, "nobody"), MachineUID: h.live.consumer}
		if slices.ContainsFunc(w.machines, func(m *machine) bool { return !m.gone && m.live.UID == h.live.consumer }) {
			claim.NamesakeUID = h.live.consumer
		}
		left := w.secretsLeft(h, claim.Host.SecretAttempts())
		claim.HasSecret = len(left) > 0
		switch PlanOrphan(claim).Kind {
		case DeleteOrphanSecret:
			delete(w.secrets, left[0])
		case FreeOrphan:
			w.checkSecrets(h)
			h.live.consumer, h.live.consumerName = "", ""
			w.changeServed(Facts{}, h, ReturnHost)
			h.live.rv++
		}
	}
}
