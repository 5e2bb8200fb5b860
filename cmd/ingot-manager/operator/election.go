package operator

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
)

// announceNoElection writes on the manager's Lease that this manager works without leader election, where it does. The command line reads it.
func announceNoElection(ctx context.Context, cluster *rest.Config, s settings.Settings, now time.Time) error {
	if s.LeaderElection.Enabled {
		return nil
	}
	c, err := client.New(cluster, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return fmt.Errorf("announce that leader election is disabled: %w", err)
	}
	lease := &coordinationv1.Lease{}
	err = c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.LeaderElection.Name}, lease)
	isMissing := apierrors.IsNotFound(err)
	if err != nil && !isMissing {
		return fmt.Errorf("announce that leader election is disabled: %w", err)
	}
	lease.Namespace, lease.Name = s.Namespace, s.LeaderElection.Name
	metav1.SetMetaDataLabel(&lease.ObjectMeta, leaderlease.Label, leaderlease.LabelValue)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, leaderlease.AnnotationDisabled, now.UTC().Format(time.RFC3339))
	if isMissing {
		err = c.Create(ctx, lease)
	} else {
		err = c.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("announce that leader election is disabled: %w", err)
	}
	return nil
}
