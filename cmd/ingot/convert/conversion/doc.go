// Package conversion holds the objects of Ingot that manifests of another system are converted to, with what was found about each.
package conversion
