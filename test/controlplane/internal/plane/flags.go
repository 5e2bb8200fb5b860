package plane

import "slices"

func (p *plane) apiServerFlags(etcdEndpoint string) []string {
	flags := []string{
		"--etcd-servers=" + etcdEndpoint,
		"--bind-address=" + p.options.Address,
		"--advertise-address=" + p.options.Address,
		"--cert-dir=" + p.files.pki(""),
		"--tls-cert-file=" + p.files.servingCert(),
		"--tls-private-key-file=" + p.files.servingKey(),
		"--client-ca-file=" + p.files.caCert(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.files.serviceAccountKey(),
		"--service-account-signing-key-file=" + p.files.serviceAccountKey(),
		// The vendors' DaemonSets are privileged.
		"--allow-privileged",
		// There is one server, and no pod that would look for it behind the kubernetes Service.
		"--endpoint-reconciler-type=none",
		// Without it, an open watch holds up the end for a minute.
		"--shutdown-watch-termination-grace-period=2s",
	}
	if p.options.AuditLog != "" {
		flags = append(flags, "--audit-log-path="+p.options.AuditLog, "--audit-policy-file="+p.files.auditPolicy())
	}
	return slices.Concat(flags, p.options.APIServerArgs)
}

func (p *plane) schedulerFlags() []string {
	return slices.Concat(p.clientFlags("kube-scheduler"), p.options.SchedulerArgs)
}

func (p *plane) controllerManagerFlags() []string {
	flags := append(p.clientFlags("kube-controller-manager"),
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--cluster-signing-cert-file="+p.files.caCert(),
		"--cluster-signing-key-file="+p.files.caKey(),
		"--root-ca-file="+p.files.caCert(),
		"--service-account-private-key-file="+p.files.serviceAccountKey(),
		"--use-service-account-credentials",
	)
	return slices.Concat(flags, p.options.ControllerManagerArgs)
}

// clientFlags are those of a component that is alone, serves nothing, and is not to be slowed down by its own rate
// limit: a scheduler at the default 50 requests a second takes minutes for a few thousand pods.
func (p *plane) clientFlags(name string) []string {
	return []string{
		"--kubeconfig=" + p.files.kubeconfig(name),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}
}
