package fragment

import (
	_ "embed" // The table of releases.
	"encoding/json"
	"sync"
)

// Table is what releases of kubelet know. test/kubeletreleases writes it.
type Table struct {
	// Minors are the minor releases that were read, in order.
	Minors []int `json:"minors"`
	// Members of KubeletConfiguration by their path.
	Members map[string]Range `json:"members"`
	// Gates by name.
	Gates map[string]Gate `json:"gates"`
}

// Range is the first and the last minor release that has something. The first release that was read stands for all before it.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// Gate is a feature gate.
type Gate struct {
	Range
	// Locked is the minor release since which it has Value and kubelet does not start with another one; 0: it can be set.
	Locked int  `json:"locked,omitempty"`
	Value  bool `json:"value,omitempty"`
}

//go:embed releases.json
var releases []byte

// table is the table of releases.
var table = sync.OnceValue(func() Table {
	var t Table
	if err := json.Unmarshal(releases, &t); err != nil {
		panic(err) // A test reads it.
	}
	return t
})
