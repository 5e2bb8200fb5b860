package placement

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	// maxNamed hosts are named with their reasons; the others are counted.
	maxNamed = 12
	// maxQuoted is the longest text, in bytes, that a message quotes of what a host or a person wrote.
	maxQuoted = 83
)

func chosen(host Considered, before []Considered) Decision {
	return Decision{Host: host.Name, Considered: append(before, host), Message: host.Name + " " + host.Message}
}

// explain marks the choice, or says why there is none.
func explain(request Request, d Decision) Decision {
	if d.Host != "" {
		free := 0
		for i := range d.Considered {
			if d.Considered[i].Name == d.Host {
				d.Considered[i].Reason, d.Considered[i].Message = Chosen, "is free and chosen"
			}
			if d.Considered[i].Reason == Free || d.Considered[i].Reason == Chosen {
				free++
			}
		}
		d.Message = fmt.Sprintf("%s, of %d free hosts", d.Host, free)
		return d
	}
	d.Reason, d.Message = v1alpha1.ReasonNoHostAvailable, refusals(request, d.Considered)
	if request.HostName != "" && !anyNamed(d.Considered, request.HostName) {
		d.Reason = v1alpha1.ReasonHostNotFound
		d.Message = fmt.Sprintf("spec.hostName pins %s, and no BareMetalHost in namespace %s has that name", request.HostName, request.Provider.HostNamespace)
	}
	return d
}

func anyNamed(considered []Considered, name string) bool {
	for _, c := range considered {
		if c.Name == name {
			return true
		}
	}
	return false
}

// refusals names hosts that could have been: those with other labels or names are only counted.
func refusals(request Request, considered []Considered) string {
	if len(considered) == 0 {
		return fmt.Sprintf("there is no BareMetalHost in namespace %s", request.Provider.HostNamespace)
	}
	var named []string
	more, differ, outside := 0, 0, 0
	for _, c := range considered {
		switch {
		case c.Reason == OtherName:
			outside++
		case c.Reason == LabelsDiffer && c.Name != request.HostName:
			differ++
		case len(named) < maxNamed:
			named = append(named, c.Name+" "+c.Message)
		default:
			more++
		}
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("%s more cannot be claimed either", hostsOf(more)))
	}
	if differ > 0 {
		named = append(named, fmt.Sprintf("%s without the labels %s", hostsOf(differ), v1alpha1.Truncate(metav1.FormatLabelSelector(&request.Selector), maxQuoted)))
	}
	if outside > 0 {
		named = append(named, fmt.Sprintf("%s not pinned by spec.hostName", hostsOf(outside)))
	}
	return "no host can be claimed: " + strings.Join(named, "; ")
}

func hostsOf(n int) string {
	if n == 1 {
		return "1 host"
	}
	return fmt.Sprintf("%d hosts", n)
}
