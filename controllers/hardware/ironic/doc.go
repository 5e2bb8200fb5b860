// Package ironic implements hardware.Installer with an OpenStack Ironic. It is the only importer of gophercloud.
//
// Two pure functions decide: statusOf reads a node of Ironic as the status of an attempt, and nextAction says which request comes next. The Installer around
// them sends it. The mapping of the port's calls to requests is in the documentation of package hardware.
//
// # What is stored, and where
//
// Nothing is stored on our side. A node of Ironic carries in its extra: ingot_host, the UID of the host that it is; ingot_attempt, the number of the attempt;
// ingot_work, its operation; ingot_from, the time of the last change of its provision state before the work was requested; ingot_outcome, which only a
// cancelled attempt has.
//
// ingot_from makes the end of an attempt unmistakable. The work of an attempt has begun when the provision state has changed since that time. Without it: an
// attempt to erase is written to a node that is manageable, the process dies before it requests the cleaning, and the next one reads a node that is
// manageable, as after a cleaning. A database that keeps whole seconds may hide a change; then the work is requested again, which Ironic
// refuses or repeats.
//
// # Reading
//
// One paged list with the needed fields serves all calls for Options.ListAge. What Ironic answers to our own change of a node replaces the listed node until
// a list that began later. After a request for another provision state nothing is requested of the node until such a list.
package ironic
