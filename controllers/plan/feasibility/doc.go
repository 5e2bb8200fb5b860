// Package feasibility checks whether a NodeType can have nodes, given its OSImage and its NodeProvider: whether this version serves the
// provider and the provider can write the format of the image, whether the presentation is possible on those GPUs with that image,
// and whether user data, properties and network leave a node what it needs.
//
// The admission webhook, the NodeType controller and `ingot validate` use it, so that all three report the same. What only the
// cluster knows - which provider owns the host namespace, whether the image can be fetched - is checked by the controller.
package feasibility
