package tenantaccess

import (
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// maxQuoted limits what is quoted of a tenant's answer, in bytes.
const maxQuoted = 256

// FinalizersText says what keeps an object of a tenant that is being deleted.
func FinalizersText(object client.Object) string {
	return "it is being deleted and keeps the finalizers " + Printable(strings.Join(object.GetFinalizers(), ", "))
}

// RefusalText says why the tenant's API server has not deleted an object. Every error counts, also that of a webhook that fails and of a server that
// is too busy. Without it: a tenant chooses the one that does not count, and a host that it had never comes back to the pool.
func RefusalText(err error) string {
	return "the tenant's API server does not delete it: " + Printable(err.Error())
}

// Printable shortens a text that the tenant wrote and escapes what cannot be printed.
func Printable(text string) string { return PrintableTo(text, maxQuoted) }

// PrintableTo is Printable with another limit, in bytes. Quotes stay as they are: what is not printable begins with a backslash, and a backslash is two.
func PrintableTo(text string, limit int) string {
	quoted := strconv.QuoteToASCII(v1alpha1.Truncate(text, limit))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
