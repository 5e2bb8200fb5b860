// Package certificate keeps the certificate of the admission webhook: makes it, renews it before it ends, and has API
// servers trust it, without a restart and without a request that fails meanwhile.
//
// # How it is renewed
//
// Each certificate is signed by an authority of its own, whose key is forgotten at once: nothing that could sign another
// lies anywhere. A Secret holds what is served (tls.crt, tls.key), what is served next (next.crt, next.key) and all
// authorities that are to be trusted (ca.crt). When two thirds of the certificate's life are over, the next one is made
// and its authority is added to the trusted ones; those are written into the ValidatingWebhookConfiguration; only when
// that is done and API servers have had the time to see it, the next one is served. The old authority is trusted until it
// has ended. So every replica may serve either for a while.
//
// The names that the certificate is for are those that the ValidatingWebhookConfiguration has API servers ask for: its
// Service, or the host of its URL. Where they change, or the Secret is deleted or spoilt, a new certificate is made at once.
// Deleting the Secret also ends the trust in the old one.
//
// Decide is pure and is told the time. Keeper acts, in the replica that leads, with the Secret's resourceVersion as the
// lock; Source reads the Secret in every replica when a connection asks for the certificate.
package certificate
