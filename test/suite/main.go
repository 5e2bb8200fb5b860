// Suite reports how long the tests of a run took: the slowest packages and tests, and each package that took longer than its budget.
// It reads the events that go test -json writes, and ends with the numbers of tests.
//
//	go run ./test/suite [-budgets FILE] [-enforce] EVENTS...
//	go run ./test/suite -order FILE
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	budgets := flag.String("budgets", "", "`file` with the seconds of each package; empty: none is compared")
	enforce := flag.Bool("enforce", false, "exit with 1 when a package took more than 1.5 times its budget")
	orderOf := flag.String("order", "", "print the packages of that `file` of budgets, the slowest first, and read no events")
	flag.Parse()
	if *orderOf != "" {
		limits, err := readBudgets(*orderOf)
		if err != nil {
			fmt.Fprintln(os.Stderr, "suite:", err)
			os.Exit(1)
		}
		fmt.Println(strings.Join(order(limits), " "))
		return
	}
	failed, err := run(*budgets, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
	if failed && *enforce {
		os.Exit(1)
	}
}

// run writes the report, and reports whether a package was too slow.
func run(budgetFile string, files []string) (hasSlow bool, err error) {
	if len(files) == 0 {
		return false, errors.New("give the files of events that go test -json has written")
	}
	var all results
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return false, err
		}
		err = all.read(in)
		if err := errors.Join(err, in.Close()); err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
	}
	limits, err := readBudgets(budgetFile)
	if err != nil {
		return false, err
	}
	return writeReport(os.Stdout, &all, limits), nil
}

// readBudgets reads a file of budgets. Without a file there is none.
func readBudgets(file string) (map[string]float64, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	limits, err := parseBudgets(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return limits, nil
}
