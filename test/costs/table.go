package costs

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
)

// sizes are the numbers of Machines that a life is measured with.
var sizes = [2]int{30, 120}

// Costs are the ledgers of both sizes.
type Costs [len(sizes)]Ledger

const tableHead = "| provider | step | where | what | of 30 | of 120 |"

// perMachine returns what a Machine has of the row in the fleet of that size. The largest object is nobody's part.
func (c Costs) perMachine(size int, row Row) float64 {
	if row.What == largestObject {
		return float64(c[size][row])
	}
	return float64(c[size][row]) / float64(sizes[size])
}

// filter returns the rows for which is is true.
func (c Costs) filter(is func(Row) bool) Costs {
	for i := range c {
		c[i] = maps.Clone(c[i])
		maps.DeleteFunc(c[i], func(row Row, _ int) bool { return !is(row) })
	}
	return c
}

// with returns the costs together with those of other providers.
func (c Costs) with(others Costs) Costs {
	for i := range c {
		c[i] = maps.Clone(c[i])
		maps.Copy(c[i], others[i])
	}
	return c
}

// write writes the table, with totals in place of values per Machine: they are exact.
func (c Costs) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n|%s\n", tableHead, strings.Repeat("---|", strings.Count(tableHead, "|")-1))
	for _, row := range sortedRows(c[:]...) {
		if err == nil {
			_, err = fmt.Fprintf(w, "| %s | %s | %s | %s | %.2f | %.2f |\n", row.Provider, row.Step, row.Where, row.What, c.perMachine(0, row), c.perMachine(1, row))
		}
	}
	return err
}

// readCosts reads a table that write has written. What stands before it is left out.
func readCosts(r io.Reader) (Costs, error) {
	var out Costs
	for i := range out {
		out[i] = Ledger{}
	}
	lines := bufio.NewScanner(r)
	isTable := false
	for n := 1; lines.Scan(); n++ {
		if line := lines.Text(); line == tableHead {
			isTable = true
		} else if isTable && !strings.HasPrefix(line, "|--") {
			if err := out.addLine(line); err != nil {
				return out, fmt.Errorf("line %d of the table of costs: %w; make costs ARGS=-update writes it anew", n, err)
			}
		}
	}
	return out, lines.Err()
}

func (c Costs) addLine(line string) error {
	cells := strings.Split(strings.Trim(line, "| "), " | ")
	if len(cells) != 4+len(sizes) {
		return fmt.Errorf("expected %d cells, seen %q", 4+len(sizes), line)
	}
	row := Row{Provider: cells[0], Step: Step(cells[1]), Where: cells[2], What: cells[3]}
	for i, size := range sizes {
		value, err := strconv.ParseFloat(cells[4+i], 64)
		if err != nil {
			return fmt.Errorf("a count of %s: %w", row.What, err)
		}
		if row.What != largestObject {
			value *= float64(size)
		}
		c[i][row] = int(value + 0.5)
	}
	return nil
}
