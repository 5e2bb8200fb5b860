package redfish

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opMedia = "set virtual media"

// SetVirtualMedia implements hardware.BMC.
func (b *bmc) SetVirtualMedia(ctx context.Context, imageURL string) error {
	return b.do(ctx, opMedia, func(c *conn) error {
		slot, err := c.mediaSlot()
		if err != nil {
			return err
		}
		holdsMedia := slot.Image != ""
		if slot.Inserted != nil {
			holdsMedia = *slot.Inserted
		}
		if imageURL == "" {
			if !holdsMedia {
				return nil
			}
			return c.eject(slot)
		}
		if holdsMedia && slot.Image == imageURL {
			return nil
		}
		if holdsMedia {
			if err := c.eject(slot); err != nil {
				return err
			}
		}
		return c.insert(slot, imageURL)
	})
}

// mediaSlot finds the first slot that takes a CD: under the system in newer firmware, under its manager in older.
func (c *conn) mediaSlot() (*schemas.VirtualMedia, error) {
	s, err := c.system()
	if err != nil {
		return nil, err
	}
	collections := []string{s.links.VirtualMedia.String()}
	for _, manager := range s.links.Links.ManagedBy.ToStrings() {
		var links struct{ VirtualMedia schemas.Link }
		if err := c.optional(fetch(c.api, manager, &links), manager); err != nil {
			return nil, err
		}
		collections = append(collections, links.VirtualMedia.String())
	}
	for _, collection := range collections {
		if collection == "" {
			continue
		}
		members, err := c.members(collection)
		if err := c.optional(err, collection); err != nil {
			return nil, err
		}
		for _, member := range members {
			slot, err := schemas.GetObject[schemas.VirtualMedia](c.api, member)
			if err := c.optional(err, member); err != nil {
				return nil, err
			}
			if err == nil && takesCD(slot) {
				slot.ODataID = member
				return slot, nil
			}
		}
	}
	return nil, hardware.Errorf(hardware.Unsupported, opMedia, c.bmc.endpoint.Address,
		"neither the system %s nor its managers have virtual media for a CD image", s.ODataID)
}

func takesCD(slot *schemas.VirtualMedia) bool {
	return slices.Contains(slot.MediaTypes, schemas.CDVirtualMediaType) || slices.Contains(slot.MediaTypes, schemas.DVDVirtualMediaType)
}

// mediaTargets are the actions' targets, which gofish keeps to itself; a slot without them is changed by PATCH.
func mediaTargets(slot *schemas.VirtualMedia) (insert, eject string) {
	var links struct {
		Actions struct {
			Insert struct {
				Target string `json:"target"`
			} `json:"#VirtualMedia.InsertMedia"`
			Eject struct {
				Target string `json:"target"`
			} `json:"#VirtualMedia.EjectMedia"`
		}
	}
	if err := json.Unmarshal(slot.RawData, &links); err != nil {
		return "", "" // gofish has parsed it; other types than expected are as good as no action
	}
	return links.Actions.Insert.Target, links.Actions.Eject.Target
}

func (c *conn) eject(slot *schemas.VirtualMedia) error {
	_, target := mediaTargets(slot)
	if target == "" {
		return slot.Patch(slot.ODataID, map[string]any{"Image": nil, "Inserted": false})
	}
	resp, err := c.api.Post(target, map[string]any{})
	if err != nil {
		return err
	}
	schemas.DeferredCleanupHTTPResponse(resp)
	return nil
}

func (c *conn) insert(slot *schemas.VirtualMedia, imageURL string) error {
	target, _ := mediaTargets(slot)
	payload := map[string]any{"Image": imageURL, "Inserted": true, "WriteProtected": true}
	if target == "" {
		return slot.Patch(slot.ODataID, payload)
	}
	resp, err := c.api.Post(target, payload)
	if err != nil && vendorSaysAttached(err) {
		// iDRAC can hold stale media (VRM0021) while the slot says that nothing is inserted.
		if err := c.eject(slot); err != nil {
			return err
		}
		resp, err = c.api.Post(target, payload)
	}
	if err != nil {
		return err
	}
	schemas.DeferredCleanupHTTPResponse(resp)
	return nil
}

func vendorSaysAttached(err error) bool {
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusConflict, http.StatusInternalServerError:
	default:
		return false
	}
	return hasMessage(err, "VRM0021")
}
