// Package feasibility judges whether a NodeType can make nodes, given its OSImage and its NodeProvider: whether the provider
// is one that is served and writes the image's format, whether the presentation is possible on those GPUs with that image,
// and whether people's user data, properties and network leave the node what it needs.
//
// The admission webhook, the NodeType controller and `ingot validate` ask it, so that the three say the same. What only the
// cluster knows - whose the host namespace is, whether the image can be fetched - is the controller's to judge.
package feasibility
