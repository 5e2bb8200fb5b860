package tenantaccess

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// maxQuoted limits what is quoted of a tenant's answer, in bytes.
const maxQuoted = 256

// UndeletableReason returns why the tenant's cluster does not remove a Node; empty: it does, as far as can be known. It asks for the deletion as
// a trial that changes nothing.
func UndeletableReason(ctx context.Context, tenant client.Client, node *corev1.Node) string {
	if node.DeletionTimestamp != nil {
		return "it is being deleted and keeps the finalizers " + printable(strings.Join(node.Finalizers, ", "))
	}
	err := tenant.Delete(ctx, node.DeepCopy(), client.DryRunAll, client.Preconditions{UID: &node.UID})
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) {
		return "the tenant's API server refuses its deletion: " + printable(err.Error())
	}
	return ""
}

// printable shortens a text that the tenant wrote and escapes what cannot be printed.
func printable(text string) string {
	quoted := strconv.QuoteToASCII(v1alpha1.Truncate(text, maxQuoted))
	return quoted[1 : len(quoted)-1]
}
