package input

import (
	"regexp"
	"strings"
)

// plainWord is a word in which no shell sees anything special, and which is no option.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,][A-Za-z0-9_./:=@%+,-]*$`)

// ShellWord returns the text as one word of a POSIX shell, for a command that a message suggests: as it is where it is plain, and in single quotes otherwise
// (POSIX.1-2024, Shell Command Language, 2.2.2).
//
// Without it: the serial number of a disk is $(...), the message names the command that accepts that disk, and whoever copies it runs what the disk says.
func ShellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(Text(text), "'", `'\''`) + "'"
}
