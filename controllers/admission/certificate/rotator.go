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

// Fields of the Secret.
const (
	fieldServing, fieldServingKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	fieldNext, fieldNextKey       = "next.crt", "next.key"
	fieldTrusted                  = "ca.crt"
)

// How often the Keeper looks, and how soon after it has done something.
const (
	lookAgain = 10 * time.Second
	goOn      = time.Second
)

// Keeper keeps the Secret and the caBundle of the ValidatingWebhookConfiguration, in the replica that leads.
type Keeper struct {
	// Reader reads without a cache: the manager may read this one Secret and that one configuration, and list neither.
	Reader client.Reader
	// Writer writes them.
	Writer client.Writer
	// Secret that is kept.
	Secret client.ObjectKey
	// Configuration is the name of the ValidatingWebhookConfiguration.
	Configuration string
	// Clock tells the time.
	Clock func() time.Time
	// Random gives the bytes of keys: crypto/rand.Reader.
	Random io.Reader
	// Times of the certificate.
	Times Times
	// Log takes what is done.
	Log logr.Logger

	// injected is what the configuration has had since then.
	injected []byte
	since    time.Time
	said     string
}

//+kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=ingot-nodetype,verbs=get;patch

// NeedLeaderElection is true: one replica writes.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start keeps them until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		wait := lookAgain
		done, err := k.Step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		count(done, err)
		switch {
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			wait = goOn // somebody was faster
		case err != nil:
			k.Log.Error(err, "The webhook's certificate could not be kept")
		case done.Action != Rest:
			k.Log.Info("The webhook's certificate", "action", done.Action.String(), "why", done.Why)
			wait = goOn
		default:
			if done.Why != k.said && done.Why != "" {
				k.Log.Info("The webhook has no certificate", "why", done.Why)
			}
			k.said = done.Why
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

// Step does at most one thing, and says what.
func (k *Keeper) Step(ctx context.Context) (Decision, error) {
	var configuration admissionv1.ValidatingWebhookConfiguration
	err := k.Reader.Get(ctx, client.ObjectKey{Name: k.Configuration}, &configuration)
	if apierrors.IsNotFound(err) {
		return Decision{Why: "the ValidatingWebhookConfiguration " + k.Configuration + " does not exist, so that nobody asks: apply config/webhook, or set webhook.address to 0"}, nil
	}
	if err != nil {
		return Decision{}, fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	names, injected, err := asked(&configuration)
	if err != nil {
		return Decision{}, fmt.Errorf("ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Secret.Namespace, Name: k.Secret.Name}}
	if err := k.Reader.Get(ctx, k.Secret, secret); client.IgnoreNotFound(err) != nil {
		return Decision{}, fmt.Errorf("read Secret %s: %w", k.Secret, err)
	}
	f := Facts{Now: k.Clock(), Names: names, Stored: read(secret), Injected: injected, Times: k.Times}
	k.observe(f)
	f.Since = k.since
	decided := Decide(f)
	return decided, k.act(ctx, decided.Action, f, secret, &configuration)
}

// observe notes since when API servers can have seen what is trusted.
func (k *Keeper) observe(f Facts) {
	inForce := f.injected()
	if !inForce || !bytes.Equal(k.injected, f.Stored.Trusted) {
		k.injected, k.since = nil, f.Now
	}
	if inForce {
		k.injected = f.Stored.Trusted
	}
}

// asked are the names that API servers ask for, and the authorities that they trust for each webhook.
func asked(c *admissionv1.ValidatingWebhookConfiguration) (names []string, injected [][]byte, err error) {
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

func (k *Keeper) act(ctx context.Context, action Action, f Facts, secret *corev1.Secret, configuration *admissionv1.ValidatingWebhookConfiguration) error {
	stored := f.Stored
	switch action {
	case Rest:
		return nil
	case Inject:
		return k.inject(ctx, configuration, stored.Trusted)
	case Replace, Prepare:
		pair, authority, err := Issue(f.Names, f.Now, f.Times.Life, k.Random)
		if err != nil {
			return err
		}
		if action == Replace {
			stored.Serving, stored.Next = pair, Pair{}
		} else {
			stored.Next = pair
		}
		stored.Trusted = trusted(stored.Trusted, f.Now, authority)
	case Promote:
		stored.Serving, stored.Next = stored.Next, Pair{}
	case Forget:
		stored.Trusted = trusted(stored.Trusted, f.Now)
	}
	return k.write(ctx, secret, stored)
}

func (k *Keeper) inject(ctx context.Context, configuration *admissionv1.ValidatingWebhookConfiguration, bundle []byte) error {
	changed := configuration.DeepCopy()
	for i := range changed.Webhooks {
		changed.Webhooks[i].ClientConfig.CABundle = bundle
	}
	patch := client.StrategicMergeFrom(configuration, client.MergeFromWithOptimisticLock{})
	if err := k.Writer.Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("write the authorities into ValidatingWebhookConfiguration %s: %w", configuration.Name, err)
	}
	return nil
}

func read(secret *corev1.Secret) Stored {
	d := secret.Data
	return Stored{
		Serving: Pair{Certificate: d[fieldServing], Key: d[fieldServingKey]}, Next: Pair{Certificate: d[fieldNext], Key: d[fieldNextKey]},
		Trusted: d[fieldTrusted],
	}
}

// write writes the Secret that was read, or makes it. Whoever was faster has won.
func (k *Keeper) write(ctx context.Context, secret *corev1.Secret, stored Stored) error {
	changed := secret.DeepCopy()
	changed.Data = map[string][]byte{fieldServing: stored.Serving.Certificate, fieldServingKey: stored.Serving.Key, fieldTrusted: stored.Trusted}
	if len(stored.Next.Key) > 0 {
		changed.Data[fieldNext], changed.Data[fieldNextKey] = stored.Next.Certificate, stored.Next.Key
	}
	var err error
	if secret.ResourceVersion == "" {
		err = k.Writer.Create(ctx, changed)
	} else {
		err = k.Writer.Update(ctx, changed)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", k.Secret, err)
	}
	return nil
}

var steps = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "ingot_webhook_certificate_steps_total",
	Help: "What was done about the webhook's certificate, and whether it succeeded; rest stands for looking alone.",
}, []string{"action", "succeeded"})

func init() { metrics.Registry.MustRegister(steps) }

func count(done Decision, err error) {
	steps.WithLabelValues(done.Action.String(), strconv.FormatBool(err == nil)).Inc()
}
