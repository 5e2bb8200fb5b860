package redfish

import (
	"context"
	"net/http"
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
	return b.call(ctx, opMedia, func(c *conn) error {
		slot, err := c.findMediaSlot()
		if err != nil {
			return err
		}
		hasMedia := slot.Image != ""
		if slot.Inserted != nil {
			hasMedia = *slot.Inserted
		}
		if imageURL == "" {
			if !hasMedia {
				return nil
			}
			return c.ejectMedia(slot)
		}
		if hasMedia && slot.Image == imageURL {
			return nil
		}
		if hasMedia {
			if err := c.ejectMedia(slot); err != nil {
				return err
			}
		}
		return c.insertMedia(slot, imageURL)
	})
}

// findMediaSlot returns the first virtual media slot for a CD. It is below the system in newer firmware, below its manager in older.
func (c *conn) findMediaSlot() (*mediaSlot, error) {
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
	for _, collection := range collections {
		if collection == "" {
			continue
		}
		collectionMembers, err := c.collectionMembers(collection)
		if err := c.skipResourceError(err, collection); err != nil {
			return nil, err
		}
		for _, member := range collectionMembers {
			slot := &mediaSlot{uri: member}
			slot.etags, err = c.readDocument(member, slot)
			if err := c.skipResourceError(err, member); err != nil {
				return nil, err
			}
			if err == nil && isCDSlot(slot) {
				return slot, nil
			}
		}
	}
	return nil, hardware.Errorf(hardware.Unsupported, opMedia, c.bmc.endpoint.Address,
		"neither the system %s nor its managers have virtual media for a CD image", s.ODataID)
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
