package host

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/bmcaddress"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// bmcEndpoint returns the address, the credentials and the trust of the host's BMC, and the resource version of the
// credentials. What is missing is returned as a Problem. A host that names its node in Ironic may be without an address and credentials: Ironic has them.
func (r *Reconciler) bmcEndpoint(ctx context.Context, provider *v1alpha1.NodeProvider, host *metal3.BareMetalHost) (hardware.Endpoint, string, *plan.Problem, error) {
	if provider.Spec.Ironic != nil && host.Spec.BMC == (metal3.BMCDetails{}) && ironicNode(host) != "" {
		return hardware.Endpoint{}, "", nil, nil
	}
	endpoint, problem := parseAddress(host.Spec.BMC.Address, provider.Spec.Ironic != nil)
	if problem != nil {
		return endpoint, "", problem, nil
	}
	endpoint.InsecureSkipVerify = host.Spec.BMC.DisableCertificateVerification
	if redfish := provider.Spec.Redfish; redfish != nil {
		endpoint.InsecureSkipVerify = endpoint.InsecureSkipVerify || redfish.InsecureSkipVerify
		if ref := redfish.CABundleSecretRef; ref != nil {
			data, _, problem, err := r.secret(ctx, host.Namespace, ref.Name, v1alpha1.ReasonCABundleMissing, "ca.crt")
			if problem != nil || err != nil {
				return endpoint, "", problem, err
			}
			endpoint.CABundle = data[0]
		}
	}
	data, version, problem, err := r.secret(ctx, host.Namespace, host.Spec.BMC.CredentialsName, v1alpha1.ReasonCredentialsMissing, "username", "password")
	if problem != nil || err != nil {
		return endpoint, "", problem, err
	}
	endpoint.Username, endpoint.Password = string(data[0]), string(data[1])
	return endpoint, version, nil, nil
}

// secret reads keys of a Secret that must not be empty.
func (r *Reconciler) secret(ctx context.Context, namespace, name, reason string, keys ...string) ([][]byte, string, *plan.Problem, error) {
	problem := func(format string, args ...any) *plan.Problem {
		return &plan.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	if name == "" {
		return nil, "", problem("spec.bmc.credentialsName is empty: name a Secret of this namespace with %s", strings.Join(keys, " and ")), nil
	}
	read, err := r.readSecret(ctx, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil, "", problem("Secret %s/%s does not exist: create it with %s", namespace, name, strings.Join(keys, " and ")), nil
		}
		if apierrors.IsForbidden(err) {
			return nil, "", problem("Secret %s/%s must not be read: bind ClusterRole ingot-manager-hosts to Ingot's service account by a RoleBinding in this namespace", namespace, name), nil
		}
		return nil, "", nil, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	secret := read.secret
	var values [][]byte
	for _, key := range keys {
		if len(secret.Data[key]) == 0 {
			return nil, "", problem("Secret %s/%s has no %s", namespace, name, key), nil
		}
		values = append(values, secret.Data[key])
	}
	r.secrets.add(read)
	return values, secret.ResourceVersion, nil, nil
}

// parseAddress parses spec.bmc.address. It may contain a password, so no message quotes it.
func parseAddress(address string, hasIPMI bool) (hardware.Endpoint, *plan.Problem) {
	endpoint, err := bmcaddress.Parse(address, hasIPMI)
	if err == nil {
		return endpoint, nil
	}
	expected := "spec.bmc.address must be redfish://HOST/redfish/v1/Systems/ID, redfish-virtualmedia+https://... or https://..."
	if hasIPMI {
		expected = strings.Replace(expected, "or https://...", "https://... or ipmi://HOST[:PORT]", 1)
	}
	if hasIPMI && address == "" {
		expected += ", or the annotation " + v1alpha1.AnnotationIronicNode + " must name the node that Ironic has, without spec.bmc"
	}
	return endpoint, &plan.Problem{Reason: v1alpha1.ReasonBMCAddressInvalid, Message: expected + ": " + err.Error()}
}

// secretCache keeps the credentials of BMCs for a short time, because a host is reconciled every few seconds while it is being
// installed. It keeps only Secrets that have all keys, and none that a BMC has refused.
type secretCache struct {
	mu    sync.Mutex
	known map[types.NamespacedName]cachedSecret
	// swept is when entries that were too old were removed last.
	swept time.Time
}

type cachedSecret struct {
	secret *corev1.Secret
	at     time.Time
}

// get returns the Secret if it was read within the time before now, and otherwise an empty cachedSecret.
func (s *secretCache) get(key types.NamespacedName, now time.Time, within time.Duration) cachedSecret {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= within {
		// Credentials must not stay in memory for ever. The sweep is not done in every call, because every reconcile of a host calls get.
		maps.DeleteFunc(s.known, func(_ types.NamespacedName, kept cachedSecret) bool { return now.Sub(kept.at) >= within })
		s.swept = now
	}
	if kept := s.known[key]; now.Sub(kept.at) < within {
		return kept
	}
	return cachedSecret{}
}

// add stores a Secret, unless a later read of it is stored already, because many hosts share one Secret, or it was forgotten since it was read.
func (s *secretCache) add(read cachedSecret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(read.secret)
	if known, isKnown := s.known[key]; isKnown && !read.at.After(known.at) {
		return
	}
	s.set(key, read)
}

// forget has the Secret read again. What was read before now is not stored any more: a reconcile that goes on meanwhile may have read the Secret
// before its change.
func (s *secretCache) forget(key types.NamespacedName, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(key, cachedSecret{at: now})
}

// set stores an entry. The caller must hold mu.
func (s *secretCache) set(key types.NamespacedName, entry cachedSecret) {
	if s.known == nil {
		s.known = map[types.NamespacedName]cachedSecret{}
	}
	s.known[key] = entry
}

// readSecret returns a Secret from the cache if it was read within the last half of Timeouts.IdleInterval, and otherwise from the API
// server: a host that is at rest reads its own each time.
func (r *Reconciler) readSecret(ctx context.Context, key types.NamespacedName) (cachedSecret, error) {
	read := cachedSecret{at: r.Clock.Now()}
	if kept := r.secrets.get(key, read.at, r.Timeouts.IdleInterval/2); kept.secret != nil {
		return kept, nil
	}
	read.secret = &corev1.Secret{}
	return read, r.APIReader.Get(ctx, key, read.secret)
}
