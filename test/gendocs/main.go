package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: gendocs api|architecture SOURCE FILE")
	}
	source, file := args[1], args[2]
	switch args[0] {
	case "api":
		reference, err := readAPI(source)
		if err != nil {
			return err
		}
		return os.WriteFile(file, []byte(reference.markdown()), 0o644)
	case "architecture":
		imports, err := readImports(source)
		if err != nil {
			return err
		}
		drawing, err := drawArchitecture(imports)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		updated, err := replaceDrawing(string(text), drawing)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return os.WriteFile(file, []byte(updated), 0o644)
	default:
		return fmt.Errorf("%q is not one of api, architecture", args[0])
	}
}
