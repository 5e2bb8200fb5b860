// Package admission answers API servers that ask whether a NodeType may be written: what can make no nodes whatever else there
// is, is refused with the field, the rule and what would fit, before a machine is touched.
//
// What is judged is controllers/plan/feasibility's, as the NodeType controller and `ingot validate` judge it. Nothing is refused for
// the sake of another object, since manifests are applied in any order and the answer must not depend on it: an OSImage or a
// NodeProvider that does not exist yet, a driver in the OSImage that is too old for the GPUs, user data of the NodeProvider that is
// wrong. These are warnings in the answer, with what the plan warns of, and conditions that the NodeType controller sets. An update that leaves spec as it is, and one of a NodeType that is being deleted, is never refused.
//
// config/webhook has API servers ask for creations and changes of spec alone, and fail those while no manager answers. So
// without a manager nobody makes or changes a NodeType; statuses, labels, deletions and every other kind go on.
package admission
