// Package display shows the progress of the demo: a live table on a terminal, one line per change elsewhere, and the summary.
package display
