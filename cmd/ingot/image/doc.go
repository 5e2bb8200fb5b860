// Package image is `ingot image`: making what servers install.
package image
