// Package recheck asks the API server itself, right before an effect, whether what the effect was planned on still holds. It is for
// effects that no optimistic lock of their own would stop: the cache of a leader that follows another one may not show yet that a
// Machine has gone on, or that its host is another's.
package recheck

import (
	"context"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Machine is a conflict when the Machine is not in the phase and the attempt any more that were planned for.
func Machine(ctx context.Context, reader client.Reader, planned *v1alpha1.Machine) error {
	live := &v1alpha1.Machine{}
	if err := client.IgnoreNotFound(reader.Get(ctx, client.ObjectKeyFromObject(planned), live)); err != nil {
		return fmt.Errorf("read the Machine: %w", err)
	}
	if was, is := &planned.Status, &live.Status; live.UID != planned.UID || is.Phase != was.Phase || is.Attempt != was.Attempt {
		return Conflict("machines", planned.Name, "it has gone on since it was read")
	}
	return nil
}

// Host is a conflict when the host is not the Machine's of that uid any more.
func Host(ctx context.Context, reader client.Reader, host *metal3.BareMetalHost, machine types.UID) error {
	live := &metal3.BareMetalHost{}
	if err := client.IgnoreNotFound(reader.Get(ctx, client.ObjectKeyFromObject(host), live)); err != nil {
		return fmt.Errorf("read the host: %w", err)
	}
	if ref := live.Spec.ConsumerRef; live.UID != host.UID || ref == nil || ref.UID != machine {
		return Conflict("baremetalhosts", host.Name, "it is not this Machine's any more")
	}
	return nil
}

// Conflict is the error of an optimistic lock that was lost, so that what was decided is decided anew.
func Conflict(resource, name, why string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, name, errors.New(why))
}
