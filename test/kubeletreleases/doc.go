// Command kubeletreleases keeps the table of what the last six minor releases of kubelet know: their members of KubeletConfiguration and their feature
// gates. It reads Kubernetes' own modules.
package main
