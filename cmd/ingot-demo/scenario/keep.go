package scenario

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// printKubeconfigs prints how to look around: a kubeconfig for each cluster, and one for each user of the story.
func (d *demo) printKubeconfigs() error {
	out, story := d.options.Out, d.options.story()
	shared := d.env.Tenants[0].Cluster.KubeconfigPath()
	fmt.Fprintf(out, "\neverything keeps running until Ctrl-C:\n\n  # Ingot: %s\n  export KUBECONFIG=%s\n", strings.ReplaceAll(story.hints, "SHARED", shared), d.env.Management.KubeconfigPath())
	for _, tenant := range d.env.Tenants {
		fmt.Fprintf(out, "  # cluster %s: kubectl get nodes,resourceslices\n  export KUBECONFIG=%s\n", tenant.Name, tenant.Cluster.KubeconfigPath())
	}
	for _, user := range story.users {
		path := filepath.Join(d.env.Dir, user+".kubeconfig")
		if err := writeUserKubeconfig(shared, path, user); err != nil {
			return err
		}
		fmt.Fprintf(out, "  # as tenant %s: kubectl get -n %s pods,resourceclaims\n  export KUBECONFIG=%s\n", user, user, path)
	}
	return nil
}

// writeUserKubeconfig writes the kubeconfig of an administrator, with which one is a user. It shows what the user may, and keeps nobody from being another.
func writeUserKubeconfig(admin, path, user string) error {
	config, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		return fmt.Errorf("read the kubeconfig of %s: %w", user, err)
	}
	for _, a := range config.AuthInfos {
		a.Impersonate, a.ImpersonateGroups = user, []string{"system:authenticated"}
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return nil
}
