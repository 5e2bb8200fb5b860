// Package controllers lists every controller of Ingot.
//
// # Architecture
//
// Ingot has two halves. Decisions are pure functions: they take one value, which holds the time, the names and the randomness
// that they need, and return one value with reasons for people. Effects are in thin controllers. A controller has these steps
// in each reconcile:
//
//  1. It observes: it reads the objects that the decision depends on from the cache, or from the API server itself where a
//     stale answer could do harm.
//  2. It calls its planner in controllers/plan. The controllers of OSImages, NodeProviders and TenantClusters have none: what they decide is a
//     few lines of their own packages.
//  3. It acts outside the object: one request to the API server, to the tenant's cluster or to an Installer. The intent is in the
//     status before. Three controllers act more than once, where the order of the requests does not matter: nodepool makes or deletes up
//     to 50 Machines, machine evicts every pod of a node, and rollout starts the Machines that its status names.
//  4. It writes the status once, by controllers/step. Events and log lines follow the write. controllers/host writes two, those
//     of the HostRecord and the BareMetalHost; the comment of that package gives their order and the reason.
//
// A manager that is killed at any of these points is followed by one that goes on from the API objects alone.
//
// A NodeType becomes nodes in this order. controllers/nodetype makes a NodeTypeRevision of it, and package presentation makes
// a NodeTypeRendering of the revision, once. controllers/machine claims a BareMetalHost for each Machine and writes the claim
// Secret, whose documents package cloudinit renders. controllers/host serves the BareMetalHosts of redfish NodeProviders:
// hardware/redfish switches the power, hardware/netboot serves the network boot, and hardware/agent writes the image.
// controllers/validation compares the Node with the promise and lifts the gate. controllers/rollout moves Machines to the next
// revision. The terms are defined in api/v1alpha1/GLOSSARY.md.
//
// # Packages
//
// The drawing shows the packages of the product in their layers. An arrow leads from a package, or from a layer, to what it
// imports. An arrow that follows from other arrows is left out, and so are tests and simulators. test/arch enforces who may
// import whom; cmd/ingot-manager is the only program that connects adapters with controllers. Paste the drawing into a
// Mermaid viewer to see it as a picture.
//
//	%% Drawn by make architecture from the import declarations. Do not edit.
//	flowchart TD
//	  subgraph programs["programs"]
//	    cmd_ingot["cmd/ingot/..."]
//	    cmd_ingot_agent["cmd/ingot-agent"]
//	    cmd_ingot_demo["cmd/ingot-demo/..."]
//	    cmd_ingot_manager["cmd/ingot-manager/..."]
//	  end
//	  subgraph decisions["decisions: pure functions"]
//	    plan_bmcaddress["controllers/plan/bmcaddress"]
//	    plan_bootca["controllers/plan/bootca"]
//	    plan_bootnetwork["controllers/plan/bootnetwork"]
//	    plan_breaker["controllers/plan/breaker"]
//	    plan_contest["controllers/plan/contest"]
//	    plan_entitlement["controllers/plan/entitlement"]
//	    plan_event["controllers/plan/event"]
//	    plan_feasibility["controllers/plan/feasibility"]
//	    plan_host["controllers/plan/host"]
//	    plan_inuse["controllers/plan/inuse"]
//	    plan_inventory["controllers/plan/inventory"]
//	    plan_join["controllers/plan/join"]
//	    plan_leaderlease["controllers/plan/leaderlease"]
//	    plan_lifecycle["controllers/plan/lifecycle"]
//	    plan_nodeidentity["controllers/plan/nodeidentity"]
//	    plan_placement["controllers/plan/placement"]
//	    plan_probe["controllers/plan/probe"]
//	    plan_providerkind["controllers/plan/providerkind"]
//	    plan_queue["controllers/plan/queue"]
//	    plan_quota["controllers/plan/quota"]
//	    plan_rendering["controllers/plan/rendering"]
//	    plan_revision["controllers/plan/revision"]
//	    plan_revisionrollout["controllers/plan/revisionrollout"]
//	    plan_rollout["controllers/plan/rollout/..."]
//	    plan_sameserver["controllers/plan/sameserver"]
//	    plan_scaling["controllers/plan/scaling"]
//	    plan_servingcert["controllers/plan/servingcert"]
//	    plan_verdict["controllers/plan/verdict"]
//	    plan_watched["controllers/plan/watched"]
//	  end
//	  subgraph metal["hardware: ports and adapters"]
//	    hardware["controllers/hardware"]
//	    hardware_agent["controllers/hardware/agent/..."]
//	    hardware_cmdline["controllers/hardware/cmdline"]
//	    hardware_direct["controllers/hardware/direct"]
//	    hardware_diskrules["controllers/hardware/diskrules"]
//	    hardware_identity["controllers/hardware/identity"]
//	    hardware_ironic["controllers/hardware/ironic"]
//	    hardware_netboot["controllers/hardware/netboot/..."]
//	    hardware_pin["controllers/hardware/pin"]
//	    hardware_redfish["controllers/hardware/redfish/..."]
//	  end
//	  subgraph kit["shared by the controllers"]
//	    hostindex["controllers/hostindex"]
//	    readyourwrites["controllers/readyourwrites"]
//	    step["controllers/step"]
//	    tenantaccess["controllers/tenantaccess"]
//	  end
//	  subgraph shells["controllers and webhook"]
//	    controllers["controllers"]
//	    admission["controllers/admission/..."]
//	    entitlement["controllers/entitlement"]
//	    grants["controllers/grants"]
//	    hardwaredata["controllers/hardwaredata"]
//	    host["controllers/host/..."]
//	    inuse["controllers/inuse"]
//	    machine["controllers/machine/..."]
//	    nodepool["controllers/nodepool"]
//	    nodeprovider["controllers/nodeprovider"]
//	    nodequota["controllers/nodequota"]
//	    nodetype["controllers/nodetype"]
//	    osimage["controllers/osimage"]
//	    remainingnode["controllers/remainingnode"]
//	    rollout["controllers/rollout"]
//	    serverclock["controllers/serverclock"]
//	    servingcert["controllers/servingcert"]
//	    tenant["controllers/tenant"]
//	    validation["controllers/validation"]
//	  end
//	  subgraph documents["documents and expectations of nodes: pure functions"]
//	    cloudinit["cloudinit/..."]
//	    presentation["presentation/..."]
//	  end
//	  subgraph images["images"]
//	    imagebuilder["imagebuilder/..."]
//	  end
//	  subgraph manifests["manifests"]
//	    config["config"]
//	  end
//	  subgraph types["API types"]
//	    api_input["api/input"]
//	    api_v1alpha1["api/v1alpha1"]
//	  end
//	  decisions --> documents & metal
//	  documents --> types
//	  images --> types
//	  kit --> decisions
//	  metal --> types
//	  programs --> images & manifests & shells
//	  shells --> kit
//	  cmd_ingot_demo --> cmd_ingot
//	  controllers --> entitlement & hardwaredata & host & inuse & machine & nodepool & nodeprovider & nodequota & nodetype & osimage & remainingnode & rollout & servingcert & tenant & validation
//	  admission --> plan_feasibility & plan_rendering & plan_revision
//	  entitlement --> plan_entitlement & plan_event & plan_rendering & serverclock
//	  grants --> plan_breaker & serverclock
//	  hardware_agent --> hardware & hardware_cmdline
//	  hardware_cmdline --> hardware_pin
//	  hardware_direct --> hardware_netboot
//	  hardware_diskrules --> hardware
//	  hardware_ironic --> hardware
//	  hardware_netboot --> hardware_agent & hardware_diskrules & hardware_identity
//	  hardware_redfish --> hardware & hardware_identity
//	  hardwaredata --> plan_event & plan_inventory
//	  host --> grants & plan_bmcaddress & plan_bootca & plan_bootnetwork & plan_host & plan_sameserver & plan_verdict
//	  inuse --> plan_event & plan_inuse
//	  machine --> plan_join & plan_lifecycle & plan_placement & plan_quota & plan_rendering & plan_sameserver & serverclock
//	  nodepool --> plan_event & plan_join & plan_placement & plan_quota & plan_sameserver & plan_scaling
//	  nodeprovider --> plan_event
//	  nodequota --> plan_quota & serverclock
//	  nodetype --> plan_feasibility & plan_placement & plan_rendering & plan_revision & plan_rollout & plan_sameserver
//	  plan_breaker --> plan_watched
//	  plan_contest --> plan_watched
//	  plan_feasibility --> plan_providerkind
//	  plan_host --> plan_breaker & plan_event & plan_inventory & plan_queue
//	  plan_lifecycle --> plan_contest & plan_event & plan_inventory & plan_nodeidentity
//	  plan_placement --> plan_bmcaddress & plan_inventory & plan_providerkind
//	  plan_probe --> plan_watched
//	  plan_quota --> plan_watched
//	  plan_rollout --> plan_breaker & plan_event & plan_revisionrollout
//	  plan_verdict --> plan_contest & plan_event & plan_nodeidentity
//	  remainingnode --> plan_lifecycle & serverclock
//	  rollout --> grants & plan_entitlement & plan_rollout
//	  serverclock --> plan_watched
//	  servingcert --> plan_servingcert
//	  tenant --> plan_join
//	  validation --> plan_lifecycle & plan_probe & plan_rendering & plan_verdict & serverclock
//	%% End of the drawing.
package controllers
