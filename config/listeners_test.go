package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNobodyReachesAPortThatIsNotForThem compares the NetworkPolicies with the ports of the pods.
func TestNobodyReachesAPortThatIsNotForThem(t *testing.T) {
	for what, objects := range map[string][]client.Object{"the default": installation(t), "with --embed-boot": changedInstallation(t, embedBoot), "with metal3": metal3Installation(t)} {
		for _, o := range objects {
			deployment, ok := o.(*appsv1.Deployment)
			if !ok {
				continue
			}
			policy := the[*networkingv1.NetworkPolicy](t, objects, deployment.Name)
			if policy.Namespace != deployment.Namespace || !reflect.DeepEqual(policy.Spec.PodSelector, *deployment.Spec.Selector) || !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress"}) {
				t.Errorf("%s: NetworkPolicy %s is about other pods: %+v", what, policy.Name, policy.Spec)
			}
			var open, want []string
			for _, rule := range policy.Spec.Ingress {
				for _, p := range rule.Ports {
					open = append(open, p.Port.String())
					if isForAll := p.Port.String() != "metrics"; isForAll != (len(rule.From) == 0) {
						t.Errorf("%s: port %s is open to %+v", what, p.Port, rule.From)
					}
				}
			}
			for _, p := range deployment.Spec.Template.Spec.Containers[0].Ports {
				if p.Name != "health" { // probes of the kubelet are always let through
					want = append(want, p.Name)
				}
			}
			slices.Sort(open)
			slices.Sort(want)
			if !slices.Equal(open, want) {
				t.Errorf("%s: NetworkPolicy %s opens %q, the pods have %q", what, policy.Name, open, want)
			}
		}
	}
}

func TestWhatServesBootsSurvivesTheDrainOfANode(t *testing.T) {
	objects := installation(t)
	deployment, budget := the[*appsv1.Deployment](t, objects, "ingot-boot"), the[*policyv1.PodDisruptionBudget](t, objects, "ingot-boot")
	if *deployment.Spec.Replicas < 2 || budget.Spec.MaxUnavailable.IntValue() != 1 || !reflect.DeepEqual(budget.Spec.Selector, deployment.Spec.Selector) || budget.Namespace != deployment.Namespace {
		t.Errorf("%d replicas, %+v", *deployment.Spec.Replicas, budget.Spec)
	}
}

// embedBoot has config/default use the component embed-boot.
func embedBoot(text string) string {
	text = strings.Replace(text, "- ../boot\n", "", 1)
	return strings.Replace(text, "components:\n", "components:\n- ../embed-boot\n", 1)
}

func TestASmallSitesManagerServesBoots(t *testing.T) {
	objects := changedInstallation(t, embedBoot)
	if slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetNamespace() == "ingot-boot" }) {
		t.Error("the boot service has an installation of its own too")
	}
	container := the[*appsv1.Deployment](t, objects, "ingot-manager").Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Args, "--embed-boot") || len(container.Ports) != 5 {
		t.Errorf("args %q, ports %+v", container.Args, container.Ports)
	}
	var hostPorts []int32
	for _, p := range container.Ports {
		if p.HostPort != 0 {
			hostPorts = append(hostPorts, p.HostPort)
		}
	}
	if slices.Sort(hostPorts); !slices.Equal(hostPorts, []int32{8090, 8092}) {
		t.Errorf("ports of the node: %v", hostPorts)
	}
	role := the[*rbacv1.Role](t, objects, "ingot-manager-boot")
	if got, want := fmt.Sprint(role.Rules), fmt.Sprint(bootInItsNamespace()); got != want {
		t.Errorf("Role %s grants %s, want %s", role.Name, got, want)
	}
}
