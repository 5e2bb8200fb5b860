package redfish

import (
	"context"
	"net/http"
	"path"
	"slices"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opMedia = "set virtual media"

// mediaSlot is a slot for virtual media.
type mediaSlot struct {
	Image      string
	Inserted   *bool
	MediaTypes []string
	Actions    struct {
		Insert struct {
			Target string `json:"target"`
		} `json:"#VirtualMedia.InsertMedia"`
		Eject struct {
			Target string `json:"target"`
		} `json:"#VirtualMedia.EjectMedia"`
	}

	uri   string
	etags []string
}

// SetVirtualMedia implements hardware.BMC.
func (b *bmc) SetVirtualMedia(ctx context.Context, imageURL string) error {
	return b.callWithSecret(ctx, opMedia, secretOfURL(imageURL), func(c *conn) error {
		slots, err := c.readMediaSlots()
		if err != nil {
			return err
		}
		if imageURL == "" {
			return c.ejectOwnMedia(slots)
		}
		slot := chooseMediaSlot(slots)
		if slot == nil {
			return hardware.Errorf(hardware.Conflict, opMedia, b.endpoint.Address, "virtual media have another image in every slot for a CD: eject it at the BMC")
		}
		if slot.hasMedia() {
			if slot.Image == imageURL {
				return nil
			}
			if err := c.ejectMedia(slot); err != nil {
				return err
			}
		}
		if err := c.insertMedia(slot, imageURL); err != nil {
			return err
		}
		return c.checkInserted(slot)
	})
}

// hasMedia reports whether an image is inserted.
func (s *mediaSlot) hasMedia() bool {
	if s.Inserted != nil {
		return *s.Inserted
	}
	return s.Image != ""
}

// isOwn reports whether the image in the slot is one that Ingot inserted.
func (s *mediaSlot) isOwn() bool { return path.Base(s.Image) == hardware.MediaFileName }

// chooseMediaSlot returns the slot for an image: the one that has an image of ours, otherwise the first empty one; nil when there is none.
func chooseMediaSlot(slots []*mediaSlot) *mediaSlot {
	for _, isGood := range []func(*mediaSlot) bool{
		func(s *mediaSlot) bool { return s.hasMedia() && s.isOwn() },
		func(s *mediaSlot) bool { return !s.hasMedia() },
	} {
		if i := slices.IndexFunc(slots, isGood); i >= 0 {
			return slots[i]
		}
	}
	return nil
}

// ejectOwnMedia ejects the images that Ingot inserted.
func (c *conn) ejectOwnMedia(slots []*mediaSlot) error {
	for _, slot := range slots {
		if slot.hasMedia() && slot.isOwn() {
			if err := c.ejectMedia(slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkInserted reads the slot again. A BMC that accepts an image and cannot fetch it reports none, at once or after a while; one that inserts in
// the background reports it later, and the caller repeats the call.
//
// Without it: the server would be powered on without the medium, and its firmware would boot the next device, which is the disk.
func (c *conn) checkInserted(slot *mediaSlot) error {
	after := &mediaSlot{uri: slot.uri}
	if _, err := c.readDocument(slot.uri, after); err != nil {
		return err
	}
	if after.Inserted != nil && !*after.Inserted {
		return hardware.Errorf(hardware.Busy, opMedia, c.bmc.endpoint.Address,
			"the BMC has accepted the image and reports that none is inserted: look whether it reaches the boot service from its own network")
	}
	return nil
}

// readMediaSlots returns the virtual media slots for a CD. They are below the system in newer firmware, below its manager in older.
func (c *conn) readMediaSlots() ([]*mediaSlot, error) {
	s, err := c.serverSystem()
	if err != nil {
		return nil, err
	}
	collections := []string{s.links.VirtualMedia.String()}
	for _, manager := range s.links.Links.ManagedBy.ToStrings() {
		var links struct{ VirtualMedia schemas.Link }
		if err := c.skipResourceError(getJSON(c.api, manager, &links), manager); err != nil {
			return nil, err
		}
		collections = append(collections, links.VirtualMedia.String())
	}
	var slots []*mediaSlot
	for _, collection := range collections {
		if collection == "" {
			continue
		}
		if slots, err = c.appendMediaSlots(slots, collection); err != nil {
			return nil, err
		}
	}
	if len(slots) == 0 {
		return nil, hardware.Errorf(hardware.Unsupported, opMedia, c.bmc.endpoint.Address,
			"neither the system %s nor its managers have virtual media for a CD image", s.ODataID)
	}
	return slots, nil
}

// appendMediaSlots appends the slots of a collection.
func (c *conn) appendMediaSlots(slots []*mediaSlot, collection string) ([]*mediaSlot, error) {
	members, err := c.collectionMembers(collection)
	if err := c.skipResourceError(err, collection); err != nil {
		return nil, err
	}
	for _, member := range members {
		slot := &mediaSlot{uri: member}
		slot.etags, err = c.readDocument(member, slot)
		if err := c.skipResourceError(err, member); err != nil {
			return nil, err
		}
		if err == nil && isCDSlot(slot) {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

// isCDSlot reports whether the slot accepts a CD or DVD image.
func isCDSlot(slot *mediaSlot) bool {
	return slices.Contains(slot.MediaTypes, "CD") || slices.Contains(slot.MediaTypes, "DVD")
}

// ejectMedia ejects the image. A slot without the action is changed with PATCH.
func (c *conn) ejectMedia(slot *mediaSlot) error {
	if slot.Actions.Eject.Target == "" {
		return c.patch(slot.uri, slot.etags, map[string]any{"Image": nil, "Inserted": false})
	}
	return c.post(slot.Actions.Eject.Target, map[string]any{})
}

// insertMedia inserts the image. A BMC that refuses the further parameters gets the image alone.
func (c *conn) insertMedia(slot *mediaSlot, imageURL string) error {
	insert := func(payload map[string]any) error {
		if slot.Actions.Insert.Target == "" {
			return c.patch(slot.uri, slot.etags, payload)
		}
		return c.post(slot.Actions.Insert.Target, payload)
	}
	payload := map[string]any{"Image": imageURL, "Inserted": true, "WriteProtected": true}
	err := insert(payload)
	if isMediaAttachedError(err) {
		// iDRAC may have media attached (VRM0021) although the slot reports that nothing is inserted.
		if err := c.ejectMedia(slot); err != nil {
			return err
		}
		err = insert(payload)
	}
	if isRefused(err) {
		return insert(map[string]any{"Image": imageURL})
	}
	return err
}

// post sends an action. It has no If-Match, which iDRAC10 refuses on actions.
func (c *conn) post(target string, payload any) error {
	resp, err := c.api.Post(target, payload)
	if err != nil {
		return err
	}
	schemas.DeferredCleanupHTTPResponse(resp)
	return nil
}

// isMediaAttachedError reports whether the BMC refused because other media are attached.
func isMediaAttachedError(err error) bool {
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusConflict, http.StatusInternalServerError:
	default:
		return false
	}
	return hasMessage(err, "VRM0021")
}
