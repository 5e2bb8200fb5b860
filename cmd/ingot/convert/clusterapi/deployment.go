package clusterapi

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// deployment is a MachineDeployment with what it refers to. The zero value of a template: it is not in the files.
type deployment struct {
	offline.Manifest
	spec, machine map[string]any
	template      offline.Manifest
	// hosts are the specs of the Metal3Machines.
	hosts  map[string]any
	data   offline.Manifest
	config offline.Manifest
	// hostNamespace has the hosts that its hostSelector selects.
	hostNamespace string
}

func (c *converter) readDeployment(m offline.Manifest) deployment {
	d := deployment{Manifest: m, spec: conversion.ValueAt[map[string]any](m.Object, "spec")}
	d.machine = conversion.ValueAt[map[string]any](d.spec, "template", "spec")
	const field = "spec.template.spec"
	d.template, _ = c.find(m, field+".infrastructureRef", kindMachineTemplate, conversion.ValueAt[map[string]any](d.machine, "infrastructureRef"))
	d.config, _ = c.find(m, field+".bootstrap.configRef", kindConfigTemplate, conversion.ValueAt[map[string]any](d.machine, "bootstrap", "configRef"))
	d.hosts = conversion.ValueAt[map[string]any](d.template.Object, "spec", "template", "spec")
	if d.hosts != nil {
		d.data, _ = c.find(d.template, "spec.template.spec.dataTemplate", kindDataTemplate, conversion.ValueAt[map[string]any](d.hosts, "dataTemplate"))
	}
	d.hostNamespace = cmp.Or(conversion.ValueAt[string](d.hosts, "hostSelector", "namespace"), d.template.Namespace(), m.Namespace(), "default")
	return d
}

// cluster returns the name of the Cluster that its machines join.
func (d deployment) cluster() string {
	return cmp.Or(conversion.ValueAt[string](d.spec, "clusterName"), conversion.ValueAt[string](d.machine, "clusterName"))
}

// convertDeployment makes the OSImage, the NodeType and the NodePool.
func (c *converter) convertDeployment(d deployment) {
	name := c.nodeTypeName(d)
	spec := map[string]any{"providerRef": map[string]any{"name": d.hostNamespace}}
	if image := c.convertImage(d); image != "" {
		spec["osImageRef"] = map[string]any{"name": image}
	}
	c.convertSelector(d, spec)
	c.AddFinding(d.Manifest, "", conversion.RuleAdd, "if the servers of NodeType %s have GPUs, add spec.gpu: vendor, model, count and presentation; and spec.resources with what its nodes must have", name)
	c.convertData(d, spec)
	c.convertConfig(d, spec)
	c.convertDrain(d, spec)
	c.reportMachineFields(d)
	c.AddConverted("NodeType", map[string]any{"name": name}, spec)
	c.convertPool(d, name)
}

// nodeTypeName returns the name of the deployment, with its namespace where another one has that name: NodeTypes have no namespace.
func (c *converter) nodeTypeName(d deployment) string {
	name := d.Name()
	if c.nodeTypes[name] {
		name = cmp.Or(d.Namespace(), "default") + "-" + name
	}
	c.nodeTypes[name] = true
	return name
}

// convertPool makes the NodePool of the deployment.
func (c *converter) convertPool(d deployment, nodeType string) {
	metadata := map[string]any{"name": d.Name()}
	conversion.CopyField(metadata, "namespace", d.Namespace())
	cluster := d.cluster()
	spec := map[string]any{"nodeTypeRef": map[string]any{"name": nodeType}, "tenantClusterRef": map[string]any{"name": cluster}}
	if _, there := c.objects[key(kindCluster, d.Namespace(), cluster)]; !there {
		c.AddFinding(d.Manifest, "spec.clusterName", conversion.RuleAdd, "Cluster %s is not in the files: make its TenantCluster by `ingot tenant add`", cluster)
	}
	if n, there := d.spec["replicas"]; there {
		spec["replicas"] = n
	}
	c.AddFinding(d.Manifest, "spec.replicas", conversion.RuleCheck, "NodePool %s claims hosts that are available: scale the MachineDeployment down as you scale the pool up, one rack at a time", d.Name())
	rolling := conversion.ValueAt[map[string]any](d.spec, "strategy", "rollingUpdate")
	if rolling == nil {
		rolling = conversion.ValueAt[map[string]any](d.spec, "rollout", "strategy", "rollingUpdate")
	}
	if n, there := rolling["maxUnavailable"]; there && fmt.Sprint(n) != "0" {
		spec["rollout"] = map[string]any{"maxUnavailable": n}
	}
	if n, there := rolling["maxSurge"]; there && fmt.Sprint(n) != "0" {
		c.AddFinding(d.Manifest, "spec.strategy.rollingUpdate.maxSurge", conversion.RuleLost, "a Machine keeps its host when it is rolled, and none is added: say in rollout.maxUnavailable of NodePool or NodeType how many may be down")
	}
	c.AddConverted("NodePool", metadata, spec)
}

// convertDrain sets the longest time of a drain.
func (c *converter) convertDrain(d deployment, spec map[string]any) {
	timeout := conversion.ValueAt[string](d.machine, "nodeDrainTimeout")
	if seconds, there := conversion.ValueAt[map[string]any](d.machine, "deletion")["nodeDrainTimeoutSeconds"]; there && fmt.Sprint(seconds) != "0" {
		timeout = fmt.Sprint(seconds, "s")
	}
	if timeout == "" || timeout == "0s" || timeout == "0" {
		return
	}
	spec["rollout"] = map[string]any{"drain": map[string]any{"timeout": timeout}}
}

// reportMachineFields adds findings for the fields of a Metal3MachineTemplate that have no counterpart.
func (c *converter) reportMachineFields(d deployment) {
	if d.hosts == nil {
		return
	}
	c.ReportDroppedFields(d.template, d.hosts, "spec.template.spec", map[string]string{
		"customDeploy": "the image is written as it is: make an image that needs no custom deployment",
		"userData":     "name the NodeType's own user data in spec.userData: a Secret of it is written for each Machine",
		"metaData":     "Ingot writes the meta-data of each Machine: say in user data what it is needed for",
		"networkData":  "say the network as spec.network of the NodeProvider, or as the property ingot.dev/network-data-template of the NodeType",
	}, "image", "hostSelector", "automatedCleaningMode", "dataTemplate", "providerID")
}

// operators are the operators of Metal3's host selectors that label selectors have.
var operators = map[string]string{"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist", "=": "In", "==": "In", "!=": "NotIn"}

// convertSelector sets the hostSelector.
func (c *converter) convertSelector(d deployment, spec map[string]any) {
	const field = "spec.template.spec.hostSelector"
	said, selector := conversion.ValueAt[map[string]any](d.hosts, "hostSelector"), map[string]any{}
	conversion.CopyField(selector, "matchLabels", conversion.ValueAt[map[string]any](said, "matchLabels"))
	var expressions []any
	for _, item := range conversion.ValueAt[[]any](said, "matchExpressions") {
		one, _ := item.(map[string]any)
		operator := operators[strings.ToLower(conversion.ValueAt[string](one, "operator"))]
		if operator == "" {
			c.AddFinding(d.template, field+".matchExpressions", conversion.RuleLost, "a label selector has no operator %v: give the hosts a label for it", one["operator"])
			continue
		}
		e := map[string]any{"key": one["key"], "operator": operator}
		if operator == "In" || operator == "NotIn" {
			conversion.CopyField(e, "values", one["values"])
		}
		expressions = append(expressions, e)
	}
	conversion.CopyField(selector, "matchExpressions", expressions)
	if len(selector) == 0 {
		c.AddFinding(orDeployment(d.template, d), field, conversion.RuleAdd, "without a selector Cluster API takes any host, and one that selects every host is refused here: add spec.hostSelector")
		return
	}
	spec["hostSelector"] = selector
}

// orDeployment returns the manifest, or the deployment where it is not in the files.
func orDeployment(m offline.Manifest, d deployment) offline.Manifest {
	if m.Object == nil {
		return d.Manifest
	}
	return m
}
