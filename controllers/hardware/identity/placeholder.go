package identity

import (
	"encoding/hex"
	"net"
	"slices"
	"strings"
	"unicode"
)

// genericWords are the words that vendors fill fields with which nobody has set. A text that consists of such words identifies nothing.
var genericWords = []string{
	"to", "be", "by", "filled", "oem", "o", "e", "m", "n", "a", "na", "no", "not", "none", "null", "nil", "unknown", "undefined", "unset", "unspecified", "unavailable",
	"specified", "available", "applicable", "provided", "set", "settable", "present", "programmed", "supported", "defined", "assigned", "entered", "invalid", "empty", "blank", "tbd",
	"default", "string", "dummy", "placeholder", "system", "computer", "server", "serial", "number", "num", "sn", "chassis", "enclosure", "base", "board", "baseboard",
	"motherboard", "mainboard", "product", "name", "manufacturer", "vendor", "model", "asset", "tag", "part", "sku", "version", "uuid", "field", "value", "text", "type",
	"here", "the", "is",
}

// minJoined is the length of the shortest generic word that may be part of a word without spaces, such as SystemSerialNumber. Shorter ones
// would make real serial numbers of letters look generic.
const minJoined = 3

// maxJoined is the length of the longest word that is taken apart. Without it: a BMC reports a serial number of a thousand letters, and the
// time to take it apart doubles with every word in it.
const maxJoined = 64

// words returns the words of a text in lower case: runs of letters and digits.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// IsPlaceholder reports whether a text identifies nothing: it is empty, or every word of it is generic, one repeated character, or a count
// such as 0123456789.
func IsPlaceholder(text string) bool {
	return !slices.ContainsFunc(words(text), func(w string) bool { return !isGeneric(w) && !isRepeated(w) && !isCount(w) })
}

// isGeneric reports whether a word is generic or consists of generic words without spaces between them.
func isGeneric(word string) bool {
	if word == "" || slices.Contains(genericWords, word) {
		return true
	}
	if len(word) > maxJoined {
		return false
	}
	return slices.ContainsFunc(genericWords, func(g string) bool {
		rest, isPrefix := strings.CutPrefix(word, g)
		return isPrefix && (len(g) >= minJoined || g == "to" || g == "be" || g == "by") && isGeneric(rest) && (rest == "" || len(rest) >= minJoined)
	})
}

// isRepeated reports whether a word is one character, once or several times, such as 0000 or x.
func isRepeated(word string) bool {
	return strings.Trim(word, word[:1]) == ""
}

// minCount is the length of the shortest count: 123.
const minCount = 3

// isCount reports whether each character of a word follows the one before it, as in 123456789, 1234567890 and 0123456789abcdef.
func isCount(word string) bool {
	if len(word) < minCount {
		return false
	}
	for i := 1; i < len(word); i++ {
		before, after := word[i-1], word[i]
		if after != before+1 && !(before == '9' && (after == '0' || after == 'a')) {
			return false
		}
	}
	return true
}

// SerialNumber returns the letters and digits of a serial number, and nothing for a placeholder.
func SerialNumber(text string) string {
	if IsPlaceholder(text) {
		return ""
	}
	return strings.Join(words(text), "")
}

// companyWords are parts of a company's name that one source has and another leaves out.
var companyWords = []string{"inc", "incorporated", "corp", "corporation", "co", "company", "ltd", "limited", "llc", "gmbh", "ag"}

// ManufacturerName returns the name of a manufacturer without its legal form, and nothing for a placeholder.
func ManufacturerName(text string) string {
	if IsPlaceholder(text) {
		return ""
	}
	return strings.Join(slices.DeleteFunc(words(text), func(w string) bool { return slices.Contains(companyWords, w) }), " ")
}

// ModelName returns the name of a model, and nothing for a placeholder. What stands in parentheses is left out: Metal3's inspection adds
// the SKU there.
func ModelName(text string) string {
	text, _, _ = strings.Cut(text, "(")
	if IsPlaceholder(text) {
		return ""
	}
	return strings.Join(words(text), " ")
}

// macBytes is the length of an Ethernet address.
const macBytes = 6

// IsInterfaceAddress reports whether the bytes may be the Ethernet address of a network interface: not those of a group, and not one digit
// repeated, which firmware writes where it has none.
func IsInterfaceAddress(mac []byte) bool {
	const group = 1
	return len(mac) == macBytes && mac[0]&group == 0 && !isRepeated(hex.EncodeToString(mac))
}

// MAC returns an Ethernet address in lower case with colons. It returns nothing for an address that identifies no server: one that
// software has assigned (locally administered), as host interfaces to BMCs have, a group address, and zeros.
func MAC(text string) string {
	digits := make([]byte, 0, 2*macBytes)
	for _, c := range []byte(strings.TrimSpace(text)) {
		switch {
		case c == ':' || c == '-' || c == '.':
		case len(digits) == 2*macBytes:
			return ""
		default:
			digits = append(digits, c)
		}
	}
	var mac [macBytes]byte
	const locallyAdministered = 2
	if n, err := hex.Decode(mac[:], digits); err != nil || !IsInterfaceAddress(mac[:n]) || mac[0]&locallyAdministered != 0 {
		return ""
	}
	return net.HardwareAddr(mac[:]).String()
}

const (
	// uuidDigits is the number of hexadecimal digits of a UUID.
	uuidDigits = 32
	// maxZeros is how many digits of a UUID may be zero. AMI's default, 03000200-0400-0500-0006-000700080009, has one more.
	maxZeros = 23
	// minDistinct is how many different digits a UUID must have.
	minDistinct = 4
)

// countPrefixes are the beginnings of UUIDs that somebody has typed.
var countPrefixes = []string{"00112233", "01020304", "01234567", "12345678"}

// SystemUUID returns a UUID in lower case without dashes. It returns nothing for a UUID that identifies no server.
func SystemUUID(text string) string {
	digits := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), "-", "")
	if _, err := hex.DecodeString(digits); err != nil || len(digits) != uuidDigits || strings.Count(digits, "0") > maxZeros {
		return ""
	}
	distinct := slices.Sorted(slices.Values([]byte(digits)))
	if len(slices.Compact(distinct)) < minDistinct || slices.Contains(countPrefixes, digits[:len(countPrefixes[0])]) {
		return ""
	}
	return digits
}
