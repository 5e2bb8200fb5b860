package ironic

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/inventory"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// TestPortsThatNeverEndAreAnError: what answers in Ironic's place has always one more page.
func TestPortsThatNeverEndAreAnError(t *testing.T) {
	for name, c := range map[string]struct {
		ports, most int
	}{"one port in each page": {1, maxPorts + 2}, "many in each page": {1000, 6}, "pages without ports": {0, maxPorts + 2}} {
		var asked atomic.Int64
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for name, version := range map[string]string{"Maximum-": "1.95", "Minimum-": "1.1", "": "1.95"} {
				w.Header().Set("X-OpenStack-Ironic-API-"+name+"Version", version)
			}
			if r.URL.Path != "/v1/ports" {
				fmt.Fprint(w, `{"id":"v1","version":{"id":"v1","min_version":"1.1","version":"1.95","status":"CURRENT"},"versions":[],"default_version":{"id":"v1","min_version":"1.1","version":"1.95","status":"CURRENT","links":[]}}`)
				return
			}
			n := asked.Add(1)
			list := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"address":"a%d"},`, n), c.ports), ",")
			fmt.Fprintf(w, `{"ports":[%s],"next":"%s/v1/ports?marker=%d","ports_links":[{"rel":"next","href":"%s/v1/ports?marker=%d"}]}`, list, server.URL, n, server.URL, n)
		}))
		i := New(Options{Endpoint: server.URL, Log: slog.New(slog.DiscardHandler)})
		macs, err := i.readMACs(t.Context(), hardware.Host{UID: "u", Namespace: "a", Name: "b"}, node{uuid: "x"})
		server.Close()
		var large *input.Error
		isEmpty := c.ports == 0 && err == nil // the library takes such a page for the last one
		if !isEmpty && !errors.As(err, &large) || len(macs) > 0 || asked.Load() > int64(c.most) {
			t.Errorf("%s: %d pages, %d addresses: %v", name, asked.Load(), len(macs), err)
		}
	}
}

// TestManyInterfacesAreReadOnceEach: the time that an inventory takes grows with the number of its interfaces and not with its square.
func TestManyInterfacesAreReadOnceEach(t *testing.T) {
	read := func(n int) time.Duration {
		data := &nodes.InventoryData{}
		for i := range n {
			data.Inventory.Interfaces = append(data.Inventory.Interfaces, inventory.InterfaceType{MACAddress: fmt.Sprint("m", i%(n-1)), Name: fmt.Sprint(i)})
		}
		began := time.Now()
		out := inventoryOf(nil, data, []string{"M0"})
		if len(out.NICs) != n-1 || out.NICs[0].Name != fmt.Sprint(n-1) {
			t.Errorf("%d interfaces: %d NICs, the first is %q", n, len(out.NICs), out.NICs[0].Name)
		}
		return time.Since(began)
	}
	t.Logf("50,000 interfaces: %s", read(50_000))
}

func TestAllPagesOfAListAreBoundedTogether(t *testing.T) {
	ctx := withListBound(t.Context())
	for range 16 {
		if err := takeFromList(ctx, maxList/16); err != nil {
			t.Fatal(err)
		}
	}
	if err := takeFromList(ctx, 1); err == nil {
		t.Error("one byte more than the bound is taken")
	}
	if err := takeFromList(t.Context(), 2*maxList); err != nil {
		t.Errorf("an answer that is of no list: %v", err)
	}
}
