// Package join proves that nodes join: the real kubeadm and kubelet carry out the user data that is rendered for each way to join, against a real API
// server.
package join
