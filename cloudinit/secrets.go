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
	// Secret is the name of the Secret.
	Secret string
	// Key in the data of the Secret.
	Key string
}

// Secrets has the contents of Plan.SecretFiles, the files of the node whose content is a key of a Secret.
type Secrets struct {
	// Namespace that the Secrets are in, for messages.
	Namespace string
	// Contents by Secret and key. They are secret.
	Contents map[SecretKey][]byte
}

// String returns the number of contents, so that printing an Input does not print a secret.
func (s Secrets) String() string {
	return fmt.Sprintf("%d contents of Secrets in %s", len(s.Contents), s.Namespace)
}

// GoString returns the same as String.
func (s Secrets) GoString() string { return s.String() }

// SecretMissing is the error about a file of the node whose content is missing or empty.
type SecretMissing struct {
	// Namespace, Secret and Key of the content.
	Namespace, Secret, Key string
	// Path of the file.
	Path string
}

// Error returns the path of the file, the Secret, its namespace and the key.
func (m *SecretMissing) Error() string {
	return fmt.Sprintf("the node's %s is %s of Secret %s/%s, which is missing or empty: create the Secret with that key", m.Path, m.Key, m.Namespace, m.Secret)
}

// secretFile is a file whose content is secret.
type secretFile struct {
	Path, Mode string
	Content    []byte
}

// secretFiles returns the files of the plan that have secrets. The error is a *SecretMissing.
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

// secretContents returns all files with secrets: those of the plan, and those with which the node joins. It returns none when the
// node has joined. It is called last, so that no error of an earlier step can quote a secret.
func secretContents(in Input) (files []secretFile, join []v1alpha1.NodeFile, err error) {
	if in.Join == nil {
		return nil, nil, nil
	}
	if files, err = secretFiles(in); err != nil {
		return nil, nil, err
	}
	join, err = kubelet.JoinFiles(nodeOf(in), *in.Join)
	return files, join, err
}

// appendSecrets appends the files in base64, because the content of a Secret can be bytes that YAML text cannot have.
func appendSecrets(root *yaml.Node, files []secretFile) {
	for _, f := range files {
		n := fileEntry(f.Path, f.Mode)
		set(n, "encoding", scalar("b64"))
		set(n, "content", scalar(base64.StdEncoding.EncodeToString(f.Content)))
		appendTo(root, "write_files", n)
	}
}
