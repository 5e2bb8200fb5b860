// Package fleet answers, at a terminal, what each Machine waits for, why one is not Ready, and which hosts there are. What is
// shown is computed from the objects alone; the commands only fetch them.
package fleet
