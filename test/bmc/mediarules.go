package bmc

// MediaRules are how a BMC's virtual media differ from the specification. The zero value is one slot for a CD, Cd, with the actions InsertMedia and
// EjectMedia, which keeps its image until it is ejected.
type MediaRules struct {
	// Slots are the slots in order; empty: one, Cd, for a CD or DVD.
	Slots []MediaSlot `json:"slots"`
	// Mirrored shows the slots both below the manager and below the system (iDRAC9).
	Mirrored bool `json:"mirrored"`
	// Insert and Eject are the ways in which an image is inserted and ejected.
	Insert MediaVerb `json:"insert"`
	Eject  MediaVerb `json:"eject"`
	// Needs are the parameters without which an insertion is refused, Refuses those with which it is.
	Needs   []string `json:"needs"`
	Refuses []string `json:"refuses"`
	// Schemes are the schemes of URLs that the BMC can fetch; empty: http and https.
	Schemes []string `json:"schemes"`
	// SchemeRule is what becomes of other URLs.
	SchemeRule SchemeRule `json:"schemeRule"`
	// NeedsISO refuses a URL that does not end in .iso.
	NeedsISO bool `json:"needsISO"`
	// Task is how an insertion that goes on in the background is followed; empty: it is over with its answer.
	Task MediaTask `json:"task"`
	// TaskReads is how many reads of the task pass before it ends.
	TaskReads int `json:"taskReads"`
	// Refusal is how every insertion is refused, such as for want of a licence; empty: it is not.
	Refusal Refusal `json:"refusal"`
	// Report is how the slot shows its image.
	Report MediaReport `json:"report"`
	// EjectsAtBoot means that the image is ejected when the server boots from it.
	EjectsAtBoot bool `json:"ejectsAtBoot"`
	// DropsOverride means that an insertion disables the boot override that was set before it.
	DropsOverride bool `json:"dropsOverride"`
}

// MediaSlot is a slot for virtual media.
type MediaSlot struct {
	// Name is the last part of its path.
	Name string `json:"name"`
	// Types are its MediaTypes; empty: it lists none.
	Types []string `json:"types"`
	// Refusal is how an insertion into this slot is refused; empty: it is not.
	Refusal Refusal `json:"refusal"`
}

// MediaVerb is the way in which an image is inserted or ejected. Empty: the action.
type MediaVerb string

// Deviating ways.
const (
	// VerbPatch means that there is no action: the slot is changed with PATCH.
	VerbPatch MediaVerb = "Patch"
	// VerbActionRefused means that the action is listed and answered with 405: the slot is changed with PATCH.
	VerbActionRefused MediaVerb = "ActionRefused"
	// VerbNoBody means that the action is refused with 400 where it has a body.
	VerbNoBody MediaVerb = "NoBody"
	// VerbListedWhenInserted means that the action is listed only while an image is inserted (Supermicro X13).
	VerbListedWhenInserted MediaVerb = "ListedWhenInserted"
)

// SchemeRule is what becomes of a URL whose scheme a BMC cannot fetch. Empty: it is refused.
type SchemeRule string

// Treatments of URLs with other schemes.
const (
	// SchemeNotFetched means that the URL is accepted, and that nothing is inserted.
	SchemeNotFetched SchemeRule = "NotFetched"
	// SchemeListed means that the action lists the schemes that there are, and refuses others.
	SchemeListed SchemeRule = "Listed"
	// SchemeRefusedWithOK means that the URL is refused in an answer with the status 200.
	SchemeRefusedWithOK SchemeRule = "RefusedWithOK"
)

// MediaTask is how an insertion that goes on in the background is followed.
type MediaTask string

// Ways to follow it.
const (
	// TaskMonitor means that Location names a task monitor, which answers 202 until the insertion is over and then as the insertion would (DSP0266, 12.2).
	TaskMonitor MediaTask = "Monitor"
	// TaskResource means that Location names the task, which is answered with 200 and has the state.
	TaskResource MediaTask = "Resource"
	// TaskUnnamed means that nothing names the task.
	TaskUnnamed MediaTask = "Unnamed"
)

// MediaReport is how a slot shows its image. Empty: Image and Inserted.
type MediaReport string

// Deviating reports.
const (
	// ReportName means that Image is null, and that ImageName has the last part of the URL.
	ReportName MediaReport = "Name"
	// ReportWithoutInserted means that there is no member Inserted.
	ReportWithoutInserted MediaReport = "WithoutInserted"
)

func (r MediaRules) slots() []MediaSlot {
	if len(r.Slots) > 0 {
		return r.Slots
	}
	return []MediaSlot{{Name: "Cd", Types: []string{"CD", "DVD"}}}
}

func (r MediaRules) schemes() []string {
	if len(r.Schemes) > 0 {
		return r.Schemes
	}
	return []string{"http", "https"}
}
