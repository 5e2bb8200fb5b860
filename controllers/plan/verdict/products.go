package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// checkLabelRules compares the labels by which the vendor's software tells which GPUs it found, in clusters that run it. Without it: the servers of a
// new delivery have H100s where H200s were ordered, or instances of 1g.20gb where 3g.40gb were. Counts and resources are equal, so that the node would be
// admitted, and jobs would run out of memory.
func checkLabelRules(in Input) []v1alpha1.Check {
	var out []v1alpha1.Check
	for _, r := range in.Expectation.LabelRules {
		observed, ok := in.Node.Labels[r.Key]
		if !ok {
			continue
		}
		expected, fits := ruleText(r), isWithinRule(r, observed)
		out = append(out, newCheck(r.Check, expected, observed, fits, r.Hint))
	}
	return out
}

func isWithinRule(r v1alpha1.ExpectedLabelRule, observed string) bool {
	if r.Product != nil && !isProduct(*r.Product, observed) {
		return false
	}
	if r.Range == nil {
		return true
	}
	quantity, err := resource.ParseQuantity(observed)
	return err == nil && isWithin(*r.Range, quantity)
}

func ruleText(r v1alpha1.ExpectedLabelRule) string {
	var parts []string
	if r.Product != nil {
		parts = append(parts, productText(*r.Product))
	}
	if r.Range != nil {
		parts = append(parts, rangeText(*r.Range))
	}
	return strings.Join(parts, "; ")
}

func isWithin(r v1alpha1.ExpectedRange, observed resource.Quantity) bool {
	return observed.Cmp(r.Minimum) >= 0 && observed.Cmp(r.Maximum) <= 0
}

func rangeText(r v1alpha1.ExpectedRange) string {
	return r.Minimum.String() + " to " + r.Maximum.String()
}

// isProduct reports whether a name is one of the product's.
func isProduct(p v1alpha1.ExpectedProduct, name string) bool {
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, w := range p.Words {
		if !slices.Contains(words, w) {
			return false
		}
	}
	for _, w := range p.AbsentWords {
		if slices.Contains(words, w) {
			return false
		}
	}
	return len(p.Suffixes) == 0 || slices.ContainsFunc(p.Suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

func productText(p v1alpha1.ExpectedProduct) string {
	text := "a name with " + strings.Join(p.Words, " ")
	if len(p.AbsentWords) > 0 {
		text += " and without " + strings.Join(p.AbsentWords, ", ")
	}
	if len(p.Suffixes) > 0 {
		text += ", which ends in " + strings.Join(p.Suffixes, " or ")
	}
	return text
}

// productChecks compares the names of products, and capacities, of all devices of a kind. Like attributeChecks it fails on a wrong one, and waits for a missing
// one.
func productChecks(name string, expected v1alpha1.ExpectedDevices, devices []device, hint string) []v1alpha1.Check {
	var out []v1alpha1.Check
	for _, a := range slices.Sorted(maps.Keys(expected.Products)) {
		p := expected.Products[a]
		out = append(out, deviceCheck(name+"/"+a, productText(p), devices, hint, func(d device) (string, bool, bool) {
			text := d.attributeText(a)
			return text, len(d.attributeValues(a)) > 0, isProduct(p, text)
		})...)
	}
	for _, c := range slices.Sorted(maps.Keys(expected.Capacities)) {
		r := expected.Capacities[c]
		out = append(out, deviceCheck(name+"/"+c, rangeText(r), devices, hint, func(d device) (string, bool, bool) {
			quantity, ok := d.capacity(c)
			return quantity.String(), ok, isWithin(r, quantity)
		})...)
	}
	return out
}

// deviceCheck compares one value of all devices. read returns the value, whether the device has one, and whether it is as expected.
func deviceCheck(name, expected string, devices []device, hint string, read func(device) (text string, found, fits bool)) []v1alpha1.Check {
	c := v1alpha1.Check{Name: name, Result: v1alpha1.CheckPass, Expected: expected}
	accepted, missing, wrong := map[string]bool{}, deviceSample{}, deviceSample{}
	for _, d := range devices {
		observed, found, fits := read(d)
		text := input.Line(observed, maxName)
		switch {
		case !found:
			missing.add(d, "no value")
		case !fits:
			wrong.add(d, text)
		default:
			accepted[text] = true
		}
	}
	switch {
	case wrong.count > 0:
		c.Result, c.Observed, c.Hint = v1alpha1.CheckFail, wrong.String(), hint
	case missing.count > 0:
		c.Result, c.Observed, c.Hint = v1alpha1.CheckWait, missing.String(), "the driver's version may not publish it; "+hint
	case len(accepted) == 0:
		return nil
	default:
		c.Observed = input.Line(strings.Join(slices.Sorted(maps.Keys(accepted)), ", "), maxText)
	}
	return single(c)
}

// capacity returns a capacity of the device. A name without a domain belongs to the domain of the driver.
func (d device) capacity(name string) (resource.Quantity, bool) {
	for _, n := range []string{name, fmt.Sprintf("%s/%s", d.driver, name)} {
		if c, ok := d.Capacity[resourcev1.QualifiedName(n)]; ok {
			return c.Value, true
		}
	}
	return resource.Quantity{}, false
}
