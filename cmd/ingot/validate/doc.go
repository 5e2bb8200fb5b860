// Package validate implements `ingot validate`, which reports all that is wrong with manifests before they are applied. It does
// what an API server with Ingot's definitions does, and then checks what needs several objects, with the code of the manager:
// references, GPU presentations, user data, selectors and addresses of hosts.
package validate
