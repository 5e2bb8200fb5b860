package tenantaccess

// The costs that a meter adds to the bytes of JSON. Decoded JSON takes more memory than its text: the two bytes {} in a list of Pods
// become a struct of 1.3 kilobytes, and a list of nothing else becomes hundreds of times larger. The costs are between the honest
// average, where most objects are small structs, and that worst case.
const (
	objectCost = 512
	valueCost  = 32
)

// fieldsKey is the name of the field of managedFields whose value is kept as bytes and therefore costs no more than them.
const fieldsKey = "fieldsV1"

// meter estimates how much memory a JSON text takes once it is decoded, while the text arrives. The zero value is ready.
type meter struct {
	// weight is the estimate for the text, or for the value that is being read where values follow each other.
	weight int64
	// depth is how many objects and arrays are open. It is 0 between values.
	depth int
	// heaviest is the largest weight of a value that follows others.
	heaviest int64

	inString, escaped bool
	// length and head are those of the string that is being read, or was read last.
	length int
	head   [len(fieldsKey)]byte
	// isFields is true after the name of a field whose object is kept as bytes, and opaque is the depth of that object; 0: there is none.
	isFields bool
	opaque   int
}

// add counts a piece of the text. With perValue it counts each value of the outermost level on its own.
func (m *meter) add(text []byte, perValue bool) {
	for _, c := range text {
		m.weight++
		if m.inString {
			m.addToString(c)
			continue
		}
		switch c {
		case '"':
			m.inString, m.length = true, 0
		case '{', '[':
			m.open(c)
		case '}', ']':
			m.close(perValue)
		case ':':
			m.isFields = m.length == len(fieldsKey) && string(m.head[:]) == fieldsKey
		case ',':
			m.isFields = false
			if m.opaque == 0 {
				m.weight += valueCost
			}
		}
	}
	m.heaviest = max(m.heaviest, m.weight)
}

func (m *meter) addToString(c byte) {
	switch {
	case m.escaped:
		m.escaped = false
	case c == '\\':
		m.escaped = true
	case c == '"':
		m.inString = false
		return
	}
	if m.length < len(m.head) {
		m.head[m.length] = c
	}
	m.length++
}

func (m *meter) open(c byte) {
	m.depth++
	isFields := m.isFields
	m.isFields = false
	switch {
	case m.opaque > 0:
	case c == '[':
		m.weight += valueCost
	case isFields:
		m.opaque = m.depth
	default:
		m.weight += objectCost
	}
}

func (m *meter) close(perValue bool) {
	if m.opaque == m.depth {
		m.opaque = 0
	}
	m.depth = max(m.depth-1, 0)
	if m.depth == 0 && perValue {
		m.heaviest, m.weight = max(m.heaviest, m.weight), 0
	}
}
