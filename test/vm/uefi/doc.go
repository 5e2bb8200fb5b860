// Package uefi writes the data that OVMF reads when it starts: what it boots next (the variable store), and whom it trusts for HTTPS (signature lists).
package uefi
