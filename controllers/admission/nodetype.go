package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/feasibility"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
)

// NodeTypes is the admission handler of NodeTypes.
type NodeTypes struct {
	// Cache is read first. APIReader reads from the API server what is not in the cache, because it may have just been created.
	Cache, APIReader client.Reader
	// Decoder decodes the objects of a request.
	Decoder admission.Decoder
}

//+kubebuilder:rbac:groups=ingot.dev,resources=osimages;nodeproviders;nodetyperevisions;nodetyperenderings,verbs=get;list;watch

// Handle answers one admission request.
func (n *NodeTypes) Handle(ctx context.Context, request admission.Request) admission.Response {
	before, written, err := n.written(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if written == nil {
		return admission.Allowed("")
	}
	in, err := n.inputs(ctx, written)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if in.Pinned, err = n.pinned(ctx, before, in); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return answer(written, feasibility.Check(in))
}

// written returns the NodeType of the request and its previous version. Both are nil if the request does not change the spec.
func (n *NodeTypes) written(request admission.Request) (before, after *v1alpha1.NodeType, err error) {
	if request.SubResource != "" || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return nil, nil, nil
	}
	before, after = &v1alpha1.NodeType{}, &v1alpha1.NodeType{}
	if err := n.Decoder.DecodeRaw(request.Object, after); err != nil {
		return nil, nil, fmt.Errorf("decode the NodeType: %w", err)
	}
	if request.Operation == admissionv1.Create {
		return before, after, nil
	}
	if err := n.Decoder.DecodeRaw(request.OldObject, before); err != nil {
		return nil, nil, fmt.Errorf("decode the NodeType as it was: %w", err)
	}
	if after.DeletionTimestamp != nil || equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil, nil, nil
	}
	return before, after, nil
}

// pinned returns the plan of an existing rendering that was made from the same inputs as the NodeType of the request, or nil if there is
// none. Without it, a version of Ingot that refuses what an earlier version accepted would refuse every change of such a NodeType,
// such as one of its rollout policy, and a rollback to it.
func (n *NodeTypes) pinned(ctx context.Context, before *v1alpha1.NodeType, in feasibility.Inputs) (*v1alpha1.NodePlan, error) {
	if in.Image == nil {
		return nil, nil
	}
	own, err := revision.OwnDigest(revision.Inputs{NodeType: in.NodeType, Image: in.Image})
	if err != nil {
		return nil, nil // without a digest there is no revision, so the NodeType is checked without a pinned plan
	}
	for _, name := range []string{in.NodeType.Spec.Rendering, before.Status.TargetRendering, before.Status.StableRendering} {
		made, of := &v1alpha1.NodeTypeRendering{}, &v1alpha1.NodeTypeRevision{}
		if name == "" {
			continue
		}
		there, err := n.get(ctx, name, made)
		if err != nil {
			return nil, fmt.Errorf("read NodeTypeRendering %s: %w", name, err)
		}
		if there {
			if there, err = n.get(ctx, made.Spec.RevisionRef.Name, of); err != nil {
				return nil, fmt.Errorf("read NodeTypeRevision %s: %w", made.Spec.RevisionRef.Name, err)
			}
		}
		if !there || of.Annotations[v1alpha1.AnnotationInputs] != own {
			continue
		}
		if plan, err := rendering.Plan(made); err == nil {
			return &plan, nil
		}
	}
	return nil, nil
}

func (n *NodeTypes) inputs(ctx context.Context, written *v1alpha1.NodeType) (feasibility.Inputs, error) {
	in := feasibility.Inputs{NodeType: written}
	image, provider := &v1alpha1.OSImage{}, &v1alpha1.NodeProvider{}
	there, err := n.get(ctx, written.Spec.OSImageRef.Name, image)
	if err != nil {
		return in, fmt.Errorf("read OSImage %s: %w", written.Spec.OSImageRef.Name, err)
	}
	if there {
		in.Image = image
	}
	there, err = n.get(ctx, written.Spec.ProviderRef.Name, provider)
	if err != nil {
		return in, fmt.Errorf("read NodeProvider %s: %w", written.Spec.ProviderRef.Name, err)
	}
	if there {
		in.Provider = provider
	}
	return in, nil
}

func (n *NodeTypes) get(ctx context.Context, name string, object client.Object) (bool, error) {
	err := n.Cache.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		err = n.APIReader.Get(ctx, client.ObjectKey{Name: name}, object)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// answer returns the response for the result of the check.
func answer(written *v1alpha1.NodeType, judged feasibility.Result) admission.Response {
	var own feasibility.Result
	var warnings []string
	warn := func(f feasibility.Finding, more string) {
		warnings = append(warnings, fmt.Sprintf("%s%s (rule %s)", f, more, f.Rule))
	}
	for _, f := range judged.Missing {
		warn(f, "; no node can be made until then, and what depends on it has not been judged")
	}
	for _, f := range judged.Refusals {
		if f.IsOfNodeTypeAlone() {
			own.Refusals = append(own.Refusals, f)
		} else {
			warn(f, "; no node can be made until that is mended")
		}
	}
	for _, f := range judged.Warnings {
		warn(f, "")
	}
	response := admission.Allowed("")
	if err := own.Err(); err != nil {
		response = refused(written, own.Refusals, err)
	}
	return response.WithWarnings(warnings...)
}

// refused returns a response with a message for people and the causes, one for each field, for programs.
func refused(written *v1alpha1.NodeType, found []feasibility.Finding, err error) admission.Response {
	status := &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("NodeType %s can make no nodes: %v", written.Name, err),
		Details: &metav1.StatusDetails{Name: written.Name, Group: v1alpha1.GroupVersion.Group, Kind: feasibility.KindNodeType},
	}
	for _, f := range found {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: f.Field, Message: f.Message + " (rule " + f.Rule + ")",
		})
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: status}}
}

// PathNodeType is the URL path of the webhook, which config/webhook names.
const PathNodeType = "/validate-ingot-dev-v1alpha1-nodetype"

// NewHandler returns the handler of the requests of API servers, at PathNodeType.
func NewHandler(mgr ctrl.Manager) (http.Handler, error) {
	hook := &admission.Webhook{Handler: &NodeTypes{
		Cache: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Decoder: admission.NewDecoder(mgr.GetScheme()),
	}}
	handler, err := admission.StandaloneWebhook(hook, admission.StandaloneOptions{Logger: mgr.GetLogger().WithName("webhook"), MetricsPath: PathNodeType})
	if err != nil {
		return nil, fmt.Errorf("make the webhook: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(PathNodeType, handler)
	return mux, nil
}
