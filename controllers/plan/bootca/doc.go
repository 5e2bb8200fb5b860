// Package bootca decides when the boot service's authority and certificate are issued, and issues them.
//
// # The authority
//
// The authority signs the certificate with which the boot service answers by HTTPS. Servers have the digest of its key on their kernel command line
// (package pin), so it changes in steps that leave no running attempt with a command line that is of no use:
//
//  1. A year before the authority ends, the next one is made. From now on command lines have the pins of both.
//  2. When Times.Overlap has passed, all attempts with older command lines are over. The next authority becomes the one that signs; the key of
//     the former one is forgotten. Command lines still have both pins, because another replica may serve the former certificate for some seconds.
//  3. When Times.Overlap has passed again, command lines have the new pin alone.
//
// An authority that cannot be used (its Secret was deleted or damaged, or it has ended) is replaced at once. Then agents at work refuse the boot
// service, and their attempts fail. Deleting the Secret is what to do when its key is known to somebody.
//
// # The certificate
//
// The certificate is valid for some days, and renewed at half of them, with a new key. It has the names and addresses under which firmware may ask
// for it; agents do not compare them. It is valid from some time before its issue, because an agent whose machine has no clock sets it to the time on
// its command line, which is at most as old as the attempt.
package bootca
