// Package bmc simulates a server's management controller: a Redfish service (DSP0266) over HTTPS with a certificate and
// credentials of its own.
//
// A BMC reports the hardware that Options describe and passes power requests on to a Machine. What a vendor's firmware does
// differently from the specification is its Personality, which is composed of rules; personalities.yaml has those of products. What goes wrong while a
// BMC runs is in Faults.
//
// The UUID that a BMC reports is the DMI UUID with the bytes of its first three fields reversed, as much firmware reports it,
// so that a client which compares the two fails its tests.
package bmc
