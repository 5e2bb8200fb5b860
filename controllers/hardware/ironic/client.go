package ironic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/httpbasic"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/noauth"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Minor numbers of API versions 1.N. https://docs.openstack.org/ironic/latest/contributor/webapi-version-history.html
const (
	// minorNeeded is the version that the Installer cannot do without: a config drive of single documents came with 1.56, automated_clean with 1.47.
	minorNeeded = 56
	// minorChildren came with nodes that are children of others. From it on a list has children only where they are asked for.
	minorChildren = 83
	// minorUsed is the latest version that the Installer asks for, that of Ironic 29. The answers of later ones are not known.
	minorUsed = 96
)

// requestTimeout is how long one request may take from when it is sent. Ironic itself waits some seconds for the lock of a node.
const requestTimeout = 60 * time.Second

// maxIdleConnections is how many connections are kept for the next requests. Ironic's API serves 100 at a time, also of others.
const maxIdleConnections = 16

// maxVersionHeader has the latest version that the server speaks, in every response.
const maxVersionHeader = "X-Openstack-Ironic-Api-Maximum-Version"

// client is the connection to an Ironic.
type client struct {
	options Options
	// slots are those of limitedTransport. They stay when the client logs in again.
	slots chan struct{}

	mu          sync.Mutex
	credentials Credentials
	service     *gophercloud.ServiceClient
	minor       int
}

// opConnect is what errors call the way to a service.
const opConnect = "connect to Ironic"

// opKeystone is what errors call the login at Keystone.
const opKeystone = "log in to Keystone by an application credential"

// credentialsNow returns the credentials as they are now.
func (c *client) credentialsNow(ctx context.Context) (Credentials, error) {
	credentials, err := c.options.Credentials(ctx)
	if err != nil {
		if hardware.KindOf(err) != "" {
			return Credentials{}, err
		}
		return Credentials{}, hardware.Errorf(hardware.Unauthorized, opConnect, c.options.Endpoint, "Ironic was not asked: correct the Secret of the NodeProvider's spec.ironic.credentialsSecretRef: %w", err)
	}
	return credentials, nil
}

// open returns the service with a version that both sides speak, and the minor number of that version. It logs in when the credentials have changed.
func (c *client) open(ctx context.Context) (*gophercloud.ServiceClient, int, error) {
	credentials, err := c.credentialsNow(ctx)
	if err != nil {
		return nil, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.service != nil && credentials == c.credentials {
		return c.service, c.minor, nil
	}
	service, err := c.logIn(ctx, credentials)
	if err != nil {
		return nil, 0, asError(err, opConnect, c.options.Endpoint)
	}
	minor, err := negotiate(ctx, service)
	if err != nil {
		return nil, 0, asError(err, opConnect, c.options.Endpoint)
	}
	if minor < minorNeeded {
		return nil, 0, hardware.Errorf(hardware.Unsupported, opConnect, c.options.Endpoint,
			"expected API version 1.%d or later, the server speaks 1.%d at most: upgrade Ironic", minorNeeded, minor)
	}
	c.minor = min(minor, minorUsed)
	service.Microversion = "1." + strconv.Itoa(c.minor)
	c.service, c.credentials = service, credentials
	return c.service, c.minor, nil
}

// forget makes the next open negotiate and log in again: Ironic was upgraded or downgraded, or has refused the token.
func (c *client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.service = nil
}

func (c *client) logIn(ctx context.Context, credentials Credentials) (*gophercloud.ServiceClient, error) {
	endpoint := strings.TrimSuffix(strings.TrimSuffix(c.options.Endpoint, "/"), "/v1") + "/v1/"
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	var service *gophercloud.ServiceClient
	switch {
	case credentials.KeystoneURL != "":
		return logInToKeystone(ctx, endpoint, credentials, transport)
	case credentials.Username != "":
		service, err = httpbasic.NewBareMetalHTTPBasic(httpbasic.EndpointOpts{
			IronicEndpoint: endpoint, IronicUser: credentials.Username, IronicUserPassword: credentials.Password,
		})
	default:
		service, err = noauth.NewBareMetalNoAuth(noauth.EndpointOpts{IronicEndpoint: endpoint})
	}
	if err != nil {
		return nil, err
	}
	service.HTTPClient = http.Client{Transport: transport}
	return service, nil
}

func logInToKeystone(ctx context.Context, endpoint string, credentials Credentials, transport http.RoundTripper) (*gophercloud.ServiceClient, error) {
	provider, err := openstack.NewClient(credentials.KeystoneURL)
	if err != nil {
		return nil, err
	}
	provider.HTTPClient = http.Client{Transport: transport}
	err = openstack.Authenticate(ctx, provider, gophercloud.AuthOptions{
		IdentityEndpoint: credentials.KeystoneURL, AllowReauth: true,
		ApplicationCredentialID: credentials.ApplicationID, ApplicationCredentialSecret: credentials.ApplicationSecret,
	})
	if err != nil {
		return nil, asError(err, opKeystone, credentials.KeystoneURL)
	}
	return &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: endpoint, Type: "baremetal"}, nil
}

func (c *client) transport() (http.RoundTripper, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = maxIdleConnections
	if len(c.options.CABundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(c.options.CABundle) {
			return nil, &hardware.Error{
				Kind: hardware.Invalid, Op: "read the CA bundle", Target: c.options.Endpoint, Err: fmt.Errorf("expected certificates in PEM, found none"),
			}
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return limitedTransport{next: transport, slots: c.slots, timeout: requestTimeout}, nil
}

// negotiate returns the minor number of the latest version that the server speaks. Every response has it, and the root of the API needs no rights.
func negotiate(ctx context.Context, service *gophercloud.ServiceClient) (int, error) {
	response, err := service.Get(ctx, service.Endpoint, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	version := response.Header.Get(maxVersionHeader)
	minor, err := strconv.Atoi(strings.TrimPrefix(version, "1."))
	if err != nil {
		return 0, hardware.Errorf(hardware.Invalid, "negotiate the API version", service.Endpoint,
			"expected the header %s with 1.N, seen %q: the endpoint is not Ironic's", maxVersionHeader, version)
	}
	return minor, nil
}
