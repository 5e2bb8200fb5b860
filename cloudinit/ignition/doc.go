// Package ignition renders Ignition configurations with butane, which knows what each variant of an operating system does not accept:
// fcos, flatcar and openshift. No other package of cloudinit imports butane or Ignition.
//
// The output is Ignition 3.4.0. Fedora CoreOS reads it since the end of 2022, Flatcar since 3602 and OpenShift since 4.14. The users'
// layers are butane documents of the image's variant. They are translated, checked for conflicts with what the node needs, and merged
// by the rules of Ignition, in which a later document takes precedence. The findings of a conflict name the paths.
//
// Ignition runs once, before the root file system is mounted, and it runs no commands. Units are enabled, systemd loads the kernel
// modules, and kernel arguments are set before the node boots for the first time. There is no package manager, so a plan with
// packages is refused. /usr of Flatcar is read-only, so programs are written to /opt/bin there.
package ignition
