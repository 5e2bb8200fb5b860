// Package bmc is the simulated server's management controller: a Redfish service (DSP0266) over HTTPS with a certificate
// and credentials of its own.
//
// It knows two systems where the hardware has two, as NVIDIA's HGX servers do: the server itself and HGX_Baseboard_0. The
// UUID it reports is the DMI UUID with the first three fields in the other byte order, as much firmware does, so that
// nobody gets away with comparing the two. Its quirks and faults are those of the field and are set while it runs.
package bmc
