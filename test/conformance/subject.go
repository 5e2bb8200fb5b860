package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Feature is what a case needs of an Installer, or of the servers of its Rig.
type Feature string

// Features.
const (
	// FeatureBMC is a BMC of the Installer's own, which ignores, refuses or loses changes of power.
	FeatureBMC Feature = "a BMC of its own"
	// FeatureHops is that the Installer sees each hop of a boot.
	FeatureHops Feature = "each hop of a boot"
	// FeatureOwnProgress is that the progress of an attempt is stored by Ingot, so that it is known, and ends, while nothing answers.
	FeatureOwnProgress Feature = "progress stored by Ingot"
	// FeatureOwnAgent is that an agent of Ingot inspects.
	FeatureOwnAgent Feature = "inspection by Ingot's agent"
	// FeatureEvidence is evidence of an erase for each disk, and FeatureNoEvidence its absence.
	FeatureEvidence   Feature = "evidence for each disk"
	FeatureNoEvidence Feature = "no evidence for each disk"
	// FeatureLimit is a limit of the servers that are worked on at the same time.
	FeatureLimit Feature = "a limit of servers at work"
)

// Subject is an Installer that the suite is for.
type Subject struct {
	// Name of its package.
	Name string
	// Lacks has the features that it does not have.
	Lacks []Feature
	// IsParallel is set where its Rigs share nothing that a case changes.
	IsParallel bool
}

// Direct returns the Installer of redfish NodeProviders.
func Direct() Subject {
	return Subject{Name: "direct", Lacks: []Feature{FeatureNoEvidence, FeatureLimit}}
}

// Ironic returns the Installer of ironic NodeProviders. Its servers are Ironic's fake hardware, whose power is never ignored.
func Ironic() Subject {
	return Subject{Name: "ironic", Lacks: []Feature{FeatureBMC, FeatureHops, FeatureOwnProgress, FeatureOwnAgent, FeatureEvidence}, IsParallel: true}
}

// lacked returns the first feature of a case that the subject lacks; empty: the case applies.
func (s Subject) lacked(needs []Feature) Feature {
	for _, f := range needs {
		if slices.Contains(s.Lacks, f) {
			return f
		}
	}
	return ""
}

// Case is a case of the suite.
type Case struct {
	// Leaves is the condition in which the case leaves the attempt, the server and the disk. What the attempt becomes is what its Machine shows.
	Leaves string
	// Needs are the features without which it does not apply.
	Needs []Feature
	// Run runs it.
	Run func(*testing.T, Harness)
}

// cases returns all cases by name.
func cases() map[string]Case {
	all := map[string]Case{}
	for _, group := range []map[string]Case{soundCases, outcomeCases, hopCases(), inspectionCases, attemptCases, interruptionCases, remoteCases, powerCases} {
		maps.Copy(all, group)
	}
	return all
}

// Table returns the cases in Markdown, with the Installers to which they apply.
func Table(subjects ...Subject) string {
	var out strings.Builder
	out.WriteString("| case | leaves |")
	for _, s := range subjects {
		out.WriteString(" " + s.Name + " |")
	}
	out.WriteString("\n|---|---|" + strings.Repeat("---|", len(subjects)) + "\n")
	all := cases()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&out, "| %s | %s |", name, all[name].Leaves)
		for _, s := range subjects {
			cell := "passes"
			if lacked := s.lacked(all[name].Needs); lacked != "" {
				cell = "needs " + string(lacked)
			}
			out.WriteString(" " + cell + " |")
		}
		out.WriteString("\n")
	}
	return out.String()
}
