// Package requests holds the presentation requests that tests of several packages resolve, one for each kind of node that differs.
package requests
