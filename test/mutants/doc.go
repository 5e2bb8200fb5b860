// Mutants measures how much the tests of the pure packages prove: it changes the product's code in one place at a time and
// reports every change that no test notices.
//
//	go run ./test/mutants [-budget D] [-sample F] [-seed N] [-workers N] [-longest D] [-match REGEXP] [PACKAGES]
//
// Every change is a mutant. All mutants of all packages are compiled into each test program at once, each behind a switch, and
// the environment variable INGOT_MUTANT turns one of them on. So a test program is built once, not once for each mutant, and
// several thousand mutants are judged in minutes. Before that, every test runs alone and records which mutants it reaches; a
// mutant is judged only by the tests that reach it.
//
// A mutant is killed when a test fails, panics or needs much more processor time than without it. It survives otherwise.
// equivalent.txt lists mutants that no test can kill, each with its reason.
//
// A run ends after 45 minutes, or after -budget. The mutants are judged in a random order that -seed decides, so the score of a run that
// ended early is an estimate of the whole.
//
// These are the mutants:
//   - the condition of an if, a case or a returned or assigned comparison is always true, or always false; that of a loop is
//     always false;
//   - one operand of && or || is left out (a test that notices this also notices && in place of ||);
//   - a comparison includes its boundary, or excludes it: < and <=, > and >=;
//   - an integer constant is one more, or one less; a duration is twice, or half;
//   - + and - , or * and / , are exchanged;
//   - true and false are exchanged;
//   - an assignment, a call without result, a continue or a break is removed;
//   - a returned value is the zero value of its type.
//
// Strings, panics, constant declarations, named constants that are arguments, and generated code are left as they are.
package main
