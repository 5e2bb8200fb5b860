// Package userdata reads user data as cloud-init does: cloud-config, scripts, and MIME messages of both, in base64 or not,
// and compressed with gzip or not.
//
// The cloud-configs become one, in the order of their parts: the later one's keys replace the earlier one's, unless a
// part says otherwise with merge_how, merge_type or the header Merge-Type. Scripts are kept under the names of their
// files, for they run in the order of these, and commands of runcmd run as one among them, called runcmd.
//
// Parts of other kinds, which cloud-init knows (includes, archives, templates, boot hooks, part handlers), are an error
// here: nothing of Ingot renders them. No error quotes the content, which may be secret.
package userdata
