// Package gpu simulates the GPUs of a server as their driver presents them: their names, their MIG instances, and the state
// that they keep.
//
// The tables are NVIDIA's MIG user guide's (profiles, placements) and what nvidia-smi prints (names, memory), written down
// model by model. How instances are placed is decided here from those tables alone.
//
// An Ampere GPU keeps its MIG mode in its InfoROM, through resets, power losses and new operating systems. Hopper forgets it
// with its driver. No GPU keeps its instances.
package gpu
