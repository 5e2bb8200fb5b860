package config

import (
	"maps"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/controllers/admission"
)

func TestAPIServersAskTheManagerAboutNodeTypesAlone(t *testing.T) {
	objects := installation(t)
	s, deployment := configuration(t, objects)
	asked := the[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, s.Webhook.Configuration)
	service := the[*corev1.Service](t, objects, "ingot-webhook")
	w := asked.Webhooks[0]
	to := w.ClientConfig.Service
	if len(asked.Webhooks) != 1 || to == nil || to.Name != service.Name || to.Namespace != service.Namespace || *to.Path != admission.PathNodeType {
		t.Errorf("asked is %+v, the Service is %s/%s, the manager answers at %s", w.ClientConfig, service.Namespace, service.Name, admission.PathNodeType)
	}
	if port := service.Spec.Ports[0]; port.Port != 443 || !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port.TargetPort.StrVal
	}) {
		t.Errorf("the Service's port is %+v, which the container does not have, or not the one that is asked", port)
	}
	if !maps.Equal(service.Spec.Selector, deployment.Spec.Selector.MatchLabels) {
		t.Errorf("the Service selects %v, the Deployment's pods have %v", service.Spec.Selector, deployment.Spec.Selector.MatchLabels)
	}
	// It must not be able to hold up anything else, nor for long.
	rule := w.Rules[0]
	if len(w.Rules) != 1 || !slices.Equal(rule.Resources, []string{"nodetypes"}) || !slices.Equal(rule.APIGroups, []string{"ingot.dev"}) ||
		!slices.Equal(rule.Operations, []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}) {
		t.Errorf("asked about %+v", w.Rules)
	}
	if *w.FailurePolicy != admissionregistrationv1.Fail || *w.TimeoutSeconds > 5 || *w.SideEffects != admissionregistrationv1.SideEffectClassNone || len(w.MatchConditions) != 1 {
		t.Errorf("failurePolicy %s, timeoutSeconds %d, sideEffects %s, matchConditions %v", *w.FailurePolicy, *w.TimeoutSeconds, *w.SideEffects, w.MatchConditions)
	}
}
