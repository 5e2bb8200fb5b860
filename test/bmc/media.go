package bmc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

const (
	pathTask    = "/redfish/v1/TaskService/Tasks/1"
	pathMonitor = "/redfish/v1/TaskService/TaskMonitors/1"
)

// mediaDevice is a device for virtual media, which may be seen in two slots.
type mediaDevice struct {
	MediaSlot
	// image is the URL of the inserted image; empty: none.
	image string
	// version numbers the changes.
	version int
}

// mediaTask is an insertion that goes on in the background.
type mediaTask struct {
	device *mediaDevice
	image  string
	// reads is how many reads of the task are left before it ends; failed: it has ended without an image.
	reads         int
	ended, failed bool
}

// mediaCollections are the paths of the collections of virtual media.
func (p Personality) mediaCollections() []string {
	manager, system := pathManager+"/VirtualMedia", PathSystem+"/VirtualMedia"
	switch {
	case p.Media.Mirrored:
		return []string{manager, system}
	case p.MediaUnderSystem:
		return []string{system}
	}
	return []string{manager}
}

// addMedia adds the slots for virtual media below the manager, below the system, or both.
func (t tree) addMedia(personality Personality) {
	for _, collection := range personality.mediaCollections() {
		t[path.Dir(collection)]["VirtualMedia"] = ref(collection)
		var members []string
		for _, slot := range personality.Media.slots() {
			document := map[string]any{"Name": "Virtual media " + slot.Name}
			if len(slot.Types) > 0 {
				document["MediaTypes"] = slot.Types
			}
			if !personality.NoMedia {
				members = append(members, t.add(collection+"/"+slot.Name, "#VirtualMedia.v1_6_3.VirtualMedia", document))
			}
		}
		t.collection(collection, members...)
	}
}

// newDevices returns the devices of a personality.
func newDevices(rules MediaRules) []*mediaDevice {
	var devices []*mediaDevice
	for _, slot := range rules.slots() {
		devices = append(devices, &mediaDevice{MediaSlot: slot})
	}
	return devices
}

// InsertMedia inserts an image as a person does at the BMC.
func (b *BMC) InsertMedia(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.devices[0].image = url
}

// Media returns the URL of the inserted image, or "".
func (b *BMC) Media() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.insertedImage()
}

// insertedImage returns the URL of the inserted image, or "". The caller holds mu.
func (b *BMC) insertedImage() string {
	for _, device := range b.devices {
		if device.image != "" {
			return device.image
		}
	}
	return ""
}

// takeMedium does what the BMC does with its media when the server boots from one. The caller holds mu.
func (b *BMC) takeMedium() {
	b.bootedImage = b.insertedImage()
	if b.options.Personality.Media.EjectsAtBoot {
		for _, device := range b.devices {
			device.image = ""
		}
	}
}

// BootedMedia returns the URL of the image that the last boot loads; "" when it loads none.
func (b *BMC) BootedMedia() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bootedImage
}

// deviceAt returns the device of the slot at a path, or nil.
func (b *BMC) deviceAt(at string) *mediaDevice {
	if b.tree[at] == nil || !slices.Contains(b.options.Personality.mediaCollections(), path.Dir(at)) {
		return nil
	}
	for _, device := range b.devices {
		if device.Name == path.Base(at) {
			return device
		}
	}
	return nil
}

// mediaDocument returns a slot with the image that is inserted, or the task of an insertion.
func (b *BMC) mediaDocument(at string) (document map[string]any, found bool) {
	if at == pathTask && b.task != nil {
		return b.taskDocument(), true
	}
	device := b.deviceAt(at)
	if device == nil {
		return nil, false
	}
	rules := b.options.Personality.Media
	document = maps.Clone(b.tree[at])
	document["Inserted"], document["Image"], document["ImageName"] = device.image != "", nil, nil
	if device.image != "" {
		document["ImageName"] = path.Base(device.image)
		if rules.Report != ReportName {
			document["Image"] = device.image
		}
	}
	if rules.Report == ReportWithoutInserted {
		delete(document, "Inserted")
	}
	document["Actions"] = rules.actions(at, device)
	if etag := b.servedETag(device.etag()); etag != "" {
		document["@odata.etag"] = etag
	}
	return document, true
}

// actions returns the actions that a slot lists.
func (r MediaRules) actions(at string, device *mediaDevice) map[string]any {
	actions := map[string]any{}
	if r.Insert != VerbPatch {
		insert := map[string]any{"target": at + actionInsert}
		if r.SchemeRule == SchemeListed {
			insert["TransferProtocolType@Redfish.AllowableValues"] = strings.Fields(strings.ToUpper(strings.Join(r.schemes(), " ")))
		}
		actions["#VirtualMedia.InsertMedia"] = insert
	}
	if r.Eject != VerbPatch && (r.Eject != VerbListedWhenInserted || device.image != "") {
		actions["#VirtualMedia.EjectMedia"] = map[string]any{"target": at + actionEject}
	}
	return actions
}

// etag returns the ETag of the slot, as it is compared.
func (d *mediaDevice) etag() string { return fmt.Sprintf(`"media-%d"`, d.version) }

// changeMedia answers a request that changes virtual media. It returns false when the request is for something else.
func (b *BMC) changeMedia(w http.ResponseWriter, r *http.Request, at string, body []byte) bool {
	slot, action := at, ""
	for _, name := range []string{actionInsert, actionEject} {
		if before, isAction := strings.CutSuffix(at, name); isAction {
			slot, action = before, name
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	device := b.deviceAt(slot)
	switch {
	case device != nil && r.Method == http.MethodPatch && action == "":
		b.patchMedia(w, r, device, body)
	case device != nil && r.Method == http.MethodPost && action != "":
		b.doMediaAction(w, r, device, action, body)
	default:
		return false
	}
	return true
}

// doMediaAction answers an action of a slot.
func (b *BMC) doMediaAction(w http.ResponseWriter, r *http.Request, device *mediaDevice, action string, body []byte) {
	verb := b.options.Personality.Media.verb(action)
	switch {
	case verb == VerbPatch || verb == VerbActionRefused:
		b.refuse(w, http.StatusMethodNotAllowed, "ActionNotSupported", "The action is not supported by the resource.")
	case r.Header.Get("If-Match") != "" && b.options.Personality.Wire.RefusesIfMatchOnActions:
		b.refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
	case action == actionInsert:
		b.insertMedia(w, device, body)
	case verb == VerbNoBody && len(bytes.TrimSpace(body)) > 0:
		b.refuse(w, http.StatusBadRequest, "UnrecognizedRequestBody", "The service detected a malformed request body that it was unable to interpret.")
	default:
		b.ejectMedia(w, device)
	}
}

func (r MediaRules) verb(action string) MediaVerb {
	if action == actionInsert {
		return r.Insert
	}
	return r.Eject
}

// patchMedia changes a slot with PATCH.
func (b *BMC) patchMedia(w http.ResponseWriter, r *http.Request, device *mediaDevice, body []byte) {
	rules := b.options.Personality.Media
	var change struct{ Image *string }
	isInsertion := json.Unmarshal(body, &change) == nil && change.Image != nil && *change.Image != ""
	verb := rules.Eject
	if isInsertion {
		verb = rules.Insert
	}
	if verb != VerbPatch && verb != VerbActionRefused {
		b.refuse(w, http.StatusMethodNotAllowed, "OperationNotAllowed", "The HTTP method is not allowed on this resource.")
		return
	}
	if status, key := b.checkIfMatch(r.Header.Get("If-Match"), device.etag()); status != 0 {
		b.refuse(w, status, key, "The ETag supplied did not match the ETag required to change this resource.")
		return
	}
	if isInsertion {
		b.insertMedia(w, device, body)
		return
	}
	b.ejectMedia(w, device)
}

// insertMedia inserts an image, at once or in the background.
func (b *BMC) insertMedia(w http.ResponseWriter, device *mediaDevice, body []byte) {
	var request map[string]any
	_ = json.Unmarshal(body, &request) // a body that cannot be read has no image
	image, _ := request["Image"].(string)
	scheme, _, _ := strings.Cut(image, "://")
	rules := b.options.Personality.Media
	isFetched := slices.Contains(rules.schemes(), scheme)
	switch key, missing := rules.checkParameters(request); {
	case key != "":
		b.refuse(w, http.StatusBadRequest, key, "The action InsertMedia and the parameter "+missing+" do not go together.", "InsertMedia", missing)
	case b.refusesInsertion(w, device, image, isFetched):
	case b.task != nil && !b.task.ended:
		b.refuse(w, http.StatusServiceUnavailable, "ResourceInUse", "An image is being inserted.")
	default:
		if rules.DropsOverride {
			b.override().enabled, b.override().target = "Disabled", "None"
		}
		b.beginInsertion(w, device, image, !isFetched)
	}
}

// checkParameters returns the message with which the parameters of an insertion are refused, and the parameter; "" when they are not.
func (r MediaRules) checkParameters(request map[string]any) (key, parameter string) {
	for _, name := range append([]string{"Image"}, r.Needs...) {
		if request[name] == nil {
			return "ActionParameterMissing", name
		}
	}
	for _, name := range r.Refuses {
		if request[name] != nil {
			return "ActionParameterNotSupported", name
		}
	}
	return "", ""
}

// refusesInsertion refuses an insertion, and reports whether it has. The refusals quote the URL.
func (b *BMC) refusesInsertion(w http.ResponseWriter, device *mediaDevice, image string, isFetched bool) bool {
	rules := b.options.Personality.Media
	switch {
	case rules.Refusal.Status != 0:
		b.refuseAs(w, rules.Refusal, "The image "+image+" is not inserted: a licence is required.")
	case device.Refusal.Status != 0:
		b.refuseAs(w, device.Refusal, "The image "+image+" is not for this device.")
	case rules.NeedsISO && !strings.HasSuffix(image, ".iso"):
		b.refuse(w, http.StatusBadRequest, "ActionParameterValueFormatError", "The value "+image+" for the parameter Image is of a different format than the parameter can accept.")
	case !isFetched && rules.SchemeRule == SchemeRefusedWithOK:
		write(w, http.StatusOK, map[string]any{"@Message.ExtendedInfo": []any{map[string]any{
			"MessageId": "Base.1.18.ActionParameterValueError", "Message": "The value " + image + " for the parameter Image is invalid.", "MessageSeverity": "Critical",
		}}})
	case !isFetched && rules.SchemeRule != SchemeNotFetched:
		b.refuse(w, http.StatusBadRequest, "ActionParameterValueFormatError", "The value "+image+" for the parameter Image is of a different format than the parameter can accept.")
	case b.faults.StaleMedia:
		b.refuse(w, http.StatusInternalServerError, "IDRAC.2.8.VRM0021", "The Virtual Media image server is already connected.")
	case device.image != "":
		b.refuse(w, http.StatusConflict, "ResourceInUse", "The media is in use.")
	default:
		return false
	}
	return true
}

// beginInsertion inserts an image, or begins a task that does. An image that cannot be fetched is not inserted, and the answer is the same.
func (b *BMC) beginInsertion(w http.ResponseWriter, device *mediaDevice, image string, isLost bool) {
	rules := b.options.Personality.Media
	if isDue(b.faults.LostImages) {
		b.faults.LostImages, isLost = oneLess(b.faults.LostImages), true
	}
	if rules.Task == "" {
		if !isLost {
			device.image = image
			device.version++
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	b.task = &mediaTask{device: device, image: image, reads: rules.TaskReads, failed: isLost}
	switch rules.Task {
	case TaskMonitor:
		w.Header().Set("Location", pathMonitor)
	case TaskResource:
		w.Header().Set("Location", pathTask)
	case TaskUnnamed:
	}
	write(w, http.StatusAccepted, b.taskDocument())
}

// advanceTask counts a read of the task, or of the slots where nothing names the task, and ends the task when its reads are used up.
func (b *BMC) advanceTask() {
	if b.task == nil || b.task.ended {
		return
	}
	if b.task.reads--; b.task.reads > 0 {
		return
	}
	if b.task.ended = true; !b.task.failed {
		b.task.device.image = b.task.image
		b.task.device.version++
	}
}

// taskDocument returns the task of the last insertion. The message of a failure quotes the URL.
func (b *BMC) taskDocument() map[string]any {
	document := map[string]any{"@odata.id": pathTask, "@odata.type": "#Task.v1_7_4.Task", "Id": "1", "Name": "Insert media", "TaskMonitor": pathMonitor, "TaskState": "Running", "TaskStatus": "OK"}
	switch {
	case b.task.ended && b.task.failed:
		document["TaskState"], document["TaskStatus"] = "Exception", "Critical"
		document["Messages"] = []any{map[string]any{"MessageId": "Base.1.18.CouldNotEstablishConnection", "Message": "The service failed to establish a connection with the URI " + b.task.image + ".", "MessageSeverity": "Critical"}}
	case b.task.ended:
		document["TaskState"] = "Completed"
	}
	return document
}

// getMonitor answers a read of the task monitor. It reports whether the path is that of one.
func (b *BMC) getMonitor(w http.ResponseWriter, at string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	rules := b.options.Personality.Media
	switch isTask := at == pathMonitor || at == pathTask; {
	case isTask && rules.Task != TaskUnnamed, rules.Task == TaskUnnamed && b.deviceAt(at) != nil:
		b.advanceTask()
	}
	switch {
	case at != pathMonitor || b.task == nil:
		return false
	case !b.task.ended:
		write(w, http.StatusAccepted, b.taskDocument())
	case b.task.failed:
		b.refuse(w, http.StatusBadRequest, "CouldNotEstablishConnection", "The service failed to establish a connection with the URI "+b.task.image+".")
		b.task = nil
	default:
		w.WriteHeader(http.StatusNoContent)
		b.task = nil
	}
	return true
}

func (b *BMC) ejectMedia(w http.ResponseWriter, device *mediaDevice) {
	if device.image == "" && !b.faults.StaleMedia && b.options.Personality.Media.Mirrored {
		b.refuse(w, http.StatusBadRequest, "IDRAC.2.8.VRM0009", "No Virtual Media devices are currently connected.")
		return
	}
	device.image, b.faults.StaleMedia = "", false
	device.version++
	w.WriteHeader(http.StatusNoContent)
}
