package tenantaccess

import "slices"

// The costs that a meter adds to the bytes of JSON. Decoded JSON takes more memory than its text: the two bytes {} in a list of Pods
// become a struct of 1.3 kilobytes, and so does each null, number or text where an object belongs: the decoder makes the element before
// it sees what is wrong with it. An element therefore costs the same whatever it is.
const (
	// itemCost is for the elements of lists of objects, and for containers, which are as large.
	itemCost   = 2048
	objectCost = 512
	// fieldCost is for each field of an object, which may be an entry of a map.
	fieldCost = 160
	arrayCost = 32
)

// The names that decide what the values under them cost. The value of fieldsV1 is kept as bytes and costs no more than them.
const (
	metadataKey = "metadata"
	managedKey  = "managedFields"
	fieldsKey   = "fieldsV1"
)

// escapedKey stands for a name that is written with an escape: what it is once it is decoded is not known.
const escapedKey = `\`

// itemKeys are the names of arrays whose elements are large.
var itemKeys = []string{"items", "containers", "initContainers", "ephemeralContainers", escapedKey}

// level says what an open object or array is.
type level uint8

const (
	inObject level = iota
	inMetadata
	// inEntry is an element of managedFields.
	inEntry
	// inFields is the value of fieldsV1.
	inFields
	// The following are arrays.
	inArray
	inItems
	inManaged
)

func (l level) isArray() bool { return l >= inArray }

// longestKey is the length of the longest name that is recognized.
const longestKey = len("ephemeralContainers")

// meter estimates how much memory a JSON text takes once it is decoded, while the text arrives. The zero value is ready.
type meter struct {
	// weight is the estimate for the text, or for the value that is being read where values follow each other.
	weight int64
	// depth is how many objects and arrays are open. It is 0 between values.
	depth int
	// heaviest is the largest weight of a value that follows others.
	heaviest int64

	// levels are the open objects and arrays, without those inside the value of fieldsV1.
	levels []level
	// isAwaited is true where an element of an array, or the end of the array, comes next.
	isAwaited bool

	inString, isEscape, hasEscape bool
	// length and head are those of the string that is being read, or was read last.
	length int
	head   [longestKey]byte
	// key is the name of the field whose value comes next, if it is known.
	key string
}

// add counts a piece of the text. With perValue it counts each value of the outermost level on its own.
func (m *meter) add(text []byte, perValue bool) {
	for _, c := range text {
		m.weight++
		if m.inString {
			m.addToString(c)
			continue
		}
		if m.isAwaited {
			m.startElement(c)
		}
		switch c {
		case '"':
			m.inString, m.hasEscape, m.length = true, false, 0
		case '{', '[':
			m.open(c)
		case '}', ']':
			m.close(perValue)
		case ':':
			m.readKey()
		case ',':
			m.separate()
		}
	}
	m.heaviest = max(m.heaviest, m.weight)
}

func (m *meter) addToString(c byte) {
	switch {
	case m.isEscape:
		m.isEscape = false
	case c == '\\':
		m.isEscape, m.hasEscape = true, true
	case c == '"':
		m.inString = false
		return
	}
	if m.length < len(m.head) {
		m.head[m.length] = c
	}
	m.length++
}

// top returns the innermost open object or array; outside all of them: inObject.
func (m *meter) top() level {
	if len(m.levels) == 0 {
		return inObject
	}
	return m.levels[len(m.levels)-1]
}

// startElement charges the element of an array that begins with the character.
func (m *meter) startElement(c byte) {
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',':
		return
	case c == ']':
	case m.top() == inItems:
		m.weight += itemCost
	default:
		m.weight += objectCost
	}
	m.isAwaited = false
}

// readKey takes the string that was read last as the name of a field.
func (m *meter) readKey() {
	m.key = ""
	switch {
	case m.hasEscape:
		m.key = escapedKey
	case m.length <= len(m.head):
		m.key = string(m.head[:m.length])
	}
}

// separate ends a field or an element.
func (m *meter) separate() {
	m.key = ""
	switch top := m.top(); {
	case top.isArray():
		m.isAwaited = true
	case top != inFields:
		m.weight += fieldCost
	}
}

func (m *meter) open(c byte) {
	m.depth++
	key, parent := m.key, m.top()
	if m.key = ""; parent == inFields {
		return
	}
	next := objectLevel(parent, key)
	switch {
	case c == '[':
		next = arrayLevel(parent, key)
		m.weight += arrayCost
		m.isAwaited = true
	// An element has been charged already.
	case next != inFields && !parent.isArray():
		m.weight += objectCost
	}
	m.levels = append(m.levels, next)
}

// objectLevel returns what an object is.
//
// Only a fieldsV1 directly inside an entry of the managedFields of some metadata is kept as bytes. Without that: a tenant names a
// resource of a device fieldsV1, and everything inside it is decoded into structs and counted as text.
func objectLevel(parent level, key string) level {
	switch {
	case parent == inManaged:
		return inEntry
	case parent == inEntry && key == fieldsKey:
		return inFields
	case key == metadataKey:
		return inMetadata
	}
	return inObject
}

// arrayLevel returns what an array is.
func arrayLevel(parent level, key string) level {
	switch {
	case parent == inMetadata && key == managedKey:
		return inManaged
	case slices.Contains(itemKeys, key):
		return inItems
	}
	return inArray
}

func (m *meter) close(perValue bool) {
	m.isAwaited = false
	if m.depth == len(m.levels) && m.depth > 0 {
		m.levels = m.levels[:m.depth-1]
	}
	m.depth = max(m.depth-1, 0)
	if m.depth == 0 && perValue {
		m.heaviest, m.weight = max(m.heaviest, m.weight), 0
	}
}
