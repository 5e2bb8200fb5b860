// Gendocs writes the documents that are generated from Go source: the API reference and the drawing of the packages.
//
//	gendocs api API-DIRECTORY FILE         write the reference of the API's types to a Markdown file
//	gendocs architecture ROOT FILE         replace the drawing in the package comment of a Go file
//
// It uses the standard library only. The reference could also come from elastic/crd-ref-docs: that prints the markers of
// controller-gen as they stand, CEL rules included, where a reader needs the message of the rule, and it adds its own
// dependencies to those of controller-gen. make generate runs gendocs, and make verify checks that its documents are current.
package main
