// Package settings reads and validates the configuration file of ingot-manager.
package settings
