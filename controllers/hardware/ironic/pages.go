package ironic

import (
	"context"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/ports"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// pageSize is the number of nodes in one page of the list. Ironic's own limit is 1000, and a site may have a smaller one.
const pageSize = 500

// maxPorts is how many ports of one node are read: hundreds of times those of a server.
const maxPorts = 4096

// maxNodes is how many nodes of one Ironic are read: more than a conductor group has.
const maxNodes = 50_000

// opList is what errors call the list of the nodes.
const opList = "list nodes"

// listOptions ask for one page of the list of nodes.
type listOptions struct {
	nodes.ListOpts
	// includeChildren asks also for the nodes that are children of others. The library has no name for it.
	includeChildren bool
}

// ToNodeListQuery implements nodes.ListOptsBuilder.
func (o listOptions) ToNodeListQuery() (string, error) {
	query, err := o.ListOpts.ToNodeListQuery()
	if o.includeChildren {
		query += "&include_children=true"
	}
	return query, err
}

// listNodes reads all nodes with the needed fields, page by page.
//
// Each page is asked for by the last node of the one before. The link of Ironic to the next page is not followed: it has Ironic's own address, which a site
// behind a proxy may not reach, and it asks for no children.
func (i *Installer) listNodes(ctx context.Context) ([]node, error) {
	ctx = withListBound(ctx)
	service, minor, err := i.client.open(ctx)
	if err != nil {
		return nil, err
	}
	var all []node
	options := listOptions{ListOpts: nodes.ListOpts{Fields: fieldsOf(minor), Limit: pageSize}, includeChildren: minor >= minorChildren}
	for {
		page, hasNext, err := i.readPage(ctx, service, options)
		if err != nil {
			return nil, err
		}
		for _, listed := range page {
			all = append(all, newNode(listed))
		}
		switch {
		case !hasNext || len(page) == 0:
			return all, nil
		case len(all) > maxNodes || page[len(page)-1].UUID == options.Marker:
			// An Ironic, or what answers in its place, that has always one more page.
			return nil, hardware.Errorf(hardware.Invalid, opList, i.options.Endpoint, "%w", &input.Error{Seen: int64(len(all)), Most: maxNodes, Unit: "nodes, each page after another one"})
		}
		options.Marker = page[len(page)-1].UUID
	}
}

// readPage reads one page of the list, and tells whether there are more.
func (i *Installer) readPage(ctx context.Context, service *gophercloud.ServiceClient, options listOptions) (page []nodes.Node, hasNext bool, err error) {
	err = nodes.List(service, options).EachPage(ctx, func(_ context.Context, read pagination.Page) (bool, error) {
		var links struct {
			Next  string     `json:"next"` // the library looks for another name
			Nodes []struct{} `json:"nodes"`
		}
		err := read.(nodes.NodePage).ExtractInto(&links)
		switch n := len(links.Nodes); {
		case err != nil:
		case n > pageSize:
			err = &input.Error{Seen: int64(n), Most: pageSize, Unit: "nodes in one page"}
		default:
			page, err = nodes.ExtractNodes(read)
		}
		if err != nil {
			return false, hardware.Errorf(hardware.Invalid, opList, i.options.Endpoint, "%w", err)
		}
		hasNext = links.Next != ""
		return false, nil
	})
	if err != nil {
		return nil, false, i.failed(asError(err, opList, i.options.Endpoint))
	}
	return page, hasNext, nil
}

// listPorts reads the ports that the options ask for, page by page as Ironic's links lead. One that leads on for ever is an error.
func (i *Installer) listPorts(ctx context.Context, service *gophercloud.ServiceClient, op string, host hardware.Host, options ports.ListOpts) (all []ports.Port, err error) {
	pages := 0
	err = ports.List(service, options).EachPage(withListBound(ctx), func(_ context.Context, read pagination.Page) (bool, error) {
		page, err := ports.ExtractPorts(read)
		if err != nil {
			return false, hardware.Errorf(hardware.Invalid, op, host.String(), "%w", err)
		}
		all = append(all, page...)
		if pages++; pages > maxPorts || len(all) > maxPorts {
			return false, hardware.Errorf(hardware.Invalid, op, host.String(), "%w", &input.Error{Seen: int64(max(pages, len(all))), Most: maxPorts, Unit: "ports of one node, or pages of them"})
		}
		return true, nil
	})
	if err != nil {
		return nil, i.failed(asError(err, op, host.String()))
	}
	return all, nil
}
