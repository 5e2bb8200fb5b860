package tenantaccess

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
)

// MaxQuoted limits what is quoted of a tenant's answer, in bytes.
const MaxQuoted = 256

// FinalizersText says what keeps an object of a tenant that is being deleted.
func FinalizersText(object client.Object) string {
	return "it is being deleted and keeps the finalizers " + input.Line(strings.Join(object.GetFinalizers(), ", "), MaxQuoted)
}

// RefusalText says why the tenant's API server has not deleted an object. Every error counts, also that of a webhook that fails and of a server that
// is too busy. Without it: a tenant chooses the one that does not count, and a host that it had never comes back to the pool.
func RefusalText(err error) string {
	return "the tenant's API server does not delete it: " + input.Line(err.Error(), MaxQuoted)
}
