package lifecycle

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// cleanedHost is a host that a baremetal-operator serves, and the Machine that has it.
type cleanedHost struct {
	t    *testing.T
	host *metal3.BareMetalHost
	f    Facts
	// policy is that of the NodeProvider.
	policy *v1alpha1.ErasePolicy
	// cleans are the modes with which the operator has removed an installation, in order.
	cleans []metal3.AutomatedCleaningMode
}

// newCleanedHost returns a host with the cleaning mode on which a node of the Machine runs.
func newCleanedHost(t *testing.T, mode metal3.AutomatedCleaningMode, policy *v1alpha1.ErasePolicy) *cleanedHost {
	t.Helper()
	c := newClaimedHost(t, mode, policy)
	BeginInstallation(c.host, false)
	c.install()
	EndInstallation(c.host, policy)
	return c
}

// newClaimedHost returns a host with the cleaning mode that the Machine has claimed, and that its tenant has had before.
func newClaimedHost(t *testing.T, mode metal3.AutomatedCleaningMode, policy *v1alpha1.ErasePolicy) *cleanedHost {
	t.Helper()
	h := &metal3.BareMetalHost{}
	h.Namespace, h.Name, h.Labels = "metal", "host-0", map[string]string{"gpu-model": "h100"}
	h.Annotations = map[string]string{placement.AnnotationLastTenant: "team/research"}
	h.Spec.AutomatedCleaningMode, h.Spec.ConsumerRef = mode, &corev1.ObjectReference{Kind: "Machine", Name: "m0"}
	c := &cleanedHost{t: t, host: h, f: served(t, v1alpha1.MachineReady), policy: policy}
	PassOnErase(h, policy) // the claim
	return c
}

// install is the operator that installs the image which is asked for.
func (c *cleanedHost) install() {
	c.host.Spec.Image, c.host.Spec.Online = &metal3.Image{URL: imageA.URL}, true
	c.host.Status.Provisioning.Image, c.host.Status.Provisioning.State, c.host.Status.PoweredOn = *c.host.Spec.Image, metal3.StateProvisioned, true
}

// clean is the operator that removes what is installed, in the mode that the spec has then.
func (c *cleanedHost) clean() {
	c.cleans = append(c.cleans, c.host.Spec.AutomatedCleaningMode)
	c.host.Status.Provisioning.Image, c.host.Status.Provisioning.State, c.host.Status.PoweredOn = metal3.Image{}, metal3.StateAvailable, false
}

// requestNext asks for the image of the next attempt, and leaves the host in the state.
func (c *cleanedHost) requestNext(state metal3.ProvisioningState) {
	BeginInstallation(c.host, true)
	c.host.Spec.Image, c.host.Spec.Online = &metal3.Image{URL: imageB.URL}, true
	c.host.Status.Provisioning.State = state
}

// deprovisionForRoll removes the image for the next one, as the controller does in Draining.
func (c *cleanedHost) deprovisionForRoll() {
	BeginRoll(c.host, c.policy)
	c.host.Spec.Image, c.host.Spec.Online = nil, false
}

// release has the Machine, which is deleted, do what Plan says until the host is returned. The operator cleans a host whose image is removed, unless
// it is available: then nothing is installed that it would remove.
func (c *cleanedHost) release() {
	c.t.Helper()
	c.f.Machine.Deleting, c.f.Node, c.f.Token = true, Node{}, nil
	for range 20 {
		h := c.f.Host
		h.Online, h.State, h.PoweredOn = c.host.Spec.Online, c.host.Status.Provisioning.State, c.host.Status.PoweredOn
		h.ImageURL, h.InstalledURL, h.ObservedGeneration, h.Manageable = "", c.host.Status.Provisioning.Image.URL, &h.Generation, ptr.To(true)
		if c.host.Spec.Image != nil {
			h.ImageURL = c.host.Spec.Image.URL
		}
		d := Plan(c.f)
		c.f.Machine.Status = d.Status
		if d.Action == nil {
			continue
		}
		switch d.Action.Kind {
		case PowerOff:
			c.host.Spec.Online, c.host.Status.PoweredOn, h.PowerOffRequested = false, false, true
		case Deprovision:
			BeginErase(c.host, c.policy)
			c.host.Spec.Image, c.host.Spec.Online = nil, false
			if h.State != metal3.StateAvailable {
				c.clean()
			}
		case DeleteClaimSecret:
			c.f.Secret = Secret{}
		case ReturnHost:
			EndErase(c.host)
			c.host.Spec.ConsumerRef = nil
			return
		}
	}
	c.t.Fatalf("the host is not returned: the Machine is %s and waits for %s", c.f.Machine.Status.Phase, c.f.Machine.Status.WaitingFor)
}

// isOtherTenants reports whether a Machine of another tenant gets the host where a metadata erase is enough for that.
func (c *cleanedHost) isOtherTenants() bool {
	request := placementRequest
	request.Tenant, request.TenantClusterUID = "rival/rival", "cluster-2"
	request.Provider.Metal3, request.Provider.Erase = &v1alpha1.Metal3Provider{}, &v1alpha1.ErasePolicy{AllowMetadataBetweenTenants: true, AllowForgeableEraseBetweenTenants: true}
	return placement.Choose(request, []placement.HostFacts{{Host: c.host}}).Host != ""
}

// TestAHostThatIsReleasedInARollIsNoOtherTenantsUnlessItIsCleaned deletes the Machine at each point of a roll that has set the cleaning aside.
func TestAHostThatIsReleasedInARollIsNoOtherTenantsUnlessItIsCleaned(t *testing.T) {
	for _, c := range []struct {
		name   string
		roll   func(*cleanedHost)
		erased v1alpha1.EraseMode
	}{
		{"before the roll", func(*cleanedHost) {}, v1alpha1.EraseMetadata},
		{"when the host is deprovisioned without a clean", func(h *cleanedHost) { h.deprovisionForRoll(); h.clean() }, v1alpha1.EraseNone},
		{"when the next installation is asked for", func(h *cleanedHost) {
			h.deprovisionForRoll()
			h.clean()
			h.requestNext(metal3.StateAvailable)
		}, v1alpha1.EraseNone},
		{"while it is tried, and nobody knows whether the installer has begun", func(h *cleanedHost) {
			h.deprovisionForRoll()
			h.clean()
			h.requestNext(metal3.StateProvisioning)
		}, v1alpha1.EraseNone},
		{"when it has failed as often as it is tried", func(h *cleanedHost) {
			h.deprovisionForRoll()
			h.clean()
			h.requestNext(metal3.StateProvisioning)
			h.clean()
			h.requestNext(metal3.StateProvisioning)
			h.clean()
		}, v1alpha1.EraseNone},
		{"when it has succeeded and the Machine has not seen that", func(h *cleanedHost) {
			h.deprovisionForRoll()
			h.clean()
			h.requestNext(metal3.StateProvisioning)
			h.install()
		}, v1alpha1.EraseMetadata},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newCleanedHost(t, metal3.CleaningModeMetadata, &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata})
			c.roll(h)
			h.release()
			if got := h.host.Annotations[v1alpha1.AnnotationLastErase]; got != string(c.erased) {
				t.Errorf("the host says that its last erase was %q, expected %q; it was cleaned %v", got, c.erased, h.cleans)
			}
			if wanted := c.erased == v1alpha1.EraseMetadata; h.isOtherTenants() != wanted {
				t.Errorf("another tenant gets the host: %t, expected %t; it was cleaned %v", !wanted, wanted, h.cleans)
			}
			if mode := h.host.Spec.AutomatedCleaningMode; mode != metal3.CleaningModeMetadata || h.host.Annotations[v1alpha1.AnnotationCleaningMode] != "" {
				t.Errorf("the host is returned with the cleaning mode %s, and the annotations %v", mode, h.host.Annotations)
			}
		})
	}
}

// TestWhatAnEarlierMachineLeftIsNoOtherTenantsBeforeItIsCleaned has the host claimed twice by one tenant. The second Machine is deleted while its
// installation is tried, and after it.
func TestWhatAnEarlierMachineLeftIsNoOtherTenantsBeforeItIsCleaned(t *testing.T) {
	for _, isInstalled := range []bool{false, true} {
		h := newCleanedHost(t, metal3.CleaningModeMetadata, &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata})
		h.deprovisionForRoll()
		h.clean()
		h.release()
		PassOnErase(h.host, h.policy)
		h.requestNext(metal3.StateProvisioning)
		if isInstalled {
			h.install()
		}
		h.f.Machine.Status.Phase = v1alpha1.MachineReleasing
		h.release()
		if h.isOtherTenants() != isInstalled {
			t.Errorf("installed in between: %t; another tenant gets the host: %t, with annotations %v", isInstalled, !isInstalled, h.host.Annotations)
		}
	}
}

// TestAHostWhoseFirstInstallationFailedIsOtherTenantsWhenItIsKnownToBeCleaned deletes the Machine of a host on which nothing was ever installed for it.
func TestAHostWhoseFirstInstallationFailedIsOtherTenantsWhenItIsKnownToBeCleaned(t *testing.T) {
	const metadata, disabled, none, proven = metal3.CleaningModeMetadata, metal3.CleaningModeDisabled, v1alpha1.EraseNone, v1alpha1.EraseMetadata
	fail := func(h *cleanedHost) { h.requestNext(metal3.StateProvisioning); h.clean() }
	for _, c := range []struct {
		name         string
		mode         metal3.AutomatedCleaningMode
		before       v1alpha1.EraseMode
		install      func(*cleanedHost)
		want, policy v1alpha1.EraseMode
	}{
		{"its operator has given up", metadata, proven, fail, proven, proven},
		{"its operator tries it again", metadata, proven, func(h *cleanedHost) { fail(h); h.requestNext(metal3.StateProvisioning) }, proven, proven},
		{"its operator has not begun", metadata, proven, func(h *cleanedHost) { h.requestNext(metal3.StateAvailable) }, proven, proven},
		{"and an earlier Machine of the tenant left it as it was", metadata, none, fail, none, proven},
		{"and nobody knows how an earlier Machine of the tenant left it", metadata, "", fail, none, proven},
		{"it is never cleaned", disabled, proven, fail, none, proven},
		{"it was not cleaned, and would be now", disabled, proven, func(h *cleanedHost) { fail(h); h.host.Spec.AutomatedCleaningMode = metadata }, none, proven},
		{"it was cleaned, and would not be now", metadata, proven, func(h *cleanedHost) { fail(h); h.host.Spec.AutomatedCleaningMode = disabled }, none, proven},
		{"the policy asks for no erase", metadata, proven, fail, none, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newClaimedHost(t, c.mode, &v1alpha1.ErasePolicy{OnRelease: c.policy})
			if c.before != "" {
				setLastErase(h.host, c.before)
			}
			c.install(h)
			h.f.Machine.Status.Phase = v1alpha1.MachineReleasing
			h.release()
			if got := h.host.Annotations[v1alpha1.AnnotationLastErase]; got != string(c.want) {
				t.Errorf("the host says that its last erase was %q, expected %q; it was cleaned %v", got, c.want, h.cleans)
			}
			if wanted := c.want == proven; h.isOtherTenants() != wanted {
				t.Errorf("another tenant gets the host: %t, expected %t", !wanted, wanted)
			}
		})
	}
}

// TestAHostThatAPersonHasErasedIsNewToItsNextTenant removes the annotation of the last tenant, as the advice for such a host says.
func TestAHostThatAPersonHasErasedIsNewToItsNextTenant(t *testing.T) {
	h := newClaimedHost(t, metal3.CleaningModeMetadata, nil)
	setLastErase(h.host, v1alpha1.EraseNone)
	BeginInstallation(h.host, false)
	if got := h.host.Annotations[v1alpha1.AnnotationLastErase]; got != string(v1alpha1.EraseMetadata) {
		t.Errorf("a failed installation leaves it with the last erase %q", got)
	}
}

// TestARollErasesOnlyWhereThePolicySaysSo deletes the Machine when the host is deprovisioned for its next image, and when that is installed.
func TestARollErasesOnlyWhereThePolicySaysSo(t *testing.T) {
	const metadata, none = v1alpha1.EraseMetadata, v1alpha1.EraseNone
	for _, c := range []struct {
		name   string
		mode   metal3.AutomatedCleaningMode
		policy *v1alpha1.ErasePolicy
		// cleaned is the mode with which the roll has the host cleaned, inRoll the erase that the host says when it is returned before the next image is
		// installed, and after that one when it is returned later.
		cleaned       metal3.AutomatedCleaningMode
		inRoll, after v1alpha1.EraseMode
	}{
		{"no policy", metal3.CleaningModeMetadata, nil, metal3.CleaningModeDisabled, none, metadata},
		{"the policy is about a release", metal3.CleaningModeMetadata, &v1alpha1.ErasePolicy{OnRelease: metadata}, metal3.CleaningModeDisabled, none, metadata},
		{"the policy has a roll erase nothing", metal3.CleaningModeMetadata, &v1alpha1.ErasePolicy{OnRelease: metadata, OnRoll: none}, metal3.CleaningModeDisabled, none, metadata},
		{"the policy has a roll erase too", metal3.CleaningModeMetadata, &v1alpha1.ErasePolicy{OnRelease: metadata, OnRoll: metadata}, metal3.CleaningModeMetadata, metadata, metadata},
		{"the host itself is never cleaned", metal3.CleaningModeDisabled, &v1alpha1.ErasePolicy{OnRelease: metadata, OnRoll: metadata}, metal3.CleaningModeDisabled, none, none},
		{"nothing is erased at all", metal3.CleaningModeMetadata, &v1alpha1.ErasePolicy{OnRelease: none}, metal3.CleaningModeDisabled, none, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, isInstalled := range []bool{false, true} {
				h := newCleanedHost(t, c.mode, c.policy)
				h.deprovisionForRoll()
				h.clean()
				if h.cleans[0] != c.cleaned {
					t.Errorf("the roll has the host cleaned in the mode %s", h.cleans[0])
				}
				erased := c.inRoll
				if isInstalled {
					erased = c.after
					h.requestNext(metal3.StateProvisioning)
					h.install()
					EndInstallation(h.host, h.policy)
				}
				h.release()
				if got := h.host.Annotations[v1alpha1.AnnotationLastErase]; got != string(erased) || h.host.Spec.AutomatedCleaningMode != c.mode {
					t.Errorf("the host is returned with the mode %s and says that its last erase was %q, expected %q; it was cleaned %v", h.host.Spec.AutomatedCleaningMode, got, erased, h.cleans)
				}
			}
		})
	}
}

// TestAHostIsCleanedOnlyWhereItsOwnModeAndThePolicyAgree has the host's own mode back in the end, whatever the policy was.
func TestAHostIsCleanedOnlyWhereItsOwnModeAndThePolicyAgree(t *testing.T) {
	const metadata, disabled = metal3.CleaningModeMetadata, metal3.CleaningModeDisabled
	erase := func(mode v1alpha1.EraseMode) *v1alpha1.ErasePolicy { return &v1alpha1.ErasePolicy{OnRelease: mode} }
	for _, c := range []struct {
		own            metal3.AutomatedCleaningMode
		before, policy *v1alpha1.ErasePolicy
		cleaned        metal3.AutomatedCleaningMode
	}{
		{metadata, nil, nil, metadata},
		{metadata, erase(v1alpha1.EraseMetadata), erase(v1alpha1.EraseMetadata), metadata},
		{metadata, erase(v1alpha1.EraseNone), erase(v1alpha1.EraseNone), disabled},
		{disabled, nil, nil, disabled},
		{disabled, erase(v1alpha1.EraseMetadata), erase(v1alpha1.EraseMetadata), disabled},
		{disabled, erase(v1alpha1.EraseNone), erase(v1alpha1.EraseNone), disabled},
		// The policy is changed while the Machine has the host.
		{metadata, erase(v1alpha1.EraseNone), erase(v1alpha1.EraseMetadata), metadata},
		{metadata, erase(v1alpha1.EraseMetadata), erase(v1alpha1.EraseNone), disabled},
		{disabled, erase(v1alpha1.EraseNone), erase(v1alpha1.EraseMetadata), disabled},
	} {
		h := newCleanedHost(t, c.own, c.before)
		h.policy = c.policy
		h.release()
		erased := map[metal3.AutomatedCleaningMode]v1alpha1.EraseMode{metadata: v1alpha1.EraseMetadata, disabled: v1alpha1.EraseNone}[c.cleaned]
		if got := h.host.Annotations[v1alpha1.AnnotationLastErase]; len(h.cleans) != 1 || h.cleans[0] != c.cleaned || got != string(erased) || h.host.Spec.AutomatedCleaningMode != c.own {
			t.Errorf("a host with the mode %s, policy %+v and then %+v: cleaned %v, returned with the mode %s and the last erase %q", c.own, c.before, c.policy, h.cleans, h.host.Spec.AutomatedCleaningMode, got)
		}
	}
}

// TestAModeThatIsChangedAndChangedBackProvesNoErase changes the spec of a host while it is released. Every write of it makes another generation.
func TestAModeThatIsChangedAndChangedBackProvesNoErase(t *testing.T) {
	const metadata, disabled = metal3.CleaningModeMetadata, metal3.CleaningModeDisabled
	set := func(modes ...metal3.AutomatedCleaningMode) func(*metal3.BareMetalHost) {
		return func(h *metal3.BareMetalHost) {
			for _, mode := range modes {
				h.Spec.AutomatedCleaningMode = mode
				h.Generation++
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*metal3.BareMetalHost)
		erased v1alpha1.EraseMode
	}{
		{"nothing", func(*metal3.BareMetalHost) {}, v1alpha1.EraseMetadata},
		{"something else", func(h *metal3.BareMetalHost) { h.Generation++ }, v1alpha1.EraseMetadata},
		{"the mode", set(disabled), v1alpha1.EraseNone},
		{"the mode, and back", set(disabled, metadata), v1alpha1.EraseNone},
		{"online, which Ingot sets back", func(h *metal3.BareMetalHost) {
			h.Spec.Online = true
			h.Generation++
			RequestPowerOff(h, "machine-1")
			h.Generation++
		}, v1alpha1.EraseMetadata},
		{"online, which Ingot sets back, and the mode, and back", func(h *metal3.BareMetalHost) {
			set(disabled)(h)
			h.Spec.Online = true
			h.Generation++
			RequestPowerOff(h, "machine-1")
			h.Generation++
			set(metadata)(h)
		}, v1alpha1.EraseNone},
	} {
		h := newCleanedHost(t, metadata, &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata}).host
		h.Generation = 7
		BeginErase(h, &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata})
		h.Spec.Online = false
		h.Generation++
		c.change(h)
		EndErase(h)
		if got := h.Annotations[v1alpha1.AnnotationLastErase]; got != string(c.erased) || h.Annotations[v1alpha1.AnnotationEraseGeneration] != "" {
			t.Errorf("%s was changed: the host says that its last erase was %q, expected %q: %v", c.name, got, c.erased, h.Annotations)
		}
	}
}

// TestACleaningThatSomebodyEnablesInARollIsDisabledAgain applies the manifest of a site again after the image was removed for the next one.
func TestACleaningThatSomebodyEnablesInARollIsDisabledAgain(t *testing.T) {
	h := newCleanedHost(t, metal3.CleaningModeMetadata, &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata})
	h.deprovisionForRoll()
	if IsCleaningChanged(h.host) {
		t.Error("nobody has changed the cleaning mode")
	}
	h.host.Spec.AutomatedCleaningMode = metal3.CleaningModeMetadata
	if !IsCleaningChanged(h.host) {
		t.Error("the change of the cleaning mode is not noticed")
	}
	f := served(t, v1alpha1.MachineDraining)
	f.Node, f.Machine.Status.PowerOffRequestedAt = Node{}, &metav1.MicroTime{Time: f.Now}
	f.Host.Online, f.Host.PoweredOn, f.Host.ImageURL, f.Host.State = false, false, "", metal3.StateProvisioned
	f.Host.PowerOffRequested, f.Host.PowerOffOfRunning = true, true
	f.Host.ObservedGeneration, f.Host.Manageable = ptr.To(f.Host.Generation-1), ptr.To(true) // the operator has not looked since
	for _, isChanged := range []bool{false, true} {
		f.Host.CleaningChanged = isChanged
		if d := Plan(f); (d.Action != nil && d.Action.Kind == Deprovision) != isChanged {
			t.Errorf("the cleaning mode was changed: %t; the action is %v", isChanged, d.Action)
		}
	}
	p := served(t, v1alpha1.MachineProvisioning)
	p.Host.State, p.Host.Online, p.Host.ImageURL = metal3.StateProvisioning, true, p.Revision.Image.URL
	p.Secret = Secret{Found: true, Attempt: p.Machine.Status.Attempt}
	for _, isChanged := range []bool{false, true} {
		p.Host.CleaningChanged = isChanged
		if d := Plan(p); (d.Action != nil && d.Action.Kind == RequestInstall) != isChanged {
			t.Errorf("the cleaning mode was changed: %t; while the host is installed the action is %v", isChanged, d.Action)
		}
	}
	KeepCleaningSetAside(h.host)
	if mode := h.host.Spec.AutomatedCleaningMode; mode != metal3.CleaningModeDisabled || IsCleaningChanged(h.host) {
		t.Errorf("the cleaning mode is %s: %v", mode, h.host.Annotations)
	}
	PassOnErase(h.host, h.policy)
	if mode := h.host.Spec.AutomatedCleaningMode; mode != metal3.CleaningModeMetadata {
		t.Errorf("the host gets the cleaning mode %s back", mode)
	}
}
