package tenantaccess

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The limits of a list that is read page by page. Without pageSize: the answer with the pods of a large cluster is more than is taken from a tenant, and the
// cluster is used for nothing for a while. Without the others: a list without end keeps its reader for ever, or fills the memory.
const (
	pageSize = 200
	maxPages = 500
	// sparePage is for objects that tenants make as large as they may be.
	sparePage = 8
	maxList   = 64 << 20
)

// EachPage reads a list page by page, each into a new one: what a page leaves out would otherwise be that of the one before. It returns an error for a list
// that is larger than what is read of a tenant.
func EachPage[L client.ObjectList](ctx context.Context, c client.Reader, newPage func() L, each func(L), options ...client.ListOption) error {
	return eachPage(ctx, c, pageSize, newPage, each, options...)
}

// EachSparePage is EachPage for objects that a tenant makes, of which few are in one answer.
func EachSparePage[L client.ObjectList](ctx context.Context, a *Access, newPage func() L, each func(L), options ...client.ListOption) error {
	return eachPage(ctx, a.Spare, sparePage, newPage, each, options...)
}

func eachPage[L client.ObjectList](ctx context.Context, c client.Reader, limit int64, newPage func() L, each func(L), options ...client.ListOption) error {
	next, size := "", int64(0)
	for range maxPages {
		page := newPage()
		if err := c.List(ctx, page, append([]client.ListOption{client.Limit(limit), client.Continue(next)}, options...)...); err != nil {
			return err
		}
		if size += footprint(page); size > maxList {
			return fmt.Errorf("the list takes more than %s of memory", mebibytes(maxList))
		}
		each(page)
		list, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
	return fmt.Errorf("the list has more than %d pages", maxPages)
}
