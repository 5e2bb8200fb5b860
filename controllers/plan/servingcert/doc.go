// Package servingcert decides which requests for serving certificates of kubelets are approved.
//
// A kubelet with serverTLSBootstrap creates a CertificateSigningRequest for the signer kubernetes.io/kubelet-serving, and serves nothing before it is
// signed. Whoever holds a node's credentials can create one with any names. A certificate with the address of another node would let its holder take the
// place of that node's kubelet, towards an API server that verifies kubelets. So a request is approved when each of its names is one that Ingot knows of the
// Machine: the Node's name, and the addresses of its host. The addresses in Node.status are never asked: the kubelet writes them itself.
//
// Everything else is left as it is, and is told. Nothing is denied: a denial is final, and an administrator may know why the request is right.
package servingcert
