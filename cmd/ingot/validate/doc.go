// Package validate is `ingot validate`: all that is wrong with manifests, one line each, before they are applied. It does what
// an API server with Ingot's definitions does, and then judges what needs several objects: references, GPU presentations,
// user data, selectors and addresses of hosts, by the code that the manager uses.
package validate
