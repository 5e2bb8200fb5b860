package redfish

import (
	"cmp"
	"encoding/json"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/api/input"
)

// collectionPage is one page of a collection.
type collectionPage struct {
	Members []schemas.Link
	// Links had the members before Redfish 1.0.
	Links struct{ Members []schemas.Link }
	// Count is how many members all pages have. Some BMCs write it as a text, or null.
	Count *number `json:"Members@odata.count"`
	Next  word    `json:"Members@odata.nextLink"`
}

// collection is what all pages of a collection list.
type collection struct {
	// members are the paths, each once.
	members []string
	// missing is how many more members the BMC counts than it lists.
	missing int
}

// readCollection reads all pages of a collection. gofish's readers are not used, see the package comment: a count that is a text costs them all members.
func (c *conn) readCollection(uri string) (collection, error) {
	var all []string
	listed, count := 0, 0
	visited := map[string]bool{}
	for uri != "" && !visited[uri] { // some firmware's last page links to itself
		visited[uri] = true
		page, err := c.readPage(uri)
		if err != nil {
			return collection{}, err
		}
		links := page.Members
		if len(links) == 0 {
			links = page.Links.Members
		}
		all, listed = append(all, schemas.Links(links).ToStrings()...), listed+len(links)
		if page.Count != nil && *page.Count > 0 && *page.Count < 1<<20 {
			count = max(count, int(*page.Count))
		}
		uri = string(page.Next)
	}
	return collection{members: distinctLinks(all), missing: max(0, count-listed)}, nil
}

// readPage reads one page of a collection.
func (c *conn) readPage(uri string) (*collectionPage, error) {
	raw, _, err := readRaw(c.api, uri)
	if err != nil {
		return nil, err
	}
	page := &collectionPage{}
	return page, c.decode(uri, raw, page)
}

// collectionMembers returns the paths of the members of a collection, each once.
func (c *conn) collectionMembers(uri string) ([]string, error) {
	found, err := c.readCollection(uri)
	return found.members, err
}

// linked are resources behind a link to a collection, or behind a list of links. Which of both a member has depends on the version of its schema, and some
// firmware has the other one.
type linked struct {
	collection string
	items      []string
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *linked) UnmarshalJSON(raw []byte) error {
	*l = linked{}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) == nil {
		if len(items) > maxListItems {
			return &input.Error{Seen: int64(len(items)), Most: maxListItems, Unit: "items of a list"}
		}
		for _, item := range items {
			var link schemas.Link
			if json.Unmarshal(item, &link) == nil && link != "" {
				l.items = append(l.items, link.String())
			}
		}
		return nil
	}
	var link struct {
		ID   string `json:"@odata.id"`
		Href string `json:"href"`
	}
	if err := json.Unmarshal(raw, &link); err != nil {
		return err
	}
	l.collection = cmp.Or(link.ID, link.Href)
	return nil
}

// isEmpty reports whether there is neither a collection nor a link.
func (l linked) isEmpty() bool { return l.collection == "" && len(l.items) == 0 }

// readAll reads the resources, each once.
func readAll[T any](w *crawl, l linked) ([]T, error) {
	if l.collection != "" {
		return readMembers[T](w, l.collection)
	}
	return readLinked[T](w, l.items)
}
