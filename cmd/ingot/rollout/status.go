package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// showStatus shows all rollouts or, with a name, one of them: the Rollout of that name, or the latest one of the NodeType of that name.
func showStatus(ctx context.Context, s session, args []string) error {
	all, err := s.listRollouts(ctx, "")
	if err != nil {
		return err
	}
	name := strings.Join(args, "")
	if name != "" {
		matching := named(all, name)
		if len(matching) == 0 {
			return s.reportUnknown(ctx, name, all)
		}
		all = matching
	}
	switch {
	case s.shared != "":
		return s.showHolders(ctx, all)
	case s.json:
		return s.printJSON(all)
	case len(all) == 0:
		return s.printResult("%s", noRollouts)
	case name != "":
		r := &all[len(all)-1]
		_, err := fmt.Fprint(s.out, rolloutText(r, s.readChange(ctx, r), nil))
		return err
	}
	table := [][]string{{"NODETYPE", "ROLLOUT", "PHASE", "DONE", "UNDER WAY", "FAILED", "STOPPED BY", "WAITS FOR"}}
	for i := range all {
		r := &all[i]
		n := r.Status.Targets
		table = append(table, []string{
			r.Spec.NodeTypeRef.Name, r.Name, string(r.Status.Phase), fmt.Sprintf("%d/%d", n.Done, n.Total), fmt.Sprint(countUnderWay(r)), fmt.Sprint(n.Failed), cmp.Or(r.Status.StoppedBy, "-"), cmp.Or(r.WaitsForTenants(), "-"),
		})
	}
	return cli.WriteTable(s.out, table)
}

const noRollouts = "no rollouts: a changed image, GPU presentation or user data of a NodeType makes one"

func (s session) printJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	_, err = fmt.Fprintf(s.out, "%s\n", text)
	return err
}

// named returns the Rollouts of the NodeType of that name or, if it has none, the Rollout of that name.
func named(all []v1alpha1.Rollout, name string) []v1alpha1.Rollout {
	ofNodeType := slices.DeleteFunc(slices.Clone(all), func(r v1alpha1.Rollout) bool { return r.Spec.NodeTypeRef.Name != name })
	if len(ofNodeType) > 0 {
		slices.SortFunc(ofNodeType, compareNumbers)
		return ofNodeType
	}
	return slices.DeleteFunc(slices.Clone(all), func(r v1alpha1.Rollout) bool { return r.Name != name })
}

// reportUnknown says that a NodeType has no rollout yet. If there is no NodeType of that name, the error names what there is, also the Rollouts.
func (s session) reportUnknown(ctx context.Context, name string, all []v1alpha1.Rollout) error {
	known, err := s.nodeTypeNames(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(known, name) {
		if s.json {
			return s.printJSON([]v1alpha1.Rollout{})
		}
		return s.printResult("%s", noRollouts)
	}
	rollouts := make([]string, 0, len(all))
	for i := range all {
		rollouts = append(rollouts, all[i].Name)
	}
	return fmt.Errorf("there is no NodeType and no Rollout %s: NodeTypes are %s; Rollouts are %s", name, listed(known), listed(rollouts))
}

func (s session) nodeTypeNames(ctx context.Context) ([]string, error) {
	var list v1alpha1.NodeTypeList
	if err := s.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list NodeTypes: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// listed joins the names in order.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// countUnderWay returns how many Machines are under way. A Rollout that has ended has none: an earlier version of Ingot left in its status those that
// its successor took over.
func countUnderWay(r *v1alpha1.Rollout) int32 {
	if r.Status.Phase.IsFinal() {
		return 0
	}
	return r.Status.Targets.InProgress
}

// rolloutText returns the state and the history of one rollout. changed says who changed its NodeType; now are the devices that claims hold; nil: the claims were not read.
func rolloutText(r *v1alpha1.Rollout, changed string, now map[useKey]int) string {
	var b strings.Builder
	n := r.Status.Targets
	fmt.Fprintf(&b, "%s: %s, %d of %d done, %d under way, %d failed\n", r.Name, r.Status.Phase, n.Done, n.Total, countUnderWay(r), n.Failed)
	if ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		fmt.Fprintf(&b, "  state      %s\n", ready.Message)
	}
	fmt.Fprintf(&b, "  changed by %s\n", changed)
	fmt.Fprintf(&b, "  from       %s\n  to         %s\n", r.Spec.From, r.Spec.To)
	if r.Spec.From == r.Spec.To {
		fmt.Fprintf(&b, "  rendering  %s, was %s\n", r.Spec.ToRendering, r.Spec.FromRendering)
	}
	for _, list := range []struct {
		title string
		names []string
	}{{"canary", r.Status.Canary}, {"under way", r.Status.InProgress}, {"broken", r.Status.BrokenBefore}} {
		if len(list.names) > 0 && !r.Status.Phase.IsFinal() {
			fmt.Fprintf(&b, "  %-10s %s\n", list.title, strings.Join(list.names, ", "))
		}
	}
	if waits := r.WaitsForTenants(); waits != "" {
		fmt.Fprintf(&b, "  waits for  %s\n", waits)
	}
	writeInUse(&b, r, now)
	if r.Status.StoppedBy != "" && !r.Status.Phase.IsFinal() {
		fmt.Fprintf(&b, "  stopped by %s\n", r.Status.StoppedBy)
		fmt.Fprintf(&b, "  next       ingot why MACHINE; then ingot rollout undo %s, or ingot rollout resume %s\n", r.Spec.NodeTypeRef.Name, r.Spec.NodeTypeRef.Name)
	}
	for _, e := range r.Status.History {
		fmt.Fprintf(&b, "  %s  %s\n", e.At.UTC().Format(time.RFC3339), e.Message)
	}
	return b.String()
}

// keptRevision is one line of the history.
type keptRevision struct {
	Revision  string   `json:"revision"`
	Rendering string   `json:"rendering"`
	Image     string   `json:"image"`
	Created   string   `json:"created"`
	Is        []string `json:"is,omitempty"`
}

// showHistory shows the revisions that are kept, the newest first, with their renderings.
func showHistory(ctx context.Context, s session, args []string) error {
	k, err := s.readKept(ctx, args[0])
	if err != nil {
		return err
	}
	lines := k.history()
	if s.json {
		return s.printJSON(lines)
	}
	table := [][]string{{"REVISION", "RENDERING", "IMAGE", "CREATED", "IS"}}
	for _, l := range lines {
		table = append(table, []string{l.Revision, l.Rendering, l.Image, l.Created, strings.Join(l.Is, ", ")})
	}
	return cli.WriteTable(s.out, table)
}

// history returns a line for each rendering of each revision, and for a revision without one.
func (k kept) history() []keptRevision {
	lines := []keptRevision{}
	admitted := k.admitted()
	for i := range k.revisions {
		r := &k.revisions[i]
		count := len(lines)
		for j := range k.renderings {
			if k.renderings[j].Spec.RevisionRef.Name != r.Name {
				continue
			}
			pair := v1alpha1.RenderedRevision{Revision: r.Name, Rendering: k.renderings[j].Name}
			line := keptRevision{pair.Revision, pair.Rendering, r.Spec.Image.Name, k.renderings[j].CreationTimestamp.UTC().Format(time.RFC3339), nil}
			for _, mark := range []struct {
				name string
				is   bool
			}{{"stable", pair == k.nodeType.Status.Stable()}, {"target", pair == k.nodeType.Status.Target()}, {"admitted before", slices.Contains(admitted, pair) && pair != k.nodeType.Status.Stable()}} {
				if mark.is {
					line.Is = append(line.Is, mark.name)
				}
			}
			lines = append(lines, line)
		}
		if len(lines) == count {
			lines = append(lines, keptRevision{Revision: r.Name, Image: r.Spec.Image.Name, Created: r.CreationTimestamp.UTC().Format(time.RFC3339)})
		}
	}
	return lines
}
