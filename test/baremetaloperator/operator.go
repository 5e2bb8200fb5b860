package baremetaloperator

import (
	"context"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// lookInterval is how often the power of a host is looked at when nothing changes.
const lookInterval = time.Minute

// pollInterval is how soon an operation that is not done is looked at again, and a Secret that is missing.
const pollInterval = 10 * time.Second

// unmanagedInterval is how often a host that is not served is looked at.
const unmanagedInterval = 10 * time.Minute

// defaultRetries is how often an installation is tried.
const defaultRetries = 5

var errNoAnswer = errors.New("the BMC does not answer")

// Options are what an Operator needs.
type Options struct {
	// Client reads and writes at the API server, without a cache.
	Client client.Client
	// Server returns the server of a host. It is nil when there is none.
	Server func(types.NamespacedName) Server
	// Conditions is true for the release that writes conditions. The CRD must have them. See the package comment for what else it does.
	Conditions bool
	// Retries is how often the release that writes conditions tries an installation; 0: five times.
	Retries int
	// Capacity reports whether the host may be inspected, installed or cleaned now. It is true of one with which that is under way. Nil: any may.
	Capacity func(types.NamespacedName) bool
	// Now tells the time; nil: time.Now.
	Now func() time.Time
}

// Operator serves BareMetalHosts. It is a reconcile.Reconciler: each call is one look at a host. It has no memory.
type Operator struct {
	o Options
}

// New returns an Operator.
func New(o Options) *Operator {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	return &Operator{o: o}
}

// Changes selects the changes of a host that lead to a look: those of the spec, the annotations and the finalizers. The operator's own writes of the
// status do not, nor do those of labels. Without it every error would be retried as soon as it is written.
func Changes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if _, isHost := e.ObjectNew.(*metal3.BareMetalHost); !isHost {
			return true
		}
		return e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() ||
			!equality.Semantic.DeepEqual(e.ObjectNew.GetFinalizers(), e.ObjectOld.GetFinalizers()) ||
			!equality.Semantic.DeepEqual(e.ObjectNew.GetAnnotations(), e.ObjectOld.GetAnnotations())
	}}
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
	if isChanged, err := o.adoptHardware(ctx, r); isChanged || err != nil {
		return reconcile.Result{RequeueAfter: time.Millisecond}, client.IgnoreNotFound(err)
	}
	if r.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(r.BareMetalHost, metal3.BareMetalHostFinalizer) {
		return reconcile.Result{RequeueAfter: time.Millisecond}, o.updateMetadata(ctx, r)
	}
	done, err := o.look(ctx, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	return o.finish(ctx, r, done)
}

// finish writes what the look led to, and returns when the next one is.
func (o *Operator) finish(ctx context.Context, r *round, done outcome) (reconcile.Result, error) {
	if o.o.Conditions && !done.keepsConditions {
		done.isDirty = r.setConditions(ctx, metav1.NewTime(o.o.Now())) || done.isDirty
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
		if done, ended, err := o.readCredentials(ctx, r); ended || err != nil {
			return done, err
		}
	}
	done, err := o.runState(ctx, r)
	if err != nil || done.next == "" || done.next == r.Status.Provisioning.State {
		return done, err
	}
	switch done.next {
	case metal3.StateInspecting, metal3.StateProvisioning, metal3.StateDeprovisioning:
		if !o.hasCapacity(r) {
			return delay(r), nil
		}
	}
	o.changeState(r, done.next)
	return done, nil
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
	r := &round{BareMetalHost: host, raw: raw, server: server}
	return r, r.readAttempts()
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
	if o.o.Conditions {
		if err := r.writeAttempts(status); err != nil {
			return err
		}
	}
	r.raw.Object["status"] = status
	return o.o.Client.Status().Update(ctx, r.raw)
}

// updateMetadata writes finalizers and annotations under the resource version that was read.
func (o *Operator) updateMetadata(ctx context.Context, r *round) error {
	r.raw.SetFinalizers(r.Finalizers)
	r.raw.SetAnnotations(r.Annotations)
	return client.IgnoreNotFound(o.o.Client.Update(ctx, r.raw))
}
