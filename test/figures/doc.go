// Figures keeps the figures of documents true: each stands in a block that a command has written, with the commit, the machine and the date.
//
//	<!-- figures NAME: COMMAND -->
//	...
//	<!-- end of figures NAME, sha256 DIGEST -->
//
// Whoever adds a figure writes the first and the last line, without a digest, and runs
//
//	go run ./test/figures update [-only NAME] FILE...
//
// which runs the commands in the folder that it is called in and writes what they print. A NAME that begins with time- keeps only how long the command took.
//
//	go run ./test/figures check [-since YYYY-MM-DD] FILE...
//
// fails where somebody has changed a block, or typed a measurement outside of one, and warns of blocks that are older than a date.
package main
