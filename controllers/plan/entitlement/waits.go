package entitlement

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Pod is a pod without a node that asks for devices.
type Pod struct {
	Namespace, Name string
	Created         metav1.Time
	// Claims are those that it has or names, and LacksClaim says that one of a template is not there.
	Claims     []string
	LacksClaim bool
	// Resources are the guarded resources that it asks for.
	Resources map[string]int64
	// Scheduled is what the scheduler says; nil: nothing.
	Scheduled *corev1.PodCondition
}

// PodOf returns what of a pod without a node asks for devices; false: it asks for none. guarded are the resources that only an entitlement gives.
func PodOf(pod *corev1.Pod, guarded []string) (Pod, bool) {
	out := Pod{Namespace: pod.Namespace, Name: pod.Name, Created: pod.CreationTimestamp, Resources: map[string]int64{}}
	made := map[string]string{}
	for _, s := range pod.Status.ResourceClaimStatuses {
		made[s.Name] = ""
		if s.ResourceClaimName != nil {
			made[s.Name] = *s.ResourceClaimName
		}
	}
	for _, c := range pod.Spec.ResourceClaims {
		name, isMade := made[c.Name]
		switch {
		case c.ResourceClaimName != nil:
			out.Claims = append(out.Claims, *c.ResourceClaimName)
		case name != "":
			out.Claims = append(out.Claims, name)
		case !isMade:
			out.LacksClaim = true
		}
	}
	for name, n := range requestsOf(pod) {
		if isGuarded(string(name), guarded) {
			out.Resources[string(name)] = n
		}
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			out.Scheduled = c
		}
	}
	return out, len(pod.Spec.ResourceClaims) > 0 || len(out.Resources) > 0
}

// requestsOf returns what the containers of a pod ask for together or, where that is more, one of those that run before them.
func requestsOf(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{}
	for i := range pod.Spec.Containers {
		for name, quantity := range pod.Spec.Containers[i].Resources.Requests {
			out[name] += quantity.Value()
		}
	}
	for i := range pod.Spec.InitContainers {
		for name, quantity := range pod.Spec.InitContainers[i].Resources.Requests {
			out[name] = max(out[name], quantity.Value())
		}
	}
	return out
}

func isGuarded(name string, guarded []string) bool {
	return slices.ContainsFunc(guarded, func(g string) bool {
		prefix, isPrefix := strings.CutSuffix(g, "*")
		return name == g || isPrefix && strings.HasPrefix(name, prefix)
	})
}

// Refusals are what Kubernetes said last when it could not make the claim of a pod's template, by NAMESPACE/NAME of the pod.
type Refusals map[string]string

// quotaRefusal is a part of the API server's message about a quota (k8s.io/apiserver/pkg/admission/plugin/resourcequota).
const quotaRefusal = "exceeded quota"

// claimNotMade begins what kube-controller-manager says of a claim that it cannot make: the name in the pod's spec, and that of the claim, which has none yet.
var claimNotMade = regexp.MustCompile(`^PodResourceClaim [^ :]+: (create ResourceClaim [^ :]*: )?`)

// RefusalText returns the part of kube-controller-manager's message that tells why the claim of a pod's template cannot be made. Without it: the names that come
// first fill the message, and what is used and what the limit is are cut off.
func RefusalText(message string) string {
	if at := strings.Index(message, quotaRefusal); at >= 0 {
		return message[at:]
	}
	return claimNotMade.ReplaceAllString(message, "")
}

// Waits returns what waits for devices, by kind and reason. The claims are those that have none.
func Waits(claims []resourcev1.ResourceClaim, pods []Pod, refusals Refusals) []v1alpha1.DeviceWait {
	var all []v1alpha1.DeviceWait
	wanted := map[string]metav1.Time{}
	for i := range pods {
		p := &pods[i]
		for _, claim := range p.Claims {
			// A claim that was made long ago waits since a pod does.
			if since, isWanted := wanted[p.Namespace+"/"+claim]; !isWanted || p.Created.Before(&since) {
				wanted[p.Namespace+"/"+claim] = p.Created
			}
		}
		all = append(all, p.wait(refusals))
	}
	for i := range claims {
		c := &claims[i]
		w := v1alpha1.DeviceWait{Kind: v1alpha1.WaitingClaim, Reason: v1alpha1.WaitUnused, Count: 1, Since: c.CreationTimestamp, Longest: c.Namespace + "/" + c.Name}
		if since, isWanted := wanted[w.Longest]; isWanted {
			w.Reason = v1alpha1.WaitUnallocated
			if w.Since.Before(&since) {
				w.Since = since
			}
		}
		all = append(all, w)
	}
	return sum(all)
}

// wait returns why a pod waits.
func (p *Pod) wait(refusals Refusals) v1alpha1.DeviceWait {
	out := v1alpha1.DeviceWait{Kind: v1alpha1.WaitingPod, Reason: v1alpha1.WaitNotTried, Count: 1, Since: p.Created, Longest: p.Namespace + "/" + p.Name}
	message := ""
	refusal := refusals[out.Longest]
	switch {
	case p.LacksClaim && strings.Contains(refusal, quotaRefusal):
		out.Reason, message = v1alpha1.WaitQuotaExceeded, refusal
	case p.LacksClaim:
		out.Reason, message = v1alpha1.WaitClaimNotMade, refusal
	case p.Scheduled != nil && p.Scheduled.Status == corev1.ConditionFalse && p.Scheduled.Reason == corev1.PodReasonUnschedulable:
		out.Reason, message = v1alpha1.WaitUnschedulable, p.Scheduled.Message
	}
	out.Message = input.Line(message, v1alpha1.MaxWaitMessage)
	return out
}

// sum adds what waits for the same reason, and keeps what has waited longest of it.
func sum(all []v1alpha1.DeviceWait) []v1alpha1.DeviceWait {
	slices.SortFunc(all, func(a, b v1alpha1.DeviceWait) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason), a.Since.Compare(b.Since.Time), cmp.Compare(a.Longest, b.Longest))
	})
	var out []v1alpha1.DeviceWait
	for _, w := range all {
		if last := len(out) - 1; last >= 0 && out[last].Kind == w.Kind && out[last].Reason == w.Reason {
			out[last].Count++
			continue
		}
		out = append(out, w)
	}
	return out
}
