// Package tftp serves boot programs by TFTP (RFC 1350, with the options of RFC 2347 to 2349), read only, for firmware that cannot load by HTTP.
package tftp
