package baremetaloperator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// SecretLabel is the label that the operator writes onto every Secret that it reads.
const SecretLabel = "environment.metal3.io/baremetal"

// lookInterval is how often the power of a host is looked at when nothing changes.
const lookInterval = time.Minute

// pollInterval is how soon an operation that is not done is looked at again.
const pollInterval = 10 * time.Second

// unmanagedInterval is how often a host that is not served is looked at.
const unmanagedInterval = 10 * time.Minute

// defaultRetries is how often an installation is tried.
const defaultRetries = 5

var errNoAnswer = errors.New("the BMC does not answer")

// Options are what an Operator needs.
type Options struct {
	// Client reads and writes at the API server.
	Client client.Client
	// Server returns the server of a host. It is nil when there is none.
	Server func(types.NamespacedName) Server
	// Conditions is true for an operator that writes conditions. The CRD must have them.
	Conditions bool
	// Retries is how often an installation is tried before the error stays; 0: five times.
	Retries int
	// Capacity reports whether another host may be inspected, installed or cleaned now. It is nil when any number may.
	Capacity func() bool
	// Now tells the time; nil: time.Now.
	Now func() time.Time
}

// Operator serves BareMetalHosts. It is a reconcile.Reconciler: each call is one look at a host.
type Operator struct {
	o Options

	mu sync.Mutex
	// failed counts the failed installations of a host since its last success or change of its image.
	failed map[types.UID]failures
}

type failures struct {
	url   string
	count int
}

// New returns an Operator.
func New(o Options) *Operator {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	return &Operator{o: o, failed: map[types.UID]failures{}}
}

// round is one look at one host.
type round struct {
	*metal3.BareMetalHost
	// raw is the same object with what the Go type has no field for.
	raw    *unstructured.Unstructured
	server Server
	// isReadable is true when the credentials were read.
	isReadable bool
}

// outcome is what a look led to.
type outcome struct {
	// isDirty is true when the status is to be written.
	isDirty bool
	// after is when to look again. A negative time means that only a change leads to another look.
	after time.Duration
}

func wait(after time.Duration) outcome   { return outcome{after: after} }
func update(after time.Duration) outcome { return outcome{isDirty: true, after: after} }

// changeState moves the host to the state.
func (o *Operator) changeState(r *round, next metal3.ProvisioningState) outcome {
	now, status := metav1.NewTime(o.o.Now()), &r.Status
	if m := r.OperationMetricForState(status.Provisioning.State); m != nil && !m.Start.IsZero() && m.End.IsZero() {
		m.End = now
	}
	if m := r.OperationMetricForState(next); m != nil && (m.Start.IsZero() || !m.End.IsZero()) {
		*m = metal3.OperationMetric{Start: now}
	}
	status.Provisioning.State = next
	return update(0)
}

// fail writes the error into the status. It is retried after a time that doubles with each error.
func fail(r *round, kind metal3.ErrorType, message string) outcome {
	s := &r.Status
	s.OperationalStatus, s.ErrorType, s.ErrorMessage = metal3.OperationalStatusError, kind, message
	s.ErrorCount++
	return update(time.Duration(math.Exp2(float64(min(s.ErrorCount, 9))) * float64(time.Minute)))
}

// clearError removes the error, and reports whether the status changed.
func clearError(r *round, status metal3.OperationalStatus) outcome {
	s := &r.Status
	o := outcome{isDirty: s.OperationalStatus != status || s.ErrorType != "" || s.ErrorMessage != ""}
	s.OperationalStatus, s.ErrorType, s.ErrorMessage = status, "", ""
	return o
}

// Reconcile looks at a host once.
func (o *Operator) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r, err := o.read(ctx, request.NamespacedName)
	if err != nil || r == nil {
		return reconcile.Result{}, err
	}
	if _, isPaused := r.Annotations[metal3.PausedAnnotation]; isPaused {
		return reconcile.Result{}, nil
	}
	if r.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(r.BareMetalHost, metal3.BareMetalHostFinalizer) {
		return reconcile.Result{RequeueAfter: time.Millisecond}, o.patchMetadata(ctx, r)
	}
	done, err := o.look(ctx, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	if o.o.Conditions {
		done.isDirty = r.setConditions(metav1.NewTime(o.o.Now())) || done.isDirty
	}
	if done.isDirty {
		if err := o.save(ctx, r); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if done.after < 0 {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(done.after, time.Millisecond)}, nil
}

// look reads the credentials and runs the handler of the state.
func (o *Operator) look(ctx context.Context, r *round) (outcome, error) {
	switch r.Status.Provisioning.State {
	case metal3.StateNone, metal3.StateUnmanaged:
	default:
		secret, err := o.secret(ctx, r, &corev1.SecretReference{Namespace: r.Namespace, Name: r.Spec.BMC.CredentialsName})
		if apierrors.IsNotFound(err) {
			if r.DeletionTimestamp.IsZero() {
				done := fail(r, metal3.RegistrationError, "the Secret "+r.Spec.BMC.CredentialsName+" does not exist")
				done.after = pollInterval
				return done, nil
			}
			break
		}
		if err != nil {
			return outcome{}, err
		}
		r.isReadable = true
		r.UpdateTriedCredentials(*secret)
		r.UpdateGoodCredentials(*secret)
	}
	return o.runState(ctx, r)
}

// read returns nil when the host does not exist or has no server.
func (o *Operator) read(ctx context.Context, key types.NamespacedName) (*round, error) {
	server := o.o.Server(key)
	if server == nil {
		return nil, nil
	}
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(metal3.GroupVersion.WithKind("BareMetalHost"))
	if err := o.o.Client.Get(ctx, key, raw); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	host := &metal3.BareMetalHost{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, host); err != nil {
		return nil, fmt.Errorf("read host %s: %w", key, err)
	}
	return &round{BareMetalHost: host, raw: raw, server: server}, nil
}

// save writes the status under the resource version that was read.
func (o *Operator) save(ctx context.Context, r *round) error {
	now := metav1.NewTime(o.o.Now())
	r.Status.LastUpdated = &now
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.Status)
	if err != nil {
		return err
	}
	if conditions, isSet, _ := unstructured.NestedSlice(r.raw.Object, "status", "conditions"); isSet {
		status["conditions"] = conditions
	}
	r.raw.Object["status"] = status
	return o.o.Client.Status().Update(ctx, r.raw)
}

// patchMetadata writes finalizers and annotations under the resource version that was read.
func (o *Operator) patchMetadata(ctx context.Context, r *round) error {
	r.raw.SetFinalizers(r.Finalizers)
	r.raw.SetAnnotations(r.Annotations)
	return client.IgnoreNotFound(o.o.Client.Update(ctx, r.raw))
}

// secret reads a Secret of the host's namespace and gives it the label.
func (o *Operator) secret(ctx context.Context, r *round, ref *corev1.SecretReference) (*corev1.Secret, error) {
	if ref.Namespace != "" && ref.Namespace != r.Namespace {
		return nil, fmt.Errorf("the Secret %s/%s is not in the host's namespace", ref.Namespace, ref.Name)
	}
	secret := &corev1.Secret{}
	if err := o.o.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, err
	}
	if secret.Labels[SecretLabel] == "true" {
		return secret, nil
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, SecretLabel, "true")
	return secret, o.o.Client.Update(ctx, secret)
}
