package metal3rack

import (
	"context"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// process is a baremetal-operator that runs.
type process struct {
	cancel context.CancelFunc
	ended  chan error
}

// StartOperator starts a baremetal-operator, which knows nothing of what one before it did. It runs until StopOperator is called. There is one at a time.
func (s *Site) StartOperator(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operator != nil {
		return errors.New("the baremetal-operator runs already")
	}
	manager, err := s.newOperator()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s.operator = &process{cancel: cancel, ended: make(chan error, 1)}
	go func(ended chan<- error) { ended <- manager.Start(ctx) }(s.operator.ended)
	return nil
}

// StopOperator stops the baremetal-operator. What it began on a server goes on.
func (s *Site) StopOperator() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operator == nil {
		return nil
	}
	s.operator.cancel()
	err := <-s.operator.ended
	s.operator = nil
	return err
}

// newOperator returns a manager with a baremetal-operator.
func (s *Site) newOperator() (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(s.options.Config, ctrl.Options{
		Scheme: s.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{s.options.Namespace: {}},
			ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
				Label: labels.SelectorFromSet(labels.Set{baremetaloperator.SecretLabel: baremetaloperator.SecretLabelValue}),
			}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager of the baremetal-operator: %w", err)
	}
	operator := baremetaloperator.New(baremetaloperator.Options{Client: s.client, Server: s.served, Conditions: s.options.Conditions})
	isNameTaken := true // another site of the same process, or the operator before
	err = ctrl.NewControllerManagedBy(manager).For(&metal3.BareMetalHost{}).Owns(&corev1.Secret{}, builder.MatchEveryOwner).Named("baremetal-operator").
		WithEventFilter(baremetaloperator.Changes()).
		WithOptions(controller.Options{MaxConcurrentReconciles: len(s.servers), SkipNameValidation: &isNameTaken}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			result, err := operator.Reconcile(ctx, request)
			if err != nil && ctx.Err() == nil {
				s.options.Log.Info("the baremetal-operator looks again", "host", request.Name, "err", err)
			}
			return s.scale(result), err
		}))
	if err != nil {
		return nil, fmt.Errorf("set up the baremetal-operator: %w", err)
	}
	return manager, nil
}

func (s *Site) served(key types.NamespacedName) baremetaloperator.Server {
	if one := s.servers[key]; one != nil {
		return one
	}
	return nil
}

// shortestWait keeps a fast site from looking at a host without a pause.
const shortestWait = 100 * time.Millisecond

// scale divides the time until the next look by the speed of the site.
func (s *Site) scale(result reconcile.Result) reconcile.Result {
	if result.RequeueAfter > shortestWait {
		result.RequeueAfter = max(shortestWait, time.Duration(float64(result.RequeueAfter)/s.options.Speed))
	}
	return result
}
