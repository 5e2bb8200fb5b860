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
	// FeatureService is a service that keeps what it knows of the servers.
	FeatureService Feature = "a service that keeps the servers"
	// featureState is a state of the Subject.
	featureState Feature = "that state"
	// FeatureLimit is a limit of the servers that are worked on at the same time.
	FeatureLimit Feature = "a limit of servers at work"
)

// Subject is an Installer that the suite is for.
type Subject struct {
	// Name of its package.
	Name string
	// Lacks has the features that it does not have.
	Lacks []Feature
	// States are those in which a Rig meets or holds its server, by the work that is cancelled in them.
	States map[WorkName][]string
	// IsParallel is set where its Rigs share nothing that a case changes.
	IsParallel bool
}

// Direct returns the Installer of redfish NodeProviders.
func Direct() Subject {
	return Subject{Name: "direct", Lacks: []Feature{FeatureNoEvidence, FeatureLimit, FeatureService}, States: map[WorkName][]string{
		WorkInspection: {"Booting", "Loading", "Registered"},
		WorkInstall:    {"PoweringOff", "PoweringOn", "Booting", "Loading", "Registered", "Writing", "Verifying"},
		WorkErase:      {"PoweringOff", "PoweringOn", "Booting", "Loading", "Registered", "Erasing", "Verifying", "Finishing"},
		WorkRelease:    {"PoweringOff"},
	}}
}

// Ironic returns the Installer of ironic NodeProviders. Its servers are Ironic's fake hardware, whose power is never ignored.
func Ironic() Subject {
	return Subject{Name: "ironic", Lacks: []Feature{FeatureBMC, FeatureHops, FeatureOwnProgress, FeatureOwnAgent, FeatureEvidence}, IsParallel: true, States: map[WorkName][]string{
		WorkInspection: {"verifying", "inspecting", "inspect wait"},
		WorkInstall:    {"verifying", "deploying", "wait call-back", "write_image"},
		WorkErase:      {"verifying", "cleaning", "clean wait", "erase_devices_metadata"},
		WorkRelease:    {"deleting"},
	}}
}

// lacked returns the first feature of a case that the subject lacks; empty: the case applies.
func (s Subject) lacked(c Case) Feature {
	for _, f := range c.Needs {
		if slices.Contains(s.Lacks, f) {
			return f
		}
	}
	if c.Cancels.State != "" && !slices.Contains(s.States[c.Cancels.Work], c.Cancels.State) {
		return featureState
	}
	return ""
}

// Case is a case of the suite.
type Case struct {
	// Leaves is the condition in which the case leaves each of its Rigs.
	Leaves Condition
	// Needs are the features without which it does not apply.
	Needs []Feature
	// Cancels is the state in which the case cancels work. It applies to the Subjects that have it.
	Cancels Cancel
	// Run runs it.
	Run func(*testing.T, *rigs)
}

// cases returns all cases by name.
func cases() map[string]Case {
	all := map[string]Case{}
	for _, group := range []map[string]Case{soundCases(), missedCases, outcomeCases, cancelCases(), hopCases(), inspectionCases, inspectionHopCases(), attemptCases, interruptionCases, remoteCases, powerCases} {
		maps.Copy(all, group)
	}
	return all
}

// Table returns the cases in Markdown, with the Installers to which they apply.
func Table(subjects ...Subject) string {
	var out strings.Builder
	out.WriteString("| case | attempt | server | disk | the Machine has |")
	for _, s := range subjects {
		out.WriteString(" " + s.Name + " |")
	}
	out.WriteString("\n|---|---|---|---|---|" + strings.Repeat("---|", len(subjects)) + "\n")
	all := cases()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&out, "| %s | %s |", name, all[name].Leaves)
		for _, s := range subjects {
			cell := "passes"
			if lacked := s.lacked(all[name]); lacked != "" {
				cell = "needs " + string(lacked)
			}
			out.WriteString(" " + cell + " |")
		}
		out.WriteString("\n")
	}
	return out.String()
}
