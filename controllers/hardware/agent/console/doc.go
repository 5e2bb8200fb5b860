// Package console shows one page on the consoles of the server: what has happened, for a person who stands before it or looks at it by the BMC. While a
// page is shown no log scrolls it away.
package console
