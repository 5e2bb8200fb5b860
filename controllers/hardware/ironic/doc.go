// Package ironic implements hardware.Installer with an OpenStack Ironic. No other product code imports gophercloud.
//
// Two pure functions decide: statusOf reads a node of Ironic as the status of an attempt, and nextAction says which request comes next. The Installer around
// them sends it. The mapping of the port's calls to requests is in the documentation of package hardware.
//
// # What is stored, and where
//
// Nothing is stored on our side. A node of Ironic carries in its extra: ingot_host, the UID of the host that it is; ingot_attempt, the number of the attempt;
// ingot_work, its operation; ingot_from, the time of the last change of its provision state before the work was requested; ingot_outcome, that an attempt is done,
// was cancelled or has passed its deadline; ingot_enrolled, for a node that Ironic has not verified yet, the time of its last change when the attempt was stored;
// ingot_live, that a live ISO is deployed; ingot_instance, the instance_uuid that reserves the node for the host; ingot_automated_clean, what the automated cleaning
// of the node was before it was turned off; and ingot_created, that this package has created the node, which alone gets the credentials of the BMC from the host.
//
// ingot_from tells a node that rests before its work from one that rests after it: the provision state has changed since that time. Without it: an attempt to erase is written
// to a node that is manageable, the process dies before it requests the cleaning, and the next one reads a node that is manageable, as after a cleaning. A database
// that keeps whole seconds may hide a change; then the work is requested again, which Ironic refuses or repeats.
//
// # Evidence
//
// A change alone is no evidence of work. Ironic gives a node the state of the work first, and looks for a free worker after it. Without one it gives the node the state from
// before, which is a second change, and answers with 503. Every change of the power wipes what it says of that in last_error, and an inspection that was refused has a time
// at which it finished. Operators who provide a node and manage it again change it too. So an attempt succeeds when there is evidence of its work, which is then stored as
// ingot_outcome, and an attempt without evidence requests the work again.
//
//   - The worker of a deployment is the only one that stores a config drive in instance_info, and what prepares an installation takes the drive before away. It stays while
//     the node is deployed. A process that was not there to see the work reads it when the node is active, and stores the outcome. One that was stores it some minutes later,
//     because Ironic may be busy with the next hundred nodes: until then the drive would prove it to another process.
//   - A cleaning and an inspection leave little on the node that a refusal or a failure does not leave too, and Ironic refuses to store anything on a node meanwhile. So their
//     evidence, and first of all that of a deployment, is what this process has seen: Ironic has accepted the work, which means that it has a worker for it, or the list shows the
//     node at the step that erases, or in the wait of an inspection; and from then on every list, of which none is later than a minute, shows it at work, until one shows it at rest without an error. A process that
//     came too late to see that reads the node, and takes the traces of the work: an agent was asked for its clean steps after the request, and spoke until shortly before the
//     node came to rest; the last inspection ended with the last change. Without them a server is erased or inspected once more. What such a process cannot tell apart is a cleaning
//     by an agent with other steps, which an operator requested while it was away.
//
// A wait for the agent that was ended leaves the node at rest as well, whoever has ended it. The attempt runs until the next call stores the outcome: it knows the deadline. Without
// it: the deadline of an installation counts as a cancellation, which is tried again at once, and a server on which an image takes too long is installed for ever.
//
// # Whose a node is
//
// A node is reserved for its host by its instance_uuid, which is the UID of the BareMetalHost, from its adoption until the host is forgotten. Neither Nova nor an
// allocation takes a node that is reserved, and Ironic lets nobody change that. A tear down removes it: the next change of the node by an attempt sets it again,
// and an installation makes that before the node is available. A node with another instance_uuid is somebody else's at every time: nothing is requested of it, and Observe says whose
// it is. A node that a version before this rule has installed has none until its next attempt.
//
// Between a tear down and the request to make the node manageable again it is available and not reserved, for as long as two looks at it are apart. The flag retired does not help: it keeps only a node that is cleaned automatically from being available.
//
// # Reading
//
// One paged list with the needed fields serves all calls for Options.ListAge. What Ironic answers to our own change of a node replaces the listed node until
// a list that began later. After a request for another provision state nothing is requested of the node until such a list.
//
// Ironic answers to a change with what its conductor sends, whose times may have whole seconds, and to a read with microseconds. The longer one is kept.
//
// # Power
//
// Ironic remembers the power and asks the BMC once a minute by default. It also asks when a power state is requested, whatever it remembers. So SetPower requests
// one at least once for each change, and Observe says since when the BMC has answered.
//
// # Versions
//
// The latest version that both sides speak is used, from 1.56 to 1.96, which is that of Ironic 29. Without 1.81 Ironic tells no inventory: properties and ports take
// its place. From 1.83 on nodes may be children of others, and a list has those only when they are asked for. Ironic 29.0.5 as Debian 13 has it makes a node its
// own parent with every change of it, and then powers it on no more, unless driver_info.has_dedicated_power_supply is true: nodes without another parent get that.
//
// # What nobody but a person can end
//
// A maintenance that people have begun; rescue, service and hold; and work that a conductor left when it died. The last is Ironic's: at its start it ends such work on
// eight nodes of each state ([conductor]periodic_max_workers). Each is told as a Conflict that names the command. A maintenance that Ironic itself has begun, because
// a step of a cleaning failed, is ended by the next attempt.
package ironic
