package ironic

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Check returns what Ironic answers: its address, the version that is spoken, and whether it shows nodes to the login. It asks for one node, because a list of all may take longer
// than the caller waits. It returns when the context ends, also while other calls wait for Ironic.
func (i *Installer) Check(ctx context.Context) (string, error) {
	type result struct {
		answer string
		err    error
	}
	checked := make(chan result, 1)
	go func() {
		answer, err := i.check(ctx)
		checked <- result{answer, err}
	}()
	select {
	case r := <-checked:
		return r.answer, named(r.err)
	case <-ctx.Done():
		return "", named(hardware.Errorf(hardware.Unreachable, opConnect, i.options.Endpoint, "it does not answer in time"))
	}
}

// check is Check, which may wait for a login of another call: a lock knows no context.
func (i *Installer) check(ctx context.Context) (string, error) {
	service, minor, err := i.client.open(ctx)
	if err != nil {
		return "", err
	}
	credentials, err := i.client.credentialsNow(ctx)
	if err != nil {
		return "", err
	}
	shown, _, err := i.readPage(ctx, service, listOptions{ListOpts: nodes.ListOpts{Fields: []string{"uuid"}, Limit: 1}})
	if err != nil {
		return "", err
	}
	answer := fmt.Sprintf("Ironic answers at %s with API version 1.%d", i.options.Endpoint, minor)
	if len(shown) == 0 {
		answer += "; it shows no nodes to this login, which is right unless the site has its nodes there already"
		if credentials.KeystoneURL != "" {
			answer += ": then their owner must be the project of the credentials"
		}
	}
	return answer, nil
}
