// Package ignition renders Ignition configurations by way of butane, which knows what each variant of an operating system
// does not take: fcos, flatcar and openshift. It is the only package that imports either of them.
//
// Everything becomes Ignition 3.4.0, which Fedora CoreOS reads since the end of 2022, Flatcar since 3602 and OpenShift
// since 4.14. People's layers are butane documents of the image's variant. They are translated, checked against what Ingot
// needs, and merged as Ignition itself merges, the later over the earlier; where they fight what Ingot needs, the findings
// name the path.
//
// Ignition runs once, before the root file system is up, and runs no commands: units are enabled, modules are loaded by
// systemd itself, and kernel arguments are set before the node boots the first time. There is no package manager, so a
// Plan with packages is refused, and Flatcar's /usr cannot be written to: programs move to /opt/bin there.
package ignition
