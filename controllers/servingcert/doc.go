// Package servingcert is the controller that approves the requests for serving certificates of Machines' kubelets.
//
// It works where a TenantCluster says so (spec.servingCertificates). The requests are CertificateSigningRequests in the tenant's cluster, which package
// tenantaccess watches. What Ingot knows of a Machine's addresses is read in the management cluster: the BareMetalHost, the HostRecord and the network data
// that the node was installed with. Package controllers/plan/servingcert decides. A request is read from the tenant's API server once more, and is decided
// about as it is there, before it is approved.
//
// The condition ServingCertificateApproved of the Machine says what was done about its last request. Nothing is denied, and the requests of other nodes are
// not touched.
package servingcert
