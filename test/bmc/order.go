package bmc

import (
	"fmt"
	"net/http"
	"path"
	"slices"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// OrderRules describe a persistent boot order.
type OrderRules struct {
	// Options are the boot options, in the order that the firmware has at first.
	Options []BootOption `json:"options"`
	// Only means that Boot has no override.
	Only bool `json:"only"`
	// Alias means that the order is one of the names of boot sources, AliasBootOrder, and that there are no boot options.
	Alias bool `json:"alias"`
	// AtSettings means that the order is changed at the settings object, and takes effect with the next boot. The system refuses it.
	AtSettings bool `json:"atSettings"`
	// Unlisted means that there is no collection of boot options.
	Unlisted bool `json:"unlisted"`
	// Rule is how a change is treated.
	Rule OrderRule `json:"rule"`
}

// OrderRule is how a BMC treats a change of the boot order. Empty: it is stored.
type OrderRule string

// Deviating treatments of a boot order.
const (
	// OrderDropped means that a change is accepted and the order stays what it was.
	OrderDropped OrderRule = "Dropped"
	// OrderRefused means that it is read-only.
	OrderRefused OrderRule = "Refused"
)

// BootOption is a boot option of a server's firmware.
type BootOption struct {
	// Reference is its name in the order.
	Reference string `json:"reference"`
	// Boots is what the server boots from with it; empty: nothing.
	Boots hardware.BootSource `json:"boots"`
	// Disabled means that the firmware skips it.
	Disabled bool `json:"disabled"`
	// Set are further members of the resource.
	Set map[string]any `json:"set"`
}

const (
	pathBootOptions  = PathSystem + "/BootOptions"
	memberBootOrder  = "BootOrder"
	memberAliasOrder = "AliasBootOrder"
)

// member is the member of Boot that has the order.
func (r *OrderRules) member() string {
	if r.Alias {
		return memberAliasOrder
	}
	return memberBootOrder
}

// newOrder returns the order that a BMC starts with.
func newOrder(rules *OrderRules) []string {
	var order []string
	if rules != nil {
		for _, option := range rules.Options {
			order = append(order, option.Reference)
		}
	}
	return order
}

// addBootOptions adds the collection of boot options.
func (t tree) addBootOptions(rules *OrderRules) {
	if rules == nil || rules.Alias || rules.Unlisted {
		return
	}
	var members []string
	for i, option := range rules.Options {
		document := map[string]any{"BootOptionReference": option.Reference, "BootOptionEnabled": !option.Disabled}
		for name, value := range option.Set {
			document[name] = value
		}
		members = append(members, t.add(fmt.Sprintf("%s/%d", pathBootOptions, i+1), "#BootOption.v1_0_4.BootOption", document))
	}
	t.collection(pathBootOptions, members...)
}

// addOrder adds the boot order to the member Boot of the system, or of its settings object, and takes the override out where there is none.
func (b *BMC) addOrder(boot map[string]any, atSettings bool) {
	rules := b.options.Personality.Boot.Order
	if rules == nil {
		return
	}
	if rules.Only {
		for name := range boot {
			delete(boot, name)
		}
	}
	if boot[rules.member()] = b.order; atSettings {
		boot[rules.member()] = b.futureOrder
	}
	if !rules.Alias && !rules.Unlisted && !atSettings {
		boot["BootOptions"] = ref(pathBootOptions)
	}
}

// Order returns the boot order that is in effect.
func (b *BMC) Order() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.order)
}

// SetOrder changes the boot order, as an operating system does with the firmware's variables.
func (b *BMC) SetOrder(order ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order, b.futureOrder = slices.Clone(order), slices.Clone(order)
}

// SetNextOrder changes the boot order of the next boot, as somebody else does at the settings object.
func (b *BMC) SetNextOrder(order ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.futureOrder = slices.Clone(order)
}

// takeOrder returns the first source of the boot order that the server can boot from; "" where there is no order.
func (b *BMC) takeOrder() hardware.BootSource {
	rules := b.options.Personality.Boot.Order
	if rules == nil {
		return ""
	}
	b.order = slices.Clone(b.futureOrder)
	for _, entry := range b.order {
		at := slices.IndexFunc(rules.Options, func(o BootOption) bool { return o.Reference == entry })
		if at < 0 || rules.Options[at].Disabled {
			continue
		}
		switch source := rules.Options[at].Boots; source {
		case hardware.BootMedia:
			if b.takeMedium(); b.bootedImage != "" {
				return source
			}
		case hardware.BootNetwork, hardware.BootDisk:
			return source
		}
	}
	return ""
}

// patchOrder changes the boot order and reports whether it has answered.
func (b *BMC) patchOrder(w http.ResponseWriter, at string, order []string) (isAnswered bool) {
	rules := b.options.Personality.Boot.Order
	switch {
	case len(order) == 0 || rules == nil:
		return false
	case rules.Rule == OrderRefused, rules.AtSettings != (at == b.options.Personality.pathSettings()):
		b.refuse(w, http.StatusBadRequest, "PropertyNotWritable", "The property "+rules.member()+" is a read only property and cannot be assigned a value.")
		return true
	}
	for _, entry := range order {
		if !slices.ContainsFunc(rules.Options, func(o BootOption) bool { return o.Reference == entry }) {
			b.refuse(w, http.StatusBadRequest, "PropertyValueNotInList", "The value "+path.Base(entry)+" is not in the list of acceptable values.")
			return true
		}
	}
	b.override().version++
	if rules.Rule != OrderDropped {
		if b.futureOrder = slices.Clone(order); !rules.AtSettings {
			b.order = slices.Clone(order)
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}
