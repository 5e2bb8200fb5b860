// Package operator assembles ingot-manager: the controller manager with its endpoints, the boot service, the adapters to metal
// and the controllers.
//
// # How it starts and ends
//
// Before anything else, the manager checks that the management cluster answers and serves every kind that is needed; for a missing
// kind the error says what to apply. One replica leads and runs the controllers. Every replica answers servers that boot, and is
// ready when its cache has synced, the boot service listens and the agent's kernel and initrd are there. A replica that loses its
// lease ends with status 1, so that Kubernetes restarts it. On SIGTERM it finishes the reconciles that run, releases the lease and
// ends with status 0. The log is one stream of records on standard error, and includes those of client-go and net/http.
//
// # The webhook
//
// Every replica answers API servers that ask whether a NodeType may be written (controllers/admission), with a certificate
// that the leading replica keeps in a Secret (controllers/admission/certificate). webhook.address turns it on, and
// config/webhook registers it with API servers. While no manager answers, NodeTypes cannot be created and their specs cannot be
// changed; nothing else depends on the webhook.
//
// # Metrics
//
// These metrics are served beside those of controller-runtime, client-go and the Go runtime. No label has the name of a Machine, a
// host or a tenant, so that the number of series does not grow with the fleet.
//
//	ingot_machine_phase_seconds          histogram  phase                     how long Machines stayed in a phase that they left
//	ingot_machine_actions_total          counter    action, succeeded         side effects of Machines' lives
//	ingot_boot_events_total              counter    event                     boot documents (boot, wait, hold, exit), stranger, limited, another-agent, wrong-server
//	ingot_boot_dhcp_requests_total       counter    stage, answer             DHCP requests; stage is PXE, HTTP, iPXE or system, answer offer, ack, nak, none, stranger or failed
//	ingot_boot_tftp_requests_total       counter    result                    TFTP requests: sent, refused, size-only or failed
//	ingot_host_attempt_duration_seconds  histogram  operation, state, reason  ended attempts on hosts; reason "" when it succeeded
//	ingot_verdicts_total                 counter    result                    verdicts whose result changed
//	ingot_gate_actions_total             counter    action, reason            gates lifted and placed
//	ingot_rollout_phases_total           counter    phase                     phases that Rollouts entered
//	ingot_rollout_starts_total           counter    result                    Machines that Rollouts started: started, conflict or error
//	ingot_webhook_certificate_steps_total counter   action, succeeded         what was done about the webhook's certificate
//	ingot_machines                       gauge      phase, state              Machines; state is ready, working or overdue
//	ingot_rollouts                       gauge      phase                     Rollouts
//	ingot_hosts                          gauge      state, error              BareMetalHosts; error is empty where there is none
//	ingot_tenants                        gauge      ready, reason             TenantClusters
//	ingot_entitlements                   gauge      enforced, reason          Entitlements
//	ingot_entitled_devices               gauge      class, state              devices of their classes; state is entitled, capacity, allocatable, allocated or pending
//	ingot_waiting                        gauge      tenant, kind, reason      claims and pods of tenants that wait for devices
//	ingot_waiting_longest_seconds        gauge      tenant, kind, reason      age of the one that has waited longest
//
// Every replica counts the gauges from its cache when it is scraped, so queries take their maximum. config/prometheus has alerts on
// them, config/grafana a dashboard.
//
// # Rights
//
// config/rbac/role.yaml is generated from the controllers' markers: ClusterRole ingot-manager holds in the whole cluster and
// covers no Secret. ingot-manager-hosts is bound in each host namespace (the BMCs' credentials, the claims' Secrets, the
// claim of the namespace itself), ingot-manager-tenants in each namespace with TenantClusters (their kubeconfigs). The lease,
// the boot key and the webhook's certificate are in the manager's own namespace, by a Role of that namespace. Of the
// ValidatingWebhookConfigurations the manager may read and patch its own alone.
package operator
