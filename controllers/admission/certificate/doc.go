// Package certificate issues and rotates the serving certificate of the admission webhook and writes its authority into the
// ValidatingWebhookConfiguration. A rotation needs no restart, and no request fails while it goes on.
//
// # Rotation
//
// Each certificate is signed by its own authority, whose key is discarded after the signature: nobody can sign another certificate
// with it. A Secret holds the certificate that is served (tls.crt, tls.key), the one that is served next (next.crt, next.key) and
// all trusted authorities (ca.crt). A rotation has these steps:
//
//  1. When two thirds of the certificate's lifetime have passed, the next certificate is issued, and its authority is added to
//     the trusted ones.
//  2. The trusted authorities are written into the ValidatingWebhookConfiguration.
//  3. When API servers have had time to observe that, the next certificate is served.
//  4. The old authority is removed when it has expired. Until then every replica may serve either certificate.
//
// The certificate is valid for the names under which API servers call the webhook: the Service in the
// ValidatingWebhookConfiguration, or the host of its URL. If these names change, or the Secret is deleted or damaged, a new
// certificate is issued at once. When the Secret is deleted, the old authority is no longer trusted.
//
// Decide is a pure function. Rotator acts in the replica that is the leader; its writes of the Secret have an optimistic lock. Source
// reads the Secret in every replica when an API server connects.
package certificate
