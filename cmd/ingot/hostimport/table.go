package hostimport

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// Finding is one fault of the table.
type Finding struct {
	// Line of the table, from 1.
	Line int
	// Message says what was expected, and what was found unless that may be a secret.
	Message string
}

// Columns that every table has, as they are spelled once spaces, dashes and case are gone.
const (
	columnName     = "name"
	columnAddress  = "bmcaddress"
	columnMAC      = "bootmac"
	columnUser     = "user"
	columnPassword = "passwordfile"
	labelPrefix    = "label:"
)

// Columns that a table may have.
const (
	columnIronicNode = "ironicnode"
	columnTPMKey     = "tpmkey"
)

// columns are the columns that every table must have, in the order in which a missing one is reported, with their names for people.
var columns = []struct{ key, name string }{
	{columnName, "name"}, {columnAddress, "bmc address"}, {columnMAC, "boot mac"}, {columnUser, "user"}, {columnPassword, "password file"},
}

// row is one line of the table, by column.
type row struct {
	line   int
	cells  map[string]string
	labels map[string]string
}

// Open opens a password file by the name that the table has for it.
type Open func(name string) (fs.File, error)

// Read reads the table and the password files of hosts for this kind of NodeProvider. It returns either hosts or findings, both in the order of the lines.
func Read(table io.Reader, provider string, open Open) ([]Host, []Finding) {
	rows, findings := readRows(table)
	c := &tableChecker{open: open, provider: provider, findings: findings, seen: map[string]int{}}
	var hosts []Host
	for _, r := range rows {
		hosts = append(hosts, c.checkHost(r))
	}
	c.checkServers()
	if len(c.findings) > 0 {
		slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
		return nil, c.findings
	}
	return hosts, nil
}

func readRows(table io.Reader) ([]row, []Finding) {
	reader := csv.NewReader(withoutByteOrderMark(table))
	reader.Comment, reader.FieldsPerRecord, reader.TrimLeadingSpace = '#', -1, true
	header, err := reader.Read()
	if err != nil {
		return nil, []Finding{{Line: 1, Message: "expected a first line with the columns " + columnNames() + ": " + readProblem(err)}}
	}
	keys, message := headerKeys(header)
	if message != "" {
		line, _ := reader.FieldPos(0)
		return nil, []Finding{{Line: line, Message: message}}
	}
	var rows []row
	var findings []Finding
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var where *csv.ParseError
			line := 1
			if errors.As(err, &where) {
				line = where.Line
			}
			// After a broken quotation the reader cannot find the next cell.
			return rows, append(findings, Finding{Line: line, Message: "not readable from here on: " + readProblem(err)})
		}
		line, _ := reader.FieldPos(0)
		if len(cells) != len(keys) {
			findings = append(findings, Finding{Line: line, Message: fmt.Sprintf("expected %d columns as in the first line, found %d", len(keys), len(cells))})
			continue
		}
		rows = append(rows, newRow(line, keys, cells))
	}
	if len(rows) == 0 && len(findings) == 0 {
		findings = append(findings, Finding{Line: 1, Message: "no host: expected a line for each below the names of the columns"})
	}
	return rows, findings
}

// readProblem describes an error of the reader.
func readProblem(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "the file is empty"
	case errors.Is(err, csv.ErrQuote), errors.Is(err, csv.ErrBareQuote):
		return "a double quote that does not open or close a cell"
	default:
		return err.Error()
	}
}

func newRow(line int, keys, cells []string) row {
	r := row{line: line, cells: map[string]string{}, labels: map[string]string{}}
	for i, key := range keys {
		cell := strings.TrimSpace(cells[i])
		if label, isLabel := strings.CutPrefix(key, labelPrefix); !isLabel {
			r.cells[key] = cell
		} else if cell != "" {
			r.labels[label] = cell
		}
	}
	return r
}

// headerKeys returns the keys of the columns, or what is wrong with the first line.
func headerKeys(header []string) ([]string, string) {
	if len(header) == 1 && strings.Contains(header[0], ";") {
		return nil, "the columns are separated by semicolons: separate them by commas"
	}
	seen, keys := map[string]bool{}, make([]string, len(header))
	for i, name := range header {
		key := strings.TrimSpace(name)
		if !strings.HasPrefix(key, labelPrefix) {
			key = strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(key))
			if !isColumn(key) {
				return nil, fmt.Sprintf("unknown column %q: expected %s, and ironic node, tpm key and %sKEY for labels, which may be absent", name, columnNames(), labelPrefix)
			}
		} else if problem := labelProblem(strings.TrimPrefix(key, labelPrefix), ""); problem != "" {
			return nil, fmt.Sprintf("column %q: %s", name, problem)
		}
		if seen[key] {
			return nil, fmt.Sprintf("column %q is there twice", name)
		}
		seen[key], keys[i] = true, key
	}
	for _, c := range columns {
		if !seen[c.key] {
			return nil, fmt.Sprintf("no column %q: expected %s", c.name, columnNames())
		}
	}
	return keys, ""
}

func isColumn(key string) bool {
	if key == columnIronicNode || key == columnTPMKey {
		return true
	}
	for _, c := range columns {
		if c.key == key {
			return true
		}
	}
	return false
}

func columnNames() string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// withoutByteOrderMark removes the byte order mark that spreadsheets write.
func withoutByteOrderMark(r io.Reader) io.Reader {
	buffered := bufio.NewReader(r)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		_, _ = buffered.Discard(3)
	}
	return buffered
}
