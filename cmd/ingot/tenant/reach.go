package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/join"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// tenant is the cluster that is examined.
type tenant struct {
	report
	requirements requirements
	// endpoint as nodes reach it; empty: the kubeconfig's server.
	endpoint string
	// servingCertificates: Ingot approves those of the nodes' kubelets.
	servingCertificates bool
	// entitlements: tenants share the cluster, and Ingot enforces their Entitlements there.
	entitlements bool
	config       *rest.Config
	api          kubernetes.Interface
	// user of the kubeconfig; empty when it could not be found out.
	user         string
	random       io.Reader
	issueTimeout time.Duration
	// join is how nodes join, and script the script of such a join.
	join   v1alpha1.JoinMethod
	script []byte
}

// kubeconfigTopic and versionTopic are the topics of the findings of open and of readVersion.
const (
	kubeconfigTopic = "kubeconfig"
	versionTopic    = "API server"
)

// open checks the kubeconfig as the manager does, and makes a client. It returns an error if the kubeconfig cannot be used.
func (t *tenant) open(kubeconfig []byte, requestTimeout time.Duration) error {
	config, err := tenantaccess.Vet(kubeconfig)
	if err != nil {
		var refused *tenantaccess.Error
		if errors.As(err, &refused) {
			return fmt.Errorf("%s: %w", refused.Reason, refused.Err)
		}
		return err
	}
	// About thirty requests in a row are no burden for the server, and a person waits for them.
	config.Timeout, config.QPS, config.Burst = requestTimeout, 50, 100
	t.config = config
	if t.api, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if t.endpoint == "" {
		t.endpoint = config.Host
	}
	return nil
}

// readVersion asks the API server for its version.
func (t *tenant) readVersion(ctx context.Context) (string, error) {
	raw, err := t.api.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	switch {
	case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
		return "", fmt.Errorf("%s refuses the kubeconfig's user: %w", t.config.Host, err)
	case err != nil:
		return "", fmt.Errorf("%s does not answer: %w: is it reachable from here, and from the management cluster?", t.config.Host, innermostError(err))
	}
	return tenantaccess.ParseVersion(raw)
}

// checkImages compares the version of the API server with the kubelets of the images.
func (t *tenant) checkImages(version string) {
	for i := range t.requirements.images {
		image := &t.requirements.images[i]
		if problem := lifecycle.VersionSkewProblem(image.Spec.Software.Kubelet, version); problem != "" {
			t.add(levelMend, "OSImage "+image.Name, "%s", problem)
		} else {
			t.add(levelOK, "OSImage "+image.Name, "kubelet %s goes with it", image.Spec.Software.Kubelet)
		}
	}
}

// checkUser finds out which user the kubeconfig belongs to.
func (t *tenant) checkUser(ctx context.Context) {
	review, err := t.api.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		t.add(levelMend, "user", "the API server refuses the kubeconfig's credentials: %v", err)
	case err != nil:
		t.add(levelNote, "user", "whose kubeconfig it is cannot be found out: %v", err)
	default:
		t.user = review.Status.UserInfo.Username
		t.add(levelOK, "user", "%s", t.user)
	}
}

func (t *tenant) checkSlices(ctx context.Context) {
	const topic = "resource.k8s.io/v1"
	served, err := tenantaccess.ServesSlices(ctx, t.api.Discovery().RESTClient())
	names := strings.Join(t.requirements.nodeTypesWithDRA(), ", ")
	switch {
	case err != nil:
		t.add(levelNote, topic, "cannot be found out: %v", err)
	case served:
		t.add(levelOK, topic, "is served")
	case names != "":
		t.add(levelMend, topic, "is not served, and NodeType %s publishes GPUs in it: upgrade the tenant to Kubernetes 1.34 or later, or enable the API", names)
	default:
		t.add(levelNote, topic, "is not served: NodeTypes with DRA cannot be used here")
	}
}

// checkEndpoint connects to the API server as a node does: with the kubeconfig's certificate authority and without credentials.
func (t *tenant) checkEndpoint(ctx context.Context) {
	const topic = "endpoint"
	if join.IsLinkLocal(t.endpoint) {
		t.add(levelMend, topic, "%s is link-local and leads to another machine from every network: set --endpoint to what nodes reach", t.endpoint)
		return
	}
	anonymous, err := kubernetes.NewForConfig(t.nodeConfig(""))
	if err != nil {
		t.add(levelMend, topic, "%v", err)
		return
	}
	err = anonymous.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	var status apierrors.APIStatus
	if err != nil && !errors.As(err, &status) {
		t.add(levelMend, topic, "%s does not answer with a certificate of the kubeconfig's authority, which nodes pin: %v", t.endpoint, innermostError(err))
		return
	}
	if join.IsLoopback(t.endpoint) {
		t.add(levelNote, topic, "%s is a node's own address when a node asks for it: set --endpoint, unless the nodes run here", t.endpoint)
		return
	}
	t.add(levelOK, topic, "%s answers, with a certificate that nodes will accept", t.endpoint)
}

// nodeConfig returns how a node connects to the API server, with a bootstrap token or anonymously.
func (t *tenant) nodeConfig(token string) *rest.Config {
	config := rest.AnonymousClientConfig(t.config)
	config.Host, config.BearerToken, config.Timeout = t.endpoint, token, t.config.Timeout
	if t.endpoint != t.config.Host {
		config.ServerName = ""
	}
	return config
}

// userSubject returns the kubeconfig's user as the subject of a binding.
func (t *tenant) userSubject() map[string]any {
	if parts := strings.Split(t.user, ":"); len(parts) == 4 && strings.HasPrefix(t.user, "system:serviceaccount:") {
		return map[string]any{"kind": "ServiceAccount", "namespace": parts[2], "name": parts[3]}
	}
	return map[string]any{"kind": "User", "apiGroup": rbacGroup, "name": fmt.Sprint(t.user)}
}
