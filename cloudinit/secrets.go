package cloudinit

import (
	"encoding/base64"
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
)

// SecretKey names a key of a Secret.
type SecretKey struct {
	// Secret is its name.
	Secret string
	// Key in it.
	Key string
}

// Secrets are the contents of those files of the node that are keys of Secrets, Plan.SecretFiles.
type Secrets struct {
	// Namespace that the Secrets are in, for messages.
	Namespace string
	// Contents by Secret and key. Secret.
	Contents map[SecretKey][]byte
}

// String names none of them, so that no Input that is printed shows them.
func (s Secrets) String() string {
	return fmt.Sprintf("%d contents of Secrets in %s", len(s.Contents), s.Namespace)
}

// GoString is String.
func (s Secrets) GoString() string { return s.String() }

// SecretMissing is a file of the node whose content was not given.
type SecretMissing struct {
	// Namespace, Secret and Key that the content is of.
	Namespace, Secret, Key string
	// Path of the file.
	Path string
}

// Error names the file, the Secret, its namespace and the key.
func (m *SecretMissing) Error() string {
	return fmt.Sprintf("the node's %s is %s of Secret %s/%s, which is missing or empty: create the Secret with that key", m.Path, m.Key, m.Namespace, m.Secret)
}

// secretFile is a file that holds a secret, as the bytes that the node gets.
type secretFile struct {
	Path, Mode string
	Content    []byte
}

// secretFiles are those of the presentation; the error is a *SecretMissing.
func secretFiles(in Input) ([]secretFile, error) {
	out := make([]secretFile, 0, len(in.Plan.SecretFiles))
	for _, f := range in.Plan.SecretFiles {
		content := in.Secrets.Contents[SecretKey{f.Secret, f.Key}]
		if len(content) == 0 {
			return nil, &SecretMissing{Namespace: in.Secrets.Namespace, Secret: f.Secret, Key: f.Key, Path: f.Path}
		}
		out = append(out, secretFile{f.Path, f.Mode, content})
	}
	return out, nil
}

// secretContents is all that only a node which is yet to join gets. It is asked for last: before, no document holds a secret.
func secretContents(in Input) (files []secretFile, join []v1alpha1.NodeFile, err error) {
	if in.Join == nil {
		return nil, nil, nil
	}
	if files, err = secretFiles(in); err != nil {
		return nil, nil, err
	}
	join, err = kubelet.JoinFiles(*in.Join)
	return files, join, err
}

// appendSecrets writes them in base64: a Secret's content is bytes, and no text of YAML.
func appendSecrets(root *yaml.Node, files []secretFile) {
	for _, f := range files {
		n := entry(f.Path, f.Mode)
		set(n, "encoding", scalar("b64"))
		set(n, "content", scalar(base64.StdEncoding.EncodeToString(f.Content)))
		appendTo(root, "write_files", n)
	}
}
