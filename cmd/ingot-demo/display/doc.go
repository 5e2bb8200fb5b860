// Package view draws what the demo shows: a live table on a terminal, one line per change elsewhere, and the summary. It
// turns values into text and touches nothing else.
package display
