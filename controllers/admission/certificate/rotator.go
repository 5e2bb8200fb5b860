package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The keys of the Secret's data.
const (
	fieldServing, fieldServingKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	fieldNext, fieldNextKey       = "next.crt", "next.key"
	fieldTrusted                  = "ca.crt"
)

// checkInterval is the time between two checks. nextStepDelay is the time to the next check after an action or a conflict.
const (
	checkInterval = 10 * time.Second
	nextStepDelay = time.Second
)

// Rotator maintains the Secret and the caBundle of the ValidatingWebhookConfiguration in the replica that is the leader.
type Rotator struct {
	// Reader reads from the API server. A cache could not be used: the manager has permission to get the two objects, but not to list them.
	Reader client.Reader
	// Writer writes the Secret and the configuration.
	Writer client.Writer
	// Secret is the name of the Secret.
	Secret client.ObjectKey
	// Configuration is the name of the ValidatingWebhookConfiguration.
	Configuration string
	// Clock tells the time.
	Clock func() time.Time
	// Random is the source of keys: crypto/rand.Reader.
	Random io.Reader
	// Times are the periods of the certificate.
	Times Times
	// Log records the actions and their failures.
	Log logr.Logger

	// injected are the authorities that the configuration has had since the time in since.
	injected []byte
	since    time.Time
	// reported is the reason that was logged last, so that it is logged once.
	reported string
}

//+kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=ingot-nodetype,verbs=get;patch

// NeedLeaderElection returns true, so that only one replica writes.
func (r *Rotator) NeedLeaderElection() bool { return true }

// Start rotates the certificate until the context ends.
func (r *Rotator) Start(ctx context.Context) error {
	for {
		wait := checkInterval
		done, err := r.Step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		countStep(done, err)
		switch {
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			wait = nextStepDelay // another writer was first
		case err != nil:
			r.Log.Error(err, "The webhook's certificate could not be kept")
		case done.Action != Rest:
			r.Log.Info("The webhook's certificate", "action", done.Action.String(), "why", done.Why)
			wait = nextStepDelay
		default:
			if done.Why != r.reported && done.Why != "" {
				r.Log.Info("The webhook has no certificate", "why", done.Why)
			}
			r.reported = done.Why
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Step takes at most one action and returns the decision for it.
func (r *Rotator) Step(ctx context.Context) (Decision, error) {
	var configuration admissionv1.ValidatingWebhookConfiguration
	err := r.Reader.Get(ctx, client.ObjectKey{Name: r.Configuration}, &configuration)
	if apierrors.IsNotFound(err) {
		return Decision{Why: "the ValidatingWebhookConfiguration " + r.Configuration + " does not exist, so that nobody asks: apply config/webhook, or set webhook.address to 0"}, nil
	}
	if err != nil {
		return Decision{}, fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", r.Configuration, err)
	}
	names, injected, err := webhookNamesAndBundles(&configuration)
	if err != nil {
		return Decision{}, fmt.Errorf("ValidatingWebhookConfiguration %s: %w", r.Configuration, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Secret.Namespace, Name: r.Secret.Name}}
	if err := r.Reader.Get(ctx, r.Secret, secret); client.IgnoreNotFound(err) != nil {
		return Decision{}, fmt.Errorf("read Secret %s: %w", r.Secret, err)
	}
	f := Facts{Now: r.Clock(), Names: names, Stored: storedPairs(secret), Injected: injected, Times: r.Times}
	r.observe(f)
	f.Since = r.since
	decided := Decide(f)
	return decided, r.act(ctx, decided.Action, f, secret, &configuration)
}

// observe records since when API servers can have observed the trusted authorities.
func (r *Rotator) observe(f Facts) {
	isInjected := f.isInjected()
	if !isInjected || !bytes.Equal(r.injected, f.Stored.Trusted) {
		r.injected, r.since = nil, f.Now
	}
	if isInjected {
		r.injected = f.Stored.Trusted
	}
}

// webhookNamesAndBundles returns the host names under which API servers call the webhooks, and the caBundle of each webhook.
func webhookNamesAndBundles(c *admissionv1.ValidatingWebhookConfiguration) (names []string, injected [][]byte, err error) {
	for _, w := range c.Webhooks {
		name := ""
		switch to := w.ClientConfig; {
		case to.Service != nil:
			name = to.Service.Name + "." + to.Service.Namespace + ".svc"
		case to.URL != nil:
			parsed, err := url.Parse(*to.URL)
			if err != nil {
				return nil, nil, fmt.Errorf("webhook %s: %w", w.Name, err)
			}
			name = parsed.Hostname()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		injected = append(injected, w.ClientConfig.CABundle)
	}
	if len(names) == 0 {
		return nil, nil, errors.New("it has no webhook: apply config/webhook again")
	}
	return names, injected, nil
}

func (r *Rotator) act(ctx context.Context, action Action, f Facts, secret *corev1.Secret, configuration *admissionv1.ValidatingWebhookConfiguration) error {
	stored := f.Stored
	switch action {
	case Rest:
		return nil
	case Inject:
		return r.inject(ctx, configuration, stored.Trusted)
	case Replace, Prepare:
		pair, authority, err := Issue(f.Names, f.Now, f.Times.Life, r.Random)
		if err != nil {
			return err
		}
		if action == Replace {
			stored.Serving, stored.Next = pair, Pair{}
		} else {
			stored.Next = pair
		}
		stored.Trusted = mergedBundle(stored.Trusted, f.Now, authority)
	case Promote:
		stored.Serving, stored.Next = stored.Next, Pair{}
	case Forget:
		stored.Trusted = mergedBundle(stored.Trusted, f.Now)
	}
	return r.write(ctx, secret, stored)
}

func (r *Rotator) inject(ctx context.Context, configuration *admissionv1.ValidatingWebhookConfiguration, bundle []byte) error {
	changed := configuration.DeepCopy()
	for i := range changed.Webhooks {
		changed.Webhooks[i].ClientConfig.CABundle = bundle
	}
	patch := client.StrategicMergeFrom(configuration, client.MergeFromWithOptimisticLock{})
	if err := r.Writer.Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("write the authorities into ValidatingWebhookConfiguration %s: %w", configuration.Name, err)
	}
	return nil
}

func storedPairs(secret *corev1.Secret) Stored {
	d := secret.Data
	return Stored{
		Serving: Pair{Certificate: d[fieldServing], Key: d[fieldServingKey]}, Next: Pair{Certificate: d[fieldNext], Key: d[fieldNextKey]},
		Trusted: d[fieldTrusted],
	}
}

// write updates the Secret under the resource version that was read, or creates it.
func (r *Rotator) write(ctx context.Context, secret *corev1.Secret, stored Stored) error {
	changed := secret.DeepCopy()
	changed.Data = map[string][]byte{fieldServing: stored.Serving.Certificate, fieldServingKey: stored.Serving.Key, fieldTrusted: stored.Trusted}
	if len(stored.Next.Key) > 0 {
		changed.Data[fieldNext], changed.Data[fieldNextKey] = stored.Next.Certificate, stored.Next.Key
	}
	var err error
	if secret.ResourceVersion == "" {
		err = r.Writer.Create(ctx, changed)
	} else {
		err = r.Writer.Update(ctx, changed)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", r.Secret, err)
	}
	return nil
}

var steps = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "ingot_webhook_certificate_steps_total",
	Help: "What was done about the webhook's certificate, and whether it succeeded; rest stands for looking alone.",
}, []string{"action", "succeeded"})

func init() { metrics.Registry.MustRegister(steps) }

func countStep(done Decision, err error) {
	steps.WithLabelValues(done.Action.String(), strconv.FormatBool(err == nil)).Inc()
}
