package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const clusterName = "ingot-controlplane"

// WriteKubeconfig issues a client certificate for the user and writes a kubeconfig that refers to no other file.
func (a *Authority) WriteKubeconfig(file, server, user string, groups ...string) error {
	pair, err := a.IssueClient(user, groups...)
	if err != nil {
		return err
	}
	config := a.clusterConfig(server)
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: user}
	config.CurrentContext = clusterName
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode the kubeconfig of %s: %w", user, err)
	}
	return WriteFile(file, content, secretMode)
}

// DiscoveryKubeconfig tells where the cluster is and whom to trust, and holds no credential.
func (a *Authority) DiscoveryKubeconfig(server string) ([]byte, error) {
	config := a.clusterConfig(server)
	// kubeadm reads the only cluster of the file, whose name is empty.
	config.Clusters = map[string]*clientcmdapi.Cluster{"": config.Clusters[clusterName]}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encode the discovery kubeconfig: %w", err)
	}
	return content, nil
}

func (a *Authority) clusterConfig(server string) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.Certificate()}
	return config
}
