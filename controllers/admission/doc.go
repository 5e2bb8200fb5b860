// Package admission is the validating webhook for NodeTypes. It refuses a NodeType from which no node can be made, whatever other
// objects exist. The answer names the field, the rule and what would be accepted.
//
// The rules are in controllers/plan/feasibility, which the NodeType controller and `ingot validate` use as well. A NodeType is never
// refused because of another object, because manifests are applied in any order: an OSImage or a NodeProvider that does not exist
// yet, a driver in the OSImage that is too old for the GPUs, or wrong user data of the NodeProvider. These cause warnings in the
// answer, as the warnings of the plan do, and conditions that the NodeType controller sets. An update that does not change spec, or
// that is of a NodeType that is being deleted, is never refused.
//
// config/webhook registers the webhook for creations and for changes of spec, with failurePolicy Fail. While no manager runs, no
// NodeType can be created or changed. Its status, labels and deletion, and all other kinds, are not affected.
package admission
